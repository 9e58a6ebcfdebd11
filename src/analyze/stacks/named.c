/* Rows defined by the user; see named.h. */
#include "base/base.h"
#include "analyze/stacks/named.h"

#include <errno.h>

#include "analyze/select/match.h"

#define NAMED_RULES_MAX 1000

/* ---- the file -------------------------------------------------------------------------- */

static struct sv next_word(struct sv *rest, bool has_tabs)
{
	if (has_tabs) {
		struct sv word = sv_trim(sv_split(rest, '\t'));
		while (rest->n && *rest->p == '\t')
			*rest = sv_from_idx(*rest, 1);
		return word;
	}
	size_t n = 0;
	while (n < rest->n && rest->p[n] != ' ')
		n++;
	struct sv word = sv_from(rest->p, n);
	*rest = sv_trim(sv_from_idx(*rest, n));
	return word;
}

int named_parse(struct arena *a, struct sv text, struct named_rule **ret_rules, size_t *ret_nr,
		struct err *err)
{
	size_t nr_lines = 1;
	for (size_t i = 0; i < text.n; i++)
		nr_lines += text.p[i] == '\n';
	struct named_rule *rules = arena_calloc(a, MIN(nr_lines, NAMED_RULES_MAX), sizeof(*rules));
	size_t n = 0;
	for (size_t line_no = 1; text.n; line_no++) {
		struct sv line = sv_trim(sv_split(&text, '\n'));
		if (!line.n || *line.p == '#')
			continue;
		if (sv_index(line, '\0') >= 0)
			return err_set(err, -EINVAL, "line %zu: contains a NUL byte", line_no);
		bool has_tabs = sv_index(line, '\t') >= 0;
		struct sv name = next_word(&line, has_tabs);
		struct sv pattern = next_word(&line, has_tabs);
		if (!name.n || !pattern.n) {
			err_set(err, -EINVAL, "line %zu: expected NAME REGEX [NOTE]", line_no);
			return err_hint(err, "separate the columns by tabs if a name or a regex "
					     "contains spaces");
		}
		if (n == NAMED_RULES_MAX)
			return err_set(err, -EINVAL, "line %zu: more than %d rows", line_no,
				       NAMED_RULES_MAX);
		line = sv_trim(line);
		rules[n++] = (struct named_rule){
			.name = arena_strndup(a, name.p, name.n),
			.pattern = arena_strndup(a, pattern.p, pattern.n),
			.note = arena_strndup(a, line.p, line.n),
		};
	}
	*ret_rules = rules;
	*ret_nr = n;
	return 0;
}

/* ---- the table ------------------------------------------------------------------------- */

/* Returns rule + 1 by function, 0: none. */
static int rules_of_functions(struct arena *a, const struct profile *p,
			      const struct named_rule *rules, size_t nr_rules,
			      uint32_t **ret_by_func, struct err *err)
{
	uint32_t *by_func = arena_calloc(a, p->functions.n, sizeof(*by_func));
	for (size_t i = 0; i < nr_rules; i++) {
		struct arena_mark m = arena_mark(a);
		struct match match;
		int rc = match_functions_if_any(a, p, "--table", rules[i].pattern, &match, err);
		if (rc)
			return err_wrap(err, "row '%s'", rules[i].name);
		for (func_id f = 0; f < p->functions.n; f++)
			if (match.by_func[f] && !by_func[f])
				by_func[f] = (uint32_t)i + 1;
		arena_rewind(a, m);
	}
	*ret_by_func = by_func;
	return 0;
}

/* Groups made from the rows, for totals. */
static struct groups groups_from_rules(struct arena *a, const struct profile *p,
				       const uint32_t *by_func, size_t nr_rules)
{
	struct groups g = {
		.n = nr_rules + 1,
		.rows = arena_calloc(a, nr_rules + 1, sizeof(*g.rows)),
		.by_frame = arena_calloc(a, p->frames.n, sizeof(*g.by_frame)),
		.by_loc = arena_calloc(a, p->locations.n, sizeof(*g.by_loc)),
	};
	for (size_t f = 0; f < p->frames.n; f++)
		g.by_frame[f] = by_func[p->frames.p[f].func];
	for (loc_id loc = 1; loc < p->locations.n; loc++)
		g.by_loc[loc] = by_func[0];
	return g;
}

/* Returns the row of each stack: a state per node of the prefix tree, as in callers.c. */
static uint32_t *rule_of_stacks(struct arena *a, const struct selection *sel,
				const struct groups *g, enum named_nearest nearest)
{
	const struct profile *p = sel->p;
	uint32_t *rule = arena_calloc(a, p->stacks.n, sizeof(*rule));
	for (stack_id id = 1; id < p->stacks.n; id++) {
		const struct stack_node *node = &p->stacks.p[id];
		const struct location *l = &p->locations.p[node->loc];
		rule[id] = rule[node->parent];
		for (uint32_t i = select_nr_frames(sel, id); i-- > 0;) {
			uint32_t row = l->nr_frames ? g->by_frame[l->first_frame + i]
						    : g->by_loc[node->loc];
			if (row && (nearest == NAMED_NEAREST_LEAF || !rule[id]))
				rule[id] = row;
		}
	}
	return rule;
}

static void add_rows(struct report *r, const struct selection *sel, const struct named_rule *rules,
		     size_t nr_rules, const struct weight *own, const struct group_weight *all)
{
	static const struct report_column columns[] = {
		{"pct", "%", CELL_PERCENT, "share of the total; the rows add up to 100"},
		{"error_pct", "+-", CELL_PERCENT,
		 "half width of the 95 % confidence interval, in percentage points"},
		{"total_pct", "total %", CELL_PERCENT,
		 "share of all samples with a matching function on their stack"},
		{"samples", "samples", CELL_COUNT, NULL},
		{"name", "name", CELL_TEXT, NULL},
		{"note", "note", CELL_TEXT, NULL},
	};
	struct report_table *t =
		report_add_table(r, "named", "named rows", columns, ARRAY_LEN(columns));
	t->has_counts = !view_has_shares(sel);
	for (size_t i = 1; i <= nr_rules + 1; i++) {
		bool is_other = i == nr_rules + 1;
		const struct weight *w = is_other ? &own[0] : &own[i];
		union cell cells[ARRAY_LEN(columns)] = {
			{.d = view_pct(w->weight, sel->weight)},
			{.d = view_error(sel, *w, view_all(sel))},
			{.d = is_other ? __builtin_nan("")
				       : view_pct(all[i].total.weight, sel->weight)},
			{.u = w->nr_samples},
			{.text = is_other ? "<other>" : rules[i - 1].name},
			{.text = is_other ? "" : rules[i - 1].note},
		};
		report_add_row(r, t, cells);
	}
}

int named_report(struct report *r, const struct selection *sel, const struct named_rule *rules,
		 size_t nr_rules, enum named_nearest nearest, struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	uint32_t *by_func = NULL;
	TRY(rules_of_functions(&a, sel->p, rules, nr_rules, &by_func, err));
	struct groups g = groups_from_rules(&a, sel->p, by_func, nr_rules);
	struct weighed w = weigh(&a, sel);
	struct group_weight *all = weigh_groups(&a, &w, &g);
	uint32_t *rule = rule_of_stacks(&a, sel, &g, nearest);
	struct weight *own = arena_calloc(&a, nr_rules + 1, sizeof(*own));
	for (size_t i = 0; i < sel->nr_rows; i++)
		weight_add_row(&own[rule[sel->rows[i].stack]], sel, i);
	add_rows(r, sel, rules, nr_rules, own, all);
	return 0;
}
