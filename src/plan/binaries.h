/*
 * What the binaries of a process tell a profiler: symbols, debug information, unwind tables, frame
 * pointers. Files are read, nothing is stopped.
 */
#ifndef ASSAY_PLAN_BINARIES_H
#define ASSAY_PLAN_BINARIES_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

struct binary_facts {
	char *path;          /* as the process sees it; owned */
	bool is_closed;      /* we may not read it; nothing else is known */
	const char *symbols; /* "all", "functions", "exported", "none"; NULL: no ELF file */
	const char *debug;   /* "inside", "separate", "none" */
	const char *frames;  /* whether functions keep frame pointers: "yes", "some", "no", "-" */
	bool has_unwind_tables;
	bool has_build_id;
};

struct binaries {
	VEC(struct binary_facts) list; /* mapped executable, by address: the program first */
};

/* On an error what was seen until then is in the list. */
int binaries_read(struct binaries *ret_b, int32_t pid, struct err *err);
void binaries_release(struct binaries *b);

/* The binary of a command as execvp(3) finds it, with its path; -1: there is none. */
int binaries_open_command(const char *name, struct buf *path);

#endif
