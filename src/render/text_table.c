/* Tables as aligned text; see text_table.h. */
#include "base/base.h"
#include "render/text_table.h"

#include "base/mem.h"
#include "base/sv.h"
#include "base/text/escape.h"
#include "base/text/num.h"
#include "base/text/shortname.h"
#include "base/text/wrap.h"
#include "render/cells.h"

#define GAP      CELLS_GAP
#define NAME_MIN 18 /* columns that a shortened name keeps before columns are left out */
#define HOT_PCT  10 /* shares from here on are coloured */

enum side { LEFT, RIGHT };

/* ---- strings --------------------------------------------------------------------------- */

static void add_padded(struct buf *to, struct sv s, size_t width, enum side side)
{
	size_t n = utf8_columns(s);
	size_t pad = width > n ? width - n : 0;
	if (side == RIGHT)
		buf_add_repeat(to, ' ', pad);
	buf_add_sv(to, s);
	if (side == LEFT)
		buf_add_repeat(to, ' ', pad);
}

/* Readable on light and on dark backgrounds: bold, and two of the darker colours. */
void text_add_colored(struct buf *to, const struct text_style *style, enum text_color color,
		      const char *text)
{
	static const char *const codes[] = {[TEXT_HEADING] = "\x1b[1m",
					    [TEXT_ANSWER] = "\x1b[1m",
					    [TEXT_HOT] = "\x1b[31m",
					    [TEXT_LOSS] = "\x1b[35m"};
	if (style->has_color)
		buf_addf(to, "%s%s\x1b[0m", codes[color], text);
	else
		buf_add_str(to, text);
}

void text_add_heading(struct buf *to, const struct text_style *style, const char *text)
{
	CLEANUP(buf_release) struct buf plain = {0};
	CLEANUP(buf_release) struct buf lines = {0};
	escape_term(&plain, sv_from_str(text));
	wrap_add(&lines, buf_sv(&plain), 0, 2, style->width);
	text_add_colored(to, style, TEXT_HEADING, buf_str(&lines));
	buf_add_ch(to, '\n');
}

static void end_line(struct buf *to)
{
	while (to->n && to->p[to->n - 1] == ' ')
		to->n--;
	buf_add_ch(to, '\n');
}

/* ---- the layout of a table ---------------------------------------------------------------- */

struct cell_column {
	size_t width;
	size_t title_width;
	bool is_hidden;
	bool is_text;
	bool is_wrapped;
	bool is_below; /* has lines of its own below the others */
	struct cells_form form;
	struct shortnames names; /* of a text column, by row of the plan */
};

struct layout {
	const struct report_table *t;
	const struct plan_table *plan;
	struct cell_column *columns;
};

static void add_title(struct buf *to, const struct layout *l, size_t c)
{
	cells_add_title(to, &l->t->columns[c], &l->columns[c].form);
}

static void add_cell(struct buf *to, const struct layout *l, size_t c, size_t i)
{
	const struct report_table *t = l->t;
	cells_add(to, &t->columns[c], &l->columns[c].form,
		  &t->cells[l->plan->rows[i] * t->nr_columns + c]);
}

static void measure(struct layout *l, size_t c, struct buf *scratch)
{
	buf_clear(scratch);
	add_title(scratch, l, c);
	size_t w = utf8_columns(buf_sv(scratch));
	l->columns[c].title_width = w;
	for (size_t i = 0; i < l->plan->nr_rows; i++) {
		buf_clear(scratch);
		add_cell(scratch, l, c, i);
		w = MAX(w, utf8_columns(buf_sv(scratch)));
	}
	l->columns[c].width = w;
}

/* Returns the width of a line of whole cells. */
static size_t whole_width(const struct layout *l)
{
	size_t sum = 0;
	for (size_t c = 0; c < l->t->nr_columns; c++)
		sum += l->columns[c].is_hidden ? 0 : GAP + l->columns[c].width;
	return sum;
}

/* Hides columns until the line fits. */
static void hide_columns(struct layout *l, size_t width)
{
	size_t n = l->t->nr_columns;
	CLEANUP(free_p) size_t *widths = xcalloc(n + 1, sizeof(*widths));
	for (size_t c = 0; c < n; c++)
		widths[c] = l->columns[c].is_hidden ? 0 : l->columns[c].width;
	cells_fit(l->t, widths, width, NAME_MIN);
	for (size_t c = 0; c < n; c++)
		l->columns[c].is_hidden = !widths[c];
}

/* Where they would be narrow, lists get lines of their own, but not on pages. */
static void move_lists_below(struct layout *l, const struct text_style *style)
{
	if (style->max_lines || whole_width(l) <= style->width)
		return;
	for (size_t c = 0; c < l->t->nr_columns; c++) {
		struct cell_column *column = &l->columns[c];
		column->is_below = l->t->columns[c].is_list && !column->is_hidden;
		column->is_hidden |= column->is_below;
	}
}

enum narrowed { NARROW_ENDS, NARROW_NAMES, NARROW_TEXTS };

/*
 * Narrows the widest text columns, the second widest with them, until the line fits or none is wider
 * than @least (0: than its title).
 */
static void narrow(struct layout *l, enum narrowed which, size_t least, size_t width)
{
	for (size_t sum = whole_width(l); sum > width;) {
		struct cell_column *most = NULL;
		size_t next = 1; /* the width of the second widest, to which the widest shrinks */
		for (size_t c = 0; c < l->t->nr_columns; c++) {
			struct cell_column *column = &l->columns[c];
			bool is_end = column->is_wrapped || l->t->columns[c].is_list;
			bool is_of = which == NARROW_TEXTS || (which == NARROW_ENDS) == is_end;
			if (column->is_hidden || !column->is_text || !is_of ||
			    column->width <= (least ? least : column->title_width))
				continue;
			if (!most || column->width > most->width) {
				next = most ? most->width : next;
				most = column;
			} else {
				next = MAX(next, column->width);
			}
		}
		if (!most)
			return;
		size_t end = least ? least : most->title_width;
		size_t cut = MIN(sum - width, MAX(most->width - MIN(next, most->width), (size_t)1));
		cut = MIN(cut, most->width - MIN(end, most->width));
		most->width -= cut;
		sum -= cut;
	}
}

/* What is wrapped loses nothing, lists their ends; then names are shortened, titles last. */
static void fit_widths(struct layout *l, size_t width)
{
	narrow(l, NARROW_ENDS, 30, width);
	narrow(l, NARROW_NAMES, 40, width);
	narrow(l, NARROW_ENDS, 16, width);
	narrow(l, NARROW_TEXTS, 0, width);
	narrow(l, NARROW_TEXTS, 1, width);
}

static void shorten_names(struct layout *l, size_t c)
{
	size_t n = l->plan->nr_rows;
	CLEANUP(free_p) struct sv *names = xcalloc(n + 1, sizeof(*names));
	CLEANUP(free_p) size_t *at = xcalloc(n + 1, sizeof(*at));
	CLEANUP(buf_release) struct buf cells = {0};
	for (size_t i = 0; i < n; i++) {
		at[i] = cells.n;
		add_cell(&cells, l, c, i);
	}
	at[n] = cells.n;
	for (size_t i = 0; i < n; i++)
		names[i] = (struct sv){buf_str(&cells) + at[i], at[i + 1] - at[i]};
	shortnames_make(&l->columns[c].names, names, n,
			l->columns[c].width ? l->columns[c].width : 1);
}

/* Times that are all 0 or not known. */
static bool is_void(const struct layout *l, size_t c)
{
	const struct report_table *t = l->t;
	for (size_t i = 0; t->columns[c].kind == CELL_NS && i < l->plan->nr_rows; i++) {
		uint64_t ns = t->cells[l->plan->rows[i] * t->nr_columns + c].u;
		if (ns && ns != CELL_NS_NONE)
			return false;
	}
	return t->columns[c].kind == CELL_NS;
}

static void lay_out(struct layout *l, const struct text_style *style)
{
	const struct report_table *t = l->t;
	CLEANUP(buf_release) struct buf scratch = {0};
	for (size_t c = 0; c < t->nr_columns; c++) {
		struct cell_column *column = &l->columns[c];
		column->is_text = t->columns[c].kind == CELL_TEXT;
		column->is_hidden = !cells_has_column(t, c) || (style->max_lines && is_void(l, c));
		/* the rows of pages have one line, but for sentences */
		column->is_wrapped = style->width && (t->columns[c].is_prose ||
						      (t->columns[c].is_list && !style->max_lines));
		column->form = cells_form_of(t, c, l->plan->rows, l->plan->nr_rows);
		measure(l, c, &scratch);
	}
	if (style->width) {
		move_lists_below(l, style);
		hide_columns(l, style->width);
		fit_widths(l, style->width);
	}
	for (size_t c = 0; c < t->nr_columns; c++)
		if (l->columns[c].is_text && !column_is_cut_at_end(&t->columns[c]))
			shorten_names(l, c);
}

/* ---- its lines ---------------------------------------------------------------------------- */

/* Prose, lists and code are cut at their ends, names have short forms. */
static void add_text(struct buf *to, const struct layout *l, size_t c, size_t i, struct sv cell)
{
	const struct cell_column *column = &l->columns[c];
	if (column->is_wrapped)
		wrap_add(to, cell, 0, 0, column->width);
	else if (l->t->columns[c].is_code)
		shortname_cut_end(to, cell, column->width);
	else if (column_is_cut_at_end(&l->t->columns[c]))
		shortname_cut_list(to, cell, column->width);
	else
		buf_add_str(to, shortnames_at(&column->names, i));
}

static void add_titles(struct buf *to, const struct layout *l)
{
	CLEANUP(buf_release) struct buf title = {0};
	CLEANUP(buf_release) struct buf cut = {0};
	for (size_t c = 0; c < l->t->nr_columns; c++) {
		const struct cell_column *column = &l->columns[c];
		if (column->is_hidden)
			continue;
		buf_clear(&title);
		buf_clear(&cut);
		add_title(&title, l, c);
		shortname_cut(&cut, buf_sv(&title), column->width);
		buf_add_repeat(to, ' ', GAP);
		add_padded(to, buf_sv(&cut), column->width, column->is_text ? LEFT : RIGHT);
	}
	end_line(to);
}

/* The column whose share says whether a row is hot; the number of columns: none. */
static size_t hot_column(const struct layout *l, size_t i)
{
	size_t n = l->t->nr_columns;
	for (size_t c = 0; c < n && i < l->plan->nr_items; c++)
		if (l->t->columns[c].kind == CELL_PERCENT && !l->columns[c].is_hidden)
			return l->t->cells[l->plan->rows[i] * n + c].d >= HOT_PCT ? c : n;
	return n;
}

/* The next line of a row: the next lines of its cells; returns whether they have more. */
static bool add_row_line(struct buf *to, const struct layout *l, struct sv *cells, size_t hot,
			 const struct text_style *style)
{
	bool has_more = false;
	for (size_t c = 0; c < l->t->nr_columns; c++) {
		const struct cell_column *column = &l->columns[c];
		if (column->is_hidden)
			continue;
		CLEANUP(buf_release) struct buf padded = {0};
		struct sv line = sv_split(&cells[c], '\n');
		has_more |= cells[c].n != 0;
		add_padded(&padded, line, column->width, column->is_text ? LEFT : RIGHT);
		buf_add_repeat(to, ' ', GAP);
		if (c == hot && line.n)
			text_add_colored(to, style, TEXT_HOT, buf_str(&padded));
		else
			buf_add_sv(to, buf_sv(&padded));
	}
	return has_more;
}

/* "called from: main < start" below a row. */
static void add_lists(struct buf *to, const struct layout *l, size_t i, size_t width)
{
	for (size_t c = 0; c < l->t->nr_columns; c++) {
		CLEANUP(buf_release) struct buf text = {0};
		if (!l->columns[c].is_below)
			continue;
		buf_addf(&text, "%s: ", l->t->columns[c].title);
		size_t n = text.n;
		add_cell(&text, l, c, i);
		if (text.n == n || (text.n == n + 1 && text.p[n] == '-'))
			continue;
		buf_add_repeat(to, ' ', 6);
		wrap_add(to, buf_sv(&text), 6, 8, width);
		buf_add_ch(to, '\n');
	}
}

static void add_row(struct buf *to, const struct layout *l, size_t i,
		    const struct text_style *style)
{
	size_t n = l->t->nr_columns;
	CLEANUP(free_p) struct sv *cells = xcalloc(n + 1, sizeof(*cells));
	CLEANUP(free_p) size_t *ends = xcalloc(n + 1, sizeof(*ends));
	CLEANUP(buf_release) struct buf texts = {0};
	for (size_t c = 0; c < n; c++) {
		CLEANUP(buf_release) struct buf cell = {0};
		if (!l->columns[c].is_hidden)
			add_cell(&cell, l, c, i);
		if (l->columns[c].is_text && !l->columns[c].is_hidden)
			add_text(&texts, l, c, i, buf_sv(&cell));
		else
			buf_add_sv(&texts, buf_sv(&cell));
		ends[c] = texts.n;
	}
	for (size_t c = 0; c < n; c++) {
		size_t start = c ? ends[c - 1] : 0;
		cells[c] = sv_from(buf_str(&texts) + start, ends[c] - start);
	}
	bool has_more = true;
	while (has_more) {
		has_more = add_row_line(to, l, cells, hot_column(l, i), style);
		end_line(to);
	}
	add_lists(to, l, i, style->width);
}

static void add_table_title(struct buf *to, const struct report_table *t,
			    const struct plan_table *plan, const struct text_style *style)
{
	CLEANUP(buf_release) struct buf title = {0};
	size_t nr_all = MAX(t->nr_rows_total, plan->nr_items);
	buf_add_str(&title, t->title);
	if (plan->nr_items < nr_all)
		buf_addf(&title, ": %s of %s", num_count(plan->nr_items).s, num_count(nr_all).s);
	text_add_heading(to, style, buf_str(&title));
}

static void add_table(struct buf *to, const struct report_table *t, const struct plan_table *plan,
		      const struct text_style *style)
{
	buf_add_ch(to, '\n');
	add_table_title(to, t, plan, style);
	if (!plan->nr_rows) {
		buf_add_str(to, "  (nothing to show)\n");
		return;
	}
	CLEANUP(free_p) struct cell_column *columns = xcalloc(t->nr_columns, sizeof(*columns));
	struct layout l = {t, plan, columns};
	lay_out(&l, style);
	add_titles(to, &l);
	for (size_t i = 0; i < plan->nr_rows; i++)
		add_row(to, &l, i, style);
	for (size_t c = 0; c < t->nr_columns; c++)
		shortnames_release(&columns[c].names);
	if (!t->note || !style->has_details)
		return;
	CLEANUP(buf_release) struct buf note = {0};
	buf_addf(&note, "(%s)", t->note);
	buf_add_str(to, "  ");
	wrap_add(to, buf_sv(&note), 2, 3, style->width);
	buf_add_ch(to, '\n');
}

void text_add_tables(struct buf *to, const struct report *r, const struct pageplan *plan,
		     const struct text_style *style)
{
	CLEANUP(pageplan_release) struct pageplan whole = {0};
	if (!plan)
		pageplan_make(&whole, r, PLAN_UNLIMITED, PLAN_UNLIMITED);
	CLEANUP(buf_release) struct buf empty = {0};
	for (size_t i = 0; i < r->tables.n; i++) {
		const struct plan_table *t = &(plan ? plan : &whole)->tables[i];
		if (t->is_shown && (t->nr_rows || r->tables.n == 1))
			add_table(to, &r->tables.p[i], t, style);
		else if (t->is_shown)
			buf_addf(&empty, "%s%s",
				 empty.n ? ", " : "nothing to show: ", r->tables.p[i].title);
	}
	if (!empty.n)
		return;
	CLEANUP(buf_release) struct buf plain = {0};
	escape_term(&plain, buf_sv(&empty));
	buf_add_ch(to, '\n');
	wrap_add(to, buf_sv(&plain), 0, 2, style->width);
	buf_add_ch(to, '\n');
}
