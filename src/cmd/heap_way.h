/*
 * Which sources a capture of heaps needs, by the tier that is asked for or that the target's plan
 * chooses: the recorder inside it (PATCH, HOOKS), probes (UPROBES), page faults (GROWTH).
 */
#ifndef ASSAY_CMD_HEAP_WAY_H
#define ASSAY_CMD_HEAP_WAY_H

#include "base/base.h"
#include "capture/heapsource.h"
#include "cmd/targetopts.h"
#include "session/capture.h"

struct heap_way {
	/* HEAP_TIER_NONE: each process's plan says so when it is attached to. */
	enum heap_tier tier;
	bool has_no_programs; /* the kernel takes none: GROWTH samples */
	char *reason;         /* owned; NULL unless tier is UPROBES or GROWTH */
};

void heap_way_release(struct heap_way *w);
/* Plans the first process of a running target. */
void heap_way_choose(struct heap_way *ret_w, const struct heap_planner *planner,
		     enum heap_tier forced, const struct chosen_target *t);
/* Sets programs, parts and the spec's why. */
void heap_way_apply(const struct heap_way *w, struct capture_options *o,
		    struct heapsource_spec *spec);

#endif
