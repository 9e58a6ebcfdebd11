/*
 * The tables of a profile that events by name go to: one an event, and the facts that say how
 * they were counted.
 */
#ifndef ASSAY_SESSION_EVENT_TABLES_H
#define ASSAY_SESSION_EVENT_TABLES_H

#include "base/base.h"
#include "capture/counts.h"
#include "ingest/builder.h"
#include "model/profile.h"

/* Makes the tables and gives them to the builder as spec first_spec and following. */
void event_tables_add(struct profile *p, struct builder *b, const struct counts_spec *spec);
/*
 * Once counting has stopped: facts "event stacks" (share of hits with a stack, where it is not
 * all), "event missed", "event machine-wide".
 */
void event_tables_finish(struct profile *p, const struct counts *c, const struct counts_spec *spec);

#endif
