/* The predefined sets of events, in the format of the event files that users write. */
#ifndef ASSAY_CAPTURE_EVENTS_READYSETS_H
#define ASSAY_CAPTURE_EVENTS_READYSETS_H

#include "base/base.h"

struct ready_set {
	const char *name; /* in the option that selects events: "default" */
	const char *help; /* one line for the list of sets */
	const char *text; /* its events, one per line */
};

/* Ends with a NULL name. */
extern const struct ready_set ready_sets[];

#endif
