/* Rows of the terminal view; see tuirows.h. */
#include "base/base.h"
#include "render/tui/tuirows.h"

#include "base/mem.h"
#include "base/text/escape.h"
#include "base/text/lines.h"
#include "base/text/shortname.h"

#define GAP        CELLS_GAP
#define NAME_MIN   16 /* columns that a shortened name keeps */
#define INDENT_MAX 60 /* columns; deeper levels do not move further right */

enum node_flags {
	IS_OPEN = 1 << 0,
	IS_MATCH = 1 << 1, /* it, or a node below it, matches the filter */
};

/* ---- which rows ---------------------------------------------------------------------------- */

static void show_tree(struct tuirows *rows)
{
	const struct tree_node *nodes = rows->tree->nodes;
	uint32_t at = rows->tree->nr_nodes ? nodes[0].first_child : 0;
	vec_clear(&rows->shown);
	while (at) {
		bool is_match = rows->nodes[at] & IS_MATCH;
		if (is_match)
			vec_push(&rows->shown, at);
		if (is_match && rows->nodes[at] & IS_OPEN && nodes[at].first_child) {
			at = nodes[at].first_child;
			continue;
		}
		while (at && !nodes[at].next)
			at = nodes[at].parent;
		at = at ? nodes[at].next : 0;
	}
}

/* Opens the heaviest path for as long as it has more than half of its parent. */
static void open_hot_path(struct tuirows *rows)
{
	const struct tree_node *nodes = rows->tree->nodes;
	uint32_t at = 0;
	for (uint32_t c = nodes[0].first_child; c && nodes[c].total > nodes[at].total / 2;
	     c = nodes[c].first_child) {
		rows->nodes[c] |= IS_OPEN;
		at = c;
	}
}

static void make_tree(struct tuirows *rows, const struct report_tree *t)
{
	rows->tree = t;
	rows->nodes = xcalloc(t->nr_nodes + 1, sizeof(*rows->nodes));
	if (t->nr_nodes)
		open_hot_path(rows);
}

static void make_table(struct tuirows *rows, const struct report_table *t)
{
	size_t *all = xcalloc(t->nr_rows + 1, sizeof(*all));
	for (size_t i = 0; i < t->nr_rows; i++)
		all[i] = i;
	rows->table = t;
	rows->widths = xcalloc(t->nr_columns + 1, sizeof(*rows->widths));
	rows->forms = xcalloc(t->nr_columns + 1, sizeof(*rows->forms));
	for (size_t c = 0; c < t->nr_columns; c++) {
		if (!cells_has_column(t, c))
			continue;
		CLEANUP(buf_release) struct buf cell = {0};
		rows->forms[c] = cells_form_of(t, c, all, t->nr_rows);
		cells_add_title(&cell, &t->columns[c], &rows->forms[c]);
		rows->widths[c] = utf8_columns(buf_sv(&cell));
		for (size_t i = 0; i < t->nr_rows; i++) {
			buf_clear(&cell);
			cells_add(&cell, &t->columns[c], &rows->forms[c],
				  &t->cells[i * t->nr_columns + c]);
			rows->widths[c] = MAX(rows->widths[c], utf8_columns(buf_sv(&cell)));
		}
	}
	free(all);
}

void tuirows_make(struct tuirows *ret_rows, const struct report *r, enum tuirows_form form,
		  const struct text_style *style)
{
	*ret_rows = (struct tuirows){.report = r};
	if (form == TUIROWS_OF_REPORT && r->trees.n)
		make_tree(ret_rows, &r->trees.p[0]);
	else if (form == TUIROWS_OF_REPORT && r->tables.n)
		make_table(ret_rows, &r->tables.p[0]);
	else
		text_render(&ret_rows->text, r, style);
	tuirows_filter(ret_rows, NULL);
}

void tuirows_release(struct tuirows *rows)
{
	buf_release(&rows->text);
	free(rows->nodes);
	free(rows->widths);
	free(rows->forms);
	vec_release(&rows->shown);
	*rows = (struct tuirows){0};
}

static bool matches(struct regex *re, const char *name)
{
	return !re || regex_match(re, sv_from_str(name));
}

static void filter_tree(struct tuirows *rows, struct regex *re)
{
	const struct report_tree *t = rows->tree;
	for (size_t i = 0; i < t->nr_nodes; i++) {
		rows->nodes[i] &= (uint8_t)~IS_MATCH;
		if (i && matches(re, intern_str(&rows->report->names, t->nodes[i].name))) {
			rows->nodes[i] |= IS_MATCH;
			rows->nr_matching++;
		}
	}
	/* Nodes are in preorder: children behind their parents. */
	for (size_t i = t->nr_nodes; re && i-- > 1;)
		if (rows->nodes[i] & IS_MATCH && t->nodes[i].parent)
			rows->nodes[t->nodes[i].parent] |= IS_MATCH | IS_OPEN;
	show_tree(rows);
}

static size_t name_column(const struct report_table *t)
{
	size_t c = 0;
	while (c < t->nr_columns && t->columns[c].kind != CELL_TEXT)
		c++;
	return c;
}

static const char *table_name(const struct report_table *t, size_t row)
{
	size_t c = name_column(t);
	return c < t->nr_columns ? t->cells[row * t->nr_columns + c].text : "";
}

void tuirows_filter(struct tuirows *rows, struct regex *re)
{
	rows->nr_matching = 0;
	if (rows->tree) {
		filter_tree(rows, re);
		return;
	}
	vec_clear(&rows->shown);
	for (size_t i = 0; rows->table && i < rows->table->nr_rows; i++)
		if (matches(re, table_name(rows->table, i)))
			vec_push(&rows->shown, (uint32_t)i);
	struct lines in = lines_from(rows->text.p, rows->text.n);
	struct sv line;
	while (!rows->table && lines_next(&in, &line)) {
		if (re && !regex_match(re, line))
			continue;
		vec_push(&rows->shown, (uint32_t)(line.p - rows->text.p));
	}
	rows->nr_matching = rows->shown.n;
}

/* ---- trees --------------------------------------------------------------------------------- */

static const struct tree_node *node_of(const struct tuirows *rows, size_t i)
{
	return rows->tree && i < rows->shown.n ? &rows->tree->nodes[rows->shown.p[i]] : NULL;
}

bool tuirows_can_open(const struct tuirows *rows, size_t i)
{
	const struct tree_node *n = node_of(rows, i);
	return n && n->first_child;
}

bool tuirows_is_open(const struct tuirows *rows, size_t i)
{
	return tuirows_can_open(rows, i) && rows->nodes[rows->shown.p[i]] & IS_OPEN;
}

static void set_open(struct tuirows *rows, size_t node, bool is_open)
{
	if (is_open)
		rows->nodes[node] |= IS_OPEN;
	else
		rows->nodes[node] &= (uint8_t)~IS_OPEN;
}

void tuirows_open(struct tuirows *rows, size_t i, bool is_open, bool is_deep)
{
	const struct tree_node *n = node_of(rows, i);
	if (!n)
		return;
	size_t node = rows->shown.p[i];
	set_open(rows, node, is_open);
	for (size_t k = node + 1;
	     is_deep && k < rows->tree->nr_nodes && rows->tree->nodes[k].depth > n->depth; k++)
		set_open(rows, k, is_open);
	show_tree(rows);
}

void tuirows_open_all(struct tuirows *rows, bool is_open)
{
	if (!rows->tree)
		return;
	for (size_t k = 0; k < rows->tree->nr_nodes; k++)
		set_open(rows, k, is_open);
	show_tree(rows);
}

size_t tuirows_parent(const struct tuirows *rows, size_t i)
{
	const struct tree_node *n = node_of(rows, i);
	while (n && i > 0 && rows->shown.p[i] != n->parent && n->parent)
		i--;
	return i;
}

/* ---- their text ---------------------------------------------------------------------------- */

/* Appends to the line at @from so that the next text begins @width columns after it. */
static void pad(struct buf *to, size_t from, size_t width)
{
	size_t n = utf8_columns(sv_from(to->p + from, to->n - from));
	buf_add_repeat(to, ' ', width > n ? width - n : 0);
}

static void add_right(struct buf *to, const char *text, size_t width)
{
	size_t n = utf8_columns(sv_from_str(text));
	buf_add_repeat(to, ' ', width > n ? width - n : 0);
	buf_add_str(to, text);
}

/* The name, shortened to what is left of the line that begins at @from. */
static void add_name(struct buf *to, size_t from, size_t columns, const char *name)
{
	CLEANUP(buf_release) struct buf safe = {0};
	size_t used = utf8_columns(sv_from(to->p + from, to->n - from));
	escape_term(&safe, sv_from_str(name));
	shortname_add(to, buf_sv(&safe),
		      MAX(columns > used ? columns - used : 0, (size_t)NAME_MIN));
}

#define AMOUNT_WIDTH 9
#define PCT_WIDTH    7

static bool has_shares(const struct tuirows *rows)
{
	return !rows->tree->has_counts && rows->tree->nodes[0].total;
}

static void add_node(const struct tuirows *rows, size_t i, size_t columns, struct buf *to)
{
	const struct report_tree *t = rows->tree;
	const struct tree_node *n = &t->nodes[rows->shown.p[i]];
	CLEANUP(buf_release) struct buf amount = {0};
	size_t from = to->n;
	cells_add_number(&amount, t->unit, n->total);
	if (has_shares(rows))
		buf_addf(to, "%*.2f", PCT_WIDTH,
			 100.0 * (double)n->total / (double)t->nodes[0].total);
	if (has_shares(rows) && !t->is_reversed)
		buf_addf(to, "%*.2f", PCT_WIDTH + 1,
			 100.0 * (double)n->self / (double)t->nodes[0].total);
	add_right(to, buf_str(&amount), AMOUNT_WIDTH + GAP);
	buf_add_repeat(to, ' ', GAP + MIN(2 * (size_t)(n->depth - 1), (size_t)INDENT_MAX));
	buf_add_str(to, !n->first_child ? "  " : tuirows_is_open(rows, i) ? "- " : "+ ");
	add_name(to, from, columns, intern_str(&rows->report->names, n->name));
}

/*
 * The widths of a table's columns on a line: the first ones are scrolled away, then others left out,
 * until the rest fits, and the widest texts are shortened. The name always stays.
 */
static size_t *fit_table(const struct tuirows *rows, size_t columns)
{
	const struct report_table *t = rows->table;
	size_t name = name_column(t);
	size_t *widths = xcalloc(t->nr_columns + 1, sizeof(*widths));
	memcpy(widths, rows->widths, t->nr_columns * sizeof(*widths));
	size_t nr_away = rows->nr_scrolled;
	for (size_t c = 0; c < t->nr_columns && nr_away; c++)
		if (c != name && widths[c]) {
			widths[c] = 0;
			nr_away--;
		}
	/* the name is kept whatever its place: as wide as any line allows */
	size_t width_of_name = name < t->nr_columns ? MIN(widths[name], (size_t)NAME_MIN) : 0;
	size_t room = columns - MIN(columns, width_of_name ? width_of_name + GAP : 0);
	size_t natural = name < t->nr_columns ? widths[name] : 0;
	if (name < t->nr_columns)
		widths[name] = 0;
	cells_fit(t, widths, room, NAME_MIN);
	if (name < t->nr_columns)
		widths[name] = natural;
	for (;;) {
		size_t sum = 0;
		size_t most = SIZE_MAX;
		for (size_t c = 0; c < t->nr_columns; c++) {
			sum += widths[c] ? GAP + widths[c] : 0;
			bool is_text = t->columns[c].kind == CELL_TEXT && widths[c] > NAME_MIN;
			if (is_text && (most == SIZE_MAX || widths[c] > widths[most]))
				most = c;
		}
		if (sum <= columns || most == SIZE_MAX)
			return widths;
		widths[most]--;
	}
}

bool tuirows_scroll(struct tuirows *rows, int by)
{
	const struct report_table *t = rows->table;
	size_t nr = 0;
	for (size_t c = 0; t && c < t->nr_columns; c++)
		nr += c != name_column(t) && rows->widths[c];
	if ((by < 0 && !rows->nr_scrolled) || (by > 0 && rows->nr_scrolled + 1 >= nr))
		return false;
	rows->nr_scrolled += by < 0 ? (size_t)-1 : 1;
	return true;
}

static bool is_left_out(const struct tuirows *rows, const size_t *widths)
{
	size_t nr = 0;
	for (size_t c = 0; c < rows->table->nr_columns; c++)
		nr += rows->widths[c] && !widths[c];
	return nr > rows->nr_scrolled;
}

static void add_cells(const struct tuirows *rows, size_t columns, struct buf *to,
		      void (*cell)(struct buf *, const struct tuirows *, size_t, size_t),
		      size_t row)
{
	const struct report_table *t = rows->table;
	CLEANUP(free_p) size_t *widths = fit_table(rows, columns);
	for (size_t c = 0; c < t->nr_columns; c++) {
		if (!widths[c])
			continue;
		CLEANUP(buf_release) struct buf text = {0};
		cell(&text, rows, row, c);
		buf_add_repeat(to, ' ', GAP);
		if (t->columns[c].kind != CELL_TEXT) {
			add_right(to, buf_str(&text), widths[c]);
			continue;
		}
		size_t at = to->n;
		(column_is_cut_at_end(&t->columns[c]) ? shortname_cut_end : shortname_add)(
			to, buf_sv(&text), widths[c]);
		pad(to, at, widths[c]);
	}
}

/* Columns that are not on the screen are marked at the ends of the head. */
static void mark_hidden(const struct tuirows *rows, size_t from, size_t columns, struct buf *to)
{
	CLEANUP(free_p) size_t *widths = fit_table(rows, columns);
	if (rows->nr_scrolled && to->n > from)
		to->p[from] = '<';
	if (is_left_out(rows, widths)) {
		pad(to, from, columns - MIN(columns, (size_t)1));
		buf_add_ch(to, '>');
	}
}

static void table_cell(struct buf *to, const struct tuirows *rows, size_t row, size_t c)
{
	const struct report_table *t = rows->table;
	cells_add(to, &t->columns[c], &rows->forms[c], &t->cells[row * t->nr_columns + c]);
}

static void table_title(struct buf *to, const struct tuirows *rows, size_t row, size_t c)
{
	(void)row;
	cells_add_title(to, &rows->table->columns[c], &rows->forms[c]);
}

void tuirows_add_head(const struct tuirows *rows, unsigned columns, struct buf *to)
{
	size_t from = to->n;
	if (rows->table) {
		add_cells(rows, columns, to, table_title, 0);
		while (to->n > from && to->p[to->n - 1] == ' ')
			to->n--;
		mark_hidden(rows, from, columns, to);
	} else if (rows->tree) {
		bool is_reversed = rows->tree->is_reversed;
		if (has_shares(rows))
			buf_addf(to, "%*s", PCT_WIDTH, is_reversed ? "%" : "total %");
		if (has_shares(rows) && !is_reversed)
			buf_addf(to, "%*s", PCT_WIDTH + 1, "self %");
		buf_addf(to, "%*s%*s%s", AMOUNT_WIDTH + GAP, is_reversed ? "self" : "total",
			 GAP + 2, "",
			 is_reversed ? "function, its callers below it"
				     : "function, what it calls below it");
	}
}

void tuirows_add(const struct tuirows *rows, size_t i, unsigned columns, struct buf *to)
{
	if (rows->tree) {
		add_node(rows, i, columns, to);
	} else if (rows->table) {
		add_cells(rows, columns, to, table_cell, rows->shown.p[i]);
	} else {
		struct lines in = lines_from(rows->text.p + rows->shown.p[i],
					     rows->text.n - rows->shown.p[i]);
		struct sv line;
		if (lines_next(&in, &line))
			buf_add_sv(to, line);
	}
}

double tuirows_pct(const struct tuirows *rows, size_t i)
{
	const struct tree_node *n = node_of(rows, i);
	if (n && has_shares(rows))
		return 100.0 * (double)n->total / (double)rows->tree->nodes[0].total;
	const struct report_table *t = rows->table;
	for (size_t c = 0; t && c < t->nr_columns; c++)
		if (t->columns[c].kind == CELL_PERCENT && rows->widths[c])
			return t->cells[rows->shown.p[i] * t->nr_columns + c].d;
	return -1;
}

const char *tuirows_name(const struct tuirows *rows, size_t i)
{
	const struct tree_node *n = node_of(rows, i);
	if (n)
		return intern_str(&rows->report->names, n->name);
	return rows->table && i < rows->shown.n ? table_name(rows->table, rows->shown.p[i]) : NULL;
}

bool tuirows_add_value(const struct tuirows *rows, size_t i, const char *key, struct buf *to)
{
	const struct tree_node *n = node_of(rows, i);
	if (n && !strcmp(key, "module")) {
		buf_add_str(to, intern_str(&rows->report->names, n->module));
		return n->module;
	}
	const struct report_table *t = rows->table;
	for (size_t c = 0; t && i < rows->shown.n && c < t->nr_columns; c++) {
		if (strcmp(t->columns[c].key, key))
			continue;
		const union cell *v = &t->cells[rows->shown.p[i] * t->nr_columns + c];
		if (t->columns[c].kind == CELL_ID && v->u != CELL_NO_ID)
			buf_add_u64(to, v->u);
		else if (t->columns[c].kind == CELL_TEXT)
			buf_add_str(to, v->text);
		return to->n;
	}
	return false;
}
