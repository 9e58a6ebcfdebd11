/* A capture of heaps by the way that plan/heapchoice.h chose for its target. */
#ifndef ASSAY_CMD_HEAP_WAY_H
#define ASSAY_CMD_HEAP_WAY_H

#include "base/base.h"
#include "capture/heapsource.h"
#include "host/target.h"
#include "plan/heapchoice.h"
#include "session/capture.h"

/* Plans the first process of a running target; NULL: there is none yet. */
void heap_way_choose(struct heap_way *ret_w, struct heaptargets *targets, enum heap_tier forced,
		     const struct target *t);
/* Sets programs, parts and the spec's why. */
void heap_way_apply(const struct heap_way *w, struct capture_options *o,
		    struct heapsource_spec *spec);

#endif
