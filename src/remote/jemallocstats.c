/*
 * Statistics of a running jemalloc; see jemalloc.h.
 *
 * There are some hundred values, and each is a call. They are of one moment, that of the write to
 * `epoch`, and stay until the next one, so they are asked for in several short sessions: between
 * them the borrowed thread goes on with its work.
 */
#include "base/base.h"
#include "remote/jemalloc.h"

#include <errno.h>
#include <stdarg.h>

#include "base/clock.h"
#include "base/mem.h"

#define SESSION_NS  NS_PER_MS /* after so long the thread is let go */
#define CLASSES_MAX 1024

struct asker {
	int32_t pid;
	const struct heap_plan *plan;
	struct jemalloc *j;
	struct jemalloc_stats *to;
};

static void let_go(struct asker *a)
{
	if (!a->j)
		return;
	a->to->stopped_ns = MAX(a->to->stopped_ns, jemalloc_stopped_ns(a->j));
	jemalloc_close(a->j);
	a->j = NULL;
}

static int borrow(struct asker *a, struct err *err)
{
	if (a->j && jemalloc_stopped_ns(a->j) < SESSION_NS)
		return 0;
	let_go(a);
	a->to->nr_sessions++;
	return jemalloc_open(&a->j, a->pid, a->plan, err);
}

static int ask_size(struct asker *a, uint64_t *ret, struct err *err, const char *fmt, ...)
	PRINTF(4, 5);
static int ask_size(struct asker *a, uint64_t *ret, struct err *err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *name CLEANUP(free_p) = xvasprintf(fmt, ap);
	va_end(ap);
	TRY(borrow(a, err));
	return jemalloc_read_size(a->j, name, ret, err);
}

static int ask_u32(struct asker *a, uint32_t *ret, struct err *err, const char *fmt, ...)
	PRINTF(4, 5);
static int ask_u32(struct asker *a, uint32_t *ret, struct err *err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *name CLEANUP(free_p) = xvasprintf(fmt, ap);
	va_end(ap);
	TRY(borrow(a, err));
	return jemalloc_read_u32(a->j, name, ret, err);
}

#define ALL "stats.arenas.4096." /* MALLCTL_ARENAS_ALL */

/* Names that not every version has: their absence is no error. */
static int absent_ok(int rc, struct err *err)
{
	if (rc != -ENOENT)
		return rc;
	err_clear(err);
	return 0;
}

static int ask_totals(struct asker *a, struct err *err)
{
	struct jemalloc_stats *s = a->to;
	const struct {
		const char *name;
		uint64_t *to;
	} totals[] = {
		{"stats.allocated", &s->allocated_bytes}, {"stats.active", &s->active_bytes},
		{"stats.metadata", &s->metadata_bytes},   {"stats.resident", &s->resident_bytes},
		{"stats.mapped", &s->mapped_bytes},       {"stats.retained", &s->retained_bytes},
		{"arenas.page", &s->page_bytes},
	};
	for (size_t i = 0; i < ARRAY_LEN(totals); i++) {
		TRY(ask_size(a, totals[i].to, err, "%s", totals[i].name));
	}
	uint64_t dirty = 0;
	uint64_t muzzy = 0;
	int rc = ask_size(a, &dirty, err, ALL "pdirty");
	if (!rc)
		rc = absent_ok(ask_size(a, &muzzy, err, ALL "pmuzzy"), err);
	s->tcache_bytes = UINT64_MAX;
	if (!rc)
		rc = absent_ok(ask_size(a, &s->tcache_bytes, err, ALL "tcache_bytes"), err);
	if (!rc)
		rc = ask_u32(a, &s->nr_threads, err, ALL "nthreads");
	s->dirty_bytes = dirty * s->page_bytes;
	s->muzzy_bytes = muzzy * s->page_bytes;
	return rc;
}

static int ask_options(struct asker *a, struct err *err)
{
	struct jemalloc_stats *s = a->to;
	uint64_t dirty = 0;
	uint64_t muzzy = 0;
	int rc = ask_u32(a, &s->nr_arenas, err, "arenas.narenas");
	if (!rc)
		rc = absent_ok(ask_size(a, &dirty, err, "arenas.dirty_decay_ms"), err);
	if (!rc)
		rc = absent_ok(ask_size(a, &muzzy, err, "arenas.muzzy_decay_ms"), err);
	if (!rc)
		rc = borrow(a, err);
	if (!rc)
		rc = absent_ok(jemalloc_read_bool(a->j, "background_thread",
						  &s->has_background_thread, err),
			       err);
	if (!rc)
		rc = jemalloc_prof_state(a->j, &s->prof, err);
	s->dirty_decay_ms = (int64_t)dirty;
	s->muzzy_decay_ms = (int64_t)muzzy;
	return rc;
}

/* Small classes: how many blocks, in how many slabs of how many places. */
static int ask_bins(struct asker *a, struct err *err)
{
	uint32_t nr = 0;
	int rc = ask_u32(a, &nr, err, "arenas.nbins");
	for (uint32_t i = 0; !rc && i < MIN(nr, CLASSES_MAX); i++) {
		struct jemalloc_class c = {0};
		rc = ask_size(a, &c.nr_slabs, err, ALL "bins.%u.curslabs", i);
		if (rc || !c.nr_slabs)
			continue;
		rc = ask_size(a, &c.nr_live, err, ALL "bins.%u.curregs", i);
		if (!rc)
			rc = ask_size(a, &c.size_bytes, err, "arenas.bin.%u.size", i);
		if (!rc)
			rc = ask_size(a, &c.slab_bytes, err, "arenas.bin.%u.slab_size", i);
		if (!rc)
			rc = ask_u32(a, &c.nr_per_slab, err, "arenas.bin.%u.nregs", i);
		if (!rc)
			vec_push(&a->to->classes, c);
	}
	return rc;
}

/* Large ones: a block is an extent of its own. */
static int ask_large(struct asker *a, struct err *err)
{
	uint32_t nr = 0;
	uint64_t left = 0; /* classes above what is allocated in all cannot be in use */
	int rc = ask_u32(a, &nr, err, "arenas.nlextents");
	if (!rc)
		rc = ask_size(a, &left, err, ALL "large.allocated");
	for (uint32_t i = 0; !rc && left && i < MIN(nr, CLASSES_MAX); i++) {
		struct jemalloc_class c = {.is_large = true};
		rc = ask_size(a, &c.nr_live, err, ALL "lextents.%u.curlextents", i);
		if (rc || !c.nr_live)
			continue;
		rc = ask_size(a, &c.size_bytes, err, "arenas.lextent.%u.size", i);
		if (rc)
			break;
		vec_push(&a->to->classes, c);
		uint64_t bytes;
		bool is_over = __builtin_mul_overflow(c.nr_live, c.size_bytes, &bytes);
		left = is_over || bytes > left ? 0 : left - bytes;
	}
	return rc;
}

static int ask_all(struct asker *a, struct err *err)
{
	uint64_t epoch = 1;
	TRY(borrow(a, err));
	a->to->version = xstrdup(jemalloc_version(a->j));
	int rc = jemalloc_read_bool(a->j, "config.stats", &a->to->has_stats, err);
	if (!rc)
		rc = ask_options(a, err);
	if (rc || !a->to->has_stats)
		return rc;
	TRY(borrow(a, err));
	TRY(jemalloc_write(a->j, "epoch", &epoch, sizeof(epoch), err));
	TRY(ask_totals(a, err));
	TRY(ask_bins(a, err));
	return ask_large(a, err);
}

int jemalloc_stats_read(struct jemalloc_stats *ret_s, int32_t pid, const struct heap_plan *plan,
			struct err *err)
{
	CLEANUP(jemalloc_stats_release) struct jemalloc_stats s = {0};
	struct asker a = {.pid = pid, .plan = plan, .to = &s};
	int rc = ask_all(&a, err);
	let_go(&a);
	if (rc)
		return rc;
	*ret_s = s;
	s = (struct jemalloc_stats){0};
	return 0;
}

int jemalloc_stats_totals(struct jemalloc_stats *ret_s, int32_t pid, const struct heap_plan *plan,
			  struct err *err)
{
	CLEANUP(jemalloc_stats_release) struct jemalloc_stats s = {0};
	struct asker a = {.pid = pid, .plan = plan, .to = &s};
	const struct {
		const char *name;
		uint64_t *to;
	} totals[] = {
		{"stats.allocated", &s.allocated_bytes},
		{"stats.active", &s.active_bytes},
		{"stats.resident", &s.resident_bytes},
		{"stats.retained", &s.retained_bytes},
	};
	uint64_t epoch = 1;
	int rc = borrow(&a, err);
	if (!rc)
		rc = jemalloc_read_bool(a.j, "config.stats", &s.has_stats, err);
	if (!rc && s.has_stats)
		rc = jemalloc_write(a.j, "epoch", &epoch, sizeof(epoch), err);
	for (size_t i = 0; !rc && s.has_stats && i < ARRAY_LEN(totals); i++)
		rc = ask_size(&a, totals[i].to, err, "%s", totals[i].name);
	let_go(&a);
	if (rc)
		return rc;
	*ret_s = s;
	s = (struct jemalloc_stats){0};
	return 0;
}

/* Adds up what the classes of one kind handed out; nmalloc would leave out threads' caches. */
static int add_ever(struct asker *a, const char *what, const char *size, uint32_t nr,
		    uint64_t *total, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < MIN(nr, CLASSES_MAX); i++) {
		uint64_t calls = 0;
		uint64_t bytes = 0;
		uint64_t product;
		rc = ask_size(a, &calls, err, ALL "%s.%u.nrequests", what, i);
		if (!rc && calls)
			rc = ask_size(a, &bytes, err, "arenas.%s.%u.size", size, i);
		if (!rc && !__builtin_mul_overflow(calls, bytes, &product))
			*total += product;
	}
	return rc;
}

int jemalloc_stats_ever(uint64_t *ret_bytes, int32_t pid, const struct heap_plan *plan,
			struct err *err)
{
	CLEANUP(jemalloc_stats_release) struct jemalloc_stats s = {0};
	struct asker a = {.pid = pid, .plan = plan, .to = &s};
	uint64_t epoch = 1;
	uint64_t total = 0;
	uint32_t nr_bins = 0;
	uint32_t nr_large = 0;
	int rc = borrow(&a, err);
	if (!rc)
		rc = jemalloc_write(a.j, "epoch", &epoch, sizeof(epoch), err);
	if (!rc)
		rc = ask_u32(&a, &nr_bins, err, "arenas.nbins");
	if (!rc)
		rc = ask_u32(&a, &nr_large, err, "arenas.nlextents");
	if (!rc)
		rc = add_ever(&a, "bins", "bin", nr_bins, &total, err);
	if (!rc)
		rc = add_ever(&a, "lextents", "lextent", nr_large, &total, err);
	let_go(&a);
	if (!rc)
		*ret_bytes = total;
	return rc;
}

void jemalloc_stats_release(struct jemalloc_stats *s)
{
	free_p(&s->version);
	vec_release(&s->classes);
	*s = (struct jemalloc_stats){0};
}
