/*
 * The heap part of a capture, which `assay heap` and `assay limit --heap` share: the options, the
 * choice of the recording method, and warnings about allocations that are missing.
 *
 *	struct heap_capture heap = {0};
 *	... .groups = {{&heap_capture_group, offsetof(struct own, heap)}}
 *	heap_capture_check(&own->heap, job, &err)      called by the command's `check`
 *	heap_capture_prepare(&own->heap, job, &err)    by its `prepare`: fills job->options
 *	heap_capture_print_losses                      by its `print_notes`
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
	bool is_all;             /* record every allocation, not a sample */
	uint64_t interval_bytes; /* 0 = HEAP_CAPTURE_INTERVAL */
	int method;              /* enum heap_method; NONE = choose */
	uint64_t every_ns;       /* between readings of RSS; 0 = 1 s */

	/* Set by heap_capture_prepare. */
	struct heaptargets *targets;
	struct heap_method_choice choice;
	struct heapsource_spec spec;
	bool is_many;      /* there are several processes, so messages contain the pid */
	char *last_reason; /* the reason for a method that was printed last, to print it once */
};

extern const struct opt_group heap_capture_group;

/* Frees what heap_capture_prepare allocated. Accepts a zeroed structure. */
void heap_capture_release(struct heap_capture *heap);
/* Returns -EINVAL if options exclude each other. */
int heap_capture_check(const struct heap_capture *heap, const struct capture_job *job,
		       struct err *err);
/* Chooses the method and fills job->options. -ENOTSUP: no method works without BPF programs. */
int heap_capture_prepare(struct heap_capture *heap, struct capture_job *job, struct err *err);
/* Warns about allocations that the recording lacks. For `print_notes` of a command. */
/* Appends why no allocation was recorded, from the counters of the capture. */
void heap_capture_add_reason(struct buf *to, const struct capture_job *job,
			     const struct capture_result *r);
void heap_capture_print_losses(const struct capture_job *job, const struct capture_result *r);

#endif
