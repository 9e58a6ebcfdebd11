/*
 * The state of the recorder of one process (struct heapinject of inject.h), and access to the
 * target: memory, remote sessions, batches of system calls. Implemented in inject.c; used by
 * attach.c, addsites.c, stubs.c, patchtext.c and jemalloc/hooks.c.
 */
#ifndef ASSAY_REMOTE_PATCH_INJECTSTATE_H
#define ASSAY_REMOTE_PATCH_INJECTSTATE_H

#include "base/base.h"
#include "base/process/cleanup.h"
#include "base/vec.h"
#include "remote/patch/heapspace.h"
#include "remote/patch/inject.h"
#include "remote/patch/patch.h"
#include "remote/patch/stubcode.h"
#include "remote/patch/stubs.h"
#include "remote/ptrace/remote.h"

struct heapinject {
	int32_t pid;
	int mem_fd;                         /* /proc/PID/mem */
	const struct heapinject_spec *spec; /* during the attach only */
	bool is_held;                       /* heapinject_spec.is_held */
	bool has_filter;                    /* seccomp, as of the last session */
	bool may_syscall;                   /* HEAP_SYSCALLS_ALLOWED is set in the target */
	uint32_t tid_off;                   /* heap_local.tid_off */
	enum heap_method method;
	struct heapspace space;
	uint64_t image;   /* address of the recorder's image, mapped or planned */
	uint64_t batch;   /* address of the batch routine, 0 = none yet */
	bool is_changing; /* code or hooks may have been changed */
	bool is_stopped;  /* by heapinject_stop */
	bool is_detached;
	/*
	 * A thread may still make the last call of an assay that was killed, in the area for sessions
	 * at the end of local memory: sessions map one of their own.
	 */
	bool is_area_unsafe;
	uint32_t generation;    /* heap_local.generation of this attach */
	struct cleanup cleanup; /* detaches if assay is killed */
	struct heap_layout layout;
	uint32_t first_site; /* site number of the plan's first function; > 0: a plan added later */
	uint32_t nr_sites;   /* of all plans so far */
	VEC(struct heap_patch) patches;  /* heap_patch.site: index into the plan */
	VEC(struct stub_region) regions; /* memory with stubs */
	struct heap_ranges avoid;        /* the allocator's code, for calls of mallctl */
	uint64_t mallctl;
	uint64_t hooks;     /* jemalloc's handle of the installed hooks, or 0 */
	uint64_t backtrace; /* jemalloc's backtrace function that was replaced, or 0 */
	bool is_mapped;     /* `layout` is mapped */
	bool is_image_new;  /* this attach maps the image, else it reuses an earlier one */
	bool is_local_new;  /* this attach maps the local memory, else it reuses it */
	/*
	 * Layouts of earlier attaches to this process, [0] sampling and [1] full trace: their sizes
	 * differ, and each reuses its own.
	 */
	struct heap_layout saved_layouts[2];
	struct heap_layout old; /* the one of saved_layouts for this attach */
	/* The target's shared memory and unwind tables, mapped in assay. */
	uint8_t *shared;
	uint8_t *tables;
	uint32_t nr_rows;
	uint64_t slots_off; /* of the slots in `shared` */
	uint64_t rings_off; /* of the rings in `shared` */
	struct heapinject_info info;
};

/*
 * Reads the seccomp modes of all threads and sets may_syscall. -ENOTSUP with a hint: a thread is in
 * strict mode, which would kill it for what the recorder does.
 */
int heapinject_check_seccomp(struct heapinject *h, struct err *err);

/* A remote session on one thread; zero-initialize, close by CLEANUP(heapinject_close). */
struct heap_session {
	struct heapinject *h;
	struct remote *r; /* NULL: not open */
};
/* @is_call: the session calls allocator functions, so the thread must not be inside one. */
int heapinject_open(struct heap_session *ret_s, struct heapinject *h, bool is_call,
		    struct err *err);
void heapinject_close(struct heap_session *s);
/* Restores code and, if @has_calls, jemalloc's hooks; opens its own sessions. */
int heapinject_undo(struct heapinject *h, bool has_calls, struct err *err);
/*
 * Frees patches, regions and texts, and nothing else; addsites.c calls it for its partial copies of
 * the state.
 */
void heapinject_release(struct heapinject *h);
/* A heappatch_read_fn; @ctx: the struct heapinject. */
int heapinject_read(void *ctx, uint64_t addr, void *to, size_t n);
int heapinject_write(struct heapinject *h, uint64_t addr, const void *from, size_t n,
		     struct err *err);
/*
 * Runs @ops in the target by the batch routine, until one fails; `result` of each op says how it
 * ended (-ECANCELED: not run; a store has no result). On an error of the session itself no op is known to have run.
 */
int heapinject_batch(struct heapinject *h, struct remote *r, struct heapcode_op *ops, size_t n,
		     struct err *err);

#endif
