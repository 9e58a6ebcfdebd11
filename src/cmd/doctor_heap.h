/*
 * Which allocator a process has, how `assay heap` would watch it, and what its own profiling needs.
 * Nothing is stopped or called for it.
 */
#ifndef ASSAY_CMD_DOCTOR_HEAP_H
#define ASSAY_CMD_DOCTOR_HEAP_H

#include "analyze/report.h"
#include "base/base.h"

/* Adds a table; a note where the process cannot be looked into. */
void doctor_add_allocator(struct report *r, int32_t pid);

#endif
