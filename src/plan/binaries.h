/*
 * Reports which of these the binaries of a process have: symbols, debug information, unwind tables,
 * frame pointers. Reads files only; the process is not stopped.
 */
#ifndef ASSAY_PLAN_BINARIES_H
#define ASSAY_PLAN_BINARIES_H

#include "base/base.h"
#include "base/buf.h"
#include "base/file/bytesource.h"
#include "base/err.h"
#include "base/vec.h"

struct binary_facts {
	char *path;          /* as the process sees it; owned */
	bool is_unreadable;  /* not permitted to read it; other fields unset */
	const char *symbols; /* "all", "functions", "exported", "none"; NULL: no ELF file */
	const char *debug;   /* "inside", "separate", "none" */
	const char *frames;  /* functions with frame pointers: "yes", "some", "no", "-" = unknown */
	bool has_unwind_tables;
	bool has_build_id;
};

struct binaries {
	VEC(struct binary_facts) list; /* files mapped executable: the program, others by address */
};

/* On error the list has the binaries read so far. */
int binaries_read(struct binaries *ret_b, int32_t pid, struct err *err);
/* The facts of one file, which is not running. -errno, -EINVAL: not an ELF file. */
int binaries_read_file(struct binaries *ret_b, const char *path, struct err *err);
void binaries_release(struct binaries *b);

/* Opens the binary of a command as execvp(3) finds it; sets *path. -ENOENT: not found. */
int binaries_open_command(struct byte_source *ret_s, const char *name, struct buf *path);

#endif
