/*
 * The heap recording of one process (heapsource.h): its recorder, unwind tables, rings and
 * accounting.
 *
 * heapprocess_drain is called by the drain thread, everything else by the capture thread and not
 * during a drain; heapsource.c holds a lock around both.
 */
#ifndef ASSAY_CAPTURE_HEAP_PROCESS_H
#define ASSAY_CAPTURE_HEAP_PROCESS_H

#include "base/base.h"
#include "base/err.h"
#include "remote/patch/inject.h"
#include "host/target.h"
#include "plan/heapplan.h"
#include "capture/heap/heappeaks.h"
#include "capture/heap/queue.h"
#include "unwind/space.h"

/* Interval between drains when little is recorded. */
#define HEAPPROCESS_POLL_NS 100000000u

struct heapprocess_spec {
	int32_t pid;
	const struct target *target; /* the process is checked to be the one that was resolved */
	uint32_t generation;         /* number of processes recorded before */
	uint64_t start_ns;           /* of the capture */
	uint64_t slices_ns;          /* start of the slices of rows */
	bool is_full_trace;
	uint64_t interval_bytes;
	bool starts_full; /* records every allocation first, and samples when that costs (thin.h) */
	bool is_held;     /* stopped before its first instruction, or has_started */
	bool has_started; /* stopped at its fork or its main function: it has blocks already */
	const struct space *space; /* mappings; NULL: not known yet */
	struct heapqueue *queue;   /* borrowed */
	struct heappeaks *peaks;   /* of all programs; borrowed; NULL: peaks are not needed */
};

struct heapprocess;

/* Attaches: functions are patched, the recorder is inert. Takes over the contents of @plan. */
int heapprocess_attach(struct heapprocess **ret_p, const struct heapprocess_spec *spec,
		       struct heap_plan *plan, struct err *err);
/* Starts recording; drains must have started. */
int heapprocess_start(struct heapprocess *p, struct err *err);
/* Result of heapprocess_add. */
struct heapprocess_added {
	size_t nr;        /* newly patched functions */
	size_t nr_again;  /* patched again, in a library that was reloaded */
	const char *path; /* binary of one of them; borrowed, NULL = none */
};
/*
 * Patches the functions of @now that are not recorded yet. @now: a new plan of the same process,
 * which also has the libraries loaded since the attach; functions that are added move out of it.
 * May run during a drain.
 */
int heapprocess_add(struct heapprocess *p, struct heap_plan *now, struct heapprocess_added *ret_a,
		    struct err *err);
/* The binary of a function of @now that is not recorded, or NULL. */
const char *heapprocess_find_unrecorded(const struct heapprocess *p, const struct heap_plan *now);
/* Drains the rings up to now. Returns how full the fullest one was, in parts of 1024. */
uint32_t heapprocess_drain(struct heapprocess *p);
/* Retires slots of ended threads; call between drains, occasionally. */
void heapprocess_retire(struct heapprocess *p);
/* The longest permitted time without a drain, if the caller waits on heapprocess_wake_futex. */
uint64_t heapprocess_poll_ns(const struct heapprocess *p);
/* The futex that the recorder wakes when a ring is filling up (heap_shared.wake_futex). */
uint32_t *heapprocess_wake_futex(struct heapprocess *p);
/* A thread of the process has exited: its slot can be retired. */
void heapprocess_thread_ended(struct heapprocess *p, int32_t tid);
/* Updates the mappings; NULL: the process has ended. */
void heapprocess_space(struct heapprocess *p, const struct space *sp);
/* Stops recording; the process may have ended. Does not fail: leftovers in it are inert. */
void heapprocess_stop(struct heapprocess *p);
enum heapprocess_end_flags {
	HEAPPROCESS_FREED = 1 << 0, /* as heapaccount_end_freed */
};
/* After stop and a last drain: queues the last rows, adds the peak to `peaks`, and detaches. */
void heapprocess_end(struct heapprocess *p, unsigned flags);
void heapprocess_free(struct heapprocess *p);
DEFINE_FREE_P(heapprocess, struct heapprocess)

/* Python frames in the stacks of the recorder. */
struct heapprocess_pythons {
	uint64_t nr;         /* different stacks with Python frames */
	uint64_t nr_partly;  /* of these, some frames were not readable, or were too many */
	uint64_t nr_without; /* events in Python code whose frames could not be read or stored */
};
struct heapprocess_pythons heapprocess_pythons(const struct heapprocess *p);
/* With starts_full: how long every allocation was recorded; UINT64_MAX: to the end. */
uint64_t heapprocess_full_ns(const struct heapprocess *p);
/* The signal that killed the process; 0: none, or not known. */
int heapprocess_killed_by(const struct heapprocess *p);
int32_t heapprocess_pid(const struct heapprocess *p);
const struct heap_plan *heapprocess_plan(const struct heapprocess *p);
struct heapinject_info heapprocess_inject_info(const struct heapprocess *p);
struct heapring_counts heapprocess_counts(const struct heapprocess *p);
struct heapaccount_info heapprocess_account_info(const struct heapprocess *p);
/* As heapaccount_reach_ns. */
uint64_t heapprocess_reach_ns(const struct heapprocess *p);

#endif
