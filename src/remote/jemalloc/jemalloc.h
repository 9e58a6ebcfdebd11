/*
 * jemalloc in a running process, spoken to by its own mallctl, called on one borrowed thread
 * (remote/ptrace/remote.h): no gdb, no signal, the other threads run on. A session holds that thread, so
 * it is short; who has many questions asks them in several (jemalloc_stats_read does).
 *
 * The address of mallctl comes from a binary. It is believed only after `version` answered with a
 * version, that of the binary where no symbol named it: jemalloc_open asks first, and is -ENOTSUP
 * otherwise.
 *
 * Names of mallctl: jemalloc's manual, section MALLCTL NAMESPACE (5.0 to 5.3).
 */
#ifndef ASSAY_REMOTE_JEMALLOC_JEMALLOC_H
#define ASSAY_REMOTE_JEMALLOC_JEMALLOC_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/memory.h"
#include "plan/heapplan.h"

struct remote;

/* A session. */
struct jemalloc {
	struct remote *r;
	uint64_t mallctl; /* its address */
	uint64_t at;      /* of memory there, for arguments; by jemalloc_prepare */
};

/* -ENOTSUP: no mallctl, or it is not one. Others as remote_open. */
int jemalloc_open(struct jemalloc **ret_j, int32_t pid, const struct heap_plan *plan,
		  struct err *err);
/* For calls on a thread that the caller has borrowed: r and mallctl are set. */
int jemalloc_prepare(struct jemalloc *j, struct err *err);
void jemalloc_close(struct jemalloc *j);
void jemalloc_close_p(struct jemalloc **j);
/* How long the thread has been held. */
uint64_t jemalloc_stopped_ns(const struct jemalloc *j);

/*
 * mallctl: reads and writes a value, where @old and @new are not NULL. -ENOENT: this jemalloc has
 * no such name.
 */
int jemalloc_control(struct jemalloc *j, const char *name, void *old, size_t nr_old,
		     const void *new, size_t nr_new, struct err *err);
/* One value of exactly @n bytes. */
int jemalloc_read(struct jemalloc *j, const char *name, void *to, size_t n, struct err *err);
int jemalloc_read_bool(struct jemalloc *j, const char *name, bool *ret, struct err *err);
int jemalloc_write(struct jemalloc *j, const char *name, const void *from, size_t n,
		   struct err *err);
int jemalloc_write_bool(struct jemalloc *j, const char *name, bool is_on, struct err *err);

/* ---- profiling ----------------------------------------------------------------------------- */

struct jemalloc_prof {
	bool is_built_in;   /* config.prof */
	bool is_possible;   /* opt.prof: set when the process started, else nothing helps */
	bool is_active;     /* prof.active */
	uint64_t lg_sample; /* prof.lg_sample */
};
int jemalloc_prof_state(struct jemalloc *j, struct jemalloc_prof *ret_p, struct err *err);
/*
 * Why dumps are not to be had and how they would be: sets @err (-ENOTSUP, with a hint) unless
 * is_possible. @variable: the one that this jemalloc reads, NULL = not known.
 */
int jemalloc_prof_check(const struct jemalloc_prof *p, const char *variable, struct err *err);
/*
 * A dump (heap_v2), written by the target into memory that it makes for it and of which *ret_fd is
 * a descriptor here: nothing lands on a disk. At its beginning when returned.
 */
int jemalloc_dump(struct jemalloc *j, int *ret_fd, struct err *err);

/* ---- statistics ---------------------------------------------------------------------------- */

/* Of all arenas, at one moment (an epoch of its own); released by jemalloc_stats_release. */
int jemalloc_stats_read(struct allocstats *ret_s, int32_t pid, const struct heap_plan *plan,
			struct err *err);
/*
 * The sums alone (has_stats, allocated, active, resident, retained) in one session of some ten
 * calls, where jemalloc_stats_read makes hundreds: for who asks every second.
 */
int jemalloc_stats_totals(struct allocstats *ret_s, int32_t pid, const struct heap_plan *plan,
			  struct err *err);
/*
 * Bytes that were allocated since the process began, by the counts of each class (exact but for
 * what threads have not told yet).
 */
int jemalloc_stats_ever(uint64_t *ret_bytes, int32_t pid, const struct heap_plan *plan,
			struct err *err);
void jemalloc_stats_release(struct allocstats *s);

#endif
