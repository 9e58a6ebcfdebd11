/* Finer times for sums of waits; see waitbins.h. */
#include "base/base.h"
#include "analyze/page/waitbins.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select/select.h"
#include "analyze/wait/reason.h"
#include "model/tables.h"

#define BINS_MAX (WAITBINS_MAX - 1)

struct segment {
	task_id task;
	stack_id stack;
	unsigned reason;
	uint64_t start_ns;
	uint64_t end_ns;
};

struct waitbins {
	struct segment *
		segments; /* by thread, stack, reason, then time; those of a thread do not overlap */
	size_t n;
};

static int by_key(const struct segment *a, const struct segment *b)
{
	return COMPARE(a->task, b->task) ?: COMPARE(a->stack, b->stack)
	       ?: COMPARE(a->reason, b->reason);
}

static int by_key_and_time(const void *x, const void *y)
{
	const struct segment *a = x;
	const struct segment *b = y;
	return by_key(a, b) ?: COMPARE(a->start_ns, b->start_ns);
}

static void add(struct waitbins *w, const struct segment *s)
{
	if (s->end_ns > s->start_ns)
		w->segments[w->n++] = *s;
}

/* An interval is blocked for its reason, then in the run queue. */
static void add_interval(struct waitbins *w, const struct profile *p, const struct table *t,
			 size_t i, struct reasons *reasons)
{
	const int64_t *v = &t->values[i * t->nr_columns];
	uint64_t ns = (uint64_t)MAX(v[INTERVAL_NS], 0);
	uint64_t queue_ns = MIN((uint64_t)MAX(v[INTERVAL_QUEUE_NS], 0), ns);
	uint64_t woken_ns = t->time_ns[i] + ns - queue_ns;
	struct segment s = {.task = t->task[i],
			    .stack = select_without_scheduler(p, t->stack[i]),
			    .start_ns = t->time_ns[i],
			    .end_ns = woken_ns};
	s.reason = reason_of(reasons, s.stack, &p->tags.p[t->tag[i]]);
	add(w, &s);
	if (s.reason != WAIT_YIELD)
		s.reason = WAIT_RUN_QUEUE;
	s.start_ns = woken_ns;
	s.end_ns = woken_ns + queue_ns;
	add(w, &s);
}

struct waitbins *waitbins_new(struct arena *a, const struct profile *p)
{
	const struct table *t = tables_find_rows(p, TABLE_INTERVALS);
	if (!t || t->nr_columns < INTERVAL_COLUMNS)
		return NULL;
	struct waitbins *w = arena_calloc(a, 1, sizeof(*w));
	struct reasons *reasons = reasons_new(a, p);
	w->segments = arena_alloc(a, 2 * t->n * sizeof(*w->segments));
	for (size_t i = 0; i < t->n; i++)
		add_interval(w, p, t, i, reasons);
	qsort(w->segments, w->n, sizeof(*w->segments), by_key_and_time);
	return w;
}

/* Index of the first segment of the row's key that ends after its start. */
static size_t first_of(const struct waitbins *w, const struct segment *key)
{
	size_t lo = 0;
	size_t hi = w->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct segment *s = &w->segments[mid];
		int order = by_key(s, key) ?: s->end_ns <= key->start_ns ? -1 : 1;
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Adds up the time of the row's segments in each bin; returns the sum. */
static uint64_t fill_bins(const struct waitbins *w, const struct waitbins_row *row,
			  uint64_t bins[BINS_MAX])
{
	const struct segment key = {.task = row->task,
				    .stack = row->stack,
				    .reason = row->reason,
				    .start_ns = row->start_ns};
	uint64_t end_ns = row->start_ns + row->len_ns;
	uint64_t sum = 0;
	for (size_t i = first_of(w, &key); i < w->n && !by_key(&w->segments[i], &key); i++) {
		uint64_t at = MAX(w->segments[i].start_ns, row->start_ns);
		uint64_t end = MIN(w->segments[i].end_ns, end_ns);
		if (at >= end_ns)
			break;
		while (at < end) {
			uint64_t k = (at - row->start_ns) / WAITBINS_NS;
			uint64_t next = MIN(row->start_ns + (k + 1) * WAITBINS_NS, end);
			bins[k] += next - at;
			sum += next - at;
			at = next;
		}
	}
	return sum;
}

/* Appends a bin, or extends the part before it if both are filled by one long wait. */
static size_t add_part(struct waitbin *parts, size_t n, const struct waitbin *bin)
{
	struct waitbin *last = n ? &parts[n - 1] : NULL;
	bool is_full = bin->weight_ns == bin->len_ns;
	if (last && is_full && last->weight_ns == last->len_ns &&
	    last->start_ns + last->len_ns == bin->start_ns) {
		last->len_ns += bin->len_ns;
		last->weight_ns += bin->weight_ns;
		return n;
	}
	parts[n] = *bin;
	return n + 1;
}

size_t waitbins_split(const struct waitbins *w, const struct waitbins_row *row,
		      struct waitbin ret_parts[WAITBINS_MAX])
{
	uint64_t bins[BINS_MAX] = {0};
	ASSERT(row->len_ns <= BINS_MAX * WAITBINS_NS);
	uint64_t sum = fill_bins(w, row, bins);
	uint64_t weight = MIN(sum, row->weight_ns);
	uint64_t upto = 0;
	uint64_t given = 0;
	size_t n = 0;
	for (size_t k = 0; k < BINS_MAX; k++) {
		if (!bins[k])
			continue;
		upto += bins[k];
		uint64_t so_far = (uint64_t)((unsigned __int128)weight * upto / sum);
		uint64_t start_ns = k * WAITBINS_NS;
		const struct waitbin bin = {.start_ns = row->start_ns + start_ns,
					    .len_ns = MIN(WAITBINS_NS, row->len_ns - start_ns),
					    .weight_ns = so_far - given};
		given = so_far;
		n = add_part(ret_parts, n, &bin);
	}
	if (row->weight_ns > weight || !n)
		ret_parts[n++] =
			(struct waitbin){row->start_ns, row->len_ns, row->weight_ns - weight};
	return n;
}
