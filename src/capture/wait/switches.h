/*
 * Off-CPU accounting without BPF, as a source: context switches from perf events or polls of /proc.
 * The best level that the user's privileges permit is chosen:
 *
 *	SWITCHES_STACKS  perf records each switch with registers and a copy of the stack: times,
 *	                 counts, reasons and stacks are exact. Needs perf events that sample the
 *	                 kernel side.
 *	SWITCHES_TIMES   perf records each switch of the user's own processes, without registers:
 *	                 times and counts are exact; reasons and stacks come from polls of /proc.
 *	                 The reason of a wait that was polled is exact; the time of shorter waits is
 *	                 distributed over the reasons that were polled in such waits.
 *	SWITCHES_POLLED  no perf events: polls /proc 100 times a second. Time on the CPU and in the
 *	                 run queue is exact (schedstat), wait reasons are estimated.
 *
 * Run queue time after a wake-up is known as one sum per thread and second (schedstat); it is
 * distributed over that thread's waits by their number. Wakers and blame are not recorded.
 *
 * Rows come as EVENT_AGGREGATE of TABLE_ON_CPU and TABLE_OFF_CPU, stacks as EVENT_STACK with
 * registers and bytes. If the capture has no CPU sampler, the source also delivers mappings,
 * thread names, forks and exits, as sampler.h does.
 */
#ifndef ASSAY_CAPTURE_WAIT_SWITCHES_H
#define ASSAY_CAPTURE_WAIT_SWITCHES_H

#include "capture/source.h"

extern const struct source switches_source;

#endif
