/*
 * The slowest calls of `assay latency` by what was done in their time, on all threads that they waited
 * for: chain.h, summed for each call.
 */
#ifndef ASSAY_ANALYZE_WAIT_SPANCHAIN_H
#define ASSAY_ANALYZE_WAIT_SPANCHAIN_H

#include "analyze/report.h"
#include "analyze/view.h"
#include "analyze/wait/frames.h"
#include "analyze/wait/reason.h"
#include "base/base.h"

struct spanchain_call {
	const char *name;
	task_id task;
	uint64_t start_ns;
	uint64_t ns;
};

struct spanchain {
	struct report *r;
	const struct profile *p;
	struct reasons *reasons;
	struct waitframes *frames;
	struct chains *chains; /* NULL: no single waits were kept */
	struct report_table *t;
	uint64_t max_rows; /* 0: all */
};

/*
 * Adds the table "span_chains" to s->r; nothing if no single waits were kept. The caller has set r,
 * p, reasons, frames and max_rows, and then adds calls, slowest first. The rows of a call add up to
 * its time; a call whose rows exceed the limit is omitted.
 */
void spanchain_begin(struct spanchain *s, struct arena *a);
void spanchain_add(struct spanchain *s, const struct spanchain_call *call);

#endif
