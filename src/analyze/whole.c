/* The page of a recording of everything; see whole.h. */
#include "base/base.h"
#include "analyze/whole.h"

#include <stdlib.h>

#include "analyze/io/faultsum.h"
#include "analyze/io/iosum.h"
#include "analyze/memory/heapsum.h"
#include "analyze/memory/heapweights.h"
#include "analyze/memory/timeline.h"
#include "analyze/stacks/hotcold.h"
#include "analyze/views.h"
#include "analyze/wait/frames.h"
#include "base/mem.h"

/* The tables of the page, in this order; the others are its details. */
static const char *const shown[] = {"breakdown", "functions", "heap_functions", "waiting_functions",
				    "locks",     "spans",     "memory_growth",  "leaks",
				    "io_syncs",  "block",     "fault_objects"};

/* What the page of a part says of how it was recorded. */
static const enum fact_id further[] = {
	FACT_EVENT,         FACT_GROWTH,           FACT_BLOCK_IN_FLIGHT,
	FACT_MEMORY_CGROUP, FACT_CONTEXT_SWITCHES, FACT_READ_WRITE,
	FACT_CPU_TIME,      FACT_DISK_READS};
#define BREAKDOWN_ROWS 5

bool whole_exists(const struct profile *p)
{
	const char *kind = profile_get_fact(p, FACT_KIND);
	return kind && !strcmp(kind, "all") &&
	       (tables_has_rows(p, TABLE_SAMPLES) || tables_has_rows(p, TABLE_ON_CPU) ||
		tables_has_rows(p, TABLE_OFF_CPU) || tables_has_rows(p, TABLE_MEMORY));
}

static size_t place_of(const struct report_table *t)
{
	size_t i = 0;
	while (i < ARRAY_LEN(shown) && strcmp(shown[i], t->key) != 0)
		i++;
	return i;
}

static void order_tables(struct report *r)
{
	struct report_table *sorted = xmemdup(r->tables.p, r->tables.n * sizeof(*sorted));
	size_t n = 0;
	for (size_t place = 0; place <= ARRAY_LEN(shown); place++)
		for (size_t i = 0; i < r->tables.n; i++)
			if (place_of(&sorted[i]) == place)
				r->tables.p[n++] = sorted[i];
	vec_foreach(t, &r->tables)
		t->is_detail |= place_of(t) == ARRAY_LEN(shown);
	free(sorted);
}

static int add_counts(struct report *r, const struct profile *p, const struct select_spec *spec,
		      const struct view_limits *limits, struct err *err)
{
	if (tables_has_rows(p, TABLE_IO) || tables_has_rows(p, TABLE_BLOCK))
		TRY(iosum_add(r, p, spec, limits, err));
	if (tables_has_rows(p, TABLE_FAULTS) || tables_has_rows(p, TABLE_RECLAIM))
		TRY(faultsum_add(r, p, spec, limits, err));
	return 0;
}

/*
 * Returns ". Of its new pages 92 % were touched first in X", or "" if it is not known: the function that
 * grew the memory, not necessarily the one that does not free it.
 */
static const char *who_grew(struct report *r, struct arena *a, const struct profile *p)
{
	const struct select_spec spec = {.event = table_key(TABLE_GROWTH)};
	struct selection sel;
	if (!tables_has_rows(p, TABLE_GROWTH) || select_run(a, p, &spec, &sel, NULL) || !sel.weight)
		return "";
	struct waitframes *frames = waitframes_new(a, p);
	uint64_t *by_name = arena_calloc(a, intern_count(&p->strings) + 1, sizeof(*by_name));
	str_id most = 0;
	for (size_t i = 0; i < sel.nr_rows; i++) {
		str_id name = waitframe_of(frames, sel.rows[i].stack).own;
		by_name[name] += sel.rows[i].weight;
		if (name && by_name[name] > by_name[most])
			most = name;
	}
	double pct = 100.0 * (double)by_name[most] / (double)sel.weight;
	if (!most)
		return "";
	return arena_fmt(&r->arena, ". Of its new pages %s %% were touched first in %s",
			 num_double(pct, 0).s, view_name(r, profile_text(p, most)));
}

/*
 * What grows is the second sentence, before the hottest path and lesser waits, of which a page may have
 * more than it shows; the first if the program has little to do.
 */
static void add_memory(struct report *r, const struct profile *p)
{
	CLEANUP(arena_release) struct arena a = {0};
	size_t nr = r->findings.n;
	memtime_add(r, p);
	size_t at = r->is_no_load ? 0 : MIN(nr, 1);
	if (r->findings.n == nr)
		return;
	const char *grows = arena_fmt(&r->arena, "%s%s", r->findings.p[nr], who_grew(r, &a, p));
	memmove(r->findings.p + at + 1, r->findings.p + at, (nr - at) * sizeof(grows));
	r->findings.p[at] = grows;
}

static enum view_id first_part(const struct profile *p)
{
	if (hotcold_exists(p))
		return VIEW_THREAD_TIME;
	if (tables_has_rows(p, TABLE_ON_CPU) || tables_has_rows(p, TABLE_OFF_CPU))
		return VIEW_WAITS;
	return tables_has_rows(p, TABLE_SAMPLES) ? VIEW_CPU : VIEW_MEMORY;
}

int whole_page(struct report *r, const struct profile *p, const struct select_spec *spec,
	       const char *input, const struct view_limits *limits, struct err *err)
{
	enum view_id first = first_part(p);
	TRY(views_at(first)->page(r, p, spec, input, limits, err));
	if (first == VIEW_MEMORY)
		return 0;
	r->title = views_at(VIEW_ALL)->title;
	if (select_scope(spec) == SELECT_ALL) /* readings are of processes */
		add_memory(r, p);
	TRY(add_counts(r, p, spec, limits, err));
	bool has_heap = heapweights_exist(p) && !tables_has_rows(p, TABLE_GROWTH);
	if (has_heap) {
		TRY(heapsum_add(r, p, spec, limits, err));
		report_note(r, "allocations, frees and leaks by call stack: assay report --weight "
			       "live (allocated, leaked), and the page's view Memory");
	}
	order_tables(r);
	if (r->tables.n && !strcmp(r->tables.p[0].key, "breakdown"))
		r->tables.p[0].nr_first = has_heap ? 0 : BREAKDOWN_ROWS;
	for (size_t i = 0; i < ARRAY_LEN(further); i++)
		vec_push(&r->further_facts, further[i]);
	return 0;
}
