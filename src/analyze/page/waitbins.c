/* How waits were spread within a second; see waitbins.h. */
#include "base/base.h"
#include "analyze/page/waitbins.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select/select.h"
#include "analyze/wait/reason.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/tables.h"

#define SECOND_NS (WAITBINS_SECOND * WAITBINS_NS)

/*
 * A shape is found by (thread, stack) -> place, then (place, reason, second) -> shape. Both maps are
 * filled while the intervals are read; the bins of all shapes are appended as they come and then put
 * in order by counting.
 */
struct waitbins {
	struct map places; /* task << 32 | stack: its number */
	struct map shapes; /* place << 32 | second << 8 | reason: its number */
	uint64_t start_ns; /* seconds begin then and whole seconds later, as those of rows */
	uint32_t *first;   /* by shape: index of its first bin; one more at the end */
	struct waitbin *bins;
};

struct entry {
	uint32_t shape;
	uint32_t ns;
	uint8_t bin;
};

struct filler {
	struct waitbins *w;
	VEC(struct entry) entries;
	struct map
		reasons; /* stack << 32 | tag: stack without scheduler << 8 | reason, by number */
	VEC(uint64_t) known;
};

static uint64_t shape_key(uint32_t place, uint64_t second, unsigned reason)
{
	return (uint64_t)place << 32 | second << 8 | reason;
}

static bool is_countable(uint64_t second)
{
	return second < 1u << 24;
}

/* Adds the bins of a blocked or waiting time. */
static void add(struct filler *f, uint32_t place, unsigned reason, uint64_t from_ns, uint64_t to_ns)
{
	struct waitbins *w = f->w;
	uint64_t at = MAX(from_ns, w->start_ns) - w->start_ns;
	uint64_t end = MAX(to_ns, w->start_ns) - w->start_ns;
	uint64_t second = UINT64_MAX;
	uint32_t shape = 0;
	while (at < end && is_countable(at / SECOND_NS)) {
		if (second != at / SECOND_NS) {
			second = at / SECOND_NS;
			bool is_new;
			uint32_t *id =
				map_put(&w->shapes, shape_key(place, second, reason), &is_new);
			if (is_new)
				*id = (uint32_t)w->shapes.n;
			shape = *id;
		}
		uint64_t next = MIN((at / WAITBINS_NS + 1) * WAITBINS_NS, end);
		const struct entry e = {.shape = shape,
					.ns = (uint32_t)(next - at),
					.bin = (uint8_t)(at / WAITBINS_NS % WAITBINS_SECOND)};
		vec_push(&f->entries, e);
		at = next;
	}
}

/* An interval is blocked for its reason, then in the run queue. */
static void add_interval(struct filler *f, const struct profile *p, const struct table *t, size_t i,
			 struct reasons *reasons)
{
	const int64_t *v = &t->values[i * t->nr_columns];
	uint64_t ns = (uint64_t)MAX(v[INTERVAL_NS], 0);
	uint64_t queue_ns = MIN((uint64_t)MAX(v[INTERVAL_QUEUE_NS], 0), ns);
	uint64_t woken_ns = t->time_ns[i] + ns - queue_ns;
	bool is_new;
	uint32_t *known = map_put(&f->reasons, (uint64_t)t->stack[i] << 32 | t->tag[i], &is_new);
	if (is_new) {
		stack_id bare = select_without_scheduler(p, t->stack[i]);
		enum wait_reason why = reason_of(reasons, bare, &p->tags.p[t->tag[i]]);
		*known = (uint32_t)f->known.n;
		vec_push(&f->known, (uint64_t)bare << 8 | why);
	}
	uint64_t place_key = (uint64_t)t->task[i] << 32 | f->known.p[*known] >> 8;
	unsigned reason = (unsigned)(f->known.p[*known] & 255);
	uint32_t *place = map_put(&f->w->places, place_key, &is_new);
	if (is_new)
		*place = (uint32_t)f->w->places.n;
	add(f, *place, reason, t->time_ns[i], woken_ns);
	add(f, *place, reason == WAIT_YIELD ? reason : WAIT_RUN_QUEUE, woken_ns,
	    woken_ns + queue_ns);
}

static int by_bin(const void *x, const void *y)
{
	const struct waitbin *a = x;
	const struct waitbin *b = y;
	return COMPARE(a->bin, b->bin);
}

/* Sorts the bins of a shape and joins equal ones. Returns their number. */
static uint32_t join(struct waitbin *bins, uint32_t n)
{
	bool is_sorted = true;
	for (uint32_t i = 1; i < n; i++)
		is_sorted &= bins[i - 1].bin <= bins[i].bin;
	if (!is_sorted)
		qsort(bins, n, sizeof(*bins), by_bin);
	uint32_t nr = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (nr && bins[nr - 1].bin == bins[i].bin)
			bins[nr - 1].ns += bins[i].ns;
		else
			bins[nr++] = bins[i];
	}
	return nr;
}

/* Puts the bins in order of shape. */
static void order(struct filler *f)
{
	struct waitbins *w = f->w;
	size_t nr = w->shapes.n;
	CLEANUP(free_p) uint32_t *at = xcalloc(nr + 2, sizeof(*at));
	w->first = xcalloc(nr + 2, sizeof(*w->first));
	w->bins = xcalloc(f->entries.n + 1, sizeof(*w->bins));
	vec_foreach(e, &f->entries)
		at[e->shape + 1]++;
	for (size_t s = 1; s < nr + 2; s++)
		at[s] += at[s - 1];
	vec_foreach(e, &f->entries)
		w->bins[at[e->shape]++] = (struct waitbin){e->ns, e->bin};
	/* Now at[s] is where the bins of shape s end. */
	uint32_t to = 0;
	for (size_t s = 1; s <= nr; s++) {
		uint32_t from = at[s - 1];
		uint32_t n = join(&w->bins[from], at[s] - from);
		memmove(&w->bins[to], &w->bins[from], n * sizeof(*w->bins));
		w->first[s] = to;
		to += n;
	}
	w->first[nr + 1] = to;
}

/* When the seconds of the sums begin. */
static uint64_t start_of(const struct profile *p)
{
	const struct table *t = tables_find_rows(p, TABLE_OFF_CPU);
	return t && t->time_kind == TABLE_TIME_SLICE ? t->time_ns[0] : p->start_ns;
}

struct waitbins *waitbins_new(const struct profile *p)
{
	const struct table *t = tables_find_rows(p, TABLE_INTERVALS);
	if (!t || t->nr_columns < INTERVAL_COLUMNS || t->n > UINT32_MAX / WAITBINS_SECOND)
		return NULL;
	CLEANUP(arena_release) struct arena a = {0};
	struct filler f = {.w = xcalloc(1, sizeof(struct waitbins))};
	struct reasons *reasons = reasons_new(&a, p);
	f.w->start_ns = start_of(p);
	for (size_t i = 0; i < t->n; i++)
		add_interval(&f, p, t, i, reasons);
	order(&f);
	vec_release(&f.entries);
	vec_release(&f.known);
	map_release(&f.reasons);
	return f.w;
}

void waitbins_free(struct waitbins *w)
{
	if (!w)
		return;
	map_release(&w->places);
	map_release(&w->shapes);
	free(w->first);
	free(w->bins);
	free(w);
}

uint32_t waitbins_count(const struct waitbins *w)
{
	return (uint32_t)w->shapes.n;
}

uint32_t waitbins_shape(const struct waitbins *w, const struct waitbins_row *row)
{
	uint64_t second = (row->start_ns - w->start_ns) / SECOND_NS;
	uint64_t key = (uint64_t)row->task << 32 | row->stack;
	/* Of several recordings in one profile, the seconds may begin at different times. */
	bool is_whole = row->start_ns >= w->start_ns &&
			(row->start_ns - w->start_ns) % SECOND_NS == 0 && is_countable(second);
	const uint32_t *place = is_whole ? map_get(&w->places, key) : NULL;
	const uint32_t *shape =
		place ? map_get(&w->shapes, shape_key(*place, second, row->reason)) : NULL;
	return shape ? *shape : 0;
}

const struct waitbin *waitbins_of(const struct waitbins *w, uint32_t shape, size_t *ret_n)
{
	ASSERT(shape && shape <= w->shapes.n);
	*ret_n = w->first[shape + 1] - w->first[shape];
	return &w->bins[w->first[shape]];
}
