/*
 * The ledger of threads: what each watched thread did with its time, exactly, from the programs in
 * the kernel (bpf/waits.bpf.h). Rows of the tables on-cpu, off-cpu and blame come as EVENT_TALLY
 * (TABLE_ON_CPU, TABLE_OFF_CPU, TABLE_BLAME of wire/specs.h), one second at a time; waits of 50 ms
 * and more, and those that cross from one second into the next, come singly and are split here.
 *
 * Life:
 *	waits_open     after engine_open
 *	waits_start    after engine_start: the ledger begins for all threads at this moment, and
 *	               those that wait already are looked at
 *	waits_drain    every 50 ms or so: rows of a second that is over
 *	waits_stop     before engine_stop: the ledger ends for all threads, open waits are closed
 *	waits_finish   when the engine's ring was delivered: the last rows
 *
 * Rows refer to stacks that lie in the engine's ring: waits_drain holds them back until what was
 * in the ring at the end of their second must have been delivered, if the ring is read every
 * 100 ms or more often.
 */
#ifndef ASSAY_CAPTURE_WAITSOURCE_H
#define ASSAY_CAPTURE_WAITSOURCE_H

#include "base/base.h"
#include "base/err.h"
#include "capture/engine.h"
#include "model/event.h"

struct waits_info {
	uint64_t start_ns; /* the ledger's time: all threads are watched from here ... */
	uint64_t stop_ns;  /* ... to here; 0 = it runs */
	uint64_t nr_rows;  /* told */
	uint64_t nr_singles;
	/* Intervals for which a map had no room; their time is in rows of detail "not booked". */
	uint64_t nr_unbooked;
	/* Of these, what ended up in no row at all. */
	uint64_t lost_ns;
};

struct waits;

/* @programs: enum engine_programs, as the engine got them. */
int waits_open(struct waits **ret_w, struct engine *e, unsigned programs, struct err *err);
/* @epoch_ns: where the first second starts (the capture's start, CLOCK_MONOTONIC); 0 = now. */
int waits_start(struct waits *w, uint64_t epoch_ns, struct err *err);
int waits_drain(struct waits *w, const struct event_sink *sink, struct err *err);
int waits_stop(struct waits *w, struct err *err);
int waits_finish(struct waits *w, const struct event_sink *sink, struct err *err);
struct waits_info waits_info(const struct waits *w);
void waits_free(struct waits *w);

#endif
