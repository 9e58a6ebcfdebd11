/*
 * The recent intervals off the CPU of all threads, in bounded memory, for blame (blamechain.h):
 * found by thread and, for waits that another thread ended, by the object waited for.
 *
 * Entries have sequence numbers in the order in which they were added, which is that of on_ns. The
 * oldest is dropped when there is no room. A thread's dropped intervals are known by the time up to
 * which they reach (blamehistory_lost_ns).
 *
 * Pointers to entries are valid until the next blamehistory_add.
 */
#ifndef ASSAY_CAPTURE_WAIT_BLAMEHISTORY_H
#define ASSAY_CAPTURE_WAIT_BLAMEHISTORY_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/wait/blameparts.h"
#include "capture/wait/interval.h"

enum blamehistory_state {
	ENTRY_NEW,      /* not attributed yet */
	ENTRY_RESOLVED, /* the parts are known */
	ENTRY_OWN,      /* no other thread ended it: its own reason is the cause */
};

struct blamehistory_entry {
	struct wait_interval v;
	uint64_t object_key; /* 0: none */
	uint64_t parts;      /* sequence number of the first part */
	uint64_t prev;       /* the thread's interval before; 0: none */
	uint32_t nr_parts;
	uint32_t thread; /* index */
	uint32_t object; /* index, if object_key */
	uint8_t state;   /* enum blamehistory_state */
	bool is_merged;  /* the parts may overlap */
};

/* Sequence numbers in ascending order; the first ones may be of entries that were dropped. */
struct blamehistory_list {
	VEC(uint64_t) seqs;
	size_t head; /* index of the first one that is kept */
	size_t near; /* where the last search ended: the next one is likely to end close to it */
};

struct blamehistory_thread {
	struct blamehistory_list list; /* by on_ns */
	int32_t tid;
	uint64_t lost_ns; /* intervals that ended before may be missing */
};

/* The wake-ups from one object. */
struct blamehistory_object {
	struct blamehistory_list list; /* by woken_ns */
	uint64_t key;
	int32_t first_tid; /* of the first thread that waited */
	bool is_shared;    /* several threads waited */
};

struct blamehistory {
	struct blamehistory_entry *entries;
	uint64_t nr_max; /* power of two */
	uint64_t first;  /* oldest sequence number; the first one is 1 */
	uint64_t next;
	struct blame_part *parts;
	uint64_t nr_parts_max; /* power of two */
	uint64_t next_part;
	uint64_t lost_ns; /* on_ns of the last entry dropped */
	VEC(struct blamehistory_thread) threads;
	VEC(uint32_t) free_threads;
	struct map thread_of; /* tid -> index */
	VEC(struct blamehistory_object) objects;
	VEC(uint32_t) free_objects;
	struct map object_of; /* key -> index */
};

/* Both numbers are powers of two. */
void blamehistory_init(struct blamehistory *h, uint64_t nr_intervals, uint64_t nr_parts);
void blamehistory_release(struct blamehistory *h);

/*
 * Adds an interval and returns its entry. Drops the oldest entry if there is no room.
 * @object_key: identifies the object if it was a wait that another thread ended, else 0.
 */
struct blamehistory_entry *blamehistory_add(struct blamehistory *h, const struct wait_interval *v,
					    uint64_t object_key);
/* The oldest entry, if the next blamehistory_add drops it, else NULL. */
struct blamehistory_entry *blamehistory_oldest_if_full(struct blamehistory *h);
/* Returns the entry, or NULL if it was dropped. */
struct blamehistory_entry *blamehistory_get(const struct blamehistory *h, uint64_t seq);
/* The interval of the same thread before or after this one, or NULL. */
struct blamehistory_entry *blamehistory_before(const struct blamehistory *h,
					       const struct blamehistory_entry *e);
struct blamehistory_entry *blamehistory_after(const struct blamehistory *h,
					      const struct blamehistory_entry *e);

/* Returns the thread, or NULL if it has no interval in the history. */
struct blamehistory_thread *blamehistory_thread(const struct blamehistory *h, int32_t tid);
/* Intervals of the thread that ended before the result may be missing. */
uint64_t blamehistory_lost_ns(const struct blamehistory *h, const struct blamehistory_thread *t);
/* Intervals of the thread that ended before @until_ns are missing. */
void blamehistory_lose(struct blamehistory *h, int32_t tid, uint64_t until_ns);
/* Index in the list of the thread's first interval with on_ns > @ns. */
size_t blamehistory_first_after(const struct blamehistory *h, struct blamehistory_thread *t,
				uint64_t ns);
/* Returns the object, or NULL if it has no wake-up in the history. */
struct blamehistory_object *blamehistory_object(const struct blamehistory *h, uint64_t key);
/* Index in the list of the object's first wake-up with woken_ns > @ns. */
size_t blamehistory_first_wake_after(const struct blamehistory *h, struct blamehistory_object *o,
				     uint64_t ns);

/* Stores the parts of an entry. */
void blamehistory_set_parts(struct blamehistory *h, struct blamehistory_entry *e,
			    const struct blame_part *parts, uint32_t nr);
/* Returns the entry's nr_parts parts, or NULL if their memory was reused. */
const struct blame_part *blamehistory_parts(const struct blamehistory *h,
					    const struct blamehistory_entry *e);

#endif
