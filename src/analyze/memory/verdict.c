/* Slopes and verdicts over readings of memory; see verdict.h. */
#include "base/base.h"
#include "analyze/memory/verdict.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/clock.h"
#include "base/text/num.h"
#include "base/stat.h"

#define MIB              (1024.0 * 1024.0)
#define GROWTH_MIN       (0.25 * MIB) /* smaller growth, in bytes and as a share, is none */
#define GROWTH_MIN_SHARE 0.001
#define SWING_SHARE      0.1 /* of the range, or a step: tolerance of the second half */
#define SWINGS_MIN       3
#define PAIRS_POINTS     100 /* more points are averaged to this many before pairing */
#define BATCHES_MAX      12
#define BATCHES_MIN      4
#define BATCH_POINTS     4 /* at least, if there are enough for BATCHES_MIN */
/*
 * For a random walk, the steps between batch means have two thirds of the variance of the walk
 * itself over the same time, and the variance of the median of slopes is 6/5 of that of a mean of
 * steps.
 */
#define WALK_WIDENING 1.3416407864998738 /* sqrt(9/5) */

/* ---- slopes ------------------------------------------------------------------------------- */

struct series {
	double *t; /* seconds since the first */
	double *v;
	size_t n;
};

static void series_release(struct series *s)
{
	free_p(&s->t);
	free_p(&s->v);
}

/* Means of @nr consecutive batches of as equal length as possible. */
static struct series batch(const double *t, const double *v, size_t n, size_t nr)
{
	struct series s = {xcalloc(nr, sizeof(double)), xcalloc(nr, sizeof(double)), nr};
	for (size_t i = 0; i < nr; i++) {
		size_t from = i * n / nr;
		size_t to = (i + 1) * n / nr;
		s.t[i] = stat_mean(t + from, to - from);
		s.v[i] = stat_mean(v + from, to - from);
	}
	return s;
}

static double theil_sen(const double *t, const double *v, size_t n)
{
	CLEANUP(series_release) struct series few = {0};
	if (n > PAIRS_POINTS) {
		few = batch(t, v, n, PAIRS_POINTS);
		t = few.t;
		v = few.v;
		n = few.n;
	}
	double *slopes = xcalloc(n * (n - 1) / 2 + 1, sizeof(*slopes));
	size_t nr = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			if (t[k] > t[i])
				slopes[nr++] = (v[k] - v[i]) / (t[k] - t[i]);
	double median = nr ? stat_median(slopes, nr) : 0;
	free(slopes);
	return median;
}

static size_t nr_batches(size_t n)
{
	return MIN(MAX(n / BATCH_POINTS, (size_t)BATCHES_MIN), (size_t)BATCHES_MAX);
}

static struct memslope slope_of(const double *t, const double *v, size_t n)
{
	if (n < BATCHES_MIN || !(t[n - 1] > t[0]))
		return (struct memslope){0};
	CLEANUP(series_release) struct series b = batch(t, v, n, nr_batches(n));
	double span_s = b.t[b.n - 1] - b.t[0];
	double mean = (b.v[b.n - 1] - b.v[0]) / span_s;
	double squares = 0;
	size_t nr_steps = 0;
	for (size_t i = 1; i < b.n; i++) {
		double s = b.t[i] - b.t[i - 1];
		double off = b.v[i] - b.v[i - 1] - mean * s;
		if (s > 0) {
			squares += off * off / s;
			nr_steps++;
		}
	}
	if (nr_steps < 2)
		return (struct memslope){0};
	double variance = squares / (double)(nr_steps - 1); /* of the steps in a second */
	double half = stat_t95(nr_steps - 1) * WALK_WIDENING * sqrt(variance / span_s);
	double slope = theil_sen(t, v, n);
	return (struct memslope){true, slope, slope - half, slope + half};
}

struct memslope memslope_of(const uint64_t *time_ns, const double *values, size_t n)
{
	double *t = xcalloc(MAX(n, (size_t)1), sizeof(*t));
	for (size_t i = 0; i < n; i++)
		t[i] = (double)(time_ns[i] - time_ns[0]) / 1e9;
	struct memslope s = slope_of(t, values, n);
	free(t);
	return s;
}

static const char *rate_text(struct arena *a, double per_s)
{
	return arena_fmt(a, "%s%s/min", per_s < 0 ? "-" : "",
			 num_bytes((uint64_t)llround(fabs(per_s * 60))).s);
}

const char *memslope_text(struct arena *a, const struct memslope *s)
{
	if (!s->is_known)
		return "";
	return arena_fmt(a, "%s%s (95 %%: %s to %s)", s->per_s >= 0 ? "+" : "",
			 rate_text(a, s->per_s), rate_text(a, s->low), rate_text(a, s->high));
}

/* ---- verdicts ----------------------------------------------------------------------------- */

struct judge {
	struct arena *a;
	const struct mempoint *points;
	size_t n;
	double *t;
	double *rss;
	double *kept;
	double *file;
	/* Only points at which the allocator reported; NULL: never, or not recently. */
	double *answer_s;
	double *in_use;
	double *resident;
	size_t nr_answers;
	bool has_slope_answers; /* enough points for a slope */
	bool is_first_use;      /* shared memory grew in mappings that exist */
	double span_s;
	const struct memverdict_host *host;
	struct memverdict v;
};

static double *numbers(struct judge *j)
{
	return arena_calloc(j->a, j->n, sizeof(double));
}

static void fill(struct judge *j)
{
	j->t = numbers(j);
	j->rss = numbers(j);
	j->kept = numbers(j);
	j->file = numbers(j);
	for (size_t i = 0; i < j->n; i++) {
		const struct mempoint *p = &j->points[i];
		j->t[i] = (double)(p->time_ns - j->points[0].time_ns) / 1e9;
		j->rss[i] = (double)p->rss_bytes;
		j->kept[i] = (double)p->anon_bytes + (double)p->shmem_bytes + (double)p->swap_bytes;
		j->file[i] = (double)p->file_bytes;
	}
	j->span_s = j->n ? j->t[j->n - 1] : 0;
}

static void fill_answers(struct judge *j)
{
	bool has_resident = true;
	j->answer_s = numbers(j);
	j->in_use = numbers(j);
	j->resident = numbers(j);
	for (size_t i = 0; i < j->n; i++) {
		const struct mempoint *p = &j->points[i];
		if (p->in_use_bytes == MEMPOINT_UNKNOWN)
			continue;
		j->answer_s[j->nr_answers] = j->t[i];
		j->in_use[j->nr_answers] = (double)p->in_use_bytes;
		j->resident[j->nr_answers++] = (double)p->resident_bytes;
		has_resident &= p->resident_bytes != MEMPOINT_UNKNOWN;
	}
	/*
	 * Drops the answers of the allocator if the last one is too old; a slope needs several of
	 * them.
	 */
	double last = j->nr_answers ? j->answer_s[j->nr_answers - 1] : -1;
	bool is_recent = last >= j->span_s / 2;
	j->has_slope_answers = is_recent && j->nr_answers >= MEMVERDICT_ANSWERS_MIN &&
			       last - j->answer_s[0] >= j->span_s / 2;
	if (!is_recent)
		j->in_use = NULL;
	if (!has_resident || !is_recent)
		j->resident = NULL;
}

static double now_of(const double *v, size_t n)
{
	size_t from = n * 2 / 3;
	double *copy = xmemdup(v + from, (n - from) * sizeof(*v));
	double m = stat_median(copy, n - from);
	free(copy);
	return m;
}

static double peak_of(const double *v, size_t n)
{
	double m = v[0];
	for (size_t i = 1; i < n; i++)
		m = MAX(m, v[i]);
	return m;
}

static bool grows(const struct judge *j)
{
	const struct memslope *s = &j->v.kept;
	double grown = s->per_s * j->span_s;
	if (!(s->low > 0) || grown < GROWTH_MIN || grown < GROWTH_MIN_SHARE * now_of(j->kept, j->n))
		return false;
	CLEANUP(series_release)
	struct series b = batch(j->t, j->kept, j->n, nr_batches(j->n));
	size_t nr_up = 0;
	for (size_t i = 1; i < b.n; i++)
		nr_up += b.v[i] > b.v[i - 1];
	if (nr_up * 4 < (b.n - 1) * 3 || b.v[b.n - 1] < peak_of(b.v, b.n))
		return false;
	size_t from = j->n * 2 / 3;
	return theil_sen(j->t + from, j->kept + from, j->n - from) >= s->per_s / 3;
}

static struct num_text amount(double bytes)
{
	return num_bytes((uint64_t)MAX(bytes, 0.0));
}

/* Whether what grows is the allocator's: its resident bytes grow at least half as fast. */
static bool is_allocator_growing(const struct judge *j)
{
	if (!j->resident)
		return true;
	struct memslope s = slope_of(j->answer_s, j->resident, j->nr_answers);
	return !s.is_known || s.per_s >= j->v.kept.per_s / 2;
}

static bool is_fragmented(struct judge *j, bool is_growing)
{
	if (!j->in_use || j->host->is_in_use_partial)
		return false;
	double in_use = now_of(j->in_use, j->nr_answers);
	double held = j->resident ? now_of(j->resident, j->nr_answers) : in_use;
	double fell = peak_of(j->in_use, j->nr_answers) - in_use;
	const struct memslope *s = &j->v.in_use;
	if (is_growing && s->is_known && s->per_s < j->v.kept.per_s / 4 && is_allocator_growing(j))
		j->v.evidence = arena_fmt(j->a,
					  "memory grows by %s, but the bytes in use in the "
					  "allocator by %s",
					  memslope_text(j->a, &j->v.kept), memslope_text(j->a, s));
	else if (!is_growing && held - in_use >= 0.3 * held && held - in_use >= 16 * MIB)
		j->v.evidence = arena_fmt(j->a,
					  "the allocator has %s resident, of which the program "
					  "uses %s",
					  amount(held).s, amount(in_use).s);
	else if (!is_growing && j->has_slope_answers && fell >= 16 * MIB &&
		 fell >= 0.4 * peak_of(j->in_use, j->nr_answers) &&
		 now_of(j->kept, j->n) >= 0.9 * peak_of(j->kept, j->n))
		j->v.evidence = arena_fmt(
			j->a,
			"the bytes in use fell by %s from their peak, but memory stayed at %s",
			amount(fell).s, amount(now_of(j->kept, j->n)).s);
	return j->v.evidence != NULL;
}

/* Stacks are not always read: between the readings that have them, how much they and all grew. */
static bool is_growth_of_stacks(const struct judge *j)
{
	const struct mempoint *first = NULL;
	const struct mempoint *last = NULL;
	for (size_t i = 0; i < j->n; i++) {
		const struct mempoint *p = &j->points[i];
		if (!p->stack_bytes)
			continue;
		first = first ? first : p;
		last = p;
	}
	if (!first || last->stack_bytes <= first->stack_bytes ||
	    last->anon_bytes <= first->anon_bytes)
		return false;
	return last->stack_bytes - first->stack_bytes >= (last->anon_bytes - first->anon_bytes) / 2;
}

/*
 * Only of growing memory: whether its shared memory is of mappings that exist. What grows without it is
 * judged as a leak then.
 */
static bool is_first_use(struct judge *j)
{
	const struct mempoint *first = &j->points[0];
	const struct mempoint *last = &j->points[j->n - 1];
	double grown = (double)last->shmem_bytes - (double)first->shmem_bytes;
	double space = (double)last->shmem_space_bytes - (double)first->shmem_space_bytes;
	if (!first->shmem_space_bytes || !last->shmem_space_bytes || space >= grown / 2)
		return false;
	struct judge rest = *j;
	rest.kept = numbers(j);
	for (size_t i = 0; i < j->n; i++)
		rest.kept[i] = j->kept[i] - (double)j->points[i].shmem_bytes;
	rest.v.kept = slope_of(j->t, rest.kept, j->n);
	j->is_first_use = true;
	if (grows(&rest)) {
		j->v.kept = rest.v.kept;
		return false;
	}
	j->v.evidence = arena_fmt(
		j->a,
		"shared memory grew by %s while the address space, %s, %s: pages of mappings that "
		"exist are used for the first time, as by a buffer pool that fills. They cannot "
		"become more than these mappings have",
		memslope_text(j->a, &j->v.kept), num_bytes(last->shmem_space_bytes).s,
		space > 0 ? arena_fmt(j->a, "grew by %s in all", amount(space).s) : "did not grow");
	return true;
}

static void set_leak_evidence(struct judge *j)
{
	if (is_growth_of_stacks(j)) {
		j->v.evidence = arena_fmt(
			j->a,
			"anonymous memory grew steadily, %s, during all of %s, most of it by thread "
			"stacks: threads start and do not end, or use more and more of their stacks. "
			"assay heap does not show stacks",
			memslope_text(j->a, &j->v.kept), num_ns(j->v.span_ns).s);
		return;
	}
	const struct mempoint *first = &j->points[0];
	const struct mempoint *last = &j->points[j->n - 1];
	bool is_shmem = !j->is_first_use && last->shmem_bytes > first->shmem_bytes &&
			last->shmem_bytes - first->shmem_bytes >
				(last->anon_bytes + last->swap_bytes) -
					MIN(first->anon_bytes + first->swap_bytes,
					    last->anon_bytes + last->swap_bytes);
	bool has_answers = j->v.in_use.is_known;
	bool is_partial = has_answers && j->host->is_in_use_partial;
	bool is_elsewhere = has_answers && j->v.in_use.per_s < j->v.kept.per_s / 4;
	const char *remedy = j->host->has_sites && !is_elsewhere
				     ? "the allocation sites by live bytes show the allocating code"
				     : "find the allocating code with assay heap";
	j->v.evidence = arena_fmt(
		j->a,
		"%s memory grew steadily, %s, during all of %s%s%s%s. A cache that is still "
		"filling up looks the same: watch for longer, and %s",
		is_shmem ? "shared" : "anonymous", memslope_text(j->a, &j->v.kept),
		num_ns(j->v.span_ns).s,
		is_elsewhere && is_partial
			? ", outside of blocks allocated in the capture, of which those not freed "
			  "grew by "
		: is_elsewhere ? ", outside of the allocator's memory. Bytes in use there: "
		: is_partial   ? "; blocks allocated in the capture and not freed: "
		: has_answers  ? "; bytes in use in the allocator: "
		: is_shmem     ? ""
			       : ": a leak or fragmentation (the bytes in use in the "
				 "allocator are not known)",
		memslope_text(j->a, &j->v.in_use),
		is_shmem ? ". It may have existed before and be touched by this process for "
			   "the first time"
			 : "",
		remedy);
}

static bool is_page_cache(struct judge *j)
{
	double file = now_of(j->file, j->n);
	double rss = now_of(j->rss, j->n);
	double grown = j->v.rss.low > 0 ? j->v.rss.per_s * j->span_s : 0;
	double file_grown = j->v.file.per_s * j->span_s;
	bool is_most = file >= 16 * MIB && file >= rss / 2;
	bool is_growth = grown >= 16 * MIB && file_grown >= 0.7 * grown;
	if (!is_most && !is_growth)
		return false;
	j->v.evidence = arena_fmt(j->a,
				  "%s of %s RSS are pages of mapped files%s%s: not a leak, the "
				  "kernel reclaims them under memory pressure",
				  amount(file).s, amount(rss).s, is_growth ? ", growing by " : "",
				  is_growth ? memslope_text(j->a, &j->v.file) : "");
	return true;
}

static bool is_bloated(struct judge *j)
{
	double kept = now_of(j->kept, j->n);
	const struct memverdict_host *h = j->host;
	bool has_limit = h->limit_bytes && h->limit_bytes != UINT64_MAX;
	bool is_of_limit = has_limit && kept >= 0.8 * (double)h->limit_bytes;
	bool is_of_machine = h->machine_bytes && kept >= 0.25 * (double)h->machine_bytes;
	if (!is_of_limit && !is_of_machine)
		return false;
	double whole = (double)(is_of_limit ? h->limit_bytes : h->machine_bytes);
	j->v.evidence = arena_fmt(j->a,
				  "%s that the kernel cannot reclaim, %s %% of the %s, without "
				  "growing",
				  amount(kept).s, num_pct(100 * kept / whole).s,
				  is_of_limit ? "cgroup's limit" : "machine");
	return true;
}

/* Rises above two thirds of the range and falls below one third, repeatedly. */
struct swing {
	double low;
	double high;
	double tolerance;
	size_t nr_falls;
	bool comes_back; /* in the second half it falls as low and does not rise higher */
};

/* Turning points between two readings are missed by up to this much. */
static double median_step(const double *v, size_t n)
{
	double *steps = xcalloc(n, sizeof(*steps));
	for (size_t i = 1; i < n; i++)
		steps[i - 1] = fabs(v[i] - v[i - 1]);
	double m = n > 1 ? stat_median(steps, n - 1) : 0;
	free(steps);
	return m;
}

static struct swing swing_of(const double *v, size_t n)
{
	struct swing s = {.low = v[0], .high = v[0]};
	double low[2] = {INFINITY, INFINITY}; /* of the halves */
	double high[2] = {-INFINITY, -INFINITY};
	for (size_t i = 0; i < n; i++) {
		size_t half = i >= n / 2;
		low[half] = MIN(low[half], v[i]);
		high[half] = MAX(high[half], v[i]);
	}
	s.low = MIN(low[0], low[1]);
	s.high = MAX(high[0], high[1]);
	double range = s.high - s.low;
	bool is_up = false;
	for (size_t i = 0; i < n; i++) {
		bool falls = is_up && v[i] < s.low + range / 3;
		s.nr_falls += falls;
		is_up = !falls && (is_up || v[i] > s.high - range / 3);
	}
	s.tolerance = MIN(MAX(SWING_SHARE * range, median_step(v, n)), range / 3);
	s.comes_back = low[1] - low[0] <= s.tolerance && high[1] - high[0] <= s.tolerance;
	return s;
}

struct rest {
	double kept;
	bool is_small;   /* no significant change */
	bool is_level;   /* no significant change in the last third */
	bool is_slowing; /* grew faster before, and grows significantly in the last third */
	struct memslope end;
};

static struct rest rest_of(const struct judge *j)
{
	const struct memslope *s = &j->v.kept;
	double kept = now_of(j->kept, j->n);
	size_t from = j->n * 2 / 3;
	struct rest r = {.kept = kept, .end = slope_of(j->t + from, j->kept + from, j->n - from)};
	double may_grow = MAX(fabs(s->low), fabs(s->high)) * j->span_s;
	double end_may = MAX(fabs(r.end.low), fabs(r.end.high)) * j->span_s / 3;
	r.is_small = may_grow < MAX(0.1 * kept, 4 * MIB);
	r.is_slowing = r.end.low > 0 && r.end.per_s * j->span_s / 3 >= GROWTH_MIN &&
		       r.end.per_s * j->span_s / 3 >= GROWTH_MIN_SHARE * kept;
	r.is_level = r.end.is_known && !r.is_slowing && end_may < MAX(0.05 * kept, 2 * MIB);
	return r;
}

/* Which memory the kept memory is. */
static const char *kept_name(const struct judge *j)
{
	bool has_shared = false;
	bool has_swap = false;
	for (size_t i = 0; i < j->n; i++) {
		has_shared |= j->points[i].shmem_bytes != 0;
		has_swap |= j->points[i].swap_bytes != 0;
	}
	return has_shared && has_swap ? "anonymous and shared memory and swap"
	       : has_shared           ? "anonymous and shared memory"
	       : has_swap             ? "anonymous memory and swap"
				      : "anonymous memory";
}

static const char *rest_text(const struct judge *j, const struct rest *r)
{
	const struct memslope *s = &j->v.kept;
	const char *kept = arena_fmt(j->a, "%s of %s", amount(r->kept).s, kept_name(j));
	if (r->is_small)
		return arena_fmt(j->a, "%s, changing by %s", kept, memslope_text(j->a, s));
	if (r->is_level)
		return arena_fmt(j->a, "%s: changed at the beginning, then levelled off", kept);
	if (r->is_slowing)
		return arena_fmt(j->a,
				 "%s, growing more slowly than at the beginning, in the last "
				 "third of the time by %s: watch for longer",
				 kept, memslope_text(j->a, &r->end));
	return arena_fmt(j->a, "%s%s%s: watch for longer", kept,
			 s->low > 0 ? ", growing unevenly by " : ", varying, ",
			 memslope_text(j->a, s));
}

/* Returns steady or inconclusive. */
static enum memverdict_kind judge_rest(struct judge *j)
{
	struct rest r = rest_of(j);
	struct swing swing = swing_of(j->kept, j->n);
	bool is_steady = r.is_small || r.is_level;
	bool is_swinging =
		!is_steady && !r.is_slowing && swing.comes_back && swing.nr_falls >= SWINGS_MIN;
	j->v.evidence = !is_swinging
				? rest_text(j, &r)
				: arena_fmt(j->a,
					    "%s rises and falls between %s and %s, %s, without a "
					    "trend: growth below %s/min could not be detected",
					    kept_name(j), amount(swing.low).s, amount(swing.high).s,
					    num_noun(swing.nr_falls, "times").s,
					    amount(swing.tolerance / (j->span_s / 2) * 60).s);
	return is_steady || is_swinging ? MEMVERDICT_STEADY : MEMVERDICT_INCONCLUSIVE;
}

uint64_t memverdict_min_ns(uint64_t every_ns)
{
	return MAX((uint64_t)MEMVERDICT_SPAN_MIN_NS, (MEMVERDICT_POINTS_MIN - 1) * every_ns);
}

const char *memverdict_needs(struct arena *a, uint64_t every_ns, uint64_t span_ns)
{
	uint64_t min_ns = memverdict_min_ns(every_ns);
	/* one interval more than between 20 readings, for a late one */
	uint64_t shorter_ms = span_ns / MEMVERDICT_POINTS_MIN / NS_PER_MS;
	bool can_be_shorter = span_ns >= MEMVERDICT_SPAN_MIN_NS && shorter_ms >= 10;
	return arena_fmt(a, "%d readings, %s%s%s", MEMVERDICT_POINTS_MIN, num_ns(min_ns).s,
			 every_ns ? arena_fmt(a, " with --every %s", num_ns(every_ns).s)
				  : " or more",
			 can_be_shorter ? arena_fmt(a, " (in %s: --every %" PRIu64 "ms)",
						    num_ns(span_ns).s, shorter_ms)
					: "");
}

static enum memverdict_kind judge_kind(struct judge *j)
{
	if (j->n < MEMVERDICT_POINTS_MIN || j->v.span_ns < MEMVERDICT_SPAN_MIN_NS) {
		j->v.evidence = arena_fmt(j->a, "%s in %s; a verdict needs %s",
					  num_noun(j->n, "readings").s, num_ns(j->v.span_ns).s,
					  memverdict_needs(j->a, j->host->every_ns, j->v.span_ns));
		return MEMVERDICT_INCONCLUSIVE;
	}
	bool is_growing = grows(j);
	if (is_fragmented(j, is_growing))
		return MEMVERDICT_FRAGMENTATION;
	if (is_growing && is_first_use(j))
		return MEMVERDICT_FIRST_USE;
	if (is_growing) {
		set_leak_evidence(j);
		return MEMVERDICT_LEAK;
	}
	if (is_page_cache(j))
		return MEMVERDICT_PAGE_CACHE;
	if (is_bloated(j))
		return MEMVERDICT_BLOAT;
	return judge_rest(j);
}

static int by_value(const void *x, const void *y)
{
	return COMPARE(*(const uint64_t *)x, *(const uint64_t *)y);
}

/* The time between readings that half of the whole time has at least. */
static uint64_t usual_gap(struct arena *a, const struct mempoint *points, size_t n)
{
	uint64_t *gaps = arena_calloc(a, n, sizeof(*gaps));
	uint64_t half = (points[n - 1].time_ns - points[0].time_ns) / 2;
	for (size_t i = 1; i < n; i++)
		gaps[i - 1] = points[i].time_ns - points[i - 1].time_ns;
	qsort(gaps, n - 1, sizeof(*gaps), by_value);
	uint64_t sum = 0;
	for (size_t i = n - 1; i-- > 0;) {
		sum += gaps[i];
		if (sum >= half)
			return gaps[i];
	}
	return 0;
}

/*
 * Readings are closer at the beginning of a capture, but batches and thirds need readings at about
 * even times. Leaves out those that are much closer than usual, unless the allocator reported.
 */
static const struct mempoint *even_points(struct arena *a, const struct mempoint *points, size_t *n)
{
	if (*n < 3)
		return points;
	struct mempoint *some = arena_calloc(a, *n, sizeof(*some));
	uint64_t gap = usual_gap(a, points, *n) / 10 * 7;
	size_t nr = 0;
	for (size_t i = 0; i < *n; i++)
		if (!nr || points[i].time_ns - some[nr - 1].time_ns >= gap ||
		    points[i].in_use_bytes != MEMPOINT_UNKNOWN || i + 1 == *n)
			some[nr++] = points[i];
	*n = nr;
	return some;
}

struct memverdict memverdict_of(struct arena *a, const struct mempoint *points, size_t n,
				const struct memverdict_host *host)
{
	points = even_points(a, points, &n);
	struct judge j = {.a = a, .points = points, .n = n, .host = host};
	fill(&j);
	fill_answers(&j);
	j.v.span_ns = n ? points[n - 1].time_ns - points[0].time_ns : 0;
	j.v.nr_points = n;
	j.v.kept_bytes = n ? now_of(j.kept, n) : 0;
	j.v.rss = slope_of(j.t, j.rss, n);
	j.v.kept = slope_of(j.t, j.kept, n);
	j.v.file = slope_of(j.t, j.file, n);
	if (j.in_use && j.has_slope_answers)
		j.v.in_use = slope_of(j.answer_s, j.in_use, j.nr_answers);
	j.v.kind = judge_kind(&j);
	return j.v;
}

const char *memverdict_key(enum memverdict_kind kind)
{
	static const char *const keys[] = {
		[MEMVERDICT_INCONCLUSIVE] = "inconclusive",
		[MEMVERDICT_STEADY] = "steady",
		[MEMVERDICT_LEAK] = "leak",
		[MEMVERDICT_FRAGMENTATION] = "fragmentation",
		[MEMVERDICT_FIRST_USE] = "first-use",
		[MEMVERDICT_PAGE_CACHE] = "page-cache",
		[MEMVERDICT_BLOAT] = "bloat",
	};
	return kind < MEMVERDICT_NR ? keys[kind] : "";
}
