/*
 * Where events come from: for each event the functions of the program's own (the first one above
 * libc and the kernel) with what they called, and the commonest stacks.
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
	const struct view_limits *limits; /* rows of an event */
	bool has_stacks;
};

/* Tables "event_functions" and, if asked for, "event_stacks", where they have rows. */
int event_places_report(struct report *r, const struct profile *p, const struct select_spec *spec,
			const struct event_places *places, struct err *err);

#endif
