/*
 * One line of progress on stderr while a step takes long: shown after 1 s, at most 6 updates a
 * second, erased at the end. Only on a terminal, unless ASSAY_PROGRESS=always; never with
 * ASSAY_PROGRESS=never or -q.
 *
 *	struct progress pr;
 *	progress_init(&pr, "naming");
 *	while (...) { ...; progress_count(&pr, done, total); }
 *	progress_release(&pr);
 *
 * Cheap enough for loops that turn a million times a second: the clock is read only every so
 * often by progress_count; progress_due lets a caller build its own text only when needed.
 */
#ifndef ASSAY_BASE_PROGRESS_H
#define ASSAY_BASE_PROGRESS_H

#include "base/base.h"

struct progress {
	const char *what; /* borrowed */
	uint64_t next_ns; /* when to draw next; UINT64_MAX = never */
	uint64_t calls;
	bool is_shown;
};

void progress_init(struct progress *pr, const char *what);
void progress_release(struct progress *pr);
/* "naming: 42 % (420 of 1000)"; total 0 = unknown. */
void progress_count(struct progress *pr, uint64_t done, uint64_t total);
/* True when a new text should be given to progress_text; reads the clock each time. */
bool progress_due(struct progress *pr);
/* Draws "what: text" now. */
void progress_text(struct progress *pr, const char *fmt, ...) PRINTF(2, 3);

#endif
