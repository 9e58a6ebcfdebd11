/*
 * Assembly for the page: the code of the hottest functions of its default stream, and which
 * instruction each row's leaf is, so that the page can add up the instructions of any selection.
 *
 * Lives in the page's arena.
 */
#ifndef ASSAY_ANALYZE_PAGE_PAGECODE_H
#define ASSAY_ANALYZE_PAGE_PAGECODE_H

#include "analyze/select/select.h"
#include "base/arena.h"
#include "base/base.h"
#include "model/code.h"

#define PAGECODE_FUNCTIONS 20 /* with code */

struct page_insn {
	uint64_t vaddr;
	const char *text;
	uint32_t place;     /* numbers sampled instructions of all functions from 1; 0: no sample */
	const char *line;   /* "dict.c:512"; "" if not known */
	const char *source; /* its text; "" without a folder of sources */
	uint32_t nr_before; /* instructions between the one before and this one that are left out */
};

/* A function without code has the reason in @missing. */
struct page_function {
	const char *name; /* as in the page's tree, as the module */
	const char *module;
	const char *missing; /* NULL: it has code */
	struct page_insn *insns;
	size_t nr_insns;
	uint32_t nr_after; /* left out at its end */
};

struct page_code {
	struct page_function *functions; /* the hottest first */
	size_t n;
	uint32_t
		*place_of; /* by loc_id: number of the place, 0: none; of rows without synth_leaf */
	bool has_places;
};

struct page_code pagecode_make(struct arena *a, const struct selection *sel,
			       const struct code_access *code);

#endif
