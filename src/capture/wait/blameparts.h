/*
 * The parts of a wait that is attributed to other threads (blamechain.h): what which thread did,
 * when. Parts of one wait add up to its time exactly, whatever is cut, merged or shortened.
 */
#ifndef ASSAY_CAPTURE_WAIT_BLAMEPARTS_H
#define ASSAY_CAPTURE_WAIT_BLAMEPARTS_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "wait_reason.h"

/*
 * What one thread did. If the waiter waited for a thread that waited for this one in turn, the direct
 * thread is the one it waited for; else 0.
 */
struct blame_cause {
	uint64_t ref;        /* stack of the thread, 0 = unknown */
	uint64_t direct_ref; /* where the direct thread waited */
	int32_t tgid;
	int32_t tid; /* 0 = not known */
	int32_t direct_tgid;
	int32_t direct_tid;
	uint8_t doing; /* enum wait_reason; WAIT_ON_CPU, WAIT_UNKNOWN */
};

/* Causes by number. Number 0 is that nothing is known. */
struct blamecauses {
	VEC(struct blame_cause) all;
	struct map number_of; /* hash -> number */
	/* By cause: in which merge it was seen last, and at which part. */
	VEC(struct blamecauses_seen {
		uint32_t merge;
		uint32_t part;
	})
	seen;
	uint32_t nr_merges;
};

void blamecauses_release(struct blamecauses *c);
uint32_t blamecauses_number(struct blamecauses *c, const struct blame_cause *cause);

struct blame_part {
	uint64_t start_ns;
	uint64_t end_ns;
	/* Time in [start_ns, end_ns): all of it, or less if parts of equal cause were merged. */
	uint64_t ns;
	uint32_t cause;
	uint8_t nr_steps; /* 1: the waiter waited for this thread directly; the fewest, if merged */
};

/* A thread that is blamed. What it did ended at a wake-up with this stack. */
struct blame_culprit {
	int32_t tgid;
	int32_t tid;
	uint64_t ref;
	bool is_recorded;
};

struct blameparts {
	struct blamecauses *causes;
	VEC(struct blame_part) v;
	int32_t waiter_tid;  /* whose wait it is; 0: not known */
	uint64_t object_key; /* what it waits for; 0: not known */
	bool is_merged;      /* they may overlap; else they are in order of time */
};

void blameparts_release(struct blameparts *p);
void blameparts_clear(struct blameparts *p);
/* Adds [start, end) as one part, unless it is empty. */
void blameparts_add(struct blameparts *to, const struct blame_culprit *c, uint64_t start_ns,
		    uint64_t end_ns, enum wait_reason doing, uint64_t ref);
/*
 * Adds what the parts @from, sorted by start, have in [start, end). @is_merged: they may overlap. Times
 * that no part has are WAIT_UNKNOWN. @direct: the parts are those of a wait of this thread, for which
 * the waiter waited: each has one more step; NULL: of the waiter's own wait.
 */
void blameparts_add_clipped(struct blameparts *to, const struct blame_part *from, uint32_t nr,
			    bool is_merged, uint64_t start_ns, uint64_t end_ns,
			    const struct blame_culprit *direct);
/*
 * Merges parts of equal cause, wherever they are; the first one is the longest then. If there are
 * very many causes, the shortest become unknown.
 */
void blameparts_merge(struct blameparts *p);
/* Merges neighbours of equal cause, and everything by cause if there are too many parts. */
void blameparts_shorten(struct blameparts *p);

#endif
