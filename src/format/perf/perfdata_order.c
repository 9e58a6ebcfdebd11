/*
 * perf.data reader: sorts records by time.
 *
 * perf copies the kernel's ring buffers to the file one after the other, so a file is a sequence of
 * sorted runs that overlap in time. FINISHED_ROUND means that every ring buffer was read once:
 * later records cannot be older than the latest record of the round before. Queued records are
 * sorted by merging the existing runs (stable: records with equal times keep the file's order),
 * which takes linear time for the ring buffer of one CPU.
 */
#include "base/base.h"
#include "format/perf/perfdata_reader.h"

void pd_order_release(struct pd_order *o)
{
	vec_release(&o->waiting);
	vec_release(&o->scratch);
	vec_release(&o->runs);
}

void pd_order_add(struct pd_order *o, struct pd_entry e)
{
	if (!o->waiting.n)
		o->is_sorted = true;
	else if (e.time_ns < vec_last(&o->waiting)->time_ns)
		o->is_sorted = false;
	if (e.time_ns > o->max_ns)
		o->max_ns = e.time_ns;
	vec_push(&o->waiting, e);
}

static void merge(const struct pd_entry *from, size_t a, size_t mid, size_t end,
		  struct pd_entry *to)
{
	size_t b = mid;
	size_t out = a;
	size_t i = a;
	while (i < mid && b < end)
		to[out++] = from[b].time_ns < from[i].time_ns ? from[b++] : from[i++];
	memcpy(to + out, from + i, (mid - i) * sizeof(*to));
	out += mid - i;
	memcpy(to + out, from + b, (end - b) * sizeof(*to));
}

/* Bottom-up merge sort of the existing runs; `runs` holds their starts and, last, the end. */
static void sort(struct pd_order *o)
{
	size_t n = o->waiting.n;
	vec_clear(&o->runs);
	vec_push(&o->runs, 0);
	for (size_t i = 1; i < n; i++)
		if (o->waiting.p[i].time_ns < o->waiting.p[i - 1].time_ns)
			vec_push(&o->runs, i);
	vec_push(&o->runs, n);
	vec_reserve(&o->scratch, n);

	while (o->runs.n > 2) {
		size_t kept = 0;
		size_t nr_runs = o->runs.n - 1;
		for (size_t i = 0; i < nr_runs; i += 2) {
			size_t a = o->runs.p[i];
			size_t mid = o->runs.p[i + 1];
			size_t end = i + 2 <= nr_runs ? o->runs.p[i + 2] : mid;
			merge(o->waiting.p, a, mid, end, o->scratch.p);
			o->runs.p[kept++] = a;
		}
		o->runs.p[kept++] = n;
		o->runs.n = kept;
		struct pd_entry *p = o->waiting.p;
		size_t cap = o->waiting.cap;
		o->waiting.p = o->scratch.p;
		o->waiting.cap = o->scratch.cap;
		o->scratch.p = p;
		o->scratch.cap = cap;
	}
	o->is_sorted = true;
}

/* Records of several ring buffers are far apart, and were read long ago. */
#define PREFETCH_AHEAD 12
#define PREFETCH_LINES 2 /* of 64 bytes: a sample with a short chain */

static void prefetch(const struct pd_order *o, size_t i)
{
	const uint8_t *rec = o->waiting.p[MIN(i + PREFETCH_AHEAD, o->waiting.n - 1)].rec;
	for (size_t k = 0; k < PREFETCH_LINES; k++)
		__builtin_prefetch(rec + 64 * k);
}

int pd_order_flush(struct pd_reader *r, uint64_t limit_ns, struct err *err)
{
	struct pd_order *o = &r->order;
	if (!o->waiting.n)
		return 0;
	if (!o->is_sorted)
		sort(o);
	size_t i = 0;
	int rc = 0;
	for (; !rc && i < o->waiting.n && o->waiting.p[i].time_ns <= limit_ns; i++) {
		struct pd_entry e = o->waiting.p[i];
		prefetch(o, i);
		if (e.time_ns < o->delivered_ns)
			r->info->nr_late++;
		else
			o->delivered_ns = e.time_ns;
		rc = pd_deliver(r, e.rec, e.spec, err);
		pd_chunk_unref(r, e.chunk);
	}
	o->waiting.n -= i;
	memmove(o->waiting.p, o->waiting.p + i, o->waiting.n * sizeof(*o->waiting.p));
	return rc;
}

int pd_order_round(struct pd_reader *r, struct err *err)
{
	uint64_t limit_ns = r->order.round_max_ns;
	r->order.round_max_ns = r->order.max_ns;
	return pd_order_flush(r, limit_ns, err);
}
