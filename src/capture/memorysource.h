/*
 * Memory over time: what the kernel says that each target uses, as rows of the table "memory"
 * (model/heap.h), one a process and reading. Readings are told as EVENT_TALLY with TABLE_MEMORY,
 * their time is the moment of the reading; HEAP_MEMORY_LIVE is left 0, for the views know it.
 *
 * RSS, its parts, swap and virtual memory are read each time. PSS and the stacks of threads need a
 * walk of the page tables, under the target's lock for mappings: they are read at most once a
 * second, and so seldom that the walks take less than a hundredth of the time; rows between carry
 * the last ones. A target that has ended gives no more rows.
 */
#ifndef ASSAY_CAPTURE_MEMORYSOURCE_H
#define ASSAY_CAPTURE_MEMORYSOURCE_H

#include "base/base.h"
#include "base/err.h"
#include "host/proc.h"
#include "model/event.h"

#define MEMORY_SPACING_MIN_NS 10000000u

struct memory_spec {
	const struct pid_list *pids; /* processes; may be NULL */
	const struct pid_list *tids; /* threads, whose processes are read; may be NULL */
	int32_t child;               /* a launched command, or 0 */
	uint64_t spacing_ns;         /* between readings; 0 = a second */
};

struct memory_info {
	uint64_t nr_readings;
	uint64_t nr_walks;
	uint64_t walks_ns; /* in all: the time for which the target's mmap calls may have waited */
	uint64_t longest_ns; /* of a walk */
	bool is_refused;     /* PSS and stacks could not be read, of any target */
};

struct memory_source;

void memory_source_free(struct memory_source *s);
int memory_source_open(struct memory_source **ret_s, const struct memory_spec *spec,
		       struct err *err);
/* Reads now; also the first and the last time. Targets that have gone are no error. */
int memory_source_read(struct memory_source *s, const struct event_sink *sink, struct err *err);
uint64_t memory_source_spacing_ns(const struct memory_source *s);
struct memory_info memory_source_info(const struct memory_source *s);

#endif
