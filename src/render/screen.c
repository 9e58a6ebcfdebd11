/* Full-screen pages on a terminal; see screen.h. */
#include "base/base.h"
#include "render/screen.h"

#include <poll.h>
#include <unistd.h>

#include "base/text/escape.h"
#include "base/file/file.h"
#include "base/text/lines.h"
#include "base/process/term.h"

/* ECMA-48 and xterm: alternate screen, cursor, home, erase to the end of line and screen. */
#define ENTER      "\033[?1049h\033[?25l\033[2J"
#define LEAVE      "\033[?25h\033[?1049l"
#define HOME       "\033[H"
#define ERASE_LINE "\033[K"
#define ERASE_REST "\033[J"

static void put(const char *text, size_t n)
{
	(void)file_write_all(STDOUT_FILENO, text, n, NULL); /* fails if the terminal was closed */
}

int screen_open(struct screen *s, struct err *err)
{
	*s = (struct screen){0};
	if (tcgetattr(STDIN_FILENO, &s->before))
		return err_sys(err, "cannot read the terminal settings");
	struct termios raw = s->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* ISIG stays on */
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	/* In a background process group this would raise SIGTTOU and stop us: no keys then. */
	if (tcgetpgrp(STDIN_FILENO) == getpgrp())
		s->has_keys = !tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	put(ENTER, sizeof(ENTER) - 1);
	return 0;
}

void screen_close(struct screen *s)
{
	put(LEAVE, sizeof(LEAVE) - 1);
	if (s->has_keys)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
}

bool screen_measure(struct screen *s)
{
	struct screen was = *s;
	s->rows = term_rows(STDOUT_FILENO);
	s->columns = term_columns(STDOUT_FILENO);
	return s->rows != was.rows || s->columns != was.columns;
}

/* Returns the length in bytes of the first @columns characters; lines are safe UTF-8. */
static size_t cut(struct sv line, int columns)
{
	size_t at = 0;
	for (int i = 0; i < columns && at < line.n; i++) {
		size_t n = utf8_len(sv_from_idx(line, at));
		at += n ? n : 1;
	}
	return MIN(at, line.n);
}

void screen_draw(struct screen *s, const struct buf *lines)
{
	CLEANUP(buf_release) struct buf page = {0};
	struct lines in = lines_from(lines->p, lines->n);
	struct sv line;
	buf_add_str(&page, HOME);
	for (int i = 0; i < s->rows && lines_next(&in, &line); i++) {
		if (i)
			buf_add_str(&page, "\r\n");
		buf_add(&page, line.p, cut(line, s->columns));
		buf_add_str(&page, ERASE_LINE);
	}
	buf_add_str(&page, ERASE_REST);
	put(page.p, page.n);
}

int screen_fd(const struct screen *s)
{
	return s->has_keys ? STDIN_FILENO : -1;
}

char screen_key(struct screen *s)
{
	char key = 0;
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	if (!s->has_keys || poll(&fd, 1, 0) <= 0 || read(STDIN_FILENO, &key, 1) != 1)
		return 0;
	return key;
}
