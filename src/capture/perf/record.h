/*
 * Decodes records of assay's own perf events into struct event. The layout of a record follows from
 * the attributes that open.c sets; for perf.data files of other programs see format/perf/.
 */
#ifndef ASSAY_CAPTURE_PERF_RECORD_H
#define ASSAY_CAPTURE_PERF_RECORD_H

#include <linux/perf_event.h>

#include "base/base.h"
#include "model/event.h"

/* Time of a record (CLOCK_MONOTONIC ns), without decoding it; 0: the record is too short. */
uint64_t record_time_ns(const struct perf_event_attr *attr, const struct perf_event_header *h);

enum record_result {
	RECORD_DECODED, /* *ret_ev is filled; it points into the record */
	RECORD_IGNORED, /* a kind of record that is not used */
	RECORD_BAD,     /* invalid */
};
/* Decodes a record of an event with these attributes. */
enum record_result record_decode(const struct perf_event_attr *attr,
				 const struct perf_event_header *h, struct event *ret_ev);

#endif
