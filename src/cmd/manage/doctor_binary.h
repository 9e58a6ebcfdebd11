/*
 * The part of `assay doctor` about programs: what a binary lacks, the allocator of a process and
 * how its heap can be recorded, and the build flags that add what is missing.
 */
#ifndef ASSAY_CMD_MANAGE_DOCTOR_BINARY_H
#define ASSAY_CMD_MANAGE_DOCTOR_BINARY_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/err.h"

/* Adds the tables of a process's program. @has_details: also that of all its binaries. */
void doctor_add_process(struct report *r, int32_t pid, bool has_details);
/* The same of a file that is not running. -errno, -EINVAL: not an ELF file. */
int doctor_add_file(struct report *r, const char *path, struct err *err);

#endif
