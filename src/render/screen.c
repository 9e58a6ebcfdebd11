/* Full-screen pages on a terminal; see screen.h. */
#include "base/base.h"
#include "render/screen.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define NCURSES_NOMACROS 1
#include <curses.h>

#include "base/process/term.h"
#include "base/text/lines.h"

#define ESCAPE_MS 25 /* after which an escape character is a key and not the start of a sequence */

static const struct {
	short color; /* -1: the terminal's own */
	attr_t with; /* attributes with colours */
	attr_t without;
} styles[SCREEN_STYLES] = {
	[SCREEN_PLAIN] = {-1, A_NORMAL, A_NORMAL},
	[SCREEN_BOLD] = {-1, A_BOLD, A_BOLD},
	[SCREEN_FAINT] = {-1, A_DIM, A_NORMAL},
	[SCREEN_BAR] = {-1, A_REVERSE, A_REVERSE},
	[SCREEN_HOT] = {COLOR_RED, A_NORMAL, A_BOLD},
	[SCREEN_WARM] = {COLOR_GREEN, A_NORMAL, A_NORMAL},
	[SCREEN_NOTICE] = {COLOR_YELLOW, A_BOLD, A_BOLD},
};

static const struct {
	int curses;
	int key;
} keys[] = {
	{KEY_UP, SCREEN_UP},       {KEY_DOWN, SCREEN_DOWN},     {KEY_LEFT, SCREEN_LEFT},
	{KEY_RIGHT, SCREEN_RIGHT}, {KEY_PPAGE, SCREEN_PAGE_UP}, {KEY_NPAGE, SCREEN_PAGE_DOWN},
	{KEY_HOME, SCREEN_HOME},   {KEY_END, SCREEN_END},       {KEY_BACKSPACE, SCREEN_BACKSPACE},
	{127, SCREEN_BACKSPACE},   {'\b', SCREEN_BACKSPACE},    {KEY_BTAB, SCREEN_BACK_TAB},
	{KEY_ENTER, SCREEN_ENTER}, {'\r', SCREEN_ENTER},        {KEY_RESIZE, SCREEN_RESIZED},
};

static void open_colors(bool has_color)
{
	if (!has_color || !has_colors() || start_color() == ERR)
		return;
	(void)use_default_colors();
	for (short i = 0; i < SCREEN_STYLES; i++)
		(void)init_pair((short)(i + 1), styles[i].color, -1);
}

int screen_open(struct screen *s, bool has_color, struct err *err)
{
	*s = (struct screen){0};
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(err, -ENOTTY, "standard input and output are not a terminal");
	/* Changing the terminal from the background would raise SIGTTOU and stop us. */
	if (tcgetpgrp(STDIN_FILENO) != getpgrp())
		return err_set(err, -ENOTTY, "the terminal belongs to another process group");
	(void)setlocale(LC_CTYPE, ""); /* by which ncurses decides whether text is UTF-8 */
	const char *type = getenv("TERM");
	s->terminal = newterm(type ? type : "dumb", stdout, stdin);
	if (!s->terminal)
		return err_set(err, -ENOTTY, "unknown type of terminal '%s' ($TERM)",
			       type ? type : "");
	open_colors(has_color);
	(void)cbreak(); /* signals by keys stay on */
	(void)noecho();
	(void)keypad(stdscr, TRUE);
	(void)set_escdelay(ESCAPE_MS);
	(void)curs_set(0);
	return 0;
}

void screen_close(struct screen *s)
{
	(void)endwin();
	delscreen(s->terminal);
	s->terminal = NULL;
}

bool screen_measure(struct screen *s)
{
	int rows = term_rows(STDOUT_FILENO);
	int columns = term_columns(STDOUT_FILENO);
	bool has_changed = rows != s->rows || columns != s->columns;
	if (has_changed && is_term_resized(rows, columns))
		(void)resizeterm(rows, columns);
	s->rows = rows;
	s->columns = columns;
	return has_changed;
}

void screen_clear(struct screen *s)
{
	(void)s;
	(void)werase(stdscr);
}

static attr_t attribute(enum screen_style style)
{
	if (COLOR_PAIRS > SCREEN_STYLES && has_colors() && styles[style].color >= 0)
		return styles[style].with | (attr_t)COLOR_PAIR((int)style + 1);
	return COLOR_PAIRS > SCREEN_STYLES ? styles[style].with : styles[style].without;
}

void screen_put(struct screen *s, int row, int column, enum screen_style style, const char *text)
{
	if (row >= s->rows || column >= s->columns || wmove(stdscr, row, column) == ERR)
		return;
	(void)wattrset(stdscr, (int)attribute(style));
	/* ncurses wraps: the length is a number of bytes, which are never fewer than columns. */
	int left = s->columns - column;
	size_t n = 0;
	for (int i = 0; text[n] && i < left; i++)
		for (n++; (text[n] & 0xc0) == 0x80; n++)
			;
	(void)waddnstr(stdscr, text, (int)n);
	(void)wattrset(stdscr, A_NORMAL);
}

void screen_mark(struct screen *s, int row, int column, int columns)
{
	(void)s;
	(void)mvwchgat(stdscr, row, column, columns, A_REVERSE, 0, NULL);
}

void screen_show(struct screen *s)
{
	(void)s;
	(void)wrefresh(stdscr);
}

void screen_draw(struct screen *s, const struct buf *lines)
{
	struct lines in = lines_from(lines->p, lines->n);
	struct sv line;
	screen_clear(s);
	for (int i = 0; i < s->rows && lines_next(&in, &line); i++) {
		CLEANUP(buf_release) struct buf text = {0};
		buf_add_sv(&text, line);
		screen_put(s, i, 0, SCREEN_PLAIN, buf_str(&text));
	}
	screen_show(s);
}

int screen_fd(const struct screen *s)
{
	(void)s;
	return STDIN_FILENO;
}

int screen_key(struct screen *s, int timeout_ms)
{
	(void)s;
	wtimeout(stdscr, timeout_ms);
	int c = wgetch(stdscr);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (c == keys[i].curses)
			return keys[i].key;
	if (c != ERR)
		return c < 0x100 ? c : SCREEN_NO_KEY;
	/* Without a key: a timeout, or the end of input. */
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	return poll(&fd, 1, 0) > 0 && (timeout_ms < 0 || fd.revents & (POLLHUP | POLLERR))
		       ? SCREEN_CLOSED
		       : SCREEN_NO_KEY;
}
