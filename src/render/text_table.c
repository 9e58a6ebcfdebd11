/* Tables and trees as aligned text; see text_table.h. */
#include "base/base.h"
#include "render/text_table.h"

#include <math.h>

#include "base/text/escape.h"
#include "base/mem.h"
#include "base/text/num.h"

#define GAP        2  /* spaces before each column */
#define NAME_MIN   20 /* a shortened name keeps at least this many columns */
#define PCT_WIDTH  7  /* "100.00", and the headings of a tree */
#define INDENT_MAX 60 /* deeper levels of a tree do not move further right */

/* ---- strings --------------------------------------------------------------------------- */

static bool is_start(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

size_t text_columns(struct sv s)
{
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++)
		n += is_start(s.p[i]);
	return n;
}

static size_t bytes_of_first(struct sv s, size_t n)
{
	size_t i = 0;
	for (; i < s.n; i++)
		if (is_start(s.p[i]) && n-- == 0)
			break;
	return i;
}

static size_t bytes_of_last(struct sv s, size_t n)
{
	size_t i = s.n;
	while (i > 0 && n > 0)
		if (is_start(s.p[--i]))
			n--;
	return s.n - i;
}

/* Shortens a name in the middle: its ends are the most specific parts. */
static void add_cut(struct buf *to, struct sv s, size_t width)
{
	if (text_columns(s) <= width) {
		buf_add_sv(to, s);
		return;
	}
	size_t tail = (width - 2) * 3 / 5;
	size_t nr_tail = bytes_of_last(s, tail);
	buf_add(to, s.p, bytes_of_first(s, width - 2 - tail));
	buf_add_str(to, "..");
	buf_add(to, s.p + s.n - nr_tail, nr_tail);
}

static void add_padded(struct buf *to, struct sv s, size_t width, enum text_side side)
{
	size_t n = text_columns(s);
	size_t pad = width > n ? width - n : 0;
	if (side == TEXT_RIGHT)
		buf_add_repeat(to, ' ', pad);
	buf_add_sv(to, s);
	if (side == TEXT_LEFT)
		buf_add_repeat(to, ' ', pad);
}

void text_add_heading(struct buf *to, const struct text_style *style, const char *text)
{
	if (style->has_color)
		buf_add_str(to, "\x1b[1m");
	escape_term(to, sv_from_str(text));
	if (style->has_color)
		buf_add_str(to, "\x1b[0m");
	buf_add_ch(to, '\n');
}

static void end_line(struct buf *to)
{
	while (to->n && to->p[to->n - 1] == ' ')
		to->n--;
	buf_add_ch(to, '\n');
}

/* ---- tables ---------------------------------------------------------------------------- */

void text_add_number(struct buf *to, enum unit unit, uint64_t v)
{
	switch (unit) {
	case UNIT_COUNT:
		num_add_count(to, v);
		break;
	case UNIT_NS:
		num_add_ns(to, v);
		break;
	case UNIT_BYTES:
		num_add_bytes(to, v);
		break;
	}
}

/* "1.20 MiB +-8 %"; "1.20 MiB, <= 3.10 MiB" where the interval reaches to 0. */
static void add_estimate(struct buf *to, enum unit unit, const struct cell_estimate *e)
{
	if (e->value == CELL_NO_ESTIMATE) {
		buf_add_ch(to, '-');
		return;
	}
	text_add_number(to, unit, e->value);
	if (!e->error || !e->value)
		return;
	if (e->error > e->value) {
		buf_add_str(to, ", <= ");
		text_add_number(to, unit, u64_add(e->value, e->error));
		return;
	}
	double pct = 100.0 * (double)e->error / (double)e->value;
	buf_addf(to, " +-%s %%", pct < 0.1 ? "<0.1" : num_double(pct, pct < 10 ? 1 : 0).s);
}

/* "+1.20 MiB +-310 KiB" */
static void add_change(struct buf *to, enum unit unit, const struct cell_estimate *e)
{
	if (e->change == CELL_NO_CHANGE) {
		buf_add_ch(to, '-');
		return;
	}
	if (e->change)
		buf_add_ch(to, e->change < 0 ? '-' : '+');
	text_add_number(to, unit, e->change < 0 ? 0 - (uint64_t)e->change : (uint64_t)e->change);
	if (!e->error)
		return;
	buf_add_str(to, " +-");
	text_add_number(to, unit, e->error);
}

static void add_float(struct buf *to, double v)
{
	if (isnan(v))
		buf_add_ch(to, '-');
	else if (v >= 10000 && v < 1e15) /* decimals are below the precision */
		num_add_count(to, (uint64_t)(v + 0.5));
	else
		num_add_double(to, v, 2);
}

void text_add_cell(struct buf *to, const struct report_column *c, const union cell *v)
{
	enum unit unit = cell_unit(c->kind);
	if (cell_form(c->kind) == CELL_ESTIMATE)
		add_estimate(to, unit, &v->estimate);
	else if (cell_form(c->kind) == CELL_CHANGE)
		add_change(to, unit, &v->estimate);
	else if (c->kind == CELL_TEXT)
		escape_term(to, sv_from_str(v->text));
	else if (c->kind == CELL_PERCENT || c->kind == CELL_FLOAT)
		add_float(to, v->d);
	else if ((c->kind == CELL_ID && v->u == CELL_NO_ID) ||
		 (c->kind == CELL_COUNT && v->u == CELL_NO_COUNT) ||
		 (c->kind == CELL_BYTES && v->u == CELL_NO_BYTES) ||
		 (c->kind == CELL_NS && v->u == CELL_NS_NONE))
		buf_add_ch(to, '-');
	else if (c->kind == CELL_ID)
		buf_add_u64(to, v->u);
	else
		text_add_number(to, unit, v->u);
}

bool text_has_column(const struct report_table *t, size_t column)
{
	return !t->has_counts || t->columns[column].kind != CELL_PERCENT;
}

static size_t widest(const struct report_table *t, size_t c, struct buf *scratch)
{
	size_t w = text_columns(sv_from_str(t->columns[c].title));
	for (size_t i = 0; i < t->nr_rows; i++) {
		buf_clear(scratch);
		text_add_cell(scratch, &t->columns[c], &t->cells[i * t->nr_columns + c]);
		w = MAX(w, text_columns(buf_sv(scratch)));
	}
	return w;
}

struct layout {
	size_t *widths;  /* of each column */
	bool *is_hidden; /* of each column: it does not fit on the terminal */
};

/* Returns the width of a line whose text columns are shortened to the minimum. */
static size_t least_width(const struct report_table *t, const struct layout *l)
{
	size_t sum = 0;
	for (size_t c = 0; c < t->nr_columns; c++) {
		bool is_text = t->columns[c].kind == CELL_TEXT;
		if (!l->is_hidden[c])
			sum += GAP + (is_text ? MIN(l->widths[c], (size_t)NAME_MIN) : l->widths[c]);
	}
	return sum;
}

/* Hides optional columns until the line fits on the terminal. */
static void hide_columns(const struct report_table *t, struct layout *l, unsigned width)
{
	for (const char *const *key = t->hide_first; key && *key && least_width(t, l) > width;
	     key++)
		for (size_t c = 0; c < t->nr_columns; c++)
			if (!strcmp(t->columns[c].key, *key))
				l->is_hidden[c] = true;
}

/* Shortens the first text column (the name) until the line fits, then the other ones. */
static void fit_widths(const struct report_table *t, struct layout *l, unsigned width)
{
	size_t sum = 0;
	for (size_t c = 0; c < t->nr_columns; c++)
		sum += l->is_hidden[c] ? 0 : l->widths[c] + GAP;
	for (size_t c = 0; c < t->nr_columns && sum > width; c++) {
		if (l->is_hidden[c] || t->columns[c].kind != CELL_TEXT || l->widths[c] <= NAME_MIN)
			continue;
		size_t cut = MIN(sum - width, l->widths[c] - NAME_MIN);
		l->widths[c] -= cut;
		sum -= cut;
	}
}

/* Appends a row; @row NULL: the column titles. */
static void add_line(struct buf *to, const struct report_table *t, const struct layout *l,
		     const union cell *row)
{
	CLEANUP(buf_release) struct buf cell = {0};
	CLEANUP(buf_release) struct buf cut = {0};
	for (size_t c = 0; c < t->nr_columns; c++) {
		bool is_text = t->columns[c].kind == CELL_TEXT;
		if (l->is_hidden[c])
			continue;
		buf_clear(&cell);
		buf_clear(&cut);
		if (row)
			text_add_cell(&cell, &t->columns[c], &row[c]);
		else
			buf_add_str(&cell, t->columns[c].title);
		add_cut(&cut, buf_sv(&cell), l->widths[c]);
		buf_add_repeat(to, ' ', GAP);
		add_padded(to, buf_sv(&cut), l->widths[c], is_text ? TEXT_LEFT : TEXT_RIGHT);
	}
	end_line(to);
}

static void add_hidden(struct buf *to, const struct report_table *t, const struct layout *l)
{
	const char *sep = "  (hidden columns, shown on a wider terminal or in a pipe: ";
	for (size_t c = 0; c < t->nr_columns; c++) {
		if (!l->is_hidden[c] || !text_has_column(t, c))
			continue;
		buf_addf(to, "%s%s", sep, t->columns[c].title);
		sep = ", ";
	}
	if (sep[0] == ',')
		buf_add_str(to, ")\n");
}

void text_add_table(struct buf *to, const struct report_table *t, const struct text_style *style)
{
	CLEANUP(buf_release) struct buf scratch = {0};
	buf_add_ch(to, '\n');
	text_add_heading(to, style, t->title);
	if (!t->nr_rows) {
		buf_add_str(to, "  (nothing to show)\n");
		return;
	}
	CLEANUP(free_p) size_t *widths = xcalloc(t->nr_columns, sizeof(*widths));
	CLEANUP(free_p) bool *is_hidden = xcalloc(t->nr_columns, sizeof(*is_hidden));
	struct layout l = {widths, is_hidden};
	for (size_t c = 0; c < t->nr_columns; c++)
		is_hidden[c] = !text_has_column(t, c);
	for (size_t c = 0; c < t->nr_columns; c++)
		widths[c] = widest(t, c, &scratch);
	if (style->width) {
		hide_columns(t, &l, style->width);
		fit_widths(t, &l, style->width);
	}
	add_line(to, t, &l, NULL);
	for (size_t i = 0; i < t->nr_rows; i++)
		add_line(to, t, &l, &t->cells[i * t->nr_columns]);
	if (t->note)
		buf_addf(to, "  (%s)\n", t->note);
	add_hidden(to, t, &l);
}

/* ---- trees ----------------------------------------------------------------------------- */

struct tree_text {
	struct buf *to;
	const struct report *r;
	const struct report_tree *t;
	const struct text_style *style;
};

static void add_name(const struct tree_text *tt, const struct tree_node *n, size_t used)
{
	CLEANUP(buf_release) struct buf name = {0};
	escape_term(&name, intern_get(&tt->r->names, n->name));
	buf_add_str(&name, n->flags & TREE_INFERRED ? " [tail call]" : "");
	if (!tt->style->width)
		buf_add_sv(tt->to, buf_sv(&name));
	else
		add_cut(tt->to, buf_sv(&name), MAX(tt->style->width, used + NAME_MIN) - used);
}

static void add_node(const struct tree_text *tt, const struct tree_node *n, size_t indent,
		     bool is_branch)
{
	uint64_t all = tt->t->nodes[0].total;
	uint64_t shown[2] = {n->total, n->self};
	CLEANUP(buf_release) struct buf num = {0};
	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		buf_clear(&num);
		if (tt->t->has_counts)
			text_add_number(&num, tt->t->unit, shown[i]);
		else
			num_add_double(&num, all ? 100.0 * (double)shown[i] / (double)all : 0, 2);
		buf_add_repeat(tt->to, ' ', GAP);
		add_padded(tt->to, buf_sv(&num), PCT_WIDTH, TEXT_RIGHT);
	}
	size_t left = GAP + MIN(indent, INDENT_MAX) * 2;
	buf_add_repeat(tt->to, ' ', left);
	buf_add_str(tt->to, is_branch ? "- " : "  ");
	add_name(tt, n, 2 * (GAP + PCT_WIDTH) + left + 2);
	end_line(tt->to);
}

/*
 * Appends the nodes in preorder. An only child is in its parent's column; where a node has several
 * children, they are indented one step and start with a dash.
 */
static void add_nodes(const struct tree_text *tt)
{
	const struct report_tree *t = tt->t;
	CLEANUP(free_p) size_t *indents = xcalloc(t->nr_nodes, sizeof(*indents));
	for (uint32_t i = 0;;) {
		const struct tree_node *n = &t->nodes[i];
		const struct tree_node *parent = &t->nodes[n->parent];
		bool is_chain = i && parent->first_child == i && !n->next;
		indents[i] = i ? indents[n->parent] + !is_chain : 0;
		add_node(tt, n, indents[i], !is_chain);
		if (n->first_child) {
			i = n->first_child;
			continue;
		}
		while (i && !t->nodes[i].next)
			i = t->nodes[i].parent;
		if (!i)
			return;
		i = t->nodes[i].next;
	}
}

void text_add_tree(struct buf *to, const struct report *r, const struct report_tree *t,
		   const struct text_style *style)
{
	buf_add_ch(to, '\n');
	text_add_heading(to, style, t->title);
	if (!t->nr_nodes || !t->nodes[0].total) {
		buf_add_str(to, "  (nothing to show)\n");
		return;
	}
	buf_add_str(to, t->has_counts ? "    total     self\n" : "  total %   self %\n");
	add_nodes(&(struct tree_text){to, r, t, style});
}
