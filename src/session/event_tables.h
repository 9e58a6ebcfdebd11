/* Tables of counted events (`assay events`): one per event. */
#ifndef ASSAY_SESSION_EVENT_TABLES_H
#define ASSAY_SESSION_EVENT_TABLES_H

#include "base/base.h"
#include "capture/events/counts.h"
#include "ingest/builder.h"
#include "model/profile.h"

/* Creates the tables and registers them in the builder as spec first_spec and following. */
void event_tables_add(struct profile *p, struct builder *b, const struct counts_spec *spec);

#endif
