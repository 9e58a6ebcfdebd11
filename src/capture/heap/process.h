/*
 * One process whose heap is recorded (heapsource.h): the recorder in it, the tables that it unwinds
 * by, its rings and its books.
 *
 * _pass belongs to the thread that empties rings; everything else to the thread of the capture, and
 * not while a pass runs: heapsource.c holds a lock around both.
 */
#ifndef ASSAY_CAPTURE_HEAP_PROCESS_H
#define ASSAY_CAPTURE_HEAP_PROCESS_H

#include "base/base.h"
#include "base/err.h"
#include "remote/patch/inject.h"
#include "plan/heapplan.h"
#include "capture/heap/queue.h"
#include "unwind/space.h"

/* Between passes where little is recorded. */
#define HEAPPROCESS_POLL_NS 100000000u

struct heapprocess_spec {
	int32_t pid;
	uint32_t generation; /* how many were recorded before */
	uint64_t start_ns;   /* of the capture */
	bool is_full_trace;
	uint64_t interval_bytes;
	bool is_held;
	const struct space *space; /* NULL: not known yet */
	struct heapqueue *queue;   /* borrowed */
};

struct heapprocess;

/* Patched and inert; the plan is taken over. */
int heapprocess_attach(struct heapprocess **ret_p, const struct heapprocess_spec *spec,
		       struct heap_plan *plan, struct err *err);
/* It records. To be called when passes have begun. */
int heapprocess_start(struct heapprocess *p, struct err *err);
/* What came of functions that were not there when the process was attached to. */
struct heapprocess_added {
	size_t nr;        /* patched */
	size_t nr_again;  /* that had been, in a library that has been loaded anew */
	const char *path; /* of one of them; borrowed, NULL = none */
};
/*
 * Functions of @now, a plan made since, that are not recorded yet: those of libraries that were
 * loaded. No lock is needed.
 */
int heapprocess_add(struct heapprocess *p, struct heap_plan *now, struct heapprocess_added *ret_a,
		    struct err *err);
/* The first file of @now's functions that are not recorded, or NULL. */
const char *heapprocess_lacks(const struct heapprocess *p, const struct heap_plan *now);
/* Whatever the rings have, up to now. How full the fullest one was, in parts of 1024. */
uint32_t heapprocess_pass(struct heapprocess *p);
/* Threads that have ended give up their slots; between passes, now and then. */
void heapprocess_retire(struct heapprocess *p);
/* How long it can do without a pass if its bell is heard. */
uint64_t heapprocess_poll_ns(const struct heapprocess *p);
uint32_t *heapprocess_wake_futex(struct heapprocess *p);
void heapprocess_thread_ended(struct heapprocess *p, int32_t tid);
/* NULL: it is gone. */
void heapprocess_space(struct heapprocess *p, const struct space *sp);
/* Records no more; the process may be gone. No error: what could not be undone is inert. */
void heapprocess_stop(struct heapprocess *p);
/* Stopped, and the last pass done: the last rows go to the queue, the process is left. */
void heapprocess_end(struct heapprocess *p);
void heapprocess_free(struct heapprocess *p);
DEFINE_FREE_P(heapprocess, struct heapprocess)

int32_t heapprocess_pid(const struct heapprocess *p);
const struct heap_plan *heapprocess_plan(const struct heapprocess *p);
struct heapinject_info heapprocess_inject_info(const struct heapprocess *p);
struct heapring_counts heapprocess_counts(const struct heapprocess *p);
struct heapaccount_info heapprocess_account_info(const struct heapprocess *p);

#endif
