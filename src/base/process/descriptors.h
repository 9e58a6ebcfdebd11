/*
 * The standard descriptors, and those of a forked process that goes on without its parent: what it
 * inherits (a pipe that somebody reads, a terminal, files) would stay open as long as it runs. No
 * malloc, no locks.
 */
#ifndef ASSAY_BASE_PROCESS_DESCRIPTORS_H
#define ASSAY_BASE_PROCESS_DESCRIPTORS_H

#include "base/base.h"

/* Closes all descriptors but those in @keep, which is in any order; negative ones are ignored. */
void descriptors_keep_only(const int *keep, size_t nr);
/*
 * Opens /dev/null as those of 0, 1 and 2 that are closed, until exec: else a file that is opened
 * later would get what is printed. Reading and printing fail with EBADF as before. Called first of all.
 */
void descriptors_fill_standard(void);
/* Opens /dev/null as 0, 1 and 2, so that code that prints reaches no descriptor opened later. */
void descriptors_use_null(void);

#endif
