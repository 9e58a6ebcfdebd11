/* Instructions of functions with their samples; see annotate.h. */
#include "base/base.h"
#include "analyze/stacks/annotate.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/select/match.h"
#include "analyze/stacks/hotcode.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/num.h"

#define ROWS_AROUND 2 /* of an instruction that is shown */

enum { COLUMNS_ALWAYS = 0, COLUMNS_SOURCE = 1 };

static const struct report_column columns[] = {
	{"function_pct", "% of it", CELL_PERCENT, "share of the function's own samples", 0},
	{"self_pct", "self %", CELL_PERCENT, "share of everything selected", 0},
	{"samples", "samples", CELL_COUNT, "samples taken at this instruction", 0},
	{"address", "address", CELL_TEXT, "link-time address, as objdump prints it", 0},
	{"instruction", "instruction", CELL_TEXT, .is_code = true},
	{"line", "line", CELL_TEXT, "source line of sampled instructions", 0},
	{"source", "source", CELL_TEXT, "text of that line (--source)", COLUMNS_SOURCE,
	 .is_code = true},
};

static const char *const hide_first[] = {"self_pct", "line", NULL};

struct listing {
	struct report *r;
	const struct selection *sel;
	const struct code_access *code;
	const struct hot_function *f;
	const struct code_function *text;
	struct report_table *table;
	struct weight *weights; /* by instruction */
	const struct hot_place **places;
	bool *is_shown;
};

const char *annotate_line(struct arena *a, const struct profile *p, loc_id id)
{
	const struct location *loc = &p->locations.p[id];
	const struct frame *f = loc->nr_frames ? &p->frames.p[loc->first_frame] : NULL;
	if (!f || !f->file || !f->line)
		return "";
	const char *file = path_base(profile_text(p, f->file));
	return f->is_inlined ? arena_fmt(a, "%s:%u %s", file, f->line, profile_frame_name(p, f))
			     : arena_fmt(a, "%s:%u", file, f->line);
}

static const char *source_of(struct listing *l, loc_id id)
{
	const struct profile *p = l->sel->p;
	const struct location *loc = &p->locations.p[id];
	const struct frame *f = loc->nr_frames ? &p->frames.p[loc->first_frame] : NULL;
	const char *text = NULL;
	if (f && f->file && f->line && l->code && l->code->line)
		text = l->code->line(l->code->ctx, &l->r->arena, profile_text(p, f->file), f->line);
	return text ? text : "";
}

static void add_row(struct listing *l, const struct weight *w, const char *address,
		    const char *instruction, const struct hot_place *place)
{
	const union cell row[ARRAY_LEN(columns)] = {
		{.d = view_pct(w->weight, l->f->self.weight)},
		{.d = view_pct(w->weight, l->sel->weight)},
		{.u = w->nr_samples},
		{.text = address},
		{.text = instruction},
		{.text = place ? annotate_line(&l->r->arena, l->sel->p, place->loc) : ""},
		{.text = place ? source_of(l, place->loc) : ""},
	};
	report_add_row(l->r, l->table, row);
}

/* Returns the weight of places that are no instruction of the text. */
static struct weight place_weights(struct listing *l)
{
	struct weight outside = {0};
	size_t at = 0;
	for (size_t i = 0; i < l->f->nr_places; i++) {
		const struct hot_place *place = &l->f->places[i];
		while (at < l->text->nr_insns && l->text->insns[at].offset < place->offset)
			at++;
		bool is_in = at < l->text->nr_insns && l->text->insns[at].offset == place->offset;
		weight_add(is_in ? &l->weights[at] : &outside, &place->self);
		if (is_in)
			l->places[at] = place;
	}
	return outside;
}

static int by_weight(const void *x, const void *y)
{
	return COMPARE(*(const uint64_t *)y, *(const uint64_t *)x);
}

/* The weight that an instruction must have to be among the first @max. */
static uint64_t least_weight(const struct listing *l, uint64_t max)
{
	size_t n = l->text->nr_insns;
	uint64_t *list CLEANUP(free_p) = xcalloc(n + 1, sizeof(*list));
	for (size_t i = 0; i < n; i++)
		list[i] = l->weights[i].weight;
	qsort(list, n, sizeof(*list), by_weight);
	return MAX(list[MIN(max, (uint64_t)n) - (n ? 1 : 0)], (uint64_t)1);
}

static void choose_rows(struct listing *l, uint64_t max_rows)
{
	size_t n = l->text->nr_insns;
	uint64_t least = max_rows ? least_weight(l, max_rows) : 0;
	for (size_t i = 0; i < n; i++) {
		size_t around = max_rows ? ROWS_AROUND : 0;
		if (l->weights[i].weight < least)
			continue;
		for (size_t k = i > around ? i - around : 0; k < n && k <= i + around; k++)
			l->is_shown[k] = true;
	}
}

static void add_rows(struct listing *l)
{
	for (size_t i = 0; i < l->text->nr_insns;) {
		const struct code_insn *insn = &l->text->insns[i];
		if (l->is_shown[i]) {
			const char *address = arena_fmt(&l->r->arena, "%" PRIx64, insn->vaddr);
			add_row(l, &l->weights[i], address, insn->text, l->places[i]);
			i++;
			continue;
		}
		struct weight sum = {0};
		size_t first = i;
		while (i < l->text->nr_insns && !l->is_shown[i])
			weight_add(&sum, &l->weights[i++]);
		add_row(l, &sum, "", arena_fmt(&l->r->arena, "... %zu instructions", i - first),
			NULL);
	}
}

static void add_function(struct listing *l, uint64_t max_rows)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct profile *p = l->sel->p;
	const char *name = profile_text(p, p->functions.p[l->f->func].name);
	size_t n = l->text->nr_insns;
	l->weights = arena_calloc(&a, n, sizeof(*l->weights));
	l->places = arena_calloc(&a, n, sizeof(*l->places));
	l->is_shown = arena_calloc(&a, n, sizeof(*l->is_shown));
	const char *title =
		arena_fmt(&l->r->arena, "instructions of %s in %s (%s %% of all, %s %s)", name,
			  profile_module_name(p, l->f->module),
			  num_pct(view_pct(l->f->self.weight, l->sel->weight)).s,
			  num_count(l->f->self.nr_samples).s, select_noun(l->sel));
	l->table = report_add_table_of(l->r, "instructions", title, columns, ARRAY_LEN(columns),
				       l->code && l->code->line ? COLUMNS_SOURCE : COLUMNS_ALWAYS);
	l->table->hide_first = hide_first;
	l->table->cut = CUT_LEAST;
	struct weight outside = place_weights(l);
	choose_rows(l, max_rows);
	add_rows(l);
	if (l->text->missing)
		report_note(l->r, "no assembly of %s: %s", name, l->text->missing);
	for (size_t i = 0; l->text->missing && i < l->f->nr_places; i++) {
		const struct hot_place *place = &l->f->places[i];
		add_row(l, &place->self, arena_fmt(&l->r->arena, "+%" PRIx64, place->offset), "",
			place);
	}
	if (!l->text->missing && outside.weight)
		add_row(l, &outside, "", "(addresses that are no instruction of it)", NULL);
}

static bool has_inlined(const struct selection *sel, const struct hot_function *f,
			const struct match *m)
{
	for (size_t i = 0; i < f->nr_places; i++) {
		const struct location *loc = &sel->p->locations.p[f->places[i].loc];
		for (uint32_t k = 0; k < loc->nr_frames; k++)
			if (m->by_func[sel->p->frames.p[loc->first_frame + k].func])
				return true;
	}
	return false;
}

/* Functions of that name; if there are none, those into which one is inlined. */
static size_t keep_matching(const struct selection *sel, struct hot_function *f, size_t n,
			    const struct match *m)
{
	size_t nr = 0;
	bool has_own = false;
	for (size_t i = 0; i < n; i++)
		has_own |= m->by_func[f[i].func];
	for (size_t i = 0; i < n; i++)
		if (has_own ? m->by_func[f[i].func] : has_inlined(sel, &f[i], m))
			f[nr++] = f[i];
	return nr;
}

int annotate_report(struct report *r, const struct selection *sel, const char *pattern,
		    const struct code_access *code, const struct view_limits *limits,
		    struct err *err)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct match match;
	struct hot_function *f;
	TRY(match_functions(&a, sel->p, "--annotate", pattern, &match, err));
	size_t nr_all = hotcode_find(&a, sel, &f);
	nr_all = keep_matching(sel, f, nr_all, &match);
	size_t nr = MIN(nr_all, (size_t)ANNOTATE_FUNCTIONS_MAX);
	if (!nr)
		return err_set(err, -ENOENT, "--annotate '%s': no sample was taken in its code",
			       pattern);
	const struct code_function *text = hotcode_read(&r->arena, sel->p, code, f, nr);
	for (size_t i = 0; i < nr; i++) {
		struct listing l = {.r = r, .sel = sel, .code = code, .f = &f[i], .text = &text[i]};
		add_function(&l, limits->max_rows);
	}
	if (nr_all > nr)
		report_note(r, "--annotate '%s': %zu more functions match", pattern, nr_all - nr);
	return 0;
}
