/*
 * Units of events in perf's formats, which have none: the period of an event is a number of the event, ns for a
 * clock. An event that assay exports whose periods are bytes or ns says so by the suffix of its name: "live-bytes",
 * "off-cpu-ns". Rows of such an event are amounts that were added up, not samples.
 */
#ifndef ASSAY_MODEL_EVENTUNIT_H
#define ASSAY_MODEL_EVENTUNIT_H

#include "base/base.h"
#include "base/sv.h"
#include "model/profile.h"

/* Returns the unit of an event's periods, by its name. */
enum unit eventunit_of(struct sv event);
/* Whether the event has the suffix of a unit. */
bool eventunit_is_amount(struct sv event);
/* Returns the suffix for a table's event if this column is written as its period, or "". */
const char *eventunit_suffix(const struct profile *p, const struct table *t, uint32_t column);
/* If the event of a new table has the suffix of a unit, makes its second column the weight, in that unit. */
void eventunit_set_amount(struct profile *p, struct table *shape);
/* Whether an event is a tracepoint or a probe: "sched:sched_switch", not "cycles:u". */
bool eventunit_is_tracepoint(struct sv event);

#endif
