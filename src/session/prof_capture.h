/*
 * Records a heap profile of one running process with jemalloc's own profiling (heap method PROF).
 * Enables sampling for the capture (and disables it again if it was disabled), changes its rate if
 * asked to, makes a dump at the end and reads it as any other dump. jemalloc's samples are unwound
 * by assay's unwinder where jemalloc supports that (prof_unwinder.h).
 *
 * Live blocks are those that jemalloc sampled since its sampling was enabled, which may be before
 * the capture: the fact FACT_HEAP_METHOD says so.
 *
 *	struct prof_capture p = {.target = &target, .interval_bytes = 512 << 10};
 *	prof_capture_begin(&p, &err);
 *	while (prof_capture_wait(&p, end_ns)) ...
 *	prof_capture_end(&p, &place, recording_fd, &result, &err);
 *	prof_capture_release(&p);
 */
#ifndef ASSAY_SESSION_PROF_CAPTURE_H
#define ASSAY_SESSION_PROF_CAPTURE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "host/target.h"
#include "host/watch.h"
#include "plan/heapplan.h"
#include "remote/jemalloc/jemalloc.h"
#include "session/capture.h"
#include "session/prof_unwinder.h"
#include "session/store.h"

struct prof_capture {
	const struct target *target; /* one process */
	uint64_t interval_bytes;     /* 0: unchanged; else older samples are dropped (prof.reset) */
	/* Valid after prof_capture_begin. */
	struct heap_plan plan;
	uint64_t start_ns;
	bool has_enabled; /* assay enabled sampling */
	bool is_reset;    /* older samples were dropped */
	bool stays_on;    /* sampling could not be disabled again */
	enum capture_end end;
	/* Private. */
	struct jemalloc_prof before;
	struct prof_unwinder *unwinder; /* NULL: jemalloc's own unwinder is left in place */
	char *no_unwinder;              /* why; owned */
	struct watch watch;
	uint64_t stopped_ns;
	uint64_t cpu_ns;
};

int prof_capture_begin(struct prof_capture *p, struct err *err);
/* "; stacks by assay's unwinder". */
void prof_capture_add_unwinder(const struct prof_capture *p, struct buf *to);
/* Waits for up to 200 ms; false: the capture is over, p->end says why. */
bool prof_capture_wait(struct prof_capture *p, uint64_t end_ns);
/*
 * Makes the dump, restores what was changed, saves the dump beside the recording and writes its
 * profile to @recording_fd. -ESRCH: the process has exited.
 */
int prof_capture_end(struct prof_capture *p, const struct store_place *place, int recording_fd,
		     struct capture_result *ret_r, struct err *err);
/* Restores what prof_capture_end has not restored. */
void prof_capture_release(struct prof_capture *p);

#endif
