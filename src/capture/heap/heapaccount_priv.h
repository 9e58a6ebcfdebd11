/* What heapaccount.c and heapaccount_rows.c share; see heapaccount.h. */
#ifndef ASSAY_CAPTURE_HEAP_HEAPACCOUNT_PRIV_H
#define ASSAY_CAPTURE_HEAP_HEAPACCOUNT_PRIV_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/heap/blocks.h"
#include "capture/heap/heapaccount.h"

/* Sums of one kind of row that is not told yet. */
struct heap_flow {
	double nr;
	double nr_bytes;
};

static inline void heap_flow_add(struct heap_flow *to, const struct heap_flow *more)
{
	to->nr += more->nr;
	to->nr_bytes += more->nr_bytes;
}
static inline void heap_flow_sub(struct heap_flow *from, const struct heap_flow *less)
{
	from->nr -= less->nr;
	from->nr_bytes -= less->nr_bytes;
}

/*
 * What an event changes, in one line of memory. What lives is not: it is what lived when rows were
 * told last, and what was allocated and freed since.
 */
struct heap_site {
	uint64_t key;             /* stack << 32 | index into threads << 16 | class of sizes */
	uint64_t peak;            /* of which at_peak is << 1 | is in the list of dirty sites */
	struct heap_flow at_peak; /* allocated less freed by then; below 0 once that was told */
	struct heap_flow allocated;
	struct heap_flow freed;
};
_Static_assert(sizeof(struct heap_site) == 64, "a line of memory");

#define HEAP_SITE_DIRTY ((uint64_t)1)

/* The rest of it. */
struct heap_site_more {
	struct heap_flow reported; /* what lives by what was told */
	struct heap_flow temporary;
};

static inline uint32_t heap_site_stack(const struct heap_site *s)
{
	return (uint32_t)(s->key >> 32);
}
static inline uint16_t heap_site_thread(const struct heap_site *s)
{
	return (uint16_t)(s->key >> 16);
}
static inline uint16_t heap_site_class(const struct heap_site *s)
{
	return (uint16_t)s->key;
}

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
	uint32_t site; /* its number + 1; 0 = free */
	uint32_t tag;  /* a part of the key's hash */
};

struct heap_pending_free {
	uint64_t addr; /* 0 = taken */
	uint64_t tsc;
	uint32_t thread;
	uint32_t pad;
};

/* The free of a block whose address had been given out again at that time. */
struct heap_implied_free {
	uint64_t addr; /* 0 = taken */
	uint64_t tsc;
};

#define HEAP_PENDING_FREES (1u << 15)
#define HEAP_IMPLIED       (1u << 12)

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
	uint64_t seed;     /* of hashes: what a target chooses is not to meet in one place */
	uint64_t nr_looks; /* entries of logs looked at in this second */
	struct heapblocks blocks;
	struct {
		struct heap_site *p; /* at the begin of a line */
		size_t n;
		size_t cap;
		void *memory;
	} sites;
	VEC(struct heap_site_more) more;       /* parallel */
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
	struct heap_pending_free *pending_frees; /* the last frees whose block was not known */
	uint32_t next_pending_free;
	uint32_t next_implied;
	struct heap_implied_free
		implied[HEAP_IMPLIED]; /* frees that were implied and may still be told */
	/* The second that sums are of, and which time stamps are in it or earlier. */
	uint32_t second;
	uint64_t second_hi;
	uint64_t done_tsc; /* latest event */
	uint64_t peak;     /* its number: counts peaks */
	uint64_t peak_tsc;
	uint64_t peak_ns;
	struct heap_flow live;
	double peak_bytes;
	struct heapaccount_info info;
};

/* What lives of a site now. */
static inline struct heap_flow heap_site_live(const struct heapaccount *b, uint32_t idx)
{
	const struct heap_site *s = &b->sites.p[idx];
	struct heap_flow live = b->more.p[idx].reported;
	heap_flow_add(&live, &s->allocated);
	heap_flow_sub(&live, &s->freed);
	return live;
}

/* Rows of the second that is being summed up. */
void heapaccount_emit_second(struct heapaccount *b);

#endif
