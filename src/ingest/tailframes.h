/*
 * Restores frames that tail calls removed (symbol/tailcode.h): each node of a stack whose return
 * address names another function than the frame above it gets a location with the functions between
 * them (profile_tail_location). Called once, after symbolization.
 *
 * A pair of frames is used only if the caller's return address is exact: unwound by call frame
 * information, in an ordinary frame. Profiles with stacks by frame pointers (stacks_are_guessed) are
 * left alone; so are kernel frames and JIT code.
 */
#ifndef ASSAY_INGEST_TAILFRAMES_H
#define ASSAY_INGEST_TAILFRAMES_H

#include "base/base.h"
#include "ingest/modules.h"
#include "ingest/symbolworker.h"
#include "model/profile.h"

/* Waits for the symbol worker, adds the frames and sets FACT_TAIL_CALLS. */
void tailframes_add(struct profile *p, const struct modules *m, struct symbolworker *sw);

#endif
