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
		memtime_add(r, p);
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
