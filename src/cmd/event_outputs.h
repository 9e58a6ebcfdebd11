/*
 * What a capture of events leaves behind: the recording, a flame graph of each event (events of
 * different kinds are never added up in one), and the words at the end.
 */
#ifndef ASSAY_CMD_EVENT_OUTPUTS_H
#define ASSAY_CMD_EVENT_OUTPUTS_H

#include "base/base.h"
#include "session/capture.h"
#include "session/store.h"

/* Writes the pictures, prints the summary and the last lines. Returns the exit status. */
int event_outputs_finish(const struct store_place *place, const struct capture_result *r,
			 bool skips_pictures, bool has_command);

#endif
