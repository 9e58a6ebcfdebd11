/*
 * Dumps of an allocator as a series: which of them are meant, and one profile of them.
 *
 *	DIR, "jeprof.*.heap", a.heap b.heap
 *	    -> files, by process (jeprof.<pid>.<seq>.<kind>.heap; else by the name before its number
 *	       or time), in the order in which they were written
 *	    -> selected: latest (default), all, last:N, NAME,NAME; "PID:" in front chooses a process
 *	    -> one dump: as it is. Several: "live" is the mean over them, "snapshots" has each at
 *	       its time, "allocated" is that of the last; what lives in two dumps is the same
 *	       memory, so nothing is ever added up
 *
 * Of several processes in a folder the one that wrote last is taken, and the fact "dumps" names the
 * others. Files that are named one by one are all taken, and processes among them stay apart.
 */
#ifndef ASSAY_SESSION_DUMPSET_H
#define ASSAY_SESSION_DUMPSET_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/profile.h"

struct dump_file {
	char *path;
	char *process; /* what the files of one process have in common */
	int32_t pid;   /* 0 = unknown */
	uint64_t sequence;
	int64_t written_ns; /* wall clock */
};

struct dumpset {
	VEC(struct dump_file) files; /* selected, by process and time */
	char *about;                 /* what was left out, in words; NULL: nothing */
};

/* Whether an operand stands for dumps: a folder, a pattern, or a file that is named like one. */
bool dumpset_is(const char *operand);
/*
 * -ENOENT: no dumps, or none that the selection names; -EINVAL: no selection. @selection NULL:
 * latest of folders and patterns, all where only files are named.
 */
int dumpset_select(struct dumpset *ret_set, const char *const *operands, size_t nr,
		   const char *selection, struct err *err);
void dumpset_release(struct dumpset *set);

/*
 * The profile of a series: reads each file by @read (unsealed, owned by the caller) and puts them
 * together.
 */
typedef int (*dumpset_read)(void *ctx, struct profile **ret_p, const char *path, struct err *err);
int dumpset_read_all(struct profile **ret_p, const struct dumpset *set, dumpset_read read,
		     void *ctx, struct err *err);

#endif
