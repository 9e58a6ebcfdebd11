/*
 * Numbers by which the sources of one session name their tables (event_sample.spec,
 * event_tally.spec). The pump (session/) gives the builder a table for each that is in use;
 * nothing of this reaches a file. It lies here because programs in the kernel, capture/ and
 * session/ all say them.
 */
#ifndef ASSAY_WIRE_SPECS_H
#define ASSAY_WIRE_SPECS_H

enum session_spec {
	SPEC_CPU = 0,       /* CPU samples */
	SPEC_ON_CPU = 1,    /* "on-cpu": runs, time */
	SPEC_OFF_CPU = 2,   /* "off-cpu": waits, time, longest */
	SPEC_BLAME = 3,     /* "blame": waits, time */
	SPEC_IO = 4,        /* "io": calls, bytes, time, longest */
	SPEC_BLOCK = 5,     /* "block": requests, bytes, time, longest */
	SPEC_FAULTS = 6,    /* "faults": faults */
	SPEC_RECLAIM = 7,   /* "reclaim": times, time, pages */
	SPEC_SPANS = 8,     /* "spans": calls, time, longest */
	SPEC_SPAN_TIME = 9, /* "span-time": where the time of spans went, by reason */
	SPEC_SLOWEST = 10,  /* "slowest-spans": single ones */
	/* Memory; shapes: model/heap.h. */
	SPEC_HEAP_ALLOCATED = 11,
	SPEC_HEAP_FREED = 12,
	SPEC_HEAP_LIVE = 13,
	SPEC_HEAP_PEAK = 14,
	SPEC_HEAP_MAPPED = 15,
	SPEC_MEMORY = 16,
	SPEC_HEAP_GROWTH = 17,
	SPEC_HEAP_OLDER = 18,
	SPEC_EVENTS = 32, /* this and above: one for each event that was asked for */
};

#endif
