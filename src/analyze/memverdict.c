/* Slopes and verdicts over readings of memory; see memverdict.h. */
#include "base/base.h"
#include "analyze/memverdict.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/stat.h"

#define MIB              (1024.0 * 1024.0)
#define GROWTH_MIN       (0.25 * MIB) /* less than this, and than this share, is none */
#define GROWTH_MIN_SHARE 0.001
#define SWING_SHARE      0.1 /* of its range, or a step: what it may be higher in the second half */
#define SWINGS_MIN       3
#define PAIRS_POINTS     100 /* more points are averaged down to so many before they are paired */
#define BATCHES_MAX      12
#define BATCHES_MIN      4
#define BATCH_POINTS     4 /* at least, where there are enough for BATCHES_MIN */
/*
 * Steps between batch means of a random walk have two thirds of the variance of the walk's own
 * over the same time, and the median of slopes varies by 6/5 as much as a mean of steps.
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

/* Means over @nr runs of points that are as equal in length as can be. */
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

/* Two-sided 95 % quantiles of Student's distribution by degrees of freedom, from 1. */
static double student95(size_t dof)
{
	static const double q[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447,
				   2.365,  2.306, 2.262, 2.228, 2.201, 2.179};
	return dof ? q[MIN(dof, ARRAY_LEN(q)) - 1] : INFINITY;
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
	struct stat_run steps = {0};
	for (size_t i = 1; i < b.n; i++)
		if (b.t[i] > b.t[i - 1])
			stat_add(&steps, (b.v[i] - b.v[i - 1]) / (b.t[i] - b.t[i - 1]));
	if (steps.n < 2)
		return (struct memslope){0};
	double half = student95(steps.n - 1) * WALK_WIDENING * stat_stddev(&steps) /
		      sqrt((double)steps.n);
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

static void add_rate(struct buf *to, double per_s)
{
	if (per_s < 0)
		buf_add_ch(to, '-');
	num_add_bytes(to, (uint64_t)llround(fabs(per_s * 60)));
	buf_add_str(to, "/min");
}

void memslope_add(struct buf *to, const struct memslope *s)
{
	if (!s->is_known)
		return;
	if (s->per_s >= 0)
		buf_add_ch(to, '+');
	add_rate(to, s->per_s);
	buf_add_str(to, " (95 %: ");
	add_rate(to, s->low);
	buf_add_str(to, " to ");
	add_rate(to, s->high);
	buf_add_ch(to, ')');
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
	/* Of those points at which the allocator told; NULL: never, or not lately. */
	double *asked;
	double *in_use;
	double *resident;
	size_t nr_asked;
	bool is_asked_often; /* enough to tell a slope */
	double span_s;
	const struct memverdict_host *host;
	struct memverdict v;
};

static void judge_release(struct judge *j)
{
	free_p(&j->t);
	free_p(&j->rss);
	free_p(&j->kept);
	free_p(&j->file);
	free_p(&j->asked);
	free_p(&j->in_use);
	free_p(&j->resident);
}

static void fill(struct judge *j)
{
	double **all[] = {&j->t, &j->rss, &j->kept, &j->file};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		*all[i] = xcalloc(MAX(j->n, (size_t)1), sizeof(double));
	for (size_t i = 0; i < j->n; i++) {
		const struct mempoint *p = &j->points[i];
		j->t[i] = (double)(p->time_ns - j->points[0].time_ns) / 1e9;
		j->rss[i] = (double)p->rss_bytes;
		j->kept[i] = (double)p->anon_bytes + (double)p->shmem_bytes + (double)p->swap_bytes;
		j->file[i] = (double)p->file_bytes;
	}
}

static void fill_answers(struct judge *j)
{
	bool has_resident = true;
	double **all[] = {&j->asked, &j->in_use, &j->resident};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		*all[i] = xcalloc(MAX(j->n, (size_t)1), sizeof(double));
	for (size_t i = 0; i < j->n; i++) {
		const struct mempoint *p = &j->points[i];
		if (p->in_use_bytes == MEMPOINT_UNKNOWN)
			continue;
		j->asked[j->nr_asked] = j->t[i];
		j->in_use[j->nr_asked] = (double)p->in_use_bytes;
		j->resident[j->nr_asked++] = (double)p->resident_bytes;
		has_resident &= p->resident_bytes != MEMPOINT_UNKNOWN;
	}
	/* An old answer says nothing of now, and a few say nothing of a slope. */
	double last = j->nr_asked ? j->asked[j->nr_asked - 1] : -1;
	bool is_recent = last >= j->span_s / 2;
	j->is_asked_often = is_recent && j->nr_asked >= MEMVERDICT_ANSWERS_MIN &&
			    last - j->asked[0] >= j->span_s / 2;
	if (!is_recent)
		free(TAKE(j->in_use));
	if (!has_resident || !is_recent)
		free(TAKE(j->resident));
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

static const char *words(struct judge *j, const struct buf *b)
{
	return arena_strdup(j->a, buf_str(b));
}

static void add_amount(struct buf *b, double bytes)
{
	num_add_bytes(b, (uint64_t)MAX(bytes, 0.0));
}

static bool is_fragmented(struct judge *j, bool is_growing)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (!j->in_use)
		return false;
	double in_use = now_of(j->in_use, j->nr_asked);
	double held = j->resident ? now_of(j->resident, j->nr_asked) : in_use;
	double fell = peak_of(j->in_use, j->nr_asked) - in_use;
	const struct memslope *s = &j->v.in_use;
	if (is_growing && s->is_known && s->per_s < j->v.kept.per_s / 4) {
		buf_add_str(&b, "memory grows by ");
		memslope_add(&b, &j->v.kept);
		buf_add_str(&b, ", what the allocator has in use by ");
		memslope_add(&b, s);
	} else if (!is_growing && held - in_use >= 0.3 * held && held - in_use >= 16 * MIB) {
		buf_add_str(&b, "the allocator holds ");
		add_amount(&b, held);
		buf_add_str(&b, ", of which the program uses ");
		add_amount(&b, in_use);
	} else if (!is_growing && j->is_asked_often && fell >= 16 * MIB &&
		   fell >= 0.4 * peak_of(j->in_use, j->nr_asked) &&
		   now_of(j->kept, j->n) >= 0.9 * peak_of(j->kept, j->n)) {
		buf_add_str(&b, "what the program uses fell by ");
		add_amount(&b, fell);
		buf_add_str(&b, " from its peak, its memory stayed at ");
		add_amount(&b, now_of(j->kept, j->n));
	}
	if (b.n)
		j->v.evidence = words(j, &b);
	return b.n;
}

static void say_leak(struct judge *j)
{
	CLEANUP(buf_release) struct buf b = {0};
	const struct mempoint *first = &j->points[0];
	const struct mempoint *last = &j->points[j->n - 1];
	bool is_shmem = last->shmem_bytes > first->shmem_bytes &&
			last->shmem_bytes - first->shmem_bytes >
				(last->anon_bytes + last->swap_bytes) -
					MIN(first->anon_bytes + first->swap_bytes,
					    last->anon_bytes + last->swap_bytes);
	buf_addf(&b, "%s memory grows steadily, ", is_shmem ? "shared" : "anonymous");
	memslope_add(&b, &j->v.kept);
	buf_add_str(&b, ", with no end in ");
	num_add_ns(&b, j->v.span_ns);
	if (j->v.in_use.is_known) {
		buf_add_str(&b, "; what the allocator has in use by ");
		memslope_add(&b, &j->v.in_use);
	} else if (!is_shmem) {
		buf_add_str(&b, ": a leak, or fragmentation, as no allocator told what is in use");
	}
	if (is_shmem)
		buf_add_str(&b, ". It may have been there, and be touched by this process for the "
				"first time");
	buf_add_str(&b, ". A cache that is still filling up looks the same: watch for longer, and "
			"see which code allocates with assay heap");
	j->v.evidence = words(j, &b);
}

static bool is_page_cache(struct judge *j)
{
	CLEANUP(buf_release) struct buf b = {0};
	double file = now_of(j->file, j->n);
	double rss = now_of(j->rss, j->n);
	double grown = j->v.rss.low > 0 ? j->v.rss.per_s * j->span_s : 0;
	double file_grown = j->v.file.per_s * j->span_s;
	bool is_most = file >= 16 * MIB && file >= rss / 2;
	bool is_growth = grown >= 16 * MIB && file_grown >= 0.7 * grown;
	if (!is_most && !is_growth)
		return false;
	add_amount(&b, file);
	buf_add_str(&b, " of ");
	add_amount(&b, rss);
	buf_add_str(&b, " RSS are pages of mapped files");
	if (is_growth) {
		buf_add_str(&b, ", growing by ");
		memslope_add(&b, &j->v.file);
	}
	buf_add_str(&b, ": not a leak, the kernel takes them back under pressure");
	j->v.evidence = words(j, &b);
	return true;
}

static bool is_bloated(struct judge *j)
{
	CLEANUP(buf_release) struct buf b = {0};
	double kept = now_of(j->kept, j->n);
	const struct memverdict_host *h = j->host;
	bool has_limit = h->limit_bytes && h->limit_bytes != UINT64_MAX;
	bool is_of_limit = has_limit && kept >= 0.8 * (double)h->limit_bytes;
	bool is_of_machine = h->machine_bytes && kept >= 0.25 * (double)h->machine_bytes;
	if (!is_of_limit && !is_of_machine)
		return false;
	double whole = (double)(is_of_limit ? h->limit_bytes : h->machine_bytes);
	add_amount(&b, kept);
	buf_add_str(&b, " that cannot be taken back, ");
	num_add_pct(&b, 100 * kept / whole);
	buf_addf(&b, " %% of the %s, without growing", is_of_limit ? "cgroup's limit" : "machine");
	j->v.evidence = words(j, &b);
	return true;
}

/* Readings that swing: up through two thirds of their range, down through one, and again. */
struct swing {
	double low;
	double high;
	double tolerance;
	size_t nr_falls;
	bool comes_back; /* in the second half as low, and not higher, as in the first */
};

/* Between two readings the turn of a swing is missed by so much. */
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

static void say_swing(struct buf *b, const struct swing *s, double span_s)
{
	buf_add_str(b, "rises and falls between ");
	add_amount(b, s->low);
	buf_add_str(b, " and ");
	add_amount(b, s->high);
	buf_addf(b, ", %zu times, and comes back: growth of less than ", s->nr_falls);
	add_amount(b, s->tolerance / (span_s / 2) * 60);
	buf_add_str(b, " a minute would not be seen in that");
}

struct rest {
	double kept;
	bool is_small;   /* hardly changed at all */
	bool is_level;   /* not in the last third */
	bool is_slowing; /* grew faster before, and grows for certain in the last third */
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

/* Steady, or nothing that can be said. */
static enum memverdict_kind judge_rest(struct judge *j)
{
	CLEANUP(buf_release) struct buf b = {0};
	const struct memslope *s = &j->v.kept;
	struct rest r = rest_of(j);
	struct swing swing = swing_of(j->kept, j->n);
	bool is_swinging = !r.is_small && !r.is_level && !r.is_slowing && swing.comes_back &&
			   swing.nr_falls >= SWINGS_MIN;
	if (!is_swinging)
		add_amount(&b, r.kept);
	if (is_swinging) {
		say_swing(&b, &swing, j->span_s);
	} else if (r.is_small) {
		buf_add_str(&b, ", changing by ");
		memslope_add(&b, s);
	} else if (r.is_level) {
		buf_add_str(&b, ": it changed in the beginning and has levelled off");
	} else if (r.is_slowing) {
		buf_add_str(&b, ", growing more slowly than in the beginning, but growing: in the "
				"last third of the time by ");
		memslope_add(&b, &r.end);
		buf_add_str(&b, ": watch for longer");
	} else {
		buf_add_str(&b, s->low > 0 ? ", growing unevenly by " : ", varying, ");
		memslope_add(&b, s);
		buf_add_str(&b, ": watch for longer");
	}
	j->v.evidence = words(j, &b);
	return r.is_small || r.is_level || is_swinging ? MEMVERDICT_STEADY
						       : MEMVERDICT_INCONCLUSIVE;
}

static void say_too_few(struct judge *j)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_addf(&b, "%zu reading%s in ", j->n, j->n == 1 ? "" : "s");
	num_add_ns(&b, j->v.span_ns);
	buf_addf(&b, ": at least %d are needed, over ", MEMVERDICT_POINTS_MIN);
	num_add_ns(&b, MEMVERDICT_SPAN_MIN_NS);
	buf_add_str(&b, " or more");
	j->v.evidence = words(j, &b);
}

static enum memverdict_kind judge_kind(struct judge *j)
{
	if (j->n < MEMVERDICT_POINTS_MIN || j->v.span_ns < MEMVERDICT_SPAN_MIN_NS) {
		say_too_few(j);
		return MEMVERDICT_INCONCLUSIVE;
	}
	bool is_growing = grows(j);
	if (is_fragmented(j, is_growing))
		return MEMVERDICT_FRAGMENTATION;
	if (is_growing) {
		say_leak(j);
		return MEMVERDICT_LEAK;
	}
	if (is_page_cache(j))
		return MEMVERDICT_PAGE_CACHE;
	if (is_bloated(j))
		return MEMVERDICT_BLOAT;
	return judge_rest(j);
}

struct memverdict memverdict_of(struct arena *a, const struct mempoint *points, size_t n,
				const struct memverdict_host *host)
{
	CLEANUP(judge_release) struct judge j = {.a = a, .points = points, .n = n, .host = host};
	fill(&j);
	j.span_s = n ? j.t[n - 1] : 0;
	fill_answers(&j);
	j.v.span_ns = n ? points[n - 1].time_ns - points[0].time_ns : 0;
	j.v.nr_points = n;
	j.v.rss = slope_of(j.t, j.rss, n);
	j.v.kept = slope_of(j.t, j.kept, n);
	j.v.file = slope_of(j.t, j.file, n);
	if (j.in_use && j.is_asked_often)
		j.v.in_use = slope_of(j.asked, j.in_use, j.nr_asked);
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
		[MEMVERDICT_PAGE_CACHE] = "page-cache",
		[MEMVERDICT_BLOAT] = "bloat",
	};
	return kind < MEMVERDICT_NR ? keys[kind] : "";
}
