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
#include "model/code.h"

struct page_line {
	const char *function;
	const char *module;
	const char *file; /* as the debug information has it */
	uint32_t line;
	const char *text; /* of the line; "" without a folder of sources */
	uint64_t self;
	uint64_t total;
};

/*
 * By function, then by file and line. Returns their number. @code may be NULL: without the text of
 * lines. Of lines with less than LINES_MIN_SHARE of the weight it is not read.
 */
#define LINES_MIN_SHARE 10000 /* a ten thousandth: less is not in the page */
size_t pagelines_make(struct arena *a, const struct selection *sel, const struct code_access *code,
		      struct page_line **ret_lines);

#endif
