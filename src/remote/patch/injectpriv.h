/*
 * Between inject.c (life), attach.c (what is put into the target), addlate.c (functions
 * that come later) and patchtext.c (functions patched and as they were).
 *
 * Beside the image lie regions of stubs, each within reach of the functions that it serves:
 *
 *	struct stub_head | struct text_patch[nr_stubs] | the batch routine | stubs[nr_stubs]
 *
 * The head tells a later attach, or one to a forked child, what is patched by it and how that is
 * undone, and where local and shared memory were.
 */
#ifndef ASSAY_REMOTE_PATCH_INJECTPRIV_H
#define ASSAY_REMOTE_PATCH_INJECTPRIV_H

#include "base/base.h"
#include "base/buf.h"
#include "base/vec.h"
#include "remote/patch/stubcode.h"
#include "remote/patch/inject.h"
#include "remote/patch/patch.h"
#include "remote/patch/heapspace.h"
#include "remote/ptrace/remote.h"

#define STUB_MAGIC   0x6275747370616568ull /* "heapstub" */
#define STUB_VERSION 2u
#define PAGE_BYTES   4096ull

/* One change of text; with what undoes it. */
struct text_patch {
	uint64_t at;
	uint8_t nr_bytes; /* 2 or 5 */
	uint8_t old[5];
	uint8_t new[5];
	uint8_t is_wide; /* its bytes cannot be changed by one store */
	uint8_t has_gap;
	uint8_t gap_old[5];
	uint8_t gap_new[5];
	uint8_t nr_wide; /* displaced bytes of it */
	uint64_t gap;
};

/* Where memory of one attach is in the target. */
struct heap_places {
	uint64_t local;
	uint64_t local_bytes;
	uint64_t shared;
	uint64_t shared_bytes;
	uint64_t tables;
	uint64_t tables_bytes;
	uint32_t nr_slots;
	uint32_t ring_bytes;
};

struct stub_head {
	uint64_t magic;
	uint32_t version;
	uint32_t nr_patches; /* in text_patch[]: made, not undone */
	uint32_t nr_stubs;   /* room */
	int32_t pid;         /* of the process whose places these are: children have others */
	struct heap_places kept[2]; /* of attaches that sample, and of full traces */
	uint64_t hooks;             /* jemalloc's handle of hooks that are installed, or 0 */
	uint64_t backtrace;         /* its function for stacks that ours has replaced, or 0 */
};

struct stub_region {
	uint64_t addr; /* 0: of none, its patches are told by others */
	uint32_t nr_stubs;
	uint32_t nr_used;
	uint64_t lo; /* functions that it serves */
	uint64_t hi;
	bool is_new; /* to be mapped */
	VEC(struct text_patch) patches;
};

struct heapinject {
	int32_t pid;
	int mem_fd;
	const struct heapinject_spec *spec; /* while attaching */
	bool is_held;
	bool has_filter;
	bool is_free_to_call; /* HEAP_SYSCALLS_ALLOWED was given, and not taken back */
	uint32_t tid_off;     /* struct heap_local */
	enum heap_method method;
	struct heapspace space;
	uint64_t image;   /* where it is, or will be */
	uint64_t batch;   /* address of the batch routine, 0 = none yet */
	bool is_changing; /* from the first change of text, or hook, on */
	bool is_stopped;  /* heapinject_stop */
	bool is_detached;
	struct heap_places places;
	uint32_t first_site;            /* of the plan's functions: those that come later */
	uint32_t nr_sites;              /* of all of them */
	VEC(struct heap_patch) patches; /* their sites are indices into their plan's */
	VEC(struct stub_region) regions;
	struct heap_ranges avoid; /* allocator's code, for calls of mallctl */
	uint64_t mallctl;
	uint64_t hooks; /* handle */
	uint64_t backtrace;
	bool is_mapped; /* places are */
	bool is_image_new;
	bool is_local_new;
	/*
	 * Of earlier attaches to this very process: one that samples and a full trace have other
	 * sizes, and each comes back to its own.
	 */
	struct heap_places kept[2];
	struct heap_places old; /* that of them which fits this one */
	/* Ours. */
	uint8_t *shared;
	uint8_t *tables;
	uint32_t nr_rows;
	uint64_t slots_off;
	uint64_t rings_off;
	struct heapinject_info info;
};

/* Before attaching: sets is_free_to_call; -ENOTSUP with a hint: it must not be. */
int heapinject_look_at_threads(struct heapinject *h, struct err *err);
/* A session on one thread, or on the one that is held; for CLEANUP(heapinject_close). */
struct heap_session {
	struct heapinject *h;
	struct remote *r; /* NULL: not open */
};
int heapinject_open(struct heap_session *ret_s, struct heapinject *h, bool is_call,
		    struct err *err);
void heapinject_close(struct heap_session *s);
/* Hooks (if @has_calls) and text as they were, by sessions of its own. */
int heapinject_undo(struct heapinject *h, bool has_calls, struct err *err);
/* Patches and regions: what a part of it has, too. */
void heapinject_release(struct heapinject *h);
int heapinject_read(void *ctx, uint64_t addr, void *to, size_t n);
int heapinject_write(struct heapinject *h, uint64_t addr, const void *from, size_t n,
		     struct err *err);
/* Runs ops in the target; which failed is told by their results. Negative: none was certain. */
int heapinject_batch(struct heapinject *h, struct remote *r, struct heapcode_op *ops, size_t n,
		     struct err *err);

/* attach.c */
int heapattach_run(struct heapinject *h, struct err *err);
/* @code: what heapstubs_make has made. */
int heapattach_map_stubs(struct heapinject *h, struct remote *r, const struct buf *code,
			 struct err *err);
/* What stubs go on with, and what is called for functions that throw. */
void heapattach_originals(const struct heapinject *h, struct heap_data *data);

/* stubs.c, in this order. */
void heapstubs_plan(struct heapinject *h);
void heapstubs_place(struct heapinject *h); /* every patch gets the address of its stub */
/* The bytes of all regions, one behind the other, from their first stub on. */
void heapstubs_make(struct heapinject *h, struct buf *ret_code);
void heapstubs_emit(struct heapinject *h); /* info */
/* What of text is to be changed for a patch whose stub has its place; false: it is too far. */
bool heapstubs_text(const struct heap_patch *p, struct text_patch *ret_t);
size_t stub_region_code_bytes(const struct stub_region *g);

/* patchtext.c: all patches of all regions. */
int heaptext_patch(struct heapinject *h, struct remote *r, struct err *err);
int heaptext_restore(struct heapinject *h, struct remote *r, struct err *err);
/* Those that are no single store; with all threads stopped unless it is held. No session is open.
 */
int heaptext_wide(struct heapinject *h, bool is_restore, struct err *err);
/* When no thread can be in gaps and stubs any more. */
int patchtext_quiesce(struct heapinject *h, struct err *err);
int heaptext_write_heads(struct heapinject *h, struct err *err);
uint64_t stub_region_bytes(uint32_t nr_stubs);
uint64_t stub_region_stub(const struct stub_region *g, uint32_t i);
uint64_t stub_region_batch(const struct stub_region *g);

/* jemalloc/hooks.c: jemalloc's experimental.hooks.install and .remove. */
int heaphooks_install(struct heapinject *h, struct remote *r, struct err *err);
int heaphooks_remove(struct heapinject *h, struct remote *r, struct err *err);
/* Its function that takes stacks of samples: ours, or what it was. */
int heaphooks_backtrace(struct heapinject *h, struct remote *r, bool is_ours, struct err *err);

#endif
