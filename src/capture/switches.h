/*
 * Waiting without programs in the kernel: the ledger of threads from what an ordinary kernel
 * interface tells. By rights, the best that can be had:
 *
 *	SWITCHES_STACKS  perf tells each switch, with registers and a copy of the stack: times,
 *	                 counts, reasons and stacks are exact. Needs the kernel side of perf events.
 *	SWITCHES_TIMES   perf tells each switch of our own processes, nothing else: times and counts
 *	                 are exact; reasons and stacks come from looking at the threads in /proc. A
 *	                 wait that was looked at is exact; shorter ones share what was seen of such.
 *	SWITCHES_POLLED  no perf events at all: /proc a hundred times a second. Time on the CPU and
 *	                 in the run queue is exact (schedstat), what waits are for is estimated.
 *
 * The run queue after a wake is known as a sum a thread and second (schedstat) and is shared out
 * over that thread's waits by their number. There are no wakers and no blame.
 *
 * Rows come as EVENT_TALLY of TABLE_ON_CPU and TABLE_OFF_CPU, stacks as EVENT_STACK with registers
 * and bytes. Without is_side mappings, names, births and ends are delivered as well, as sampler.h
 * does; with it somebody else delivers them. Used by one thread:
 * open -> start -> drain ... -> stop -> free.
 */
#ifndef ASSAY_CAPTURE_SWITCHES_H
#define ASSAY_CAPTURE_SWITCHES_H

#include "base/base.h"
#include "base/err.h"
#include "host/proc.h"
#include "model/event.h"

enum switches_level { SWITCHES_STACKS = 0, SWITCHES_TIMES = 1, SWITCHES_POLLED = 2 };

struct switches_spec {
	const struct pid_list *pids; /* whole processes and what they fork, may be NULL */
	const struct pid_list *tids; /* single threads, may be NULL */
	int32_t child;               /* a launched command at its gate, or 0 */
	bool is_system;
	bool is_side;                /* others deliver mappings, names, births and ends */
	enum switches_level at_best; /* try nothing better than this */
};

struct switches_info {
	enum switches_level level;
	const char *accuracy; /* a sentence for the fact of that name; static */
	const char *remedy;   /* what gives more; "" = nothing */
	uint64_t nr_switches; /* told by perf */
	uint64_t nr_looks;    /* at threads in /proc */
	uint64_t nr_stacks;   /* told */
	uint64_t nr_lost;     /* records that the kernel dropped; counted as lost in the profile */
};

struct switches;

int switches_open(struct switches **ret_s, const struct switches_spec *spec, struct err *err);
/* Begins the ledger, feeds what was there before. Seconds count from @epoch_ns (0 = now). */
int switches_start(struct switches *s, uint64_t epoch_ns, const struct event_sink *sink,
		   struct err *err);
/* To poll for readability; none when polled. */
const int *switches_fds(const struct switches *s, size_t *ret_nr);
/* Milliseconds until it wants to be drained again, at most. */
int switches_patience_ms(const struct switches *s);
int switches_drain(struct switches *s, const struct event_sink *sink, struct err *err);
/* Ends the ledger: open intervals are booked up to now. */
int switches_stop(struct switches *s, const struct event_sink *sink, struct err *err);
/* A copied stack was too short (builder_options.wants_more_stack). */
void switches_grow(struct switches *s, int32_t tid, uint64_t nr_bytes);
struct switches_info switches_info(const struct switches *s);
void switches_free(struct switches *s);
void switches_free_p(struct switches **s);

#endif
