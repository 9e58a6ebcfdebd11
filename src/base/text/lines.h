/*
 * Iterates over the lines of a text in memory without copying.
 *
 *	struct lines in = lines_from(view.p, view.n);
 *	struct sv line;
 *	while (lines_next(&in, &line))
 *		... in.nr is the line number, from 1
 */
#ifndef ASSAY_BASE_TEXT_LINES_H
#define ASSAY_BASE_TEXT_LINES_H

#include "base/base.h"
#include "base/sv.h"

struct lines {
	const char *p;
	const char *end;
	uint64_t nr;
};

static inline struct lines lines_from(const void *p, size_t n)
{
	return (struct lines){p, p ? (const char *)p + n : p, 0};
}
/* Gets the next line without its LF or CR LF; the last one needs no LF. False at the end. */
bool lines_next(struct lines *l, struct sv *ret_line);

#endif
