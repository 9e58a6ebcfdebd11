/*
 * Names for a recording that lacks some: its recorder was killed before it could ask for them. The
 * binaries are opened here by path and taken by build-id; the kernel's, the vDSO's and a JIT's
 * names only count while this machine has not been started anew since. See load.h.
 */
#ifndef ASSAY_SESSION_LOAD_NAMES_H
#define ASSAY_SESSION_LOAD_NAMES_H

#include "base/base.h"
#include "model/profile.h"
#include "session/load.h"

/* The number of locations that got a name; @p is not sealed yet. */
size_t load_names(struct profile *p, const struct load_options *options);

#endif
