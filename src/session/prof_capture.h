/*
 * Records a heap profile of one running process with jemalloc's own profiling (heap method PROF).
 * Enables sampling for the capture (and disables it again if it was disabled), changes its rate if
 * requested (interval_bytes), makes a dump at the end and reads it like a dump file. Dumps are also made
 * meanwhile, ever more rarely, and the latest is kept: it is the result if the process does not live to
 * the end. The stacks of
 * jemalloc's samples are unwound by assay's unwinder where jemalloc supports that
 * (prof_unwinder.h).
 *
 * Live blocks are those that jemalloc sampled since its sampling was enabled. That may be before
 * the capture; the text of FACT_HEAP_METHOD states which.
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
#include "base/process/cleanup.h"
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
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	bool has_enabled;  /* assay enabled sampling */
	bool is_reset;     /* older samples were dropped */
	bool stays_on;     /* sampling could not be disabled again */
	bool is_partial;   /* the process ended: the profile is that of kept_ns */
	enum capture_end end;
	/* Private. */
	struct jemalloc_prof before;    /* jemalloc's settings before the capture */
	struct cleanup cleanup;         /* disables sampling if assay is killed */
	struct prof_unwinder *unwinder; /* NULL: jemalloc's own unwinder is left in place */
	char *no_unwinder; /* reason why assay's unwinder is not used, or NULL; owned */
	struct watch watch;
	int kept_fd;      /* the latest dump so far; -1: none */
	uint64_t kept_ns; /* its time */
	uint64_t next_dump_ns;
	uint64_t stopped_ns; /* longest stop of a thread of the process */
	uint64_t cpu_ns;     /* CPU time of assay at the start of the capture */
};

/*
 * Plans, installs the unwinder and enables sampling. Fails if the process has no jemalloc with
 * profiling; prof_capture_release is needed in any case.
 */
int prof_capture_begin(struct prof_capture *p, struct err *err);
/* Appends which unwinder is used: "; stacks by assay's unwinder", or jemalloc's and the reason. */
void prof_capture_add_unwinder(const struct prof_capture *p, struct buf *to);
/*
 * Waits for up to 200 ms, at most until @end_ns (CLOCK_MONOTONIC). Returns false without waiting if
 * the capture is over: p->end is the reason.
 */
bool prof_capture_wait(struct prof_capture *p, uint64_t end_ns);
/*
 * Makes the dump, disables sampling if prof_capture_begin enabled it, removes the unwinder, saves
 * the dump at @place and writes its profile to @recording_fd. If the process has ended, the latest dump
 * counts, and FACT_TARGET_END says of when it is. -ESRCH: there is none.
 */
int prof_capture_end(struct prof_capture *p, const struct store_place *place, int recording_fd,
		     struct capture_result *ret_r, struct err *err);
/* Removes the unwinder if prof_capture_end has not; frees memory. Does not disable sampling. */
void prof_capture_release(struct prof_capture *p);

#endif
