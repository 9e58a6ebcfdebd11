/*
 * What can be seen of one process: whether it may be attached to, and what its binaries tell
 * (symbols, debug information, unwind tables, frame pointers), with the build flags that help.
 */
#ifndef ASSAY_CMD_DOCTOR_TARGET_H
#define ASSAY_CMD_DOCTOR_TARGET_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/err.h"

/* Adds a table a process; *ret_is_open: it may be attached to. -ESRCH: it has ended. */
int doctor_add_target(struct report *r, int32_t pid, bool *ret_is_open, struct err *err);

#endif
