/*
 * The recorder (inject/) in one process: put there, started, stopped, taken out. See
 * wire/heap_wire.h for what lies where in the target.
 *
 *	heapinject_attach   image, stubs, local and shared memory are there; functions are patched
 *	                    (or jemalloc's hooks installed), the recorder inert
 *	                    the caller fills the tables, drains the rings from now on
 *	heapinject_start    the recorder records
 *	heapinject_stop     it does not any more; nobody is inside (waited for, bounded)
 *	heapinject_detach   functions are as they were, shared memory is unmapped; what stays is
 *	                    the image and its stubs, inert, used again by the next attach
 *
 * A target that dies or executes another program in between gives -ESRCH, and the shared memory
 * stays readable. Patching: the first instruction of a function is replaced by a two-byte jump
 * with one aligned store, so no thread needs to be stopped for it; where that cannot be done the
 * process's threads are stopped for the moment of the store (heapinject_info says so).
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
	const struct heap_plan
		*plan; /* method PATCH or HOOKS; PROF: only the unwinder of its samples */
	bool is_full_trace;
	uint64_t interval_bytes;
	uint32_t nr_slots;   /* 0 = choose by the number of threads */
	uint32_t ring_bytes; /* power of two, 0 = choose */
	uint64_t wait_ns;    /* how long a thread waits for room in its ring, 0 = choose */
	/*
	 * The target is held by the caller before the first instruction of its own
	 * (remote/patch/launch.h): it is alone and nobody can be in its functions.
	 */
	bool is_held;
};

struct heapinject_info {
	size_t nr_patched;
	size_t nr_unpatched;      /* functions that could not be patched */
	size_t nr_unpatched_heap; /* of these: functions that allocate or free */
	char *unpatched;          /* one of them, or NULL; borrowed */
	uint64_t stopped_ns;      /* longest stop of one thread, so far */
	bool had_to_stop_all;
	bool is_reused; /* the image was there from before */
};

struct heapinject;

int heapinject_attach(struct heapinject **ret_h, const struct heapinject_spec *spec,
		      struct err *err);
/*
 * Functions that have come since, of a library that was loaded: they are sites of the same recorder
 * from heapinject_nr_sites() on, in the order of @plan, and recorded at once if it records. On
 * failure they are sites, too, if that number has grown: some may be patched.
 */
int heapinject_add(struct heapinject *h, const struct heap_plan *plan, struct err *err);
/*
 * Those of @plan's functions that were patched in a library that has been unloaded and loaded again
 * at the same place: patched again, as the same sites. *ret_nr: how many.
 */
int heapinject_renew(struct heapinject *h, const struct heap_plan *plan, size_t *ret_nr,
		     struct err *err);
uint32_t heapinject_nr_sites(const struct heapinject *h);
/* Whether the function at @addr is patched, or cannot be. Not if its library was loaded anew. */
bool heapinject_knows(const struct heapinject *h, uint64_t addr);
int heapinject_start(struct heapinject *h, struct err *err);
int heapinject_stop(struct heapinject *h, struct err *err);
/*
 * To be called often, by whichever thread: a target that puts itself under seccomp while it is
 * recorded gets no system calls of the recorder's any more, and one in strict mode no recorder, as
 * its time stamp counter is forbidden, too.
 */
void heapinject_mind_seccomp(struct heapinject *h);
/* Whether the recorder may make system calls, as far as is known. */
bool heapinject_may_call(const struct heapinject *h);
int heapinject_detach(struct heapinject *h, struct err *err);
/* Unmaps our side. Does not detach. */
void heapinject_free(struct heapinject *h);
DEFINE_FREE_P(heapinject, struct heapinject)

/* Shared with the target: read through volatile copies only. */
struct heap_shared *heapinject_shared(const struct heapinject *h);
struct heap_slot *heapinject_slots(const struct heapinject *h, uint32_t *ret_nr);
/* Ring of slot @i; *ret_nr_bytes is a power of two. */
const uint8_t *heapinject_ring(const struct heapinject *h, uint32_t i, uint32_t *ret_nr_bytes);
/* To fill with capture/bpf/kerneltables.h (space 0). */
struct ktables_head *heapinject_tables(const struct heapinject *h, uint32_t *ret_nr_rows);
struct heapinject_info heapinject_info(const struct heapinject *h);

#endif
