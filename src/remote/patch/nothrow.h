/*
 * Functions that throw an exception when there is no memory, and their nothrow variants. No
 * exception can propagate through the recorder's frames (heap_data.nothrow in wire/heap_wire.h), so
 * such a function is patched only if the plan has a function with the same arguments that returns
 * NULL instead (the nothrow variant).
 */
#ifndef ASSAY_REMOTE_PATCH_NOTHROW_H
#define ASSAY_REMOTE_PATCH_NOTHROW_H

#include "base/base.h"
#include "plan/heapplan.h"

/* Whether the function throws, by its name: operator new, and allocators' own names for it. */
bool nothrow_is_needed(const char *name);
/* Returns the plan's nothrow variant of the throwing function @function; NULL: none. */
const struct heap_function *nothrow_find(const struct heap_plan *plan,
					 const struct heap_function *function);

#endif
