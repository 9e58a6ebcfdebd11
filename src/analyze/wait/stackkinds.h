/*
 * The kind of a wait by the functions of its stack alone (table in syncframes.c), from the leaf
 * outwards. Results are cached by stack. Lives in the caller's arena and borrows the profile, whose
 * names must not change any more.
 */
#ifndef ASSAY_ANALYZE_WAIT_STACKKINDS_H
#define ASSAY_ANALYZE_WAIT_STACKKINDS_H

#include "analyze/wait/syncframes.h"
#include "base/arena.h"
#include "base/base.h"
#include "model/profile.h"

struct stackkinds;

struct stackkinds *stackkinds_new(struct arena *a, const struct profile *p);
/*
 * SYNC_PARK_PART: a condition variable or parker, and no function shows what for. SYNC_UNKNOWN,
 * SYNC_UNCLEAR, SYNC_JOIN_AROUND, SYNC_PERMIT_PART: the functions do not show which.
 */
enum sync_kind stackkinds_of(struct stackkinds *sk, stack_id stack);

#endif
