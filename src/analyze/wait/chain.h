/*
 * The chain of causes of a span of a thread (its critical path), from the single intervals that a
 * recording has kept (table "intervals"). It answers what the thread did at each moment of the span;
 * where it was blocked and another recorded thread woke it, what that thread did meanwhile, and so
 * on. The parts follow each other in time, and their durations add up to the span exactly.
 *
 *	struct chains *c = chains_new(&arena, p);
 *	chains_walk(c, tid, from_ns, to_ns, &parts);
 *
 * A wait remains a wait in the chain if no recorded thread ended it: a disk, a timer, the network.
 * Nothing is guessed: time in which intervals are not in the recording is CHAIN_UNKNOWN.
 *
 * Lives in the caller's arena and borrows the profile.
 */
#ifndef ASSAY_ANALYZE_WAIT_CHAIN_H
#define ASSAY_ANALYZE_WAIT_CHAIN_H

#include "base/arena.h"
#include "base/base.h"
#include "base/vec.h"
#include "model/profile.h"

enum chain_kind {
	CHAIN_UNKNOWN,
	CHAIN_ON_CPU,
	CHAIN_STOLEN, /* part of a run that is not CPU time; it is put at the run's start */
	CHAIN_RUN_QUEUE,
	CHAIN_BLOCKED,
};

struct chain_part {
	uint64_t from_ns;
	uint64_t to_ns;
	enum chain_kind kind;
	int32_t tid;
	/*
	 * Where: of a wait and the run queue, the stack of the interval; of a run, the stack at its
	 * end, where the thread waited next or woke the one before in the chain. 0: not known.
	 */
	stack_id stack;
	uint32_t tag; /* of a wait and the run queue: its tag; else 0 */
};

struct chain_parts {
	VEC(struct chain_part) list; /* in order of time */
};

struct chains;

/* NULL: the profile has no kept intervals. */
struct chains *chains_new(struct arena *a, const struct profile *p);
/* Replaces the parts by those of a span of a thread. */
void chains_walk(const struct chains *c, int32_t tid, uint64_t from_ns, uint64_t to_ns,
		 struct chain_parts *ret_parts);
void chain_parts_release(struct chain_parts *parts);

#endif
