/*
 * Regions of stubs in the target: which functions are patched how, where their stubs are, and the
 * code of both. Computes only; attach.c and patchtext.c write to the target.
 *
 * A region is memory within jump range of the functions that it serves:
 *
 *	struct stub_head | struct text_patch[nr_stubs] | batch routine | stubs[nr_stubs]
 *
 * The batch routine executes a list of system calls and stores (stubcode.h). From the head a later
 * attach to this process, or to a forked child, learns which functions are patched, how to restore
 * them, and where local and shared memory are.
 */
#ifndef ASSAY_REMOTE_PATCH_STUBS_H
#define ASSAY_REMOTE_PATCH_STUBS_H

#include "base/base.h"
#include "base/buf.h"
#include "base/vec.h"
#include "remote/patch/patch.h"

struct heapinject;

#define STUB_MAGIC   0x6275747370616568ull /* "heapstub" */
#define STUB_VERSION 2u
#define PAGE_BYTES   4096ull

/* One change of code, with the bytes that undo it. */
struct text_patch {
	uint64_t at;      /* address of the changed bytes */
	uint8_t nr_bytes; /* number of changed bytes: 2 or 5 */
	uint8_t old[5];
	uint8_t new[5];
	uint8_t is_multi; /* PATCH_MULTI: not changed by one store */
	uint8_t has_gap;  /* PATCH_GAP: also changes padding */
	uint8_t gap_old[5];
	uint8_t gap_new[5];
	uint8_t nr_multi; /* PATCH_MULTI: bytes of the displaced instructions */
	uint64_t gap;     /* address of the padding */
};

/* Addresses and sizes of the memory of one attach in the target. */
struct heap_layout {
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
	uint32_t nr_patches; /* entries of text_patch[] that are in effect */
	uint32_t nr_stubs;   /* capacity */
	int32_t pid;         /* process whose layouts these are; forked children have others */
	struct heap_layout saved_layouts[2]; /* of sampling attaches, of full traces */
	uint64_t hooks;                      /* jemalloc's handle of the installed hooks, or 0 */
	uint64_t backtrace;                  /* jemalloc's replaced backtrace function, or 0 */
};

struct stub_region {
	uint64_t addr; /* 0: has only patches, whose stubs are in other regions */
	uint32_t nr_stubs;
	uint32_t nr_used;
	bool is_new; /* not mapped yet */
	VEC(struct text_patch) patches;
};

/*
 * Size of a region; address of its batch routine; address of stub @i; bytes from batch routine on.
 */
uint64_t stub_region_bytes(uint32_t nr_stubs);
uint64_t stub_region_batch(const struct stub_region *g);
uint64_t stub_region_stub(const struct stub_region *g, uint32_t i);
size_t stub_region_code_bytes(const struct stub_region *g);

/* The steps of a plan, in this order. */

/* Chooses for each function of the plan how it is patched: fills h->patches. */
void heapstubs_plan(struct heapinject *h);
/* Assigns each patch the address of its stub, in existing or new regions. */
void heapstubs_place(struct heapinject *h);
/*
 * Appends to *ret_code the code of all regions in order: batch routine and stubs of each. A patch
 * whose stub cannot be made becomes PATCH_NONE with the reason in `why`.
 */
void heapstubs_make(struct heapinject *h, struct buf *ret_code);
/* Counts patched and unpatched functions in h->info. */
void heapstubs_count(struct heapinject *h);

/* The change of code for a patch that has its stub; false: the stub is out of range. */
bool heapstubs_text(const struct heap_patch *p, struct text_patch *ret_t);

#endif
