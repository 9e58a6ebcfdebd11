/*
 * Starts a capture on a condition (--when): waits until it holds for a running target. A condition is an
 * expression of base/text/formula.h over these names, whose values are of the last second:
 *
 *	rss, anon, swap         bytes, sum over the target's processes
 *	threads, processes      numbers
 *	cpu                     per cent of one CPU, as in top
 *	p50(F) p90(F) p99(F) max(F)   how long calls of function F took; not known in a second without a call
 *	calls(F)                calls that returned, per second
 *
 * Only /proc is read, except for the last five: a capture of the spans of F runs in a child process,
 * which ends when the condition holds.
 */
#ifndef ASSAY_CMD_CAPTURE_STARTWHEN_H
#define ASSAY_CMD_CAPTURE_STARTWHEN_H

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "base/text/formula.h"
#include "cmd/capture/targetopts.h"

struct startwhen {
	struct arena arena;
	const char *text;
	const struct formula *condition;
	const char *span;   /* the function F; NULL: none */
	const char *result; /* the values at the start, for the recording; NULL: did not wait */
};

void startwhen_release(struct startwhen *w);
/* -EINVAL with what was expected. */
int startwhen_parse(struct startwhen *w, const char *text, struct err *err);
/*
 * Waits, and shows the present values on the progress line. Returns false if nothing is to be recorded: a
 * stop signal, the target has ended, or the condition cannot be measured; that was printed, and
 * *ret_status is the exit status.
 */
bool startwhen_wait(struct startwhen *w, struct chosen_target *t, const char *command,
		    int *ret_status);
/* "rss > 8G: rss 8.10 GiB, after 12 s"; NULL: did not wait. */
const char *startwhen_text(const struct startwhen *w);

#endif
