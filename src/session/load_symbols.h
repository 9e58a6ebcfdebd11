/*
 * Names for a recording that lacks some: its recorder was killed before it could ask for them. The
 * binaries are opened here by path and taken by build-id; the kernel's, the vDSO's and a JIT's
 * names only count while this machine has not been started anew since. See load.h.
 */
#ifndef ASSAY_SESSION_LOAD_SYMBOLS_H
#define ASSAY_SESSION_LOAD_SYMBOLS_H

#include "base/base.h"
#include "model/profile.h"
#include "session/load.h"

/* The number of locations that got a name; @p is not sealed yet. */
size_t load_symbols(struct profile *p, const struct load_options *options);
/*
 * The same for a profile whose modules have no build-ids, as text dumps of addresses: a file is
 * taken by inode, or by path if it is not younger than @written_ns (wall clock, 0 = any inode but
 * the one that was mapped is refused). Modules get the build-ids of the files that were taken.
 */
size_t load_dump_symbols(struct profile *p, const struct load_options *options, int64_t written_ns);

#endif
