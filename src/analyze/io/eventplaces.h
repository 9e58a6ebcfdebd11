/*
 * Tables of the code that caused events: for each event the program's functions (the innermost one
 * outside of libc and the kernel) with what they called, and the most frequent stacks.
 */
#ifndef ASSAY_ANALYZE_IO_EVENTPLACES_H
#define ASSAY_ANALYZE_IO_EVENTPLACES_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

struct event_places {
	const char *const *events;
	size_t n;
	const struct view_limits *limits; /* rows per event */
	bool has_stacks;
};

/* Adds tables "event_functions" and, with has_stacks, "event_stacks", if they have rows. */
int event_places_report(struct report *r, const struct profile *p, const struct select_spec *spec,
			const struct event_places *places, struct err *err);

#endif
