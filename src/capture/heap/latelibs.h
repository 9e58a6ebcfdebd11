/*
 * Libraries with an allocator of their own that a recorded process loads while it is recorded
 * (dlopen): when what it maps has changed a plan is made again, and functions that are new are
 * added to its recorder. One object for each process; by the thread of the capture.
 */
#ifndef ASSAY_CAPTURE_HEAP_LATELIBS_H
#define ASSAY_CAPTURE_HEAP_LATELIBS_H

#include "base/base.h"
#include "capture/heap/process.h"
#include "plan/heaptargets.h"
#include "unwind/space.h"

struct latelibs {
	uint64_t print;            /* of the binaries that are mapped; 0 = not begun */
	uint64_t due_ns;           /* of the next look; 0 = none */
	uint64_t patient_until_ns; /* for its dynamic linker to finish */
	uint64_t rest_until_ns;    /* looks take a small part of our time */
	unsigned nr_tries;
};

/* It was attached to; @sp: what it mapped, may be NULL. */
void latelibs_begin(struct latelibs *l, const struct space *sp);
/* It maps this by now; NULL: it is gone. */
void latelibs_on_event(struct latelibs *l, const struct space *sp);
bool latelibs_is_due(const struct latelibs *l, uint64_t now);
/*
 * Looks, and adds what is new. True: functions were added, *ret_text (owned) says how many of what,
 * and when after @start_ns. What could not be added is tried again, a few times; then *ret_lost
 * (owned) is the path of the binary.
 */
bool latelibs_add(struct latelibs *l, struct heapprocess *p, struct heaptargets *t,
		  uint64_t start_ns, char **ret_text, char **ret_lost);
/* The path (owned) of a binary whose allocator is not recorded, or NULL. */
char *latelibs_unseen(const struct heapprocess *p, struct heaptargets *t);

/* Whether all binaries that @pid maps are in @sp, which may be NULL. */
bool latelibs_is_reported(const struct space *sp, int32_t pid);

#endif
