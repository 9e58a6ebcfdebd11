/*
 * Table of the system calls that read, write or sync, with the argument that is the file
 * descriptor.
 */
#ifndef ASSAY_BASE_IOCALLS_H
#define ASSAY_BASE_IOCALLS_H

#include "base/base.h"
#include "kernel_io.h"

struct iocall {
	int syscall;      /* number on this architecture, -1 = not available */
	const char *name; /* as in the names of syscall tracepoints */
	uint8_t what;     /* enum io_what */
	uint8_t fd_arg;
};

/* Entry @i, NULL after the last. */
const struct iocall *iocall_at(size_t i);

/* Name of a system call of the table by its number, or NULL. */
const char *iocall_name(int syscall);

#endif
