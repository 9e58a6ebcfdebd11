/*
 * Kernel records of our own events -> struct event. The layout follows from the attributes that
 * open.c sets; other recordings' layouts are format/perfdata's business.
 */
#ifndef ASSAY_CAPTURE_PERF_RECORD_H
#define ASSAY_CAPTURE_PERF_RECORD_H

#include <linux/perf_event.h>

#include "base/base.h"
#include "model/event.h"

/* Time of a record without decoding it; 0 if the record is too short to have one. */
uint64_t record_time_ns(const struct perf_event_attr *attr, const struct perf_event_header *h);

enum record_result {
	RECORD_EVENT,   /* *ret_ev is filled; it borrows the record */
	RECORD_IGNORED, /* of no interest */
	RECORD_BAD,     /* makes no sense */
};
enum record_result record_decode(const struct perf_event_attr *attr,
				 const struct perf_event_header *h, struct event *ret_ev);

#endif
