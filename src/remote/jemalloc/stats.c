/*
 * Statistics of a running jemalloc; see jemalloc.h.
 *
 * There are some hundred values, and each is a call. They are of one moment, that of the write to
 * `epoch`, and stay until the next one, so they are asked for in several short sessions: between
 * them the borrowed thread goes on with its work.
 */
#include "base/base.h"
#include "remote/jemalloc/jemalloc.h"

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
	struct allocstats *to;
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

static int ask_value(struct asker *a, void *ret, size_t n, struct err *err, const char *fmt, ...)
	PRINTF(5, 6);
static int ask_value(struct asker *a, void *ret, size_t n, struct err *err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *name CLEANUP(free_p) = xvasprintf(fmt, ap);
	va_end(ap);
	TRY(borrow(a, err));
	return jemalloc_read(a->j, name, ret, n, err);
}

/* From here on answers are those of this moment. */
static int begin_epoch(struct asker *a, struct err *err)
{
	uint64_t epoch = 1;
	TRY(borrow(a, err));
	return jemalloc_write(a->j, "epoch", &epoch, sizeof(epoch), err);
}

#define ALL "stats.arenas.4096." /* MALLCTL_ARENAS_ALL */

/* Names that not every version has: their absence is no error. */
static int absent_ok(int rc, struct err *err)
{
	if (rc != -ENOENT)
		return rc;
	err_release(err);
	return 0;
}

static int ask_sums(struct asker *a, bool is_all, struct err *err)
{
	struct allocstats *s = a->to;
	const struct {
		const char *name;
		uint64_t *to;
		bool is_among_few;
	} sums[] = {
		{"stats.allocated", &s->allocated_bytes, true},
		{"stats.active", &s->active_bytes, true},
		{"stats.metadata", &s->metadata_bytes, false},
		{"stats.resident", &s->resident_bytes, true},
		{"stats.mapped", &s->mapped_bytes, false},
		{"stats.retained", &s->retained_bytes, true},
	};
	for (size_t i = 0; i < ARRAY_LEN(sums); i++)
		if (is_all || sums[i].is_among_few)
			TRY(ask_value(a, sums[i].to, sizeof(uint64_t), err, "%s", sums[i].name));
	return 0;
}

static int ask_totals(struct asker *a, struct err *err)
{
	struct allocstats *s = a->to;
	TRY(ask_sums(a, true, err));
	s->tcache_bytes = ALLOCSTATS_UNKNOWN;
	TRY(absent_ok(ask_value(a, &s->tcache_bytes, sizeof(s->tcache_bytes), err,
				ALL "tcache_bytes"),
		      err));
	return ask_value(a, &s->nr_threads, sizeof(s->nr_threads), err, ALL "nthreads");
}

static int ask_options(struct asker *a, struct err *err)
{
	struct allocstats *s = a->to;
	uint64_t dirty = 0;
	TRY(ask_value(a, &s->nr_arenas, sizeof(s->nr_arenas), err, "arenas.narenas"));
	TRY(absent_ok(ask_value(a, &dirty, sizeof(dirty), err, "arenas.dirty_decay_ms"), err));
	s->dirty_decay_ms = (int64_t)dirty;
	TRY(borrow(a, err));
	int rc = jemalloc_read_bool(a->j, "background_thread", &s->has_background_thread, err);
	return absent_ok(rc, err);
}

/* Small classes: how many blocks, in how many slabs of how many places. */
static int ask_bins(struct asker *a, struct err *err)
{
	uint32_t nr = 0;
	TRY(ask_value(a, &nr, sizeof(nr), err, "arenas.nbins"));
	for (uint32_t i = 0; i < MIN(nr, CLASSES_MAX); i++) {
		struct allocstats_class c = {0};
		TRY(ask_value(a, &c.nr_slabs, sizeof(c.nr_slabs), err, ALL "bins.%u.curslabs", i));
		if (!c.nr_slabs)
			continue;
		TRY(ask_value(a, &c.nr_live, sizeof(c.nr_live), err, ALL "bins.%u.curregs", i));
		TRY(ask_value(a, &c.size_bytes, sizeof(c.size_bytes), err, "arenas.bin.%u.size",
			      i));
		TRY(ask_value(a, &c.nr_per_slab, sizeof(c.nr_per_slab), err, "arenas.bin.%u.nregs",
			      i));
		vec_push(&a->to->classes, c);
	}
	return 0;
}

/* Large ones: a block is an extent of its own. */
static int ask_large(struct asker *a, struct err *err)
{
	uint32_t nr = 0;
	uint64_t left = 0; /* classes above what is allocated in all cannot be in use */
	TRY(ask_value(a, &nr, sizeof(nr), err, "arenas.nlextents"));
	TRY(ask_value(a, &left, sizeof(left), err, ALL "large.allocated"));
	for (uint32_t i = 0; left && i < MIN(nr, CLASSES_MAX); i++) {
		struct allocstats_class c = {0};
		TRY(ask_value(a, &c.nr_live, sizeof(c.nr_live), err, ALL "lextents.%u.curlextents",
			      i));
		if (!c.nr_live)
			continue;
		TRY(ask_value(a, &c.size_bytes, sizeof(c.size_bytes), err, "arenas.lextent.%u.size",
			      i));
		vec_push(&a->to->classes, c);
		uint64_t bytes;
		bool is_over = __builtin_mul_overflow(c.nr_live, c.size_bytes, &bytes);
		left = is_over || bytes > left ? 0 : left - bytes;
	}
	return 0;
}

static int ask_all(struct asker *a, struct err *err)
{
	TRY(borrow(a, err));
	TRY(jemalloc_read_bool(a->j, "config.stats", &a->to->has_stats, err));
	TRY(ask_options(a, err));
	if (!a->to->has_stats)
		return 0;
	TRY(begin_epoch(a, err));
	TRY(ask_totals(a, err));
	TRY(ask_bins(a, err));
	return ask_large(a, err);
}

static int ask_few(struct asker *a, struct err *err)
{
	TRY(borrow(a, err));
	TRY(jemalloc_read_bool(a->j, "config.stats", &a->to->has_stats, err));
	if (!a->to->has_stats)
		return 0;
	TRY(begin_epoch(a, err));
	return ask_sums(a, false, err);
}

static int ask(struct allocstats *ret_s, int32_t pid, const struct heap_plan *plan,
	       int (*what)(struct asker *, struct err *), struct err *err)
{
	CLEANUP(jemalloc_stats_release) struct allocstats s = {0};
	struct asker a = {.pid = pid, .plan = plan, .to = &s};
	int rc = what(&a, err);
	let_go(&a);
	TRY(rc);
	*ret_s = s;
	s = (struct allocstats){0};
	return 0;
}

int jemalloc_stats_read(struct allocstats *ret_s, int32_t pid, const struct heap_plan *plan,
			struct err *err)
{
	return ask(ret_s, pid, plan, ask_all, err);
}

int jemalloc_stats_totals(struct allocstats *ret_s, int32_t pid, const struct heap_plan *plan,
			  struct err *err)
{
	return ask(ret_s, pid, plan, ask_few, err);
}

/* Adds up what the classes of one kind handed out; nmalloc would leave out threads' caches. */
static int add_ever(struct asker *a, const char *what, const char *size, uint32_t nr,
		    uint64_t *total, struct err *err)
{
	for (uint32_t i = 0; i < MIN(nr, CLASSES_MAX); i++) {
		uint64_t calls = 0;
		uint64_t bytes = 0;
		uint64_t product;
		TRY(ask_value(a, &calls, sizeof(calls), err, ALL "%s.%u.nrequests", what, i));
		if (!calls)
			continue;
		TRY(ask_value(a, &bytes, sizeof(bytes), err, "arenas.%s.%u.size", size, i));
		if (!__builtin_mul_overflow(calls, bytes, &product))
			*total += product;
	}
	return 0;
}

static int ask_ever(struct asker *a, uint64_t *total, struct err *err)
{
	uint32_t nr_bins = 0;
	uint32_t nr_large = 0;
	TRY(begin_epoch(a, err));
	TRY(ask_value(a, &nr_bins, sizeof(nr_bins), err, "arenas.nbins"));
	TRY(ask_value(a, &nr_large, sizeof(nr_large), err, "arenas.nlextents"));
	TRY(add_ever(a, "bins", "bin", nr_bins, total, err));
	return add_ever(a, "lextents", "lextent", nr_large, total, err);
}

int jemalloc_stats_ever(uint64_t *ret_bytes, int32_t pid, const struct heap_plan *plan,
			struct err *err)
{
	CLEANUP(jemalloc_stats_release) struct allocstats s = {0};
	struct asker a = {.pid = pid, .plan = plan, .to = &s};
	uint64_t total = 0;
	int rc = ask_ever(&a, &total, err);
	let_go(&a);
	if (!rc)
		*ret_bytes = total;
	return rc;
}

void jemalloc_stats_release(struct allocstats *s)
{
	vec_release(&s->classes);
}
