/*
 * What `assay heap` does without a recorder: dumps of jemalloc's own profile (--dump once,
 * --dump-every as a series) and the allocator's statistics (--stats). cmd_heap.c has the option
 * group among its own and calls heap_dump_run when one of these was asked for.
 */
#ifndef ASSAY_CMD_CAPTURE_HEAP_DUMP_H
#define ASSAY_CMD_CAPTURE_HEAP_DUMP_H

#include "base/base.h"
#include "base/opt/opt.h"
#include "cmd/capture/targetopts.h"
#include "render/renderers.h"

struct heap_dump_opts {
	bool is_once;
	const char *every;
	uint64_t keep; /* 0 = not given */
	bool is_stats;
	struct renderer_choice form; /* of statistics */
};

extern const struct opt_group heap_dump_group;

bool heap_dump_is_asked(const struct heap_dump_opts *o);
/*
 * @path: of -o, NULL = in the store (dumps), standard output (statistics). Tells errors; returns
 * the exit status.
 */
int heap_dump_run(const struct heap_dump_opts *o, const struct chosen_target *target,
		  const char *path);

#endif
