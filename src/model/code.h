/*
 * Machine code of functions as text, and text of source files, as reports show them beside weights.
 * The files are opened by what a command passes (cmd/codefiles.h), so that analyses open none.
 *
 * What is returned lives in the arena that is passed.
 */
#ifndef ASSAY_MODEL_CODE_H
#define ASSAY_MODEL_CODE_H

#include "base/arena.h"
#include "base/base.h"
#include "model/profile.h"

struct code_insn {
	uint64_t offset;  /* in the module, as in locations */
	uint64_t vaddr;   /* link-time address, as objdump prints it */
	const char *text; /* AT&T syntax on x86; a direct target is followed by "<its function>" */
};

struct code_function {
	/* Asked for. */
	module_id module;
	const uint64_t *offsets; /* of sampled instructions, ascending; not empty */
	size_t nr_offsets;
	/* Answered. */
	struct code_insn *insns; /* in order of their addresses */
	size_t nr_insns;
	const char *missing; /* why there are none, a phrase: "its file '/bin/x' has changed" */
};

struct code_access {
	/* Disassembles functions. NULL: assay was built without a disassembler. */
	void (*read)(void *ctx, struct arena *a, const struct profile *p, struct code_function *f,
		     size_t n);
	/* Returns the text of a source line, or NULL. The member is NULL: no folder was named. */
	const char *(*line)(void *ctx, struct arena *a, const char *file, uint32_t line);
	void *ctx;
};

#endif
