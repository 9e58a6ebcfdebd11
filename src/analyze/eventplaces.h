/*
 * Where events come from: for each event the functions of the program's own (the first one above
 * libc and the kernel) with what they called, and the commonest stacks.
 */
#ifndef ASSAY_ANALYZE_EVENTPLACES_H
#define ASSAY_ANALYZE_EVENTPLACES_H

#include "analyze/report.h"
#include "analyze/select.h"
#include "analyze/view.h"
#include "base/base.h"
#include "base/err.h"

struct event_places;

/* Tables "event_functions" and, if asked for, "event_stacks". Lives in the report's arena. */
struct event_places *event_places_begin(struct report *r, const struct view_limits *limits,
					bool has_stacks);
int event_places_add(struct event_places *ep, const struct profile *p,
		     const struct select_spec *spec, uint32_t table, struct err *err);
/* Tables without rows are taken out. */
void event_places_end(struct event_places *ep);

#endif
