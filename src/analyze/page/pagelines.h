/*
 * Weights of source lines, for the page's panel of one function: of each function the lines of its
 * code that are on a stack, with the weight of stacks that end there (self) and of all that contain
 * them (total; recursion counts once). Of the whole recording and the page's default stream: a
 * selection of the page does not change them.
 *
 * Lives in the caller's arena. Functions are known by their name as shown and the module's, as in the
 * page's tree.
 */
#ifndef ASSAY_ANALYZE_PAGE_PAGELINES_H
#define ASSAY_ANALYZE_PAGE_PAGELINES_H

#include "analyze/select/select.h"
#include "base/arena.h"
#include "base/base.h"

struct page_line {
	const char *function;
	const char *module;
	const char *file; /* as the debug information has it */
	uint32_t line;
	uint64_t self;
	uint64_t total;
};

/* By function, then by file and line. Returns their number. */
size_t pagelines_make(struct arena *a, const struct selection *sel, struct page_line **ret_lines);

#endif
