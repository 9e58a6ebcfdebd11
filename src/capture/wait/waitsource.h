/*
 * Off-CPU accounting by BPF programs (bpf/waits.bpf.h), as a source: how long each thread of the
 * target ran, waited and was queued, exactly. Rows come as EVENT_AGGREGATE of TABLE_ON_CPU,
 * TABLE_OFF_CPU and TABLE_BLAME, one second at a time; they are summed here from one record for each
 * interval. Time on a CPU is CPU time; what interrupts and the hypervisor took of a run is
 * WAIT_STOLEN.
 *
 * The accounting starts for all threads at once; a BPF iterator records which of them are waiting
 * then. It ends for all threads at the stop, where another iterator ends the waits in progress; the
 * last rows are delivered by finish.
 *
 * TABLE_INTERVALS has single intervals, of which keptwaits.h says which are kept; they are delivered
 * by finish, so that a capture that is killed has none.
 *
 * Rows refer to stacks, which are sent through the engine's ring buffer. The caller must drain the
 * ring before it drains this source, so that the stacks to which rows refer have been read before.
 */
#ifndef ASSAY_CAPTURE_WAIT_WAITSOURCE_H
#define ASSAY_CAPTURE_WAIT_WAITSOURCE_H

#include "capture/source.h"

#define WAIT_TABLES \
	(TABLE_SET(OFF_CPU) | TABLE_SET(ON_CPU) | TABLE_SET(BLAME) | TABLE_SET(INTERVALS))

/* Wakers are recorded only if TABLE_BLAME is among the wanted tables. */
extern const struct source waits_source;

#endif
