/*
 * The allocators of a process: its mapped binaries, what allocfind.h finds in each, which of them
 * the process's calls of malloc go to (the first of executable, preloaded and needed libraries
 * that defines it, in the dynamic linker's own order). The plan by which its heap is watched is made
 * from that (heapchoice.h).
 *
 * Nothing is stopped and nothing called: /proc/PID/maps, the files, and the linker's list in the
 * process's memory are read. What is found is remembered by file for as long as the object lives,
 * so the second process of a binary costs nothing.
 */
#ifndef ASSAY_PLAN_HEAPTARGETS_H
#define ASSAY_PLAN_HEAPTARGETS_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "object/elf.h"
#include "plan/allocfind.h"

struct heaptargets; /* opaque */

enum heaptargets_flags { HEAPTARGETS_RECORDER = 1 << 0 /* there is one for this machine */ };

struct heaptargets *heaptargets_new(unsigned flags);
void heaptargets_free(struct heaptargets *t);
DEFINE_FREE_P(heaptargets, struct heaptargets)

/* One mapped binary in which something was found. */
struct heaptarget_image {
	const char *path; /* as the process sees it */
	uint64_t bias;    /* runtime address minus link-time address */
	const struct elf *elf;
	const struct allocfind *found;
	bool is_executable; /* the program itself */
	bool is_used;       /* calls of malloc by name end here */
};

struct heaptarget {
	int32_t pid;
	VEC(struct heaptarget_image) images;
	bool is_go;
	bool is_jvm;
	bool is_static; /* the program has no dynamic linker */
	bool is_32bit;
	uint64_t image; /* proc_image() of what was looked at */
	/* It was executed just now: its libraries are not mapped yet, or not all of them. */
	bool is_loading;
	/* Held by us before its own first instruction: nothing in it may be called yet. */
	bool is_held;
	bool has_recorder; /* something could be put into it: HEAPTARGETS_RECORDER */
};

/* What @t knows of a process; paths and findings are borrowed from @t. */
int heaptargets_look(struct heaptargets *t, int32_t pid, struct heaptarget *ret_h, struct err *err);
void heaptarget_release(struct heaptarget *h);
/* The image whose jemalloc is to be spoken to, or NULL: the one whose calls are used, else any. */
const struct heaptarget_image *heaptarget_jemalloc(const struct heaptarget *h);
/* The variable that a process's jemalloc reads, for advice; owned by the caller, may be NULL. */
char *heaptargets_variable(struct heaptargets *t, int32_t pid);

/* A binary that does not run yet, by descriptor (assay env): what is in it. */
int heaptargets_file(struct heaptargets *t, int fd, const char *path,
		     const struct allocfind **ret_f, struct err *err);

#endif
