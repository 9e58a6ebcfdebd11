/*
 * Reads and controls jemalloc in a running process: calls its mallctl on one stopped thread
 * (remote/ptrace/remote.h), without gdb or signals, while the other threads keep running. A session
 * keeps that thread stopped, so it should be short; many reads are split into several sessions
 * (jemalloc_stats_read does that).
 *
 * The address of mallctl comes from the target's binary. jemalloc_open verifies it by reading
 * `version`, which must be a version number; if mallctl was found without a symbol, it must also be
 * the version number found in the binary. If not, it returns -ENOTSUP.
 *
 * Names of values: jemalloc's manual, section MALLCTL NAMESPACE (5.0 to 5.3).
 */
#ifndef ASSAY_REMOTE_JEMALLOC_JEMALLOC_H
#define ASSAY_REMOTE_JEMALLOC_JEMALLOC_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/memory.h"
#include "plan/heapplan.h"

struct cleanup;
struct remote;

/* A session. */
struct jemalloc {
	struct remote *r;
	uint64_t mallctl; /* address in the target */
	uint64_t at; /* address of memory for arguments in the target; set by jemalloc_prepare */
	uint64_t old_at; /* where the target stores values that are read; 0 = in that memory */
};

/* Opens a session. -ENOTSUP: no mallctl, or the verification failed. Others as remote_open. */
int jemalloc_open(struct jemalloc **ret_j, int32_t pid, const struct heap_plan *plan,
		  struct err *err);
/*
 * Prepares a session on a thread that the caller has stopped by remote_open: allocates memory for
 * arguments in the target and sets j->at. The caller has set j->r and j->mallctl, and closes j->r
 * itself. Does not verify mallctl. Errors of remote_scratch.
 */
int jemalloc_prepare(struct jemalloc *j, struct err *err);
void jemalloc_close(struct jemalloc *j);
void jemalloc_close_p(struct jemalloc **j);
/* Returns how long the thread has been stopped in this session. */
uint64_t jemalloc_stopped_ns(const struct jemalloc *j);

/*
 * Calls mallctl: reads the value into @old (unless NULL), then sets it from @new (unless NULL).
 * -ENOENT: this jemalloc has no such name.
 */
int jemalloc_control(struct jemalloc *j, const char *name, void *old, size_t nr_old,
		     const void *new, size_t nr_new, struct err *err);
/* Reads a value of exactly @n bytes. */
int jemalloc_read(struct jemalloc *j, const char *name, void *to, size_t n, struct err *err);
int jemalloc_read_bool(struct jemalloc *j, const char *name, bool *ret, struct err *err);
int jemalloc_write(struct jemalloc *j, const char *name, const void *from, size_t n,
		   struct err *err);
int jemalloc_write_bool(struct jemalloc *j, const char *name, bool is_on, struct err *err);

/* ---- profiling ----------------------------------------------------------------------------- */

struct jemalloc_prof {
	bool is_built_in;   /* config.prof */
	bool is_possible;   /* opt.prof: can only be set when the process starts */
	bool is_active;     /* prof.active */
	uint64_t lg_sample; /* prof.lg_sample: log2 of the mean bytes between two samples */
};
int jemalloc_prof_state(struct jemalloc *j, struct jemalloc_prof *ret_p, struct err *err);
/*
 * Returns -ENOTSUP unless is_possible, with a hint how to enable profiling. @variable: the
 * environment variable that this jemalloc reads, NULL = not known.
 */
int jemalloc_prof_check(const struct jemalloc_prof *p, const char *variable, struct err *err);
/*
 * To be called before prof.active is set: starts a cleanup process that unsets it if assay is killed.
 * cleanup_cancel when assay has unset it itself.
 */
int jemalloc_guard_sampling(struct cleanup *ret_c, int32_t pid, const struct heap_plan *plan,
			    struct err *err);
/*
 * Makes the target write a dump (heap_v2) into a memfd; *ret_fd is a descriptor of it, at offset 0.
 * Nothing is written to disk.
 */
int jemalloc_dump(struct jemalloc *j, int *ret_fd, struct err *err);

/* ---- statistics ---------------------------------------------------------------------------- */

/* Statistics of all arenas in one epoch. Release with jemalloc_stats_release. */
int jemalloc_stats_read(struct allocstats *ret_s, int32_t pid, const struct heap_plan *plan,
			struct err *err);
/*
 * Reads only the sums (has_stats, allocated, active, resident, retained), in one session of about
 * ten calls; jemalloc_stats_read makes hundreds. For callers that read every second.
 */
int jemalloc_stats_totals(struct allocstats *ret_s, int32_t pid, const struct heap_plan *plan,
			  struct err *err);
/*
 * Bytes allocated since the process started, from the counts of each size class (exact except for
 * what threads have not yet added to these counts).
 */
int jemalloc_stats_allocated_total(uint64_t *ret_bytes, int32_t pid, const struct heap_plan *plan,
				   struct err *err);
void jemalloc_stats_release(struct allocstats *s);

#endif
