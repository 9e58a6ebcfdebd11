/*
 * From what is in a process to how its heap is watched: the tier, why this one, and for which
 * functions. A tier that the user forces and that cannot be is an error which says why.
 */
#ifndef ASSAY_CMD_HEAPCHOICE_H
#define ASSAY_CMD_HEAPCHOICE_H

#include "base/base.h"
#include "base/err.h"
#include "remote/heapplan.h"
#include "cmd/heaptargets.h"

int heapchoice_plan(const struct heaptarget *h, enum heap_tier forced, struct heap_plan *ret_p,
		    struct err *err);
/* The same where what was found for mallctl turned out not to be it: @why. */
int heapchoice_without_mallctl(const struct heaptarget *h, enum heap_tier forced, const char *why,
			       struct heap_plan *ret_p, struct err *err);
/* "prof", "hooks", "patch", "uprobes", "growth", as options and facts say it; "none". */
const char *heapchoice_tier_name(enum heap_tier tier);
/* False: no such tier. */
bool heapchoice_tier_from_name(const char *name, enum heap_tier *ret_tier);
/* Whether this jemalloc has experimental.hooks.install, by its version. */
bool heapchoice_has_hooks(const uint32_t version[3]);

#endif
