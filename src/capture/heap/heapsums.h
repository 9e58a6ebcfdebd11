/*
 * The data of live-block accounting (heapaccount.h): sums per allocation site, per thread and per
 * mapping call site, and the logs of frees that arrived out of order. heapaccount.c updates them
 * for each event; heaprows.c turns them into rows.
 */
#ifndef ASSAY_CAPTURE_HEAP_HEAPSUMS_H
#define ASSAY_CAPTURE_HEAP_HEAPSUMS_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/heap/blocks.h"
#include "capture/heap/heapaccount.h"

/* A number of blocks and their bytes; estimates, so not integers, where blocks are sampled. */
struct heap_sum {
	double nr;
	double nr_bytes;
};

static inline void heap_sum_add(struct heap_sum *to, const struct heap_sum *rest)
{
	to->nr += rest->nr;
	to->nr_bytes += rest->nr_bytes;
}
static inline void heap_sum_sub(struct heap_sum *from, const struct heap_sum *less)
{
	from->nr -= less->nr;
	from->nr_bytes -= less->nr_bytes;
}

/*
 * The part of a site that an event changes, in one cache line. Live blocks are not stored: they are
 * the sum that was reported plus what was allocated and minus what was freed since.
 */
struct heapsite {
	uint64_t key; /* stack << 32 | index into threads << 16 | size class (model/heap.h) */
	/* heapaccount.peak for which at_peak is valid << 1 | HEAPSITE_DIRTY: is in `dirty` */
	uint64_t peak;
	/* allocated - freed at that peak, less what was emitted since: may be negative */
	struct heap_sum at_peak;
	struct heap_sum allocated;
	struct heap_sum freed;
};
_Static_assert(sizeof(struct heapsite) == 64, "a cache line");

#define HEAPSITE_DIRTY ((uint64_t)1)

/* Further sums of a site. */
struct heapsite_rest {
	struct heap_sum reported; /* live blocks according to emitted rows */
	struct heap_sum temporary;
};

static inline uint32_t heapsite_stack(const struct heapsite *s)
{
	return (uint32_t)(s->key >> 32);
}
static inline uint16_t heapsite_thread(const struct heapsite *s)
{
	return (uint16_t)(s->key >> 16);
}
/*
 * The size class in a key: with HEAPSITE_ALL, of blocks that were recorded while all were, and count
 * once each also where the others are sampled; HEAPSITE_MERGED: sizes are not distinguished.
 */
#define HEAPSITE_ALL    0x8000u
#define HEAPSITE_MERGED 0x7fffu

static inline uint16_t heapsite_class(const struct heapsite *s)
{
	uint16_t size_class = (uint16_t)s->key & HEAPSITE_MERGED;
	return size_class == HEAPSITE_MERGED ? 0 : size_class;
}
static inline bool heapsite_is_all(const struct heapsite *s)
{
	return s->key & HEAPSITE_ALL;
}

/* Further sums of a site, only with sampling. */
struct heapsite_samples {
	uint64_t nr_allocated;
	uint64_t nr_freed;
	uint64_t nr_live;
	uint64_t nr_at_peak;
	double allocated_variance;
	double freed_variance;
	double live_variance;
	double at_peak_variance;
};

struct heap_thread_sums {
	int32_t tid;
	bool is_dirty;
	uint64_t last_addr; /* its last allocation, 0 if freed */
	/* Frees of blocks allocated before the capture, to emit; negative after a correction. */
	int64_t nr_preexisting;
};

struct heap_index_slot {
	uint32_t site; /* site index + 1; 0 = free */
	uint32_t tag;  /* low bits of the key's hash */
};

struct heap_pending_free {
	uint64_t addr; /* 0 = matched */
	uint64_t tsc;
	uint32_t thread;
	uint32_t pad;
};

/* An implied free: the address was allocated again at `tsc`, so the block before was freed. */
struct heap_implied_free {
	uint64_t addr; /* 0 = matched */
	uint64_t tsc;
};

#define HEAP_PENDING_FREES (1u << 15)
#define HEAP_IMPLIED_FREES (1u << 12)

struct heap_mapped {
	uint32_t stack;
	uint16_t thread;
	const char *detail;
	int64_t nr_calls;
	int64_t nr_bytes;
	int64_t nr_unmapped;
};

struct heapaccount {
	struct heapaccount_spec spec;
	struct heapclock clock;
	uint64_t seed;         /* of hashes, so that a target cannot choose colliding keys */
	uint64_t nr_log_scans; /* log entries scanned in this second */
	struct heapblocks blocks;
	struct {
		struct heapsite *p; /* cache line aligned */
		size_t n;
		size_t cap;
		void *memory;
	} sites;
	VEC(struct heapsite_rest) rest;       /* parallel */
	VEC(struct heapsite_samples) samples; /* parallel, where sampled */
	struct heap_index_slot *index;        /* key of a site -> its index */
	uint32_t index_log2;
	VEC(struct heap_thread_sums) threads;
	struct map thread_of; /* tid -> index */
	uint16_t *thread_of_slot;
	VEC(uint32_t) dirty;       /* sites with sums to emit */
	VEC(uint16_t) preexisting; /* threads with nr_preexisting to emit */
	VEC(struct heap_mapped) mapped;
	struct map mapped_index; /* hash -> index + 1 */
	const char *site_names[256];
	struct heap_pending_free *pending_frees; /* ring of the last frees without a known block */
	uint32_t next_pending_free;
	uint32_t next_implied;
	/* Ring of implied frees whose record may still arrive. */
	struct heap_implied_free implied[HEAP_IMPLIED_FREES];
	uint32_t tick;     /* the current one */
	uint64_t slice_ns; /* start of the current slice, from the first slice's start */
	uint64_t
		next_hi; /* time stamp of the end of the slice, of the tick, or of level_ns if earlier */
	uint64_t level_ns; /* when the next row of TABLE_HEAP_LEVEL is due; UINT64_MAX: no more */
	uint32_t nr_levels;
	uint64_t done_tsc; /* latest event */
	uint64_t advanced_tsc;
	bool is_all;   /* the latest allocation was recorded while all were */
	uint64_t peak; /* number of the current peak */
	uint64_t peak_tsc;
	uint64_t peak_ns;
	struct heap_sum live;
	double peak_bytes;
	struct heapaccount_info info;
};

/* The live blocks of a site. */
static inline struct heap_sum heapsite_live(const struct heapaccount *b, uint32_t idx)
{
	const struct heapsite *s = &b->sites.p[idx];
	struct heap_sum live = b->rest.p[idx].reported;
	heap_sum_add(&live, &s->allocated);
	heap_sum_sub(&live, &s->freed);
	return live;
}

/* Emits what is live, before the event at @ns, and when that is due again. In heaprows.c. */
void heapaccount_emit_level(struct heapaccount *b, uint64_t ns);
/* Emits the rows of the current slice. In heaprows.c. */
void heapaccount_emit_slice(struct heapaccount *b);

#endif
