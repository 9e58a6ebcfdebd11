/* What heapbook.c and heapbook_rows.c share; see heapbook.h. */
#ifndef ASSAY_CAPTURE_HEAPBOOK_PRIV_H
#define ASSAY_CAPTURE_HEAPBOOK_PRIV_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/heapblocks.h"
#include "capture/heapbook.h"

/* Sums of one kind of row that is not told yet. */
struct heap_flow {
	double nr;
	double nr_bytes;
};

struct heap_site {
	uint32_t stack;
	uint16_t thread; /* index into threads */
	uint16_t size_class;
	uint32_t dirty_second; /* second + 1 in whose list of dirty sites it is */
	uint64_t peak;         /* of which at_peak is */
	struct heap_flow live;
	struct heap_flow at_peak;
	struct heap_flow allocated;
	struct heap_flow freed;
	struct heap_flow temporary;
};

/* The same for what is needed where samples are taken only. */
struct heap_site_samples {
	uint64_t nr_allocated;
	uint64_t nr_freed;
	uint64_t nr_live;
	uint64_t nr_at_peak;
	double allocated_variance;
	double freed_variance;
	double live_variance;
	double at_peak_variance;
};

struct heap_thread {
	int32_t tid;
	bool is_dirty;
	uint64_t last_addr; /* its last allocation, if it has not been freed */
	int64_t nr_older;   /* not told yet; may be below 0, when one was told too early */
};

struct heap_index_slot {
	uint64_t key; /* 0 = free */
	uint32_t site;
	uint32_t pad;
};

struct heap_orphan {
	uint64_t addr; /* 0 = taken */
	uint64_t tsc;
	uint32_t thread;
	uint32_t pad;
};

/* The free of a block whose address had been given out again at that time. */
struct heap_owed {
	uint64_t addr; /* 0 = taken */
	uint64_t tsc;
};

#define HEAP_ORPHANS (1u << 15)
#define HEAP_OWED    (1u << 12)

struct heap_mapped {
	uint32_t stack;
	uint16_t thread;
	const char *detail;
	int64_t nr_calls;
	int64_t nr_bytes;
	int64_t nr_unmapped;
};

struct heapbook {
	struct heapbook_spec spec;
	struct heapclock clock;
	uint64_t seed;     /* of hashes: what a target chooses is not to meet in one place */
	uint64_t nr_looks; /* entries of logs looked at in this second */
	struct heapblocks blocks;
	VEC(struct heap_site) sites;
	VEC(struct heap_site_samples) samples; /* parallel, where sampled */
	struct heap_index_slot *index;         /* key of a site -> its number */
	uint32_t index_log2;
	VEC(struct heap_thread) threads;
	struct map thread_of; /* tid -> index */
	uint16_t *thread_of_slot;
	VEC(uint32_t) dirty; /* sites with something to tell */
	VEC(uint16_t) older; /* threads with frees of older blocks to tell */
	VEC(struct heap_mapped) mapped;
	struct map mapped_index; /* hash -> index + 1 */
	const char *site_names[256];
	struct heap_orphan *orphans; /* the last frees whose block was not known */
	uint32_t next_orphan;
	uint32_t next_owed;
	struct heap_owed owed[HEAP_OWED]; /* frees that were implied and may still be told */
	/* The second that sums are of, and which time stamps are in it or earlier. */
	uint32_t second;
	uint64_t second_hi;
	uint64_t done_tsc; /* latest event */
	uint64_t peak;     /* its number: counts peaks */
	uint64_t peak_tsc;
	uint64_t peak_ns;
	struct heap_flow live;
	double peak_bytes;
	struct heapbook_info info;
};

/* Rows of the second that is being summed up. */
void heapbook_tell_second(struct heapbook *b);

#endif
