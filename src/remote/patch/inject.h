/*
 * The recorder (inject/) in one process: attach, start, stop, detach. wire/heap_wire.h describes
 * its memory in the target.
 *
 *	heapinject_attach   maps image, stubs, local and shared memory, and patches functions (or
 *	                    installs jemalloc's hooks); the recorder is inert
 *	                    the caller then fills the tables and drains the rings
 *	heapinject_start    starts recording
 *	heapinject_stop     stops recording and waits, at most 1 s, until no thread is inside
 *	heapinject_detach   restores the functions and unmaps shared memory; image and stubs stay
 *	                    mapped, inert, and the next attach reuses them
 *
 * If the target ends or executes another program, the functions return -ESRCH and the shared memory
 * stays readable.
 *
 * Patching replaces the first instruction of a function by a jump with one aligned store, so no
 * thread has to be stopped; where that is not possible, all threads are stopped for the store
 * (heapinject_info.had_to_stop_all).
 *
 * A site number is the index of a patched function among the functions of all plans of this
 * process: those of heapinject_attach come first, then those of each heapinject_add. Events of the
 * recorder contain it.
 *
 * All calls for a process are made by one thread, except heapinject_poll_seccomp and
 * heapinject_may_syscall: the thread that drains the rings calls these two.
 */
#ifndef ASSAY_REMOTE_PATCH_INJECT_H
#define ASSAY_REMOTE_PATCH_INJECT_H

#include "base/base.h"
#include "base/err.h"
#include "plan/heapplan.h"
#include "heap_wire.h"
#include "kernel_tables.h"

struct heapinject_spec {
	int32_t pid;
	/*
	 * The method is PATCH, HOOKS or PROF. With PROF the recorder only unwinds the stacks of the
	 * samples that jemalloc takes.
	 */
	const struct heap_plan *plan;
	bool is_full_trace;      /* record every allocation, else sample */
	uint64_t interval_bytes; /* mean bytes allocated between two samples */
	bool starts_full;        /* records every allocation until heapinject_thin */
	uint32_t nr_slots;       /* 0 = choose by the number of threads */
	uint32_t ring_bytes;     /* power of two, 0 = choose */
	uint64_t wait_ns;        /* how long a thread waits when its ring is full, 0 = choose */
	/*
	 * The calling thread traces the target and has stopped it before its first instruction
	 * (remote/patch/launch.h): it has one thread, which is in none of its functions.
	 */
	bool is_held;
	/* is_held, but at its fork or its main function: its C library is initialized. */
	bool has_started;
};

struct heapinject_info {
	size_t nr_patched;        /* functions of all plans that were patched */
	size_t nr_unpatched;      /* functions that could not be patched */
	size_t nr_unpatched_heap; /* of nr_unpatched: functions that allocate or free blocks */
	char *unpatched;          /* "name (reason)" of one, or NULL; borrowed */
	uint64_t stopped_ns;      /* longest time that a thread was stopped */
	bool had_to_stop_all;     /* all threads were stopped for a patch */
	bool is_reused;           /* the image of an earlier attach is used */
};

struct heapinject;

/*
 * -ENOTSUP: the recorder does not support this architecture, a thread is in strict seccomp mode, or
 * the plan is all-or-none and a function cannot be patched. Else errors of remote_open (remote.h).
 */
int heapinject_attach(struct heapinject **ret_h, const struct heapinject_spec *spec,
		      struct err *err);
/*
 * Patches the functions of @plan, of a library loaded after heapinject_attach. They get the site
 * numbers from heapinject_nr_sites() on, in the order of @plan. If the recorder was started, their
 * calls are recorded at once. If heapinject_nr_sites() has grown on failure, some may be patched.
 */
int heapinject_add(struct heapinject *h, const struct heap_plan *plan, struct err *err);
/*
 * Patches those functions of @plan again that were patched in a library unloaded and loaded again
 * at the same address; their site numbers do not change. *ret_nr: number of functions patched.
 */
int heapinject_repatch(struct heapinject *h, const struct heap_plan *plan, size_t *ret_nr,
		       struct err *err);
/* Returns the number of functions of all plans so far: the next site number. */
uint32_t heapinject_nr_sites(const struct heapinject *h);
/*
 * Returns whether the function at @addr is to be passed to heapinject_repatch or heapinject_add: it
 * is not patched now, and no earlier attempt found that it cannot be patched.
 */
bool heapinject_can_patch(const struct heapinject *h, uint64_t addr);
/* Starts recording: one write to the target's memory. -EFAULT: it cannot be written. */
int heapinject_start(struct heapinject *h, struct err *err);
/*
 * Stops recording. Waits at most 1 s in total until no thread is inside the recorder; returns 0
 * also if a thread still is. -EFAULT: the target's memory cannot be written.
 */
int heapinject_stop(struct heapinject *h, struct err *err);
/*
 * Checks whether the target has enabled seccomp since the last check. To be called often; any
 * thread may call it. With a seccomp filter the recorder makes no more system calls. With strict
 * mode, which also forbids rdtsc, the recorder stops recording.
 */
void heapinject_poll_seccomp(struct heapinject *h);
/* With starts_full: samples from now on. Errors: the process has ended. */
void heapinject_thin(struct heapinject *h, uint64_t interval_bytes);
/* With starts_full: whether every allocation is recorded; the recorder may end that itself. */
bool heapinject_is_full(struct heapinject *h);
/* The live blocks that can be recorded with starts_full before the recorder ends it. */
#define HEAPINJECT_FULL_BLOCKS 32768u
/* Whether the recorder makes system calls in the target (as of the last check). */
bool heapinject_may_syscall(const struct heapinject *h);
/*
 * Stops recording if it was not stopped, restores all patched functions and removes jemalloc's
 * hooks. -EBUSY: a thread was in the recorder's code for 2 s. Errors of remote_open (remote.h).
 * After an error other than -ESRCH it may be called again.
 */
int heapinject_detach(struct heapinject *h, struct err *err);
/* Unmaps the shared memory in assay and frees @h. Does not detach. */
void heapinject_free(struct heapinject *h);
DEFINE_FREE_P(heapinject, struct heapinject)

/* Return memory shared with the target: read it only through volatile copies. */
struct heap_shared *heapinject_shared(const struct heapinject *h);
struct heap_slot *heapinject_slots(const struct heapinject *h, uint32_t *ret_nr);
/* Returns the ring of slot @i; *ret_nr_bytes: its maximum size, a power of two. */
const uint8_t *heapinject_ring(const struct heapinject *h, uint32_t i, uint32_t *ret_nr_bytes);
/*
 * Returns the unwind tables in shared memory, in the layout that the BPF programs read too
 * (wire/kernel_tables.h). capture/bpf/kerneltables.h fills them. They describe only this process:
 * its mappings are spaces[0]. *ret_nr_rows: capacity in unwind rows.
 */
struct ktables_head *heapinject_tables(const struct heapinject *h, uint32_t *ret_nr_rows);
struct heapinject_info heapinject_info(const struct heapinject *h);

#endif
