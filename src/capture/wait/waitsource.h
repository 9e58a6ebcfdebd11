/*
 * The ledger of threads: what each watched thread did with its time, exactly, from the programs in
 * the kernel (bpf/waits.bpf.h). Rows of the tables on-cpu, off-cpu and blame come as EVENT_AGGREGATE
 * (TABLE_ON_CPU, TABLE_OFF_CPU, TABLE_BLAME of model/tables.h), one second at a time; waits of 50 ms
 * and more, and those that cross from one second into the next, come singly and are split here.
 *
 * The ledger begins for all threads at the start, when those that wait already are looked at, and
 * ends for all at the stop, when open waits are closed; the last rows come when it is finished.
 *
 * Rows refer to stacks that lie in the engine's ring: they are held back until what was in the ring
 * at the end of their second must have been delivered, if the ring is read every 100 ms or more
 * often.
 */
#ifndef ASSAY_CAPTURE_WAIT_WAITSOURCE_H
#define ASSAY_CAPTURE_WAIT_WAITSOURCE_H

#include "capture/source.h"

#define WAIT_TABLES (TABLE_SET(OFF_CPU) | TABLE_SET(ON_CPU) | TABLE_SET(BLAME))

/* Without TABLE_BLAME no wakers are recorded. */
extern const struct source waits_source;

#endif
