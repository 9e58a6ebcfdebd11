/*
 * Live blocks of a heap recording that is incomplete (assay was killed, or the file is truncated).
 *
 * A recording has its table "live" from the end of a process's recording. Without it, what was live where
 * the data end is what was allocated minus what was freed until then, by stack, thread and size. Such rows
 * have no times, so the ages of their blocks are unknown.
 */
#ifndef ASSAY_INGEST_LIVESOFAR_H
#define ASSAY_INGEST_LIVESOFAR_H

#include "base/base.h"
#include "model/profile.h"

/* Adds the rows of processes that have none. Call before profile_seal. */
void livesofar_add(struct profile *p);

#endif
