/*
 * A progress line on stderr for long steps: shown after 1 s, updated at most 6 times a second,
 * erased at the end. Only on a terminal, unless --progress always; never with --progress never or -q.
 *
 *	struct progress pr;
 *	progress_init(&pr, "symbolizing");
 *	while (...) {
 *		...
 *		if (progress_due(&pr))
 *			progress_text(&pr, "%zu of %zu", done, total);
 *	}
 *	progress_release(&pr);
 */
#ifndef ASSAY_BASE_PROCESS_PROGRESS_H
#define ASSAY_BASE_PROCESS_PROGRESS_H

#include "base/base.h"
#include "base/process/term.h"

struct progress {
	const char *what; /* borrowed */
	uint64_t next_ns; /* time of the next update; UINT64_MAX = never */
	bool is_shown;
};

/* For all progress lines. Call it before threads start. */
void progress_set_when(enum term_when when);
void progress_init(struct progress *pr, const char *what);
void progress_release(struct progress *pr);
/* Whether an update is due, so that progress_text should be called. Reads the clock. */
bool progress_due(struct progress *pr);
/* Shows "what: text" now. */
void progress_text(struct progress *pr, const char *fmt, ...) PRINTF(2, 3);

#endif
