/*
 * The spans of a capture, which `assay latency` and `assay all --span` share: the option, the search for
 * the functions, and notes on what was not measured.
 *
 *	struct span_capture spans = {0};
 *	... .groups = {{&span_capture_group, offsetof(struct own, spans)}}
 *	span_capture_prepare(&own->spans, job, &err)   by the command's `prepare`: adds to job->options
 *	span_capture_print_notes                       by its `print_notes`
 *	span_capture_release(&own->spans)              after the capture
 */
#ifndef ASSAY_CMD_CAPTURE_SPAN_CAPTURE_H
#define ASSAY_CMD_CAPTURE_SPAN_CAPTURE_H

#include "base/base.h"
#include "base/err.h"
#include "base/opt/opt.h"
#include "capture/wait/spans.h"
#include "cmd/capture/capture_command.h"
#include "plan/spanprobes.h"

struct span_capture {
	struct opt_list names;     /* --span */
	struct span_probes probes; /* set by span_capture_prepare */
	struct spans_spec spec;    /* borrows from the probes */
};

extern const struct opt_group span_capture_group;

/* Frees what span_capture_prepare allocated. Accepts a zeroed structure. */
void span_capture_release(struct span_capture *s);
/* Finds the functions, prints what each call will cost, and fills job->options. */
int span_capture_prepare(struct span_capture *s, struct capture_job *job, struct err *err);
/* Prints how many calls did not return. */
void span_capture_print_notes(const struct span_capture *s, const struct capture_job *job,
			      const struct capture_result *r);

#endif
