/*
 * One line of progress on stderr while a step takes long: shown after 1 s, at most 6 updates a
 * second, erased at the end. Only on a terminal, unless ASSAY_PROGRESS=always; never with
 * ASSAY_PROGRESS=never or -q.
 *
 *	struct progress pr;
 *	progress_init(&pr, "naming");
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

struct progress {
	const char *what; /* borrowed */
	uint64_t next_ns; /* when to draw next; UINT64_MAX = never */
	bool is_shown;
};

void progress_init(struct progress *pr, const char *what);
void progress_release(struct progress *pr);
/* True when a new text should be given to progress_text; reads the clock each time. */
bool progress_due(struct progress *pr);
/* Draws "what: text" now. */
void progress_text(struct progress *pr, const char *fmt, ...) PRINTF(2, 3);

#endif
