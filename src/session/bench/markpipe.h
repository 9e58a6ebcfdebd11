/*
 * A pipe with a path, for marks of commands: nothing is left behind if assay is killed.
 *
 * The path is /proc/PID/fd/N of a process that does nothing but hold the pipe. The kernel lets others
 * open that path only if the process has their user and no privileges, which neither assay nor the
 * helper of benchrunner.h can promise. It ends with assay.
 */
#ifndef ASSAY_SESSION_MARKPIPE_H
#define ASSAY_SESSION_MARKPIPE_H

#include <sys/types.h>

#include "base/base.h"
#include "base/err.h"

struct markpipe {
	int read_fd; /* does not block; no end of file while the pipe is open */
	int write_fd;
	pid_t holder;
	char path[48]; /* to be opened for writing by the user of the commands; empty: not open */
};
#define MARKPIPE_INIT ((struct markpipe){.read_fd = -1, .write_fd = -1})

/* Forks: call it before assay needs memory and has threads. */
int markpipe_open(struct markpipe *m, struct err *err);
void markpipe_release(struct markpipe *m);

#endif
