/* Terminal properties; see term.h. */
#include "base/base.h"
#include "base/process/term.h"

#include <sys/ioctl.h>
#include <unistd.h>

int term_columns(int fd)
{
	struct winsize w = {0};
	if (isatty(fd) && !ioctl(fd, TIOCGWINSZ, &w) && w.ws_col)
		return w.ws_col;
	return 80;
}

int term_rows(int fd)
{
	struct winsize w = {0};
	if (isatty(fd) && !ioctl(fd, TIOCGWINSZ, &w) && w.ws_row)
		return w.ws_row;
	return 24;
}

bool term_has_color(int fd, enum term_when when)
{
	if (when != TERM_AUTO)
		return when == TERM_ALWAYS;
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb");
}
