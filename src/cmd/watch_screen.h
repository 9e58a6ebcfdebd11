/*
 * assay watch on a terminal: a page that is drawn over itself, in the alternate screen, so that the
 * shell's text comes back afterwards. A page is written in one piece and nothing is cleared before
 * it, so it does not flicker; the size is asked for at each drawing. Keys are read one by one while
 * the screen is open.
 */
#ifndef ASSAY_CMD_WATCH_SCREEN_H
#define ASSAY_CMD_WATCH_SCREEN_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

struct watch_screen; /* opaque */

/* Standard output and standard input are to be a terminal. */
int watch_screen_open(struct watch_screen **ret_s, struct err *err);
/* Puts the terminal back as it was. */
void watch_screen_free(struct watch_screen *s);

int watch_screen_columns(const struct watch_screen *s);
int watch_screen_rows(const struct watch_screen *s);
/* Lines of text; those that do not fit are left out, long ones are cut. */
void watch_screen_draw(struct watch_screen *s, const struct buf *lines);
/* The descriptor for poll, and the next key that was typed; 0: none. */
int watch_screen_fd(const struct watch_screen *s);
char watch_screen_key(struct watch_screen *s);

#endif
