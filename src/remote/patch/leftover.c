/* What an earlier attach left; see leftover.h. */
#include "base/base.h"
#include "remote/patch/leftover.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/proc.h"
#include "remote/patch/attach.h"
#include "remote/patch/image.h"
#include "remote/patch/injectstate.h"

#define REGIONS_MAX    64u
#define OTHER_ASSAY_NS (700 * NS_PER_MS) /* a running assay updates alive_tsc more often */
#define LAST_CALL_NS   (20 * NS_PER_MS)

static void find_image(struct heapinject *h)
{
	size_t n;
	const uint8_t *ours = heap_image_bytes(&n);
	const struct heap_image *im = heap_image();
	CLEANUP(free_p) uint8_t *theirs = xmalloc(im->text_bytes);
	vec_foreach(m, &h->space.maps) {
		struct heap_data data;
		if (m->kind != HEAPSPACE_IS_IMAGE || m->pgoff || !m->is_exec ||
		    heapinject_read(h, m->start, theirs, im->text_bytes) ||
		    memcmp(theirs, ours, im->text_bytes) ||
		    heapinject_read(h, m->start + im->data, &data, sizeof(data)) ||
		    data.magic != HEAP_WIRE_MAGIC || data.version != HEAP_WIRE_VERSION)
			continue;
		h->image = m->start;
		h->info.is_reused = true;
		return;
	}
}

/* Checks a patch read from the target's memory, which is not trusted. */
static bool is_valid(const struct text_patch *p)
{
	bool is_store = !p->is_multi && (p->nr_bytes == 2 || p->nr_bytes == 5) &&
			(p->at & 7) + p->nr_bytes <= 8;
	bool is_multi = p->is_multi && p->nr_bytes == 5 && p->nr_multi <= HEAPCODE_DISPLACED_MAX;
	return is_store || is_multi;
}

static void read_patches(struct heapinject *h, struct stub_region *g, uint32_t n)
{
	struct text_patch p;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = g->addr + sizeof(struct stub_head) + i * sizeof(p);
		if (!heapinject_read(h, at, &p, sizeof(p)) && is_valid(&p))
			vec_push(&g->patches, p);
	}
}

/* Takes the layouts of earlier attaches. They come from the target: used only after checks. */
static void read_layouts(struct heapinject *h, const struct stub_head *head)
{
	for (size_t i = 0; i < ARRAY_LEN(h->saved_layouts); i++) {
		const struct heap_layout *p = &head->saved_layouts[i];
		const struct heapspace_map *m = heapspace_at(&h->space, p->local);
		if (m && p->local_bytes > REMOTE_AREA_BYTES && p->local_bytes <= m->end - p->local)
			h->saved_layouts[i] = *p;
	}
	h->old = h->saved_layouts[h->spec->is_full_trace];
}

static int add_region(struct heapinject *h, const struct heapspace_map *m, struct err *err)
{
	struct stub_head head;
	if (heapinject_read(h, m->start, &head, sizeof(head)) || head.magic != STUB_MAGIC ||
	    head.nr_stubs > HEAP_SITES_MAX || head.nr_patches > head.nr_stubs ||
	    m->end - m->start < stub_region_bytes(head.nr_stubs))
		return 0; /* not ours, or incomplete */
	if (head.version != STUB_VERSION) {
		if (!head.nr_patches)
			return 0;
		err_set(err, -EPROTO, "pid %d still has patches of another version of assay",
			h->pid);
		return err_hint(err,
				"record it once more with that version, or restart the process");
	}
	struct stub_region *g = vec_add(&h->regions);
	g->addr = m->start;
	g->nr_stubs = head.nr_stubs;
	read_patches(h, g, head.nr_patches);
	h->batch = stub_region_batch(g);
	if (head.pid == h->pid)
		read_layouts(h, &head);
	h->hooks = h->hooks ? h->hooks : head.hooks;
	h->backtrace = h->backtrace ? h->backtrace : head.backtrace;
	return 0;
}

/* Sums the alive_tsc of all rings. False: there is no ring. */
static bool sum_alive_times(struct heapinject *h, uint64_t *ret_sum)
{
	bool has_ring = false;
	*ret_sum = 0;
	vec_foreach(m, &h->space.maps) {
		uint64_t at = m->start + offsetof(struct heap_shared, alive_tsc);
		uint64_t tsc = 0;
		if (m->kind != HEAPSPACE_IS_RING || heapinject_read(h, at, &tsc, 8))
			continue;
		has_ring = true;
		*ret_sum += tsc;
	}
	return has_ring;
}

int leftover_check_busy(struct heapinject *h, struct err *err)
{
	uint64_t before = 0;
	uint64_t after = 0;
	if (!sum_alive_times(h, &before))
		return 0;
	uint64_t end_ns = clock_mono_ns() + OTHER_ASSAY_NS;
	do {
		(void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
		if (sum_alive_times(h, &after) && after != before) {
			err_set(err, -EBUSY,
				"the heap of pid %d is being recorded by another assay", h->pid);
			return err_hint(err, "wait until it ends, or stop it");
		}
	} while (clock_mono_ns() < end_ns);
	return 0;
}

static uint64_t area_of(const struct heap_layout *p)
{
	return p->local ? p->local + p->local_bytes - REMOTE_AREA_BYTES : 0;
}

static bool may_area_be_used(const struct heapinject *h)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	bool is_used = false;
	(void)proc_threads(&tids, h->pid, NULL); /* on failure it has ended */
	vec_foreach(tid, &tids.pids) {
		struct proc_wait w = {0};
		int rc = proc_wait(h->pid, *tid, &w);
		if (rc == -EAGAIN) /* running */
			is_used = true;
		for (size_t i = 0; !rc && i < ARRAY_LEN(h->saved_layouts); i++)
			if (w.sp - area_of(&h->saved_layouts[i]) < REMOTE_AREA_BYTES)
				is_used = true;
	}
	return is_used;
}

/*
 * A thread may still execute the last call of an assay that was killed, on the stack in the area. A
 * blocked thread shows its stack pointer, a running one does not; such a call takes less than 1 ms.
 */
void leftover_check_area(struct heapinject *h)
{
	uint64_t start_ns = clock_mono_ns();
	for (;;) {
		h->is_area_unsafe = may_area_be_used(h);
		if (!h->is_area_unsafe || clock_mono_ns() - start_ns > LAST_CALL_NS)
			return;
		(void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
}

int leftover_undo(struct heapinject *h, struct err *err)
{
	bool needs_undo = h->hooks || h->backtrace;
	vec_foreach(g, &h->regions)
		needs_undo |= g->patches.n > 0;
	if (!needs_undo)
		return 0;
	h->is_area_unsafe = true;
	return heapinject_undo(h, h->mallctl && (h->hooks || h->backtrace), err);
}

int leftover_inspect(struct heapinject *h, struct err *err)
{
	TRY(heapspace_read(&h->space, h->pid, err));
	find_image(h);
	vec_foreach(m, &h->space.maps) {
		if (m->kind != HEAPSPACE_IS_STUBS || !m->is_exec || h->regions.n >= REGIONS_MAX)
			continue;
		TRY(add_region(h, m, err));
	}
	return 0;
}

/* The local memory of the attach with h->generation, or NULL: another assay has attached since. */
static const struct heap_layout *find_own_layout(struct heapinject *h)
{
	for (size_t i = 0; i < ARRAY_LEN(h->saved_layouts); i++) {
		const struct heap_layout *p = &h->saved_layouts[i];
		uint32_t generation = 0;
		uint64_t at = p->local + offsetof(struct heap_local, generation);
		if (p->local && !heapinject_read(h, at, &generation, sizeof(generation)) &&
		    generation == h->generation)
			return p;
	}
	return NULL;
}

int leftover_undo_attach(struct heapinject *h, struct err *err)
{
	CLEANUP(heapinject_close) struct heap_session s = {0};
	CLEANUP(vec_free_p) struct heapcode_ops l = {0};
	TRY(leftover_inspect(h, err));
	const struct heap_layout *p = find_own_layout(h);
	if (!p)
		return 0;
	const uint32_t off = 0;
	h->is_area_unsafe = true;
	TRY(heapinject_write(h, p->local + offsetof(struct heap_local, is_active), &off,
			     sizeof(off), err));
	TRY(leftover_undo(h, err));
	heapattach_unmap_stale(h, &l);
	if (!l.v.n)
		return 0;
	TRY(heapinject_open(&s, h, false, err));
	/* With a filter it stays mapped, unused. */
	return h->has_filter ? 0 : heapinject_batch(h, s.r, l.v.p, l.v.n, err);
}
