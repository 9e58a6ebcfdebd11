/*
 * A full-screen page on a terminal that is redrawn in place. It uses the alternate screen, so the
 * shell's text is restored afterwards. A page is written in one piece without clearing the screen
 * first, so it does not flicker. The caller reads the terminal size by screen_measure before it
 * draws. Keys are read unbuffered and without echo while the screen is open.
 */
#ifndef ASSAY_RENDER_SCREEN_H
#define ASSAY_RENDER_SCREEN_H

#include <termios.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

struct screen {
	int rows; /* size of the terminal at the last screen_measure; 0 before */
	int columns;
	bool has_keys;         /* keys are read from standard input */
	struct termios before; /* terminal settings that screen_close restores */
};

/*
 * Opens the screen on standard output, which must be a terminal (not checked). Returns an error if
 * standard input is not a terminal. If assay is in a background process group, or the terminal
 * settings cannot be changed, the screen opens without keys (has_keys is false).
 */
int screen_open(struct screen *s, struct err *err);
/* Restores the terminal. */
void screen_close(struct screen *s);
/* Reads the terminal size; returns whether it changed. */
bool screen_measure(struct screen *s);
/* Draws lines of text. Lines that do not fit are omitted, long ones are truncated. */
void screen_draw(struct screen *s, const struct buf *lines);
/* Returns the descriptor to poll for keys; -1: the screen has no keys. */
int screen_fd(const struct screen *s);
/* Returns the next key without blocking; 0: no key was pressed, or the screen has no keys. */
char screen_key(struct screen *s);

#endif
