/*
 * The recorder (inject/) in one process: attach, start, stop, detach. wire/heap_wire.h describes
 * its memory in the target.
 *
 *	heapinject_attach   maps image, stubs, local and shared memory, and patches functions (or
 *	                    installs jemalloc's hooks); the recorder is inert
 *	                    the caller then fills the tables and drains the rings
 *	heapinject_start    starts recording
 *	heapinject_stop     stops recording and waits (bounded) until no thread is inside
 *	heapinject_detach   restores the functions and unmaps shared memory; image and stubs stay
 *	                    mapped, inert, and the next attach reuses them
 *
 * If the target ends or executes another program, functions return -ESRCH and the shared memory
 * stays readable.
 *
 * Patching replaces the first instruction of a function by a jump with one aligned store, so no
 * thread has to be stopped; where that is not possible, all threads are stopped for the store
 * (heapinject_info.had_to_stop_all).
 *
 * By one thread, except heapinject_poll_seccomp.
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
		*plan;      /* method PATCH or HOOKS; PROF: only unwinds jemalloc's samples */
	bool is_full_trace; /* record every allocation, else sample */
	uint64_t interval_bytes;
	uint32_t nr_slots;   /* 0 = choose by the number of threads */
	uint32_t ring_bytes; /* power of two, 0 = choose */
	uint64_t wait_ns;    /* how long a thread waits when its ring is full, 0 = choose */
	/*
	 * The calling thread traces the target and has stopped it before its first instruction
	 * (remote/patch/launch.h): it has one thread, which is in none of its functions.
	 */
	bool is_held;
};

struct heapinject_info {
	size_t nr_patched;
	size_t nr_unpatched;      /* functions not patched */
	size_t nr_unpatched_heap; /* of these: allocate or free */
	char *unpatched;          /* "name (reason)" of one, or NULL; borrowed */
	uint64_t stopped_ns;      /* longest time that a thread was stopped */
	bool had_to_stop_all;
	bool is_reused; /* the image of an earlier attach is used */
};

struct heapinject;

int heapinject_attach(struct heapinject **ret_h, const struct heapinject_spec *spec,
		      struct err *err);
/*
 * Patches the functions of @plan, of a library loaded after heapinject_attach. They become sites,
 * numbered from heapinject_nr_sites() in the order of @plan, and are recorded at once if it is
 * started. If on failure heapinject_nr_sites() has grown, some may be patched.
 */
int heapinject_add(struct heapinject *h, const struct heap_plan *plan, struct err *err);
/*
 * Patches those functions of @plan again that were patched in a library unloaded and loaded again
 * at the same address, as the same sites. *ret_nr: how many.
 */
int heapinject_repatch(struct heapinject *h, const struct heap_plan *plan, size_t *ret_nr,
		       struct err *err);
uint32_t heapinject_nr_sites(const struct heapinject *h);
/* Whether the function at @addr is patched now, or cannot be patched. */
bool heapinject_has_function(const struct heapinject *h, uint64_t addr);
int heapinject_start(struct heapinject *h, struct err *err);
int heapinject_stop(struct heapinject *h, struct err *err);
/*
 * Checks whether the target has enabled seccomp since the last check. To be called often; any
 * thread may call it. With a seccomp filter the recorder makes no more system calls. With strict
 * mode, which also forbids rdtsc, the recorder stops recording.
 */
void heapinject_poll_seccomp(struct heapinject *h);
/* Whether the recorder makes system calls in the target (as of the last check). */
bool heapinject_may_syscall(const struct heapinject *h);
int heapinject_detach(struct heapinject *h, struct err *err);
/* Unmaps the shared memory in assay and frees @h. Does not detach. */
void heapinject_free(struct heapinject *h);
DEFINE_FREE_P(heapinject, struct heapinject)

/* Memory shared with the target: read it only through volatile copies. */
struct heap_shared *heapinject_shared(const struct heapinject *h);
struct heap_slot *heapinject_slots(const struct heapinject *h, uint32_t *ret_nr);
/* The ring of slot @i; *ret_nr_bytes: its maximum size, a power of two. */
const uint8_t *heapinject_ring(const struct heapinject *h, uint32_t i, uint32_t *ret_nr_bytes);
/* The unwind tables in shared memory, which capture/bpf/kerneltables.h fills (space 0). */
struct ktables_head *heapinject_tables(const struct heapinject *h, uint32_t *ret_nr_rows);
struct heapinject_info heapinject_info(const struct heapinject *h);

#endif
