/*
 * Counting events by name without programs in the kernel: its own counters, one an event and
 * thread (what a thread gives birth to counts with it), one an event and CPU for the whole system.
 * Counts are exact; there are no outcomes, no bytes and no stacks. What these rights do not allow
 * is left out and told.
 *
 * Rows come as EVENT_TALLY, each second, with names of threads as EVENT_COMM before. Used by one
 * thread: open -> start -> collect ... -> stop -> free.
 */
#ifndef ASSAY_CAPTURE_PERFCOUNTS_H
#define ASSAY_CAPTURE_PERFCOUNTS_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "capture/counts.h"
#include "host/proc.h"
#include "model/event.h"

struct perfcounts_spec {
	const struct counts_spec *counts;
	const struct pid_list *pids; /* whole processes, may be NULL */
	const struct pid_list *tids; /* single threads, may be NULL */
	int32_t child;               /* a launched command at its gate, or 0 */
	bool is_system;
};

struct perfcounts;

/* An error only if none of the events can be counted. */
int perfcounts_open(struct perfcounts **ret_c, const struct perfcounts_spec *spec, struct err *err);
int perfcounts_start(struct perfcounts *c, uint64_t start_ns, const struct event_sink *sink,
		     struct err *err);
int perfcounts_collect(struct perfcounts *c, uint64_t now_ns, const struct event_sink *sink,
		       struct err *err);
/* Names of events that were refused, separated by commas; "" = none. */
const char *perfcounts_refused(const struct perfcounts *c);
/* Some are counted in user code only. */
bool perfcounts_is_user_only(const struct perfcounts *c);
void perfcounts_free(struct perfcounts *c);

#endif
