/*
 * Recording a heap as a part of a capture: what `assay heap` and `assay limit --heap` share.
 *
 *	struct heap_job rec = {0};
 *	... .groups = {{&heap_job_group, offsetof(struct own, rec)}}
 *	heap_job_prepare(&own->rec, job, &err)    into job->options
 *	heap_job_say                              what the numbers lack, at the end
 *	heap_job_release(&own->rec)               after the capture
 */
#ifndef ASSAY_CMD_CAPTURE_HEAP_JOB_H
#define ASSAY_CMD_CAPTURE_HEAP_JOB_H

#include "base/base.h"
#include "base/err.h"
#include "base/opt/opt.h"
#include "capture/heap/heapsource.h"
#include "cmd/capture/capture_command.h"
#include "plan/heapchoice.h"

#define HEAP_JOB_INTERVAL ((uint64_t)512 << 10)

struct heap_job {
	/* Options. */
	bool is_all;             /* every allocation */
	uint64_t interval_bytes; /* 0 = HEAP_JOB_INTERVAL */
	int method;              /* enum heap_method; NONE = choose */
	uint64_t every_ns;       /* 0 = a second */

	/* Made by prepare. */
	struct heaptargets *targets;
	struct heap_method_choice way;
	struct heapsource_spec spec;
	bool is_many; /* processes: messages name theirs */
	char *said;   /* the last reason */
};

extern const struct opt_group heap_job_group;

void heap_job_release(struct heap_job *rec);
/* -EINVAL: options that exclude one another. */
int heap_job_check(const struct heap_job *rec, const struct capture_job *job, struct err *err);
/* Sets the sources of heaps; an error where --no-bpf leaves no way. */
int heap_job_prepare(struct heap_job *rec, struct capture_job *job, struct err *err);
void heap_job_say(const struct capture_job *job, const struct capture_result *r);

#endif
