/*
 * The end of a capture of memory: flame graphs of what was allocated, what lives, what leaked and
 * of the peak, the first page on the terminal, the last lines.
 */
#ifndef ASSAY_CMD_HEAP_OUTPUTS_H
#define ASSAY_CMD_HEAP_OUTPUTS_H

#include "analyze/select.h"
#include "base/base.h"
#include "cmd/outputs.h"

enum heap_outputs_flags {
	HEAP_OUTPUTS_ALL = 1 << 0, /* a picture of each weight that has rows, not the usual ones */
};

struct heap_outputs_options {
	struct heap_spec heap; /* --older-than, --suppress; weight and moment are not looked at */
	unsigned flags;        /* enum heap_outputs_flags */
};

/* @opts may be NULL. Returns the exit status. */
int heap_outputs_finish(struct outputs *o, const struct capture_result *r,
			const struct heap_outputs_options *opts);

#endif
