/*
 * Symbolizes the unsymbolized locations of a recording. It has such locations if assay was killed
 * before symbolization or did not find a binary. Binaries are opened by path and used if their build-id
 * matches; symbols of the kernel, the vDSO and JIT code are used only if this machine has not been
 * rebooted since the recording. Called by load.c.
 */
#ifndef ASSAY_SESSION_LOAD_SYMBOLS_H
#define ASSAY_SESSION_LOAD_SYMBOLS_H

#include "base/base.h"
#include "model/profile.h"
#include "session/load.h"

/* Returns the number of locations that were symbolized; @p is not sealed yet. */
size_t load_symbols(struct profile *p, const struct load_options *options);
/*
 * Like load_symbols, for modules without build-ids (heap dumps with a copy of /proc/PID/maps):
 * a file is used if its inode is the mapped one, or if it is not newer than @written_ns (wall clock;
 * 0 = only by inode). Modules get the build-ids of the files that were used.
 */
size_t load_dump_symbols(struct profile *p, const struct load_options *options, int64_t written_ns);

#endif
