/*
 * The terminal view; see tui.h. From the top: title, views, filters, head of the columns, rows, and a
 * line for messages and the input of the row filter.
 */
#include "base/base.h"
#include "render/tui/tui.h"

#include "base/mem.h"
#include "base/text/escape.h"
#include "base/text/lines.h"
#include "base/text/num.h"
#include "base/text/regex.h"
#include "base/text/shortname.h"
#include "render/cells.h"
#include "render/screen.h"
#include "render/text_table.h"
#include "render/tui/tuirows.h"

#define ROWS_ABOVE 4
#define ROWS_BELOW 1
#define HOT_PCT    5.0 /* as in perf report */
#define WARM_PCT   0.5
#define INPUT_MAX  200

struct tui {
	const struct tui_model *model;
	const struct text_style *style;
	struct screen screen;
	struct tui_query query;
	struct report *report;
	struct tuirows rows;
	struct regex *row_filter; /* NULL: none */
	struct buf pattern;       /* its text */
	size_t cursor;            /* index into rows.shown */
	size_t top;               /* first row on the screen */
	struct buf message;
	bool is_help;
	bool has_ended;
};

static const char *const sort_names[] = {"self", "total", "name"};

static const struct {
	const char *title;
	bool has_value;
} filters[TUI_FILTER_KINDS] = {
	[TUI_WITHIN] = {"within", true},       [TUI_CALLERS] = {"callers of", true},
	[TUI_CALLEES] = {"callees of", true},  [TUI_EXCLUDE] = {"without", true},
	[TUI_CODE] = {"code of", true},        [TUI_MODULE] = {"in", true},
	[TUI_THREAD] = {"thread", true},       [TUI_PROCESS] = {"process", true},
	[TUI_REASON] = {"reason", true},       [TUI_OBJECT] = {"file", true},
	[TUI_KERNEL] = {"kernel only", false}, [TUI_USER] = {"user only", false},
};

static const char help[] =
	"Moving\n"
	"  up, down, page up, page down, home, end\n"
	"  tab, back tab, 1 to 9     the next, the previous, the n-th view\n"
	"  Enter   a tree: open or close the row; a table: only what is in the row\n"
	"  + -     open, close the row of a tree        left   close it, or go to its caller\n"
	"  left, right               a table: its other columns, < and > where there are some\n"
	"  e       open or close the row and all below it\n"
	"  E C     open, close all rows\n"
	"\n"
	"What is shown\n"
	"  z       zoom: only what the function of the row calls, as 100 %\n"
	"  < >     the callers of the function; what it calls\n"
	"  a       its instructions, with samples of each; Esc: back\n"
	"  x       without the stacks that have this function\n"
	"  d       only this row's module (binary, library)\n"
	"  k       only the kernel, only user code, both\n"
	"  Esc     remove the last filter, then that of the rows     Backspace: remove all\n"
	"  s       sort by self, by total, by name\n"
	"  /       only rows whose name matches a regular expression (empty: all rows)\n"
	"  i       the first page of the recording\n"
	"\n"
	"  ? h     this page           q   quit\n"
	"\n"
	"A row is red from 5 % on and green from 0.5 %. assay report --stdio prints text instead.\n";

static void tui_release(struct tui *t)
{
	tuirows_release(&t->rows);
	report_free(t->report);
	regex_free(t->row_filter);
	buf_release(&t->pattern);
	buf_release(&t->message);
	for (size_t i = 0; i < t->query.nr_filters; i++)
		free((char *)t->query.filters[i].value);
}

/* ---- the report of the query ---------------------------------------------------------------- */

static void say(struct tui *t, const char *text)
{
	buf_clear(&t->message);
	escape_term(&t->message, sv_from_str(text));
}

/* Makes the report anew. If that fails the old one stays and the error is shown: false. */
static bool refresh(struct tui *t)
{
	CLEANUP(err_release) struct err err = {0};
	struct report *r = report_new();
	if (t->model->report(t->model->ctx, r, &t->query, &err)) {
		say(t, err_msg(&err));
		report_free(r);
		return false;
	}
	tuirows_release(&t->rows);
	report_free(t->report);
	t->report = r;
	/* Escape sequences in the text of a page would not be understood by ncurses. */
	const struct text_style style = {.width = (unsigned)MAX(t->screen.columns, 0),
					 .add_hint = t->style->add_hint};
	tuirows_make(&t->rows, r,
		     t->model->views[t->query.view].is_page ? TUIROWS_OF_TEXT : TUIROWS_OF_REPORT,
		     &style);
	tuirows_filter(&t->rows, t->row_filter);
	t->cursor = t->top = 0;
	buf_clear(&t->message);
	return true;
}

/* Returns whether there was one. */
static bool remove_filter(struct tui *t)
{
	if (!t->query.nr_filters)
		return false;
	free((char *)t->query.filters[--t->query.nr_filters].value);
	return true;
}

static void set_row_filter(struct tui *t, struct regex *re, struct sv pattern)
{
	regex_free(t->row_filter);
	t->row_filter = re;
	buf_clear(&t->pattern);
	buf_add_sv(&t->pattern, pattern);
	tuirows_filter(&t->rows, re);
	t->cursor = t->top = 0;
}

static void add_filter(struct tui *t, enum tui_filter_kind kind, const char *value)
{
	if (t->query.nr_filters == TUI_FILTERS_MAX) {
		say(t, "too many filters: remove one with Esc");
		return;
	}
	t->query.filters[t->query.nr_filters++] =
		(struct tui_filter){kind, value ? xstrdup(value) : NULL};
	if (!refresh(t))
		(void)remove_filter(t);
	else if (kind == TUI_CALLERS || kind == TUI_CALLEES ||
		 kind == TUI_CODE) /* other rows than were searched */
		set_row_filter(t, NULL, (struct sv){0});
}

/* A view that cannot be shown is skipped in the direction of the step. */
static void change_view(struct tui *t, size_t view, size_t step)
{
	size_t was = t->query.view;
	set_row_filter(t, NULL, (struct sv){0});
	for (size_t i = 0; i < t->model->nr_views; i++) {
		t->query.view = (view + i * step) % t->model->nr_views;
		if (refresh(t) || !step)
			break;
	}
	if (!step && buf_str(&t->message)[0])
		t->query.view = was;
}

/* ---- drawing -------------------------------------------------------------------------------- */

static int rows_on_screen(const struct tui *t)
{
	return MAX(t->screen.rows - ROWS_ABOVE - ROWS_BELOW, 1);
}

static void draw_bar(struct tui *t, int row, const char *text)
{
	CLEANUP(buf_release) struct buf line = {0};
	escape_term(&line, sv_from_str(text));
	size_t n = utf8_columns(buf_sv(&line));
	if (n < (size_t)t->screen.columns)
		buf_add_repeat(&line, ' ', (size_t)t->screen.columns - n);
	screen_put(&t->screen, row, 0, SCREEN_BAR, buf_str(&line));
}

static void draw_title(struct tui *t)
{
	CLEANUP(buf_release) struct buf title = {0};
	const struct report *r = t->report;
	buf_addf(&title, " %s  %s", t->model->name, r->title ? r->title : "");
	if (!r->has_no_samples) {
		CLEANUP(buf_release) struct buf total = {0};
		cells_add_number(&total, r->unit, r->total);
		const char *noun = r->noun ? r->noun : "samples";
		buf_addf(&title, "  %s", buf_str(&total));
		if (r->unit == UNIT_COUNT)
			buf_addf(&title, " %s", r->count_name ? r->count_name : noun);
		else
			buf_addf(&title, " in %s", num_noun(r->nr_samples, noun).s);
	}
	draw_bar(t, 0, buf_str(&title));
}

static void view_name(const struct tui *t, size_t i, struct buf *ret_name)
{
	if (i < 9)
		buf_addf(ret_name, "%zu ", i + 1);
	buf_add_str(ret_name, t->model->views[i].name);
}

/* On a narrow terminal from the first view on with which the current one fits. */
static void draw_views(struct tui *t)
{
	size_t first = t->query.view + 1;
	for (size_t width = 1; first > 0; first--) {
		CLEANUP(buf_release) struct buf name = {0};
		view_name(t, first - 1, &name);
		width += name.n + 2;
		if (width > (size_t)t->screen.columns)
			break;
	}
	first = MIN(first, t->query.view);
	int column = 1;
	size_t i = first;
	for (; i < t->model->nr_views; i++) {
		CLEANUP(buf_release) struct buf name = {0};
		view_name(t, i, &name);
		/* the current view was found to fit; the others leave a column for the mark */
		if (i != t->query.view && column + (int)name.n + 2 > t->screen.columns)
			break;
		screen_put(&t->screen, 1, column, i == t->query.view ? SCREEN_BAR : SCREEN_FAINT,
			   buf_str(&name));
		column += (int)name.n + 2;
	}
	if (first)
		screen_put(&t->screen, 1, 0, SCREEN_BOLD, "<");
	if (i < t->model->nr_views)
		screen_put(&t->screen, 1, t->screen.columns - 1, SCREEN_BOLD, ">");
}

static void draw_filters(struct tui *t)
{
	CLEANUP(buf_release) struct buf line = {0};
	for (size_t i = 0; i < t->query.nr_filters; i++) {
		const struct tui_filter *f = &t->query.filters[i];
		buf_addf(&line, "%s%s", i ? " > " : "", filters[f->kind].title);
		if (filters[f->kind].has_value) {
			buf_add_ch(&line, ' ');
			shortname_add(&line, sv_from_str(f->value), 32);
		}
	}
	if (t->row_filter)
		buf_addf(&line, "%srows: /%s/, %s", line.n ? "; " : "", buf_str(&t->pattern),
			 num_count(t->rows.nr_matching).s);
	if (t->query.sort && !t->rows.tree)
		buf_addf(&line, "%sby %s", line.n ? "; " : "", sort_names[t->query.sort]);
	CLEANUP(buf_release) struct buf safe = {0};
	escape_term(&safe, buf_sv(&line));
	screen_put(&t->screen, 2, 1, SCREEN_NOTICE, buf_str(&safe));
	if (line.n)
		return;
	CLEANUP(buf_release) struct buf losses = {0};
	text_add_losses(&losses, t->report);
	struct lines in = lines_from(losses.p, losses.n);
	struct sv first;
	CLEANUP(buf_release) struct buf text = {0};
	if (lines_next(&in, &first))
		buf_add_sv(&text, first);
	screen_put(&t->screen, 2, 1, SCREEN_FAINT, buf_str(&text));
}

static enum screen_style style_of(const struct tui *t, size_t i)
{
	double pct = tuirows_pct(&t->rows, i);
	return pct >= HOT_PCT ? SCREEN_HOT : pct >= WARM_PCT ? SCREEN_WARM : SCREEN_PLAIN;
}

static void draw_rows(struct tui *t)
{
	unsigned columns = (unsigned)t->screen.columns;
	CLEANUP(buf_release) struct buf head = {0};
	tuirows_add_head(&t->rows, columns, &head);
	screen_put(&t->screen, ROWS_ABOVE - 1, 0, SCREEN_BOLD, buf_str(&head));
	for (size_t i = 0; i < (size_t)rows_on_screen(t) && t->top + i < t->rows.shown.n; i++) {
		CLEANUP(buf_release) struct buf line = {0};
		tuirows_add(&t->rows, t->top + i, columns, &line);
		int row = ROWS_ABOVE + (int)i;
		screen_put(&t->screen, row, 0, style_of(t, t->top + i), buf_str(&line));
		if (t->top + i == t->cursor)
			screen_mark(&t->screen, row, 0, (int)columns);
	}
	if (!t->rows.shown.n)
		screen_put(&t->screen, ROWS_ABOVE + 1, 2, SCREEN_PLAIN,
			   t->row_filter ? "no row matches; Esc shows all rows"
					 : "nothing to show");
}

/* The message, or the keys that have room; ".." if there are more. */
static void draw_footer(struct tui *t)
{
	static const char *const keys[] = {
		"? help", "q quit",   "Enter open", "z zoom", "< callers",         "> callees",
		"/ rows", "Esc back", "Tab view",   "a code", "left right columns"};
	CLEANUP(buf_release) struct buf line = {0};
	int row = t->screen.rows - 1;
	if (t->message.n) {
		screen_put(&t->screen, row, 1, SCREEN_NOTICE, buf_str(&t->message));
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		bool is_last = i + 1 == ARRAY_LEN(keys);
		if (line.n + 2 + strlen(keys[i]) + (is_last ? 0 : 4) + 1 >
		    (size_t)t->screen.columns) {
			buf_add_str(&line, line.n ? "  .." : "");
			break;
		}
		buf_addf(&line, "%s%s", line.n ? "  " : "", keys[i]);
	}
	screen_put(&t->screen, row, 1, SCREEN_FAINT, buf_str(&line));
}

static void draw(struct tui *t)
{
	(void)screen_measure(&t->screen);
	size_t nr = (size_t)rows_on_screen(t);
	t->cursor = MIN(t->cursor, t->rows.shown.n ? t->rows.shown.n - 1 : 0);
	t->top = MIN(t->top, t->cursor);
	if (t->cursor >= t->top + nr)
		t->top = t->cursor - nr + 1;
	screen_clear(&t->screen);
	draw_title(t);
	draw_views(t);
	draw_filters(t);
	draw_rows(t);
	draw_footer(t);
	screen_show(&t->screen);
}

static void draw_help(struct tui *t)
{
	CLEANUP(buf_release) struct buf text = {0};
	(void)screen_measure(&t->screen);
	buf_add_str(&text, help);
	screen_draw(&t->screen, &text);
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* Reads the pattern of the row filter in the last line. */
static void read_pattern(struct tui *t)
{
	CLEANUP(buf_release) struct buf input = {0};
	for (;;) {
		CLEANUP(buf_release) struct buf line = {0};
		buf_addf(&line, "rows that match: %s_", buf_str(&input));
		draw(t);
		draw_bar(t, t->screen.rows - 1, buf_str(&line));
		screen_show(&t->screen);
		int key = screen_key(&t->screen, -1);
		if (key == SCREEN_ESCAPE || key == SCREEN_CLOSED)
			return;
		if (key == SCREEN_ENTER)
			break;
		if (key == SCREEN_BACKSPACE && input.n)
			input.n--;
		else if (key >= ' ' && key < 0x100 && input.n < INPUT_MAX)
			buf_add_ch(&input, (char)key);
	}
	CLEANUP(err_release) struct err err = {0};
	struct regex *re = NULL;
	if (input.n && regex_new(&re, buf_str(&input), 0, &err)) {
		say(t, err_msg(&err));
		return;
	}
	set_row_filter(t, re, buf_sv(&input));
}

/* A filter for the function of the row, unless it is a row of something else. */
static void filter_function(struct tui *t, enum tui_filter_kind kind)
{
	const struct tui_view *v = &t->model->views[t->query.view];
	const char *name = tuirows_name(&t->rows, t->cursor);
	bool is_function = t->rows.tree || v->filter == TUI_WITHIN ||
			   (t->query.nr_filters &&
			    (t->query.filters[t->query.nr_filters - 1].kind == TUI_CALLERS ||
			     t->query.filters[t->query.nr_filters - 1].kind == TUI_CALLEES));
	if (!name || !is_function || name[0] == '<')
		say(t, "this row is not a function");
	else
		add_filter(t, kind, name);
}

static void filter_module(struct tui *t)
{
	CLEANUP(buf_release) struct buf module = {0};
	if (tuirows_add_value(&t->rows, t->cursor, "module", &module))
		add_filter(t, TUI_MODULE, buf_str(&module));
	else
		say(t, "this row has no module");
}

/* Kernel, user, both, in turn. */
static void change_mode(struct tui *t)
{
	enum tui_filter_kind last = t->query.nr_filters
					    ? t->query.filters[t->query.nr_filters - 1].kind
					    : TUI_NO_FILTER;
	if (last != TUI_KERNEL && last != TUI_USER) {
		add_filter(t, TUI_KERNEL, NULL);
		return;
	}
	(void)remove_filter(t);
	if (last == TUI_KERNEL)
		add_filter(t, TUI_USER, NULL);
	else
		(void)refresh(t);
}

static void enter(struct tui *t)
{
	const struct tui_view *v = &t->model->views[t->query.view];
	if (t->rows.tree) {
		tuirows_open(&t->rows, t->cursor, !tuirows_is_open(&t->rows, t->cursor), false);
		return;
	}
	CLEANUP(buf_release) struct buf value = {0};
	const char *name = tuirows_name(&t->rows, t->cursor);
	if (!name || !v->filter || name[0] == '<')
		say(t, "this row cannot be selected");
	else if (!v->column)
		add_filter(t, v->filter, name);
	else if (tuirows_add_value(&t->rows, t->cursor, v->column, &value))
		add_filter(t, v->filter, buf_str(&value));
}

static void close_row(struct tui *t)
{
	if (tuirows_is_open(&t->rows, t->cursor))
		tuirows_open(&t->rows, t->cursor, false, false);
	else
		t->cursor = tuirows_parent(&t->rows, t->cursor);
}

/* Keys that move in the rows; false: another key. */
static bool move(struct tui *t, int key)
{
	size_t page = (size_t)rows_on_screen(t);
	size_t last = t->rows.shown.n ? t->rows.shown.n - 1 : 0;
	switch (key) {
	case SCREEN_UP:
		t->cursor -= t->cursor > 0;
		return true;
	case SCREEN_DOWN:
		t->cursor = MIN(t->cursor + 1, last);
		return true;
	case SCREEN_PAGE_UP:
		t->cursor -= MIN(t->cursor, page);
		return true;
	case SCREEN_PAGE_DOWN:
	case ' ':
		t->cursor = MIN(t->cursor + page, last);
		return true;
	case SCREEN_HOME:
		t->cursor = 0;
		return true;
	case SCREEN_END:
		t->cursor = last;
		return true;
	default:
		return false;
	}
}

/* Keys that open rows of trees and scroll the columns of tables; false: another key. */
static bool open_or_close(struct tui *t, int key)
{
	switch (key) {
	case SCREEN_RIGHT:
		if (t->rows.table)
			(void)tuirows_scroll(&t->rows, 1);
		else
			tuirows_open(&t->rows, t->cursor, true, false);
		return true;
	case '+':
		tuirows_open(&t->rows, t->cursor, true, false);
		return true;
	case SCREEN_LEFT:
		if (t->rows.table)
			(void)tuirows_scroll(&t->rows, -1);
		else
			close_row(t);
		return true;
	case '-':
		tuirows_open(&t->rows, t->cursor, false, false);
		return true;
	case 'e':
		tuirows_open(&t->rows, t->cursor, !tuirows_is_open(&t->rows, t->cursor), true);
		return true;
	case 'E':
	case 'C':
		tuirows_open_all(&t->rows, key == 'E');
		return true;
	default:
		return false;
	}
}

static void change_query(struct tui *t, int key)
{
	switch (key) {
	case SCREEN_ENTER:
		enter(t);
		break;
	case 'z':
		filter_function(t, TUI_WITHIN);
		break;
	case '<':
		filter_function(t, TUI_CALLERS);
		break;
	case '>':
		filter_function(t, TUI_CALLEES);
		break;
	case 'x':
		filter_function(t, TUI_EXCLUDE);
		break;
	case 'a':
		filter_function(t, TUI_CODE);
		break;
	case 'd':
		filter_module(t);
		break;
	case 'k':
		change_mode(t);
		break;
	case 's':
		t->query.sort = (t->query.sort + 1) % ARRAY_LEN(sort_names);
		(void)refresh(t);
		break;
	case SCREEN_ESCAPE:
		if (remove_filter(t))
			(void)refresh(t);
		else
			set_row_filter(t, NULL, (struct sv){0});
		break;
	case SCREEN_BACKSPACE:
		while (remove_filter(t))
			;
		(void)refresh(t);
		break;
	default:
		break;
	}
}

static void change_view_by_key(struct tui *t, int key)
{
	size_t nr = t->model->nr_views;
	if (key == '\t')
		change_view(t, t->query.view + 1, 1);
	else if (key == SCREEN_BACK_TAB)
		change_view(t, t->query.view + nr - 1, nr - 1);
	else if (key == 'i')
		change_view(t, nr - 1, 0);
	else if (key >= '1' && key <= '9' && (size_t)(key - '1') < nr)
		change_view(t, (size_t)(key - '1'), 0);
}

static void handle_key(struct tui *t, int key)
{
	if (key == 'q' || key == 'Q' || key == SCREEN_CLOSED) {
		t->has_ended = true;
		return;
	}
	buf_clear(&t->message);
	if (key == '?' || key == 'h') {
		t->is_help = true;
		return;
	}
	if (key == '/')
		read_pattern(t);
	else if (!move(t, key) && !open_or_close(t, key)) {
		change_query(t, key);
		change_view_by_key(t, key);
	}
}

int tui_run(const struct tui_model *model, const struct text_style *style, struct err *err)
{
	struct tui t = {.model = model, .style = style};
	struct report *r = report_new();
	int rc = model->report(model->ctx, r, &t.query, err);
	report_free(r);
	if (rc || screen_open(&t.screen, style->has_color, err))
		return err->code;
	(void)screen_measure(&t.screen);
	(void)refresh(&t);
	while (!t.has_ended) {
		if (t.is_help)
			draw_help(&t);
		else
			draw(&t);
		int key = screen_key(&t.screen, -1);
		if (t.is_help && key != SCREEN_RESIZED) {
			t.is_help = false;
			continue;
		}
		handle_key(&t, key);
	}
	screen_close(&t.screen);
	tui_release(&t);
	return 0;
}
