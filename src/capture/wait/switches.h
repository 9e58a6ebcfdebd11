/*
 * Waiting without BPF programs: the ledger of threads from what an ordinary kernel
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
 * Rows come as EVENT_AGGREGATE of TABLE_ON_CPU and TABLE_OFF_CPU, stacks as EVENT_STACK with registers
 * and bytes. Without a sampler mappings, names, births and ends are delivered as well, as sampler.h
 * does.
 */
#ifndef ASSAY_CAPTURE_WAIT_SWITCHES_H
#define ASSAY_CAPTURE_WAIT_SWITCHES_H

#include "capture/source.h"

extern const struct source switches_source;

#endif
