/*
 * Statistics of a running jemalloc; see jemalloc.h.
 *
 * There are several hundred values, and reading one is a remote call. All are of the moment of the
 * last write to `epoch`, so they can be read in several short sessions, between which the thread
 * runs.
 */
#include "base/base.h"
#include "remote/jemalloc/jemalloc.h"

#include <errno.h>
#include <stdarg.h>

#include "base/clock.h"
#include "base/mem.h"

#define SESSION_MAX_NS NS_PER_MS /* then the thread is resumed */
#define CLASSES_MAX    1024

struct stats_reader {
	int32_t pid;
	const struct heap_plan *plan;
	struct jemalloc *j;
	struct allocstats *to;
};

static void close_session(struct stats_reader *a)
{
	if (!a->j)
		return;
	a->to->stopped_ns = MAX(a->to->stopped_ns, jemalloc_stopped_ns(a->j));
	jemalloc_close(a->j);
	a->j = NULL;
}

static int open_session(struct stats_reader *a, struct err *err)
{
	if (a->j && jemalloc_stopped_ns(a->j) < SESSION_MAX_NS)
		return 0;
	close_session(a);
	a->to->nr_sessions++;
	return jemalloc_open(&a->j, a->pid, a->plan, err);
}

static int read_value(struct stats_reader *a, void *ret, size_t n, struct err *err, const char *fmt,
		      ...) PRINTF(5, 6);
static int read_value(struct stats_reader *a, void *ret, size_t n, struct err *err, const char *fmt,
		      ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *name CLEANUP(free_p) = xvasprintf(fmt, ap);
	va_end(ap);
	TRY(open_session(a, err));
	return jemalloc_read(a->j, name, ret, n, err);
}

/* Makes jemalloc update its statistics; later reads return these. */
static int begin_epoch(struct stats_reader *a, struct err *err)
{
	uint64_t epoch = 1;
	TRY(open_session(a, err));
	return jemalloc_write(a->j, "epoch", &epoch, sizeof(epoch), err);
}

#define ALL "stats.arenas.4096." /* MALLCTL_ARENAS_ALL */

/* For names that not every version has: -ENOENT becomes success. */
static int allow_absent(int rc, struct err *err)
{
	if (rc != -ENOENT)
		return rc;
	err_release(err);
	return 0;
}

static int read_sums(struct stats_reader *a, bool is_all, struct err *err)
{
	struct allocstats *s = a->to;
	const struct {
		const char *name;
		uint64_t *to;
		bool is_basic;
	} sums[] = {
		{"stats.allocated", &s->allocated_bytes, true},
		{"stats.active", &s->active_bytes, true},
		{"stats.metadata", &s->metadata_bytes, false},
		{"stats.resident", &s->resident_bytes, true},
		{"stats.mapped", &s->mapped_bytes, false},
		{"stats.retained", &s->retained_bytes, true},
	};
	for (size_t i = 0; i < ARRAY_LEN(sums); i++)
		if (is_all || sums[i].is_basic)
			TRY(read_value(a, sums[i].to, sizeof(uint64_t), err, "%s", sums[i].name));
	return 0;
}

static int read_totals(struct stats_reader *a, struct err *err)
{
	struct allocstats *s = a->to;
	TRY(read_sums(a, true, err));
	s->tcache_bytes = ALLOCSTATS_UNKNOWN;
	TRY(allow_absent(read_value(a, &s->tcache_bytes, sizeof(s->tcache_bytes), err,
				    ALL "tcache_bytes"),
			 err));
	return read_value(a, &s->nr_threads, sizeof(s->nr_threads), err, ALL "nthreads");
}

static int read_options(struct stats_reader *a, struct err *err)
{
	struct allocstats *s = a->to;
	uint64_t dirty = 0;
	TRY(read_value(a, &s->nr_arenas, sizeof(s->nr_arenas), err, "arenas.narenas"));
	TRY(allow_absent(read_value(a, &dirty, sizeof(dirty), err, "arenas.dirty_decay_ms"), err));
	s->dirty_decay_ms = (int64_t)dirty;
	TRY(open_session(a, err));
	int rc = jemalloc_read_bool(a->j, "background_thread", &s->has_background_thread, err);
	return allow_absent(rc, err);
}

/* Small size classes: blocks, slabs, blocks per slab. */
static int read_bins(struct stats_reader *a, struct err *err)
{
	uint32_t nr = 0;
	TRY(read_value(a, &nr, sizeof(nr), err, "arenas.nbins"));
	for (uint32_t i = 0; i < MIN(nr, CLASSES_MAX); i++) {
		struct allocstats_class c = {0};
		TRY(read_value(a, &c.nr_slabs, sizeof(c.nr_slabs), err, ALL "bins.%u.curslabs", i));
		if (!c.nr_slabs)
			continue;
		TRY(read_value(a, &c.nr_live, sizeof(c.nr_live), err, ALL "bins.%u.curregs", i));
		TRY(read_value(a, &c.size_bytes, sizeof(c.size_bytes), err, "arenas.bin.%u.size",
			       i));
		TRY(read_value(a, &c.nr_per_slab, sizeof(c.nr_per_slab), err, "arenas.bin.%u.nregs",
			       i));
		vec_push(&a->to->classes, c);
	}
	return 0;
}

/* Large size classes: each block is one extent. */
static int read_large(struct stats_reader *a, struct err *err)
{
	uint32_t nr = 0;
	uint64_t left = 0; /* stop when all large allocated bytes are found */
	TRY(read_value(a, &nr, sizeof(nr), err, "arenas.nlextents"));
	TRY(read_value(a, &left, sizeof(left), err, ALL "large.allocated"));
	for (uint32_t i = 0; left && i < MIN(nr, CLASSES_MAX); i++) {
		struct allocstats_class c = {0};
		TRY(read_value(a, &c.nr_live, sizeof(c.nr_live), err, ALL "lextents.%u.curlextents",
			       i));
		if (!c.nr_live)
			continue;
		TRY(read_value(a, &c.size_bytes, sizeof(c.size_bytes), err,
			       "arenas.lextent.%u.size", i));
		vec_push(&a->to->classes, c);
		uint64_t bytes;
		bool is_over = __builtin_mul_overflow(c.nr_live, c.size_bytes, &bytes);
		left = is_over || bytes > left ? 0 : left - bytes;
	}
	return 0;
}

static int read_all(struct stats_reader *a, struct err *err)
{
	TRY(open_session(a, err));
	TRY(jemalloc_read_bool(a->j, "config.stats", &a->to->has_stats, err));
	TRY(read_options(a, err));
	if (!a->to->has_stats)
		return 0;
	TRY(begin_epoch(a, err));
	TRY(read_totals(a, err));
	TRY(read_bins(a, err));
	return read_large(a, err);
}

static int read_few(struct stats_reader *a, struct err *err)
{
	TRY(open_session(a, err));
	TRY(jemalloc_read_bool(a->j, "config.stats", &a->to->has_stats, err));
	if (!a->to->has_stats)
		return 0;
	TRY(begin_epoch(a, err));
	return read_sums(a, false, err);
}

static int read_by(struct allocstats *ret_s, int32_t pid, const struct heap_plan *plan,
		   int (*what)(struct stats_reader *, struct err *), struct err *err)
{
	CLEANUP(jemalloc_stats_release) struct allocstats s = {0};
	struct stats_reader a = {.pid = pid, .plan = plan, .to = &s};
	int rc = what(&a, err);
	close_session(&a);
	TRY(rc);
	*ret_s = s;
	s = (struct allocstats){0};
	return 0;
}

int jemalloc_stats_read(struct allocstats *ret_s, int32_t pid, const struct heap_plan *plan,
			struct err *err)
{
	return read_by(ret_s, pid, plan, read_all, err);
}

int jemalloc_stats_totals(struct allocstats *ret_s, int32_t pid, const struct heap_plan *plan,
			  struct err *err)
{
	return read_by(ret_s, pid, plan, read_few, err);
}

/* Sums nrequests * size over the classes of one kind; nmalloc would omit thread caches. */
static int add_allocated(struct stats_reader *a, const char *what, const char *size, uint32_t nr,
			 uint64_t *total, struct err *err)
{
	for (uint32_t i = 0; i < MIN(nr, CLASSES_MAX); i++) {
		uint64_t calls = 0;
		uint64_t bytes = 0;
		uint64_t product;
		TRY(read_value(a, &calls, sizeof(calls), err, ALL "%s.%u.nrequests", what, i));
		if (!calls)
			continue;
		TRY(read_value(a, &bytes, sizeof(bytes), err, "arenas.%s.%u.size", size, i));
		if (!__builtin_mul_overflow(calls, bytes, &product))
			*total += product;
	}
	return 0;
}

static int read_allocated_total(struct stats_reader *a, uint64_t *total, struct err *err)
{
	uint32_t nr_bins = 0;
	uint32_t nr_large = 0;
	TRY(begin_epoch(a, err));
	TRY(read_value(a, &nr_bins, sizeof(nr_bins), err, "arenas.nbins"));
	TRY(read_value(a, &nr_large, sizeof(nr_large), err, "arenas.nlextents"));
	TRY(add_allocated(a, "bins", "bin", nr_bins, total, err));
	return add_allocated(a, "lextents", "lextent", nr_large, total, err);
}

int jemalloc_stats_allocated_total(uint64_t *ret_bytes, int32_t pid, const struct heap_plan *plan,
				   struct err *err)
{
	CLEANUP(jemalloc_stats_release) struct allocstats s = {0};
	struct stats_reader a = {.pid = pid, .plan = plan, .to = &s};
	uint64_t total = 0;
	int rc = read_allocated_total(&a, &total, err);
	close_session(&a);
	if (!rc)
		*ret_bytes = total;
	return rc;
}

void jemalloc_stats_release(struct allocstats *s)
{
	vec_release(&s->classes);
}
