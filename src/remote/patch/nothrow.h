/*
 * Functions that throw when there is no memory. No exception can pass the recorder's frames
 * (heap_data.twin in wire/heap_wire.h), so such a function is recorded only if there is one that
 * takes the same arguments and gives NULL instead.
 */
#ifndef ASSAY_REMOTE_PATCH_NOTHROW_H
#define ASSAY_REMOTE_PATCH_NOTHROW_H

#include "base/base.h"
#include "plan/heapplan.h"

/* By its name: operator new, and what some allocators export under a name of their own. */
bool nothrow_is_needed(const char *name);
/* The plan's function that does not, for one that does; NULL: there is none. */
const struct heap_site *nothrow_find(const struct heap_plan *plan, const struct heap_site *site);

#endif
