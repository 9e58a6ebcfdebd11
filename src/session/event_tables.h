/*
 * The tables of a profile that events by name go to: one an event.
 */
#ifndef ASSAY_SESSION_EVENT_TABLES_H
#define ASSAY_SESSION_EVENT_TABLES_H

#include "base/base.h"
#include "capture/events/counts.h"
#include "ingest/builder.h"
#include "model/profile.h"

/* Makes the tables and gives them to the builder as spec first_spec and following. */
void event_tables_add(struct profile *p, struct builder *b, const struct counts_spec *spec);

#endif
