/*
 * Finds the allocators of a process: what allocfind.h finds in each mapped binary, and which binary
 * the process's calls of malloc are bound to (the first of executable, preloaded and needed
 * libraries that defines it, in the dynamic linker's order). heapchoice.h makes the plan from that.
 *
 * The process is not stopped: this reads /proc/PID/maps, the files, and the dynamic linker's list
 * in the process's memory. Results are cached per file while the object lives, so a second process
 * with the same binaries is cheap.
 */
#ifndef ASSAY_PLAN_HEAPTARGETS_H
#define ASSAY_PLAN_HEAPTARGETS_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "object/elf.h"
#include "plan/allocfind.h"

struct heaptargets; /* opaque */

enum heaptargets_flags {
	HEAPTARGETS_RECORDER = 1 << 0 /* the recorder supports this architecture */
};

struct heaptargets *heaptargets_new(unsigned flags);
void heaptargets_free(struct heaptargets *t);
DEFINE_FREE_P(heaptargets, struct heaptargets)

/* A mapped binary that has an allocator, and the executable. */
struct heaptarget_image {
	const char *path; /* as the process sees it */
	uint64_t bias;    /* runtime address minus link-time address */
	const struct elf *elf;
	const struct allocfind *found;
	bool is_executable; /* the program itself */
	bool is_used;       /* calls of malloc are bound to this binary */
};

struct heaptarget {
	int32_t pid;
	VEC(struct heaptarget_image) images;
	bool is_go;
	bool is_jvm;
	bool is_static; /* the program has no dynamic linker */
	bool is_32bit;
	uint64_t main;  /* is_held: its main function, 0 = not found */
	uint64_t image; /* proc_exec_id() from before the inspection, to detect an execve since */
	/* The process has just called execve: not all of its libraries are mapped yet. */
	bool is_loading;
	/* Stopped by assay before its first instruction: no function may be called yet. */
	bool is_held;
	bool has_started;  /* is_held, but at its main function */
	bool has_recorder; /* HEAPTARGETS_RECORDER was given */
};

/* Inspects a process. elf and found of the images are borrowed from @t. */
int heaptargets_inspect(struct heaptargets *t, int32_t pid, struct heaptarget *ret_h,
			struct err *err);
void heaptarget_release(struct heaptarget *h);
/* The image with jemalloc: preferably the one that malloc calls are bound to; NULL: none. */
const struct heaptarget_image *heaptarget_jemalloc(const struct heaptarget *h);
/* The environment variable that the process's jemalloc reads; owned by the caller; NULL: none. */
char *heaptargets_variable(struct heaptargets *t, int32_t pid);

/* Inspects a binary that is not running; owns @source (assay env). */
int heaptargets_file(struct heaptargets *t, struct byte_source source, const char *path,
		     const struct allocfind **ret_f, struct err *err);

#endif
