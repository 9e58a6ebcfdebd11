/*
 * How a process ended: by itself, or killed by a signal. The kernel tells this to its parent; to others
 * while the process is a zombie, and from Linux 6.15 on to holders of a pidfd that was opened before.
 */
#ifndef ASSAY_HOST_PROCEND_H
#define ASSAY_HOST_PROCEND_H

#include "base/base.h"
#include "base/buf.h"

struct procend {
	bool is_known;
	int signal; /* that killed it; 0: it called exit */
};

struct procend procend_from_status(int wait_status);
/* @pid_fd: a pidfd of @pid, from before its end. Not known while it runs, or if nothing tells. */
struct procend procend_read(int pid_fd, int32_t pid);
/*
 * Returns the signal that killed a process which the caller may trace; 0: none, or it is not known. While
 * its parent has not waited for a process that exited with status 0, procend_read waits in vain.
 */
int procend_signal(int pid_fd, int32_t pid);
/* Appends "killed by SIGKILL"; nothing if it exited by itself or that is not known. */
void procend_add(struct buf *to, const struct procend *end);

#endif
