/* A page on a terminal; see watch_screen.h. */
#include "base/base.h"
#include "cmd/watch_screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/mem.h"
#include "base/term.h"

/* ECMA-48 and xterm: alternate screen, cursor, home, erase to the end of line and screen. */
#define ENTER      "\033[?1049h\033[?25l\033[2J"
#define LEAVE      "\033[?25h\033[?1049l"
#define HOME       "\033[H"
#define ERASE_LINE "\033[K"
#define ERASE_REST "\033[J"

struct watch_screen {
	struct termios before;
	bool has_before;
};

static void put(const char *text, size_t n)
{
	(void)file_write_all(STDOUT_FILENO, text, n, NULL); /* a terminal that has gone */
}

int watch_screen_open(struct watch_screen **ret_s, struct err *err)
{
	struct watch_screen *s = xcalloc(1, sizeof(*s));
	if (tcgetattr(STDIN_FILENO, &s->before)) {
		free(s);
		return err_sys(err, "cannot ask the terminal for its settings");
	}
	struct termios raw = s->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* signals stay */
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	/* In the background of a shell this would stop us: no keys then. */
	if (tcgetpgrp(STDIN_FILENO) == getpgrp())
		s->has_before = !tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	put(ENTER, sizeof(ENTER) - 1);
	*ret_s = s;
	return 0;
}

void watch_screen_free(struct watch_screen *s)
{
	if (!s)
		return;
	put(LEAVE, sizeof(LEAVE) - 1);
	if (s->has_before)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
	free(s);
}

int watch_screen_columns(const struct watch_screen *s)
{
	(void)s;
	return term_columns(STDOUT_FILENO);
}

int watch_screen_rows(const struct watch_screen *s)
{
	(void)s;
	return term_rows(STDOUT_FILENO);
}

/* Bytes of at most @columns characters; lines are UTF-8 that is safe to print. */
static size_t cut(struct sv line, int columns)
{
	size_t at = 0;
	for (int i = 0; i < columns && at < line.n; i++) {
		size_t n = utf8_len(sv_from_idx(line, at));
		at += n ? n : 1;
	}
	return MIN(at, line.n);
}

void watch_screen_draw(struct watch_screen *s, const struct buf *lines)
{
	CLEANUP(buf_release) struct buf page = {0};
	int rows = watch_screen_rows(s);
	int columns = watch_screen_columns(s);
	struct lines in = lines_from(lines->p, lines->n);
	struct sv line;
	buf_add_str(&page, HOME);
	for (int i = 0; i < rows && lines_next(&in, &line); i++) {
		if (i)
			buf_add_str(&page, "\r\n");
		buf_add(&page, line.p, cut(line, columns));
		buf_add_str(&page, ERASE_LINE);
	}
	buf_add_str(&page, ERASE_REST);
	put(page.p, page.n);
}

int watch_screen_fd(const struct watch_screen *s)
{
	return s->has_before ? STDIN_FILENO : -1;
}

char watch_screen_key(struct watch_screen *s)
{
	char key = 0;
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	if (!s->has_before || poll(&fd, 1, 0) <= 0 || read(STDIN_FILENO, &key, 1) != 1)
		return 0;
	return key;
}
