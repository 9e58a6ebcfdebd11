/*
 * Changes code of a running target; see patchtext.h.
 *
 * The change must be one store of an aligned word. A write to /proc/PID/mem is a memcpy of the
 * kernel, which may copy byte by byte on newer processors. So the target stores the word itself:
 * the batch routine in a remote session makes the page writable, stores, and restores the
 * protection. Where mprotect is refused, /proc/PID/mem is used; its copy of eight aligned bytes is
 * one store on processors without fast short copies (FSRM).
 *
 * No barrier follows: a processor notices a store to code by itself, within the instructions that
 * it has already fetched. MEMBARRIER_..._SYNC_CORE would wait for that, but registering for it
 * takes an RCU grace period in a process with several threads, about 10 ms on the stopped thread.
 * Where it matters, before padding is restored, assay itself waits (membarrier GLOBAL).
 *
 * Restoring: first the functions; then wait until each thread has been seen outside of padding,
 * stubs and image once (quiesce.h); then the padding.
 */
#include "base/base.h"
#include "remote/patch/patchtext.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "remote/patch/image.h"
#include "remote/patch/injectstate.h"
#include "remote/patch/quiesce.h"

#define QUIESCE_TIMEOUT_NS (2 * NS_PER_SEC)
#define BARRIER_NS         (10 * NS_PER_MS) /* wait instead of membarrier */

struct store {
	uint64_t word; /* address */
	uint64_t value;
};

struct stores {
	VEC(struct store) v;
};

static int by_word(const void *a, const void *b)
{
	const struct store *x = a;
	const struct store *y = b;
	return x->word < y->word ? -1 : x->word > y->word;
}

/* Adds a change to the store of the word that contains it. -ESTALE: not the expected bytes. */
static int add_store(struct heapinject *h, struct stores *s, const struct text_patch *p,
		     const uint8_t *from, const uint8_t *to)
{
	uint64_t word = p->at & ~7ull;
	struct store *st = NULL;
	vec_foreach(known, &s->v)
		if (known->word == word)
			st = known;
	if (!st) {
		struct store new = {.word = word};
		if (heapinject_read(h, word, &new.value, 8))
			return -EFAULT;
		vec_push(&s->v, new);
		st = vec_last(&s->v);
	}
	uint8_t bytes[8];
	memcpy(bytes, &st->value, 8);
	if (memcmp(bytes + (p->at - word), from, p->nr_bytes))
		return -ESTALE; /* the library was unloaded, or others changed it */
	memcpy(bytes + (p->at - word), to, p->nr_bytes);
	memcpy(&st->value, bytes, 8);
	return 0;
}

static int store_by_mem(struct heapinject *h, const struct stores *s, struct err *err)
{
	vec_foreach(st, &s->v)
		TRY(heapinject_write(h, st->word, &st->value, 8, err));
	return 0;
}

static struct heapcode_op protect_op(uint64_t page, int prot)
{
	return (struct heapcode_op){.nr = SYS_mprotect, .args = {page, PAGE_BYTES, (uint64_t)prot}};
}

/* The protection to restore: some programs have writable code. */
static int prot_of(const struct heapinject *h, uint64_t page)
{
	const struct heapspace_map *m = heapspace_at(&h->space, page);
	return m && m->is_exec ? m->prot : PROT_READ | PROT_EXEC;
}

/* Per page: mprotect, stores, mprotect back. */
static int store_in_target(struct heapinject *h, struct remote *r, struct stores *s,
			   struct err *err)
{
	CLEANUP(vec_free_p) struct heapcode_ops ops = {0};
	qsort(s->v.p, s->v.n, sizeof(*s->v.p), by_word);
	for (size_t i = 0; i < s->v.n; i++) {
		const struct store *st = &s->v.p[i];
		uint64_t page = st->word & ~(PAGE_BYTES - 1);
		if (!i || page != (st[-1].word & ~(PAGE_BYTES - 1)))
			vec_push(&ops.v, protect_op(page, PROT_READ | PROT_WRITE | PROT_EXEC));
		vec_push(&ops.v,
			 (struct heapcode_op){.nr = HEAPCODE_STORE, .args = {st->word, st->value}});
		if (i + 1 == s->v.n || page != (st[1].word & ~(PAGE_BYTES - 1)))
			vec_push(&ops.v, protect_op(page, prot_of(h, page)));
	}
	int rc = heapinject_batch(h, r, ops.v.p, ops.v.n, err);
	if (rc == -EACCES || rc == -EPERM || rc == -ENOMEM) {
		err_release(err);
		return store_by_mem(h, s, err);
	}
	return rc;
}

static int store_all(struct heapinject *h, struct remote *r, struct stores *s, struct err *err)
{
	if (!s->v.n)
		return 0;
	if (h->is_held || !r || !h->batch || h->has_filter)
		return store_by_mem(h, s, err);
	return store_in_target(h, r, s, err);
}

static int write_head(struct heapinject *h, const struct stub_region *g, struct err *err)
{
	struct stub_head head = {
		.magic = STUB_MAGIC,
		.version = STUB_VERSION,
		.nr_patches = (uint32_t)g->patches.n,
		.nr_stubs = g->nr_stubs,
		.saved_layouts = {h->saved_layouts[0], h->saved_layouts[1]},
		.pid = h->pid,
		.hooks = h->hooks,
		.backtrace = h->backtrace,
	};
	if (g->patches.n)
		TRY(heapinject_write(h, g->addr + sizeof(head), g->patches.p,
				     g->patches.n * sizeof(*g->patches.p), err));
	return heapinject_write(h, g->addr, &head, sizeof(head), err);
}

int heaptext_write_heads(struct heapinject *h, struct err *err)
{
	vec_foreach(g, &h->regions)
		TRY(write_head(h, g, err));
	return 0;
}

/* Writes padding. This comes before add_store, whose words may include some of it. */
static int write_gaps(struct heapinject *h, struct err *err)
{
	vec_foreach(g, &h->regions) {
		/* First what is needed to undo it. */
		TRY(g->addr ? write_head(h, g, err) : 0);
		vec_foreach(p, &g->patches)
			if (p->has_gap)
				TRY(heapinject_write(h, p->gap, p->gap_new, 5, err));
	}
	return 0;
}

int heaptext_patch(struct heapinject *h, struct remote *r, struct err *err)
{
	CLEANUP(vec_free_p) struct stores s = {0};
	TRY(write_gaps(h, err));
	vec_foreach(g, &h->regions)
		vec_foreach(p, &g->patches)
			if (!p->is_multi && add_store(h, &s, p, p->old, p->new))
				return err_set(err, -ESTALE, "code of pid %d has changed", h->pid);
	return store_all(h, r, &s, err);
}

int heaptext_restore(struct heapinject *h, struct remote *r, struct err *err)
{
	CLEANUP(vec_free_p) struct stores s = {0};
	vec_foreach(g, &h->regions)
		vec_foreach(p, &g->patches)
			if (!p->is_multi) /* code that others changed stays */
				(void)add_store(h, &s, p, p->new, p->old);
	return store_all(h, r, &s, err);
}

static bool has_bytes(struct heapinject *h, uint64_t at, const uint8_t bytes[5])
{
	uint8_t now[5];
	return !heapinject_read(h, at, now, sizeof(now)) && !memcmp(now, bytes, sizeof(now));
}

/* PATCH_MULTI, with threads stopped. */
struct multi_change {
	struct heapinject *h;
	bool is_restore;
};

static int change_multi(void *ctx, struct err *err)
{
	const struct multi_change *w = ctx;
	vec_foreach(g, &w->h->regions) {
		vec_foreach(p, &g->patches) {
			const uint8_t *from = w->is_restore ? p->new : p->old;
			const uint8_t *to = w->is_restore ? p->old : p->new;
			if (p->is_multi && has_bytes(w->h, p->at, from))
				TRY(heapinject_write(w->h, p->at, to, 5, err));
		}
	}
	return 0;
}

int heaptext_change_multi(struct heapinject *h, bool is_restore, struct err *err)
{
	CLEANUP(heap_ranges_release) struct heap_ranges ranges = {0};
	struct multi_change w = {h, is_restore};
	uint64_t longest_ns = 0;
	vec_foreach(g, &h->regions)
		vec_foreach(p, &g->patches)
			if (p->is_multi) /* a thread may be at the first byte */
				vec_push(&ranges,
					 (struct heap_range){p->at + 1, p->at + p->nr_multi});
	if (!ranges.n)
		return 0;
	int rc = h->is_held ? change_multi(&w, err)
			    : stop_all_threads(h->pid, &ranges, change_multi, &w, &longest_ns, err);
	h->info.had_to_stop_all |= !h->is_held;
	h->info.stopped_ns = MAX(h->info.stopped_ns, longest_ns);
	return rc;
}

static int restore_gaps(struct heapinject *h, struct err *err)
{
	vec_foreach(g, &h->regions) {
		vec_foreach(p, &g->patches)
			if (p->has_gap && has_bytes(h, p->gap, p->gap_new))
				TRY(heapinject_write(h, p->gap, p->gap_old, 5, err));
		vec_clear(&g->patches);
		TRY(write_head(h, g, err));
	}
	return 0;
}

static void add_ranges(const struct heapinject *h, struct heap_ranges *to)
{
	vec_push(to, (struct heap_range){h->image, h->image + heap_image()->text_bytes});
	vec_foreach(g, &h->regions) {
		vec_push(to,
			 (struct heap_range){g->addr, g->addr + stub_region_bytes(g->nr_stubs)});
		vec_foreach(p, &g->patches)
			if (p->has_gap)
				vec_push(to, (struct heap_range){p->gap, p->gap + 5});
	}
}

bool heaptext_may_return(struct heapinject *h)
{
	CLEANUP(heap_ranges_release) struct heap_ranges ranges = {0};
	uint64_t longest_ns = 0;
	add_ranges(h, &ranges);
	bool may = quiesce_may_return(h->pid, &ranges, &longest_ns);
	h->info.stopped_ns = MAX(h->info.stopped_ns, longest_ns);
	return may;
}

int heaptext_quiesce(struct heapinject *h, struct err *err)
{
	CLEANUP(heap_ranges_release) struct heap_ranges ranges = {0};
	add_ranges(h, &ranges);
	uint64_t longest_ns = 0;
	/* After this every CPU has entered the kernel. */
	if (!h->is_held && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		(void)nanosleep(&(struct timespec){.tv_nsec = BARRIER_NS}, NULL);
	int rc = h->is_held ? 0
			    : quiesce_threads(h->pid, &ranges, clock_mono_ns() + QUIESCE_TIMEOUT_NS,
					      &longest_ns, err);
	h->info.stopped_ns = MAX(h->info.stopped_ns, longest_ns);
	return rc ? rc : restore_gaps(h, err);
}
