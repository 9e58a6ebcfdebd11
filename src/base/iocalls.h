/*
 * The system calls that read, write or sync, and which argument of each is the descriptor.
 */
#ifndef ASSAY_BASE_IOCALLS_H
#define ASSAY_BASE_IOCALLS_H

#include "base/base.h"
#include "kernel_io.h"

struct iocall {
	int syscall;      /* number on this architecture, -1 = it has none */
	const char *name; /* as the tracepoints call it */
	uint8_t what;     /* enum io_what */
	uint8_t fd_arg;
};

/* NULL after the last. */
const struct iocall *iocall_at(size_t i);

/* The name of one of them by its number, or NULL. */
const char *iocall_name(int syscall);

#endif
