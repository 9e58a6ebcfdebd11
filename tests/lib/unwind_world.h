/*
 * The running test process as the walker sees it: a space filled from /proc/PID/maps with the
 * tables of every file in it. For tests and benchmarks.
 */
#ifndef ASSAY_TESTS_LIB_UNWIND_WORLD_H
#define ASSAY_TESTS_LIB_UNWIND_WORLD_H

#include "base/base.h"
#include "unwind/walk.h"

#define WORLD_MODULES_MAX 128

struct world_module {
	struct unwind_module module;
	char *path;
};

struct world {
	struct spaces spaces;
	struct space *space;
	struct walker *walker;
	int pid; /* 0: this process */
	uint64_t stack_end;
	const char *cache_dir; /* for the tables, or NULL */
	struct world_module modules[WORLD_MODULES_MAX];
	size_t nr_modules;
};

bool world_init(struct world *w);
bool world_init_pid(struct world *w, int pid);
/* Reads the maps again, keeping the modules that are known. */
bool world_refresh(struct world *w);
void world_release(struct world *w);
/* Bytes from sp to the end of the main stack, at most @max. */
size_t world_stack_bytes(const struct world *w, uint64_t sp, size_t max);

#endif
