/*
 * A process prepared for the walker: its space, filled from /proc/PID/maps, with the unwind tables
 * of all mapped files. Usually the test process itself. For tests and benchmarks.
 */
#ifndef ASSAY_TESTS_LIB_UNWIND_PROCESS_H
#define ASSAY_TESTS_LIB_UNWIND_PROCESS_H

#include "base/base.h"
#include "unwind/walk.h"

#define UNWIND_PROCESS_MODULES_MAX 128

struct unwind_process_module {
	struct unwind_module module;
	char *path;
};

struct unwind_process {
	struct spaces spaces;
	struct space *space;
	struct walker *walker;
	int pid; /* 0: this process */
	uint64_t stack_end;
	const char *cache_dir; /* for the tables, or NULL */
	struct unwind_process_module modules[UNWIND_PROCESS_MODULES_MAX];
	size_t nr_modules;
};

bool unwind_process_init(struct unwind_process *w);
bool unwind_process_init_pid(struct unwind_process *w, int pid);
/* Reads the maps again; modules that are already loaded are kept. */
bool unwind_process_refresh(struct unwind_process *w);
void unwind_process_release(struct unwind_process *w);
/* Returns the number of bytes from @sp to the end of the main stack, at most @max. */
size_t unwind_process_stack_bytes(const struct unwind_process *w, uint64_t sp, size_t max);

#endif
