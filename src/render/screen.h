/*
 * A full-screen page on a terminal that is redrawn in place. It uses the alternate screen, so the
 * shell's text is restored afterwards. A page is written in one piece without clearing the screen
 * first, so it does not flicker. The terminal size is read at each drawing. Keys are read
 * unbuffered while the screen is open.
 */
#ifndef ASSAY_RENDER_SCREEN_H
#define ASSAY_RENDER_SCREEN_H

#include <termios.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

struct screen {
	int rows; /* at the last drawing */
	int columns;
	bool has_keys;         /* keys are read from standard input */
	struct termios before; /* settings that screen_close restores */
};

/* Opens the screen. Standard output and standard input must be a terminal. */
int screen_open(struct screen *s, struct err *err);
/* Restores the terminal. */
void screen_close(struct screen *s);
/* Reads the terminal size; returns whether it changed. */
bool screen_measure(struct screen *s);
/* Draws lines of text. Lines that do not fit are omitted, long ones are truncated. */
void screen_draw(struct screen *s, const struct buf *lines);
/* Returns the descriptor to poll for keys, -1 = none. */
int screen_fd(const struct screen *s);
/* Returns the next key without blocking, 0 = none. */
char screen_key(struct screen *s);

#endif
