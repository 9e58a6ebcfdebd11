/*
 * The modes of `assay heap` that read jemalloc's own data and write no recording: one dump of its
 * heap profile (--dump), a series of dumps (--dump-every), its statistics (--stats). cmd_heap.c
 * binds the option group and calls heap_dump_run if heap_dump_is_asked.
 */
#ifndef ASSAY_CMD_CAPTURE_HEAP_DUMP_H
#define ASSAY_CMD_CAPTURE_HEAP_DUMP_H

#include "base/base.h"
#include "base/opt/opt.h"
#include "cmd/capture/targetopts.h"
#include "render/renderers.h"

struct heap_dump_opts {
	bool is_once;                /* --dump */
	const char *every;           /* of --dump-every, see dump_trigger_parse; NULL = not given */
	uint64_t keep;               /* newest dumps that stay; 0 = not given */
	bool is_stats;               /* --stats */
	struct renderer_choice form; /* format of the statistics */
};

extern const struct opt_group heap_dump_group;

/* Returns whether one of the three modes was chosen. */
bool heap_dump_is_asked(const struct heap_dump_opts *o);
/*
 * Runs the mode. @path: of -o; NULL: dumps are written below ./profiling, statistics to standard
 * output.
 * Prints errors. Returns the exit status.
 */
int heap_dump_run(const struct heap_dump_opts *o, const struct chosen_target *target,
		  const char *path);

#endif
