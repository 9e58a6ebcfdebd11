/* Weight by phase; see phases.h. */
#include "base/base.h"
#include "analyze/select/phases.h"

#include "analyze/stacks/top.h"
#include "analyze/select/window.h"
#include "base/mem.h"

#define PHASE_MARKS_MAX 250 /* further marks stay in the last phase */

static const char *phase_name(const struct selection *sel, size_t phase)
{
	return phase < sel->nr_rules ? sel->rules[phase].name : "<other>";
}

static void add_phases(struct report *r, const struct selection *sel, const struct weight *w)
{
	bool is_ns = sel->unit == UNIT_NS;
	const struct report_column columns[] = {
		{"pct", "%", CELL_PERCENT, "share of everything shown"},
		{"error_pct", "+-", CELL_PERCENT,
		 "half width of the 95 % confidence interval, in percentage points"},
		{"samples", "samples", CELL_COUNT},
		{"weight", is_ns ? "time" : "bytes", is_ns ? CELL_NS : CELL_BYTES,
		 "time or bytes that the samples represent", .when = 1},
		{"phase", "phase", CELL_TEXT},
	};
	struct report_table *t = report_add_table_of(r, "phases", "phases", columns,
						     ARRAY_LEN(columns), sel->unit != UNIT_COUNT);
	t->has_counts = !view_has_shares(sel);
	for (size_t i = 0; i <= sel->nr_rules; i++) {
		if (i == sel->nr_rules && !w[i].nr_samples)
			continue;
		const union cell cells[] = {
			{.d = view_pct(w[i].weight, sel->weight)},
			{.d = view_error(sel, w[i], view_all(sel))},
			{.u = w[i].nr_samples},
			{.u = w[i].weight},
			{.text = phase_name(sel, i)},
		};
		report_add_row(r, t, cells);
	}
}

static void add_functions(struct report *r, const struct selection *sel, const struct weight *w,
			  uint64_t max_functions)
{
	static const struct report_column columns[] = {
		{"self_pct", "% of phase", CELL_PERCENT, "share of the phase's own time"},
		{"self_error_pct", "+-", CELL_PERCENT,
		 "half width of the 95 % confidence interval, in percentage points"},
		{"samples", "samples", CELL_COUNT, NULL},
		{"phase", "phase", CELL_TEXT, NULL},
		{"function", "function", CELL_TEXT, NULL},
		{"module", "module", CELL_TEXT, NULL},
	};
	struct report_table *t =
		report_add_table(r, "phase_functions", "hottest functions by phase (self time)",
				 columns, ARRAY_LEN(columns));
	t->has_counts = !view_has_shares(sel);
	CLEANUP(arena_release) struct arena a = {0};
	struct groups g = groups_by(&a, sel->p, BY_FUNCTION);
	struct view_item *items = arena_calloc(&a, max_functions, sizeof(*items));
	for (uint32_t phase = 0; phase <= sel->nr_rules; phase++) {
		if (!w[phase].nr_samples)
			continue;
		struct arena_mark m = arena_mark(&a);
		size_t n = top_of_phase(&a, sel, phase, &g, items, max_functions);
		for (size_t i = 0; i < n; i++) {
			union cell cells[ARRAY_LEN(columns)] = {
				{.d = view_pct(items[i].self.weight, w[phase].weight)},
				{.d = view_error(sel, items[i].self, w[phase])},
				{.u = items[i].self.nr_samples},
				{.text = phase_name(sel, phase)},
				{.text = items[i].name},
				{.text = items[i].module},
			};
			report_add_row(r, t, cells);
		}
		arena_rewind(&a, m);
	}
}

void phases_report(struct report *r, const struct selection *sel, uint64_t max_functions)
{
	CLEANUP(free_p) struct weight *w = xcalloc(sel->nr_rules + 1, sizeof(*w));
	for (size_t i = 0; i < sel->nr_rows; i++)
		weight_add_row(&w[sel->rows[i].phase], sel, i);
	add_phases(r, sel, w);
	if (max_functions)
		add_functions(r, sel, w, max_functions);
}

static int by_time(const void *x, const void *y)
{
	const struct mark *a = x;
	const struct mark *b = y;
	return COMPARE(a->time_ns, b->time_ns);
}

struct phase_rule *phases_from_marks(struct arena *a, const struct profile *p, size_t *ret_nr)
{
	struct window all = window_of_profile(p);
	size_t n = all.to_ns ? MIN(p->marks.n, PHASE_MARKS_MAX) : 0;
	struct mark *marks = arena_dup(a, p->marks.p, p->marks.n * sizeof(*marks));
	qsort(marks, p->marks.n, sizeof(*marks), by_time);
	struct phase_rule *rules = arena_calloc(a, n, sizeof(*rules));
	for (size_t i = 0; i < n; i++) {
		uint64_t from_ns = marks[i].time_ns - MIN(marks[i].time_ns, all.from_ns);
		rules[i].name = profile_text(p, marks[i].text);
		if (i + 1 < n)
			rules[i].rule = arena_fmt(a, "@%" PRIu64 "ns..%" PRIu64 "ns", from_ns,
						  marks[i + 1].time_ns - all.from_ns);
		else
			rules[i].rule = arena_fmt(a, "@%" PRIu64 "ns..", from_ns);
	}
	*ret_nr = n;
	return rules;
}
