/*
 * A page on a terminal that is drawn over itself, in the alternate screen, so that the
 * shell's text comes back afterwards. A page is written in one piece and nothing is cleared before
 * it, so it does not flicker; the size is asked for at each drawing. Keys are read one by one while
 * the screen is open.
 */
#ifndef ASSAY_RENDER_SCREEN_H
#define ASSAY_RENDER_SCREEN_H

#include <termios.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

struct screen {
	int rows; /* when it was drawn last */
	int columns;
	bool has_keys;
	struct termios before;
};

/* Standard output and standard input are to be a terminal. */
int screen_open(struct screen *s, struct err *err);
/* Puts the terminal back as it was. */
void screen_close(struct screen *s);
/* Asks for the size; true: it is another than before. */
bool screen_measure(struct screen *s);
/* Lines of text; those that do not fit are left out, long ones are cut. */
void screen_draw(struct screen *s, const struct buf *lines);
/* The descriptor for poll, -1 = none, and the next key that was typed; 0: none. */
int screen_fd(const struct screen *s);
char screen_key(struct screen *s);

#endif
