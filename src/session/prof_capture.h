/*
 * jemalloc's own profiling as a capture of one running process. Sampling is switched on for the
 * capture (and off again, if it was), its rate changed where that is asked for; a dump at the end is
 * the result, read back as any other dump. Stacks of samples are taken by assay's unwinder where
 * jemalloc lets it (prof_unwinder.h).
 *
 * What lives is what jemalloc has sampled since it was told to, which may be longer than the
 * capture: the fact FACT_HEAP_METHOD says so.
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
	uint64_t interval_bytes;     /* 0: as it is; else what was sampled before is forgotten */
	/* Since prof_capture_begin. */
	struct heap_plan plan;
	uint64_t start_ns;
	bool is_changed; /* sampling was switched on by us */
	bool is_reset;
	bool stays_on; /* sampling could not be switched off again */
	enum capture_end end;
	/* Private. */
	struct jemalloc_prof before;
	struct prof_unwinder *walk; /* NULL: jemalloc's own unwinder is left in place */
	char *no_walk;              /* why; owned */
	struct watch watch;
	uint64_t stopped_ns;
	uint64_t cpu_ns;
};

int prof_capture_begin(struct prof_capture *p, struct err *err);
/* "; stacks by assay's unwinder". */
void prof_capture_add_walk(const struct prof_capture *p, struct buf *to);
/* For some 200 ms at most; false: it is over. */
bool prof_capture_wait(struct prof_capture *p, uint64_t end_ns);
/*
 * What was changed is as before; the dump is saved beside the recording, the profile of it written
 * to @recording_fd. -ESRCH: the process ended before.
 */
int prof_capture_end(struct prof_capture *p, const struct store_place *place, int recording_fd,
		     struct capture_result *ret_r, struct err *err);
/* Puts back what prof_capture_end has not. */
void prof_capture_release(struct prof_capture *p);

#endif
