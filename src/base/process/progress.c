/* The progress line; see progress.h. */
#include "base/base.h"
#include "base/process/progress.h"

#include <stdarg.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"

#define DELAY_NS    1000000000ull
#define INTERVAL_NS 170000000ull /* under 6 a second */

static enum term_when progress_when;

void progress_set_when(enum term_when when)
{
	progress_when = when;
}

void progress_init(struct progress *pr, const char *what)
{
	bool is_always = progress_when == TERM_ALWAYS;
	bool is_never = progress_when == TERM_NEVER;
	bool is_on =
		is_always || (!is_never && log_get_level() >= LOG_WARN && isatty(STDERR_FILENO));
	*pr = (struct progress){
		.what = what,
		.next_ns = !is_on      ? UINT64_MAX
			   : is_always ? 0
				       : clock_mono_ns() + DELAY_NS,
	};
}

void progress_release(struct progress *pr)
{
	if (pr->is_shown)
		log_status(NULL);
	pr->is_shown = false;
	pr->next_ns = UINT64_MAX;
}

bool progress_due(struct progress *pr)
{
	return pr->next_ns != UINT64_MAX && clock_mono_ns() >= pr->next_ns;
}

void progress_text(struct progress *pr, const char *fmt, ...)
{
	if (pr->next_ns == UINT64_MAX)
		return;
	va_list ap;
	va_start(ap, fmt);
	CLEANUP(buf_release) struct buf line = {0};
	buf_addf(&line, "%s: ", pr->what);
	buf_vaddf(&line, fmt, ap);
	va_end(ap);
	/* A line that wraps cannot be erased: cut it (bytes over-count columns, never under). */
	size_t columns = (size_t)term_columns(STDERR_FILENO);
	if (line.n >= columns)
		line.p[columns - 1] = 0;
	log_status(buf_str(&line));
	pr->is_shown = true;
	pr->next_ns = clock_mono_ns() + INTERVAL_NS;
}
