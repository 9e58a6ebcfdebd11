/*
 * A full-screen page on a terminal (ncurses). It uses the alternate screen, so the shell's text is
 * restored afterwards. A page is put together row by row and shown at once; only what has changed is
 * written. Keys are read without echo while the screen is open. There is one screen at a time.
 *
 *	screen_open(&s, &err);
 *	screen_measure(&s);
 *	screen_clear(&s);
 *	screen_put(&s, row, column, SCREEN_BOLD, text);
 *	screen_show(&s);
 *	key = screen_key(&s, timeout_ms);
 *	screen_close(&s);
 */
#ifndef ASSAY_RENDER_SCREEN_H
#define ASSAY_RENDER_SCREEN_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

/* Keys beyond characters. */
enum screen_key {
	SCREEN_NO_KEY = 0,
	SCREEN_UP = 0x1000,
	SCREEN_DOWN,
	SCREEN_LEFT,
	SCREEN_RIGHT,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_END,
	SCREEN_BACKSPACE,
	SCREEN_BACK_TAB,
	SCREEN_RESIZED,
	SCREEN_CLOSED, /* the terminal has gone */
};
#define SCREEN_ESCAPE 27
#define SCREEN_ENTER  '\n'

enum screen_style {
	SCREEN_PLAIN,
	SCREEN_BOLD,
	SCREEN_FAINT,
	SCREEN_BAR,    /* reversed: title and cursor */
	SCREEN_HOT,    /* a large share; bold without colours */
	SCREEN_WARM,   /* a visible share */
	SCREEN_NOTICE, /* errors and losses; bold without colours */
	SCREEN_STYLES
};

struct screen {
	int rows; /* size of the terminal at the last screen_measure; 0 before */
	int columns;
	void *terminal; /* of ncurses */
};

/*
 * Opens the screen on standard output, with keys from standard input. Error: one of them is not a
 * terminal, assay is in a background process group, or the type of the terminal ($TERM) is unknown.
 */
int screen_open(struct screen *s, bool has_color, struct err *err);
/* Restores the terminal. */
void screen_close(struct screen *s);
/* Reads the terminal size; returns whether it changed. */
bool screen_measure(struct screen *s);

void screen_clear(struct screen *s);
/* Puts text in its place; what goes beyond the last column is omitted. The text is safe UTF-8. */
void screen_put(struct screen *s, int row, int column, enum screen_style style, const char *text);
/* Gives @columns characters of a row the style SCREEN_BAR, whatever they are. */
void screen_mark(struct screen *s, int row, int column, int columns);
void screen_show(struct screen *s);

/* Puts and shows lines of text from the top. Lines that do not fit are omitted. */
void screen_draw(struct screen *s, const struct buf *lines);

/* Returns the descriptor to poll for keys. */
int screen_fd(const struct screen *s);
/*
 * Returns the next key: a character, or one of enum screen_key. Waits for at most @timeout_ms (0: not
 * at all, -1: without limit), then returns SCREEN_NO_KEY.
 */
int screen_key(struct screen *s, int timeout_ms);

#endif
