/*
 * Detects libraries with an allocator of their own that a recorded process loads later (dlopen):
 * when its mappings have changed, makes a new plan and adds the new functions to the recorder. One
 * object per process; used by the capture thread.
 */
#ifndef ASSAY_CAPTURE_HEAP_LATELIBS_H
#define ASSAY_CAPTURE_HEAP_LATELIBS_H

#include "base/base.h"
#include "capture/heap/process.h"
#include "plan/heaptargets.h"
#include "unwind/space.h"

struct latelibs {
	uint64_t maps_hash;        /* hash of the mapped binaries; 0 = not started */
	uint64_t next_check_ns;    /* time of the next check; 0 = none */
	uint64_t load_deadline_ns; /* until then wait for the dynamic linker to finish */
	uint64_t not_before_ns;    /* no check before this time, to limit the cost of checks */
	unsigned nr_tries;         /* failed attempts to add the functions */
};

/* Starts after the attach. @sp: the process's mappings, or NULL. */
void latelibs_begin(struct latelibs *l, const struct space *sp);
/* Schedules a check, since the mappings have changed. @sp NULL: the process has ended. */
void latelibs_on_event(struct latelibs *l, const struct space *sp);
bool latelibs_is_due(const struct latelibs *l, uint64_t now);
/*
 * Checks for new libraries and adds their functions. True: functions were added; *ret_text (owned)
 * says how many of which library, and how long after @start_ns. Failures are retried a few times;
 * then *ret_lost (owned) is the path of the binary.
 */
bool latelibs_add(struct latelibs *l, struct heapprocess *p, struct heaptargets *t,
		  uint64_t start_ns, char **ret_text, char **ret_lost);
/* The path (owned) of a mapped binary whose allocator is not recorded, or NULL. */
char *latelibs_find_unrecorded(const struct heapprocess *p, struct heaptargets *t);

/* Whether @sp (may be NULL) has all binaries that @pid has mapped. */
bool latelibs_is_complete(const struct space *sp, int32_t pid);

#endif
