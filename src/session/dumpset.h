/*
 * Selects jemalloc dump files by folder, pattern or name, and reads a series of them as one
 * profile.
 *
 *	DIR, "jeprof.*.heap", a.heap b.heap
 *	    -> files, by process (jeprof.<pid>.<seq>.<kind>.heap; else by the name before its number
 *	       or time), in the order in which they were written
 *	    -> selected: latest (default), all, last:N, NAME,NAME; "PID:" in front chooses a process
 *	    -> one dump: its profile. Several: table "live" is the mean over them, "snapshots" has
 *	       each at its time, "allocated" is that of the last one. Dumps are never summed, since
 *	       a block that is live in two dumps is the same memory
 *
 * If a folder has dumps of several processes, those of the process that wrote last are selected and
 * the fact "dumps" (key/value metadata of the profile, model/facts.h) names the others. Files named
 * one by one are all selected; if they are of several processes, the mean is made per process and
 * the profiles are merged.
 */
#ifndef ASSAY_SESSION_DUMPSET_H
#define ASSAY_SESSION_DUMPSET_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/profile.h"

struct dump_file {
	char *path;
	char *process;      /* common part of the names of one process's files */
	int32_t pid;        /* 0 = unknown */
	uint64_t sequence;  /* <seq> in the file's name */
	int64_t written_ns; /* wall clock */
};

struct dumpset {
	VEC(struct dump_file) files; /* selected, by process and time */
	char *not_selected; /* text: other processes that have dumps in the folder; NULL: none */
};

/* Returns whether an operand names dumps: a folder, a pattern, or a file with a dump's name. */
bool dumpset_is(const char *operand);
/*
 * Selects files. @selection NULL: "latest" for folders and patterns, "all" if only files are named.
 * -ENOENT: no dumps, or none that matches; -EINVAL: malformed selection.
 */
int dumpset_select(struct dumpset *ret_set, const char *const *operands, size_t nr,
		   const char *selection, struct err *err);
void dumpset_release(struct dumpset *set);

/*
 * Reads each file with @read and merges the profiles into one. @read returns an owned profile
 * that is not sealed (profile_seal in model/profile.h: sorted, no rows may be added any more).
 */
typedef int (*dumpset_read)(void *ctx, struct profile **ret_p, const char *path, struct err *err);
int dumpset_read_all(struct profile **ret_p, const struct dumpset *set, dumpset_read read,
		     void *ctx, struct err *err);

#endif
