/*
 * What threads wait for while their counters are read: the time of each reason, as off-CPU accounting
 * has it (capture/wait/waitsource.h), without stacks and only as sums. Futex waits stay WAIT_SYNC, since
 * only stacks show what a futex is used for.
 *
 *	countwaits_open(&w, target, &err);      loads BPF programs: 0.2 s or more
 *	countwaits_start(&w, &err);             from here on
 *	countwaits_drain(&w, &err);             often, and when countwaits_fd is readable; sums of waits that
 *	                                        have ended
 *	countwaits_stop(&w, &err);              to here; the sums are complete
 *	countwaits_release(&w);
 */
#ifndef ASSAY_SESSION_COUNTWAITS_H
#define ASSAY_SESSION_COUNTWAITS_H

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "capture/source.h"
#include "host/target.h"
#include "model/wait.h"

/* Sums come for pieces of this long, from the start on, so much later. */
#define COUNTWAITS_ROWS_MS 500
#define COUNTWAITS_LATE_NS (15 * NS_PER_MS)

struct wait_sum {
	uint64_t ns;
	uint64_t count;
};

struct countwaits {
	struct wait_sum sums[WAIT_NR]; /* all of the threads' time */
	uint64_t own_ns;               /* after the stop: time in BPF programs */
	/* Private. */
	const struct target *target;
	struct source_env env;
	const struct source *kind;
	void *source;
	size_t nr_processes; /* of the target, that the programs know */
};

/* -EPERM, -ENOTSUP: BPF programs cannot be used. @target is borrowed, a command waits before its exec. */
int countwaits_open(struct countwaits *w, const struct target *target, struct err *err);
int countwaits_start(struct countwaits *w, struct err *err);
/* Readable when a ring fills up; -1: not open. */
int countwaits_fd(const struct countwaits *w);
/* Before and after the caller waits (engine_rest). */
void countwaits_rest(const struct countwaits *w, bool is_resting);
int countwaits_drain(struct countwaits *w, struct err *err);
int countwaits_stop(struct countwaits *w, struct err *err);
void countwaits_release(struct countwaits *w);

#endif
