/*
 * Files that are opened while assay may, to be read when it no longer may: inputs of the reading
 * commands, and the kernel's symbols. Opened before there are threads; a descriptor stays open until
 * the process ends.
 */
#ifndef ASSAY_HOST_HELDFILES_H
#define ASSAY_HOST_HELDFILES_H

#include "base/base.h"

/* Opens a regular file for reading and keeps it. Does nothing without capabilities to lose. */
void host_hold_file(const char *path);
/*
 * Returns a new descriptor of the held file, at its start; -ENOENT: it is not held, open it. The
 * descriptors of one held file share their position.
 */
int host_open_held(const char *path);

#endif
