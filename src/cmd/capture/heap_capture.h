/*
 * Recording a heap as a part of a capture: what `assay heap` and `assay limit --heap` share.
 *
 *	struct heap_capture heap = {0};
 *	... .groups = {{&heap_capture_group, offsetof(struct own, heap)}}
 *	heap_capture_prepare(&own->heap, job, &err)    into job->options
 *	heap_capture_print_losses                              what the numbers lack, at the end
 *	heap_capture_release(&own->heap)               after the capture
 */
#ifndef ASSAY_CMD_CAPTURE_HEAP_CAPTURE_H
#define ASSAY_CMD_CAPTURE_HEAP_CAPTURE_H

#include "base/base.h"
#include "base/err.h"
#include "base/opt/opt.h"
#include "capture/heap/heapsource.h"
#include "cmd/capture/capture_command.h"
#include "plan/heapchoice.h"

#define HEAP_CAPTURE_INTERVAL ((uint64_t)512 << 10)

struct heap_capture {
	/* Options. */
	bool is_all;             /* every allocation */
	uint64_t interval_bytes; /* 0 = HEAP_CAPTURE_INTERVAL */
	int method;              /* enum heap_method; NONE = choose */
	uint64_t every_ns;       /* 0 = a second */

	/* Made by prepare. */
	struct heaptargets *targets;
	struct heap_method_choice way;
	struct heapsource_spec spec;
	bool is_many; /* processes: messages name theirs */
	char *said;   /* the last reason */
};

extern const struct opt_group heap_capture_group;

void heap_capture_release(struct heap_capture *heap);
/* -EINVAL: options that exclude one another. */
int heap_capture_check(const struct heap_capture *heap, const struct capture_job *job,
		       struct err *err);
/* Sets the sources of heaps; an error where --no-bpf leaves no way. */
int heap_capture_prepare(struct heap_capture *heap, struct capture_job *job, struct err *err);
void heap_capture_print_losses(const struct capture_job *job, const struct capture_result *r);

#endif
