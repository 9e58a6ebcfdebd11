/*
 * Asks a running Java virtual machine (HotSpot) to write /tmp/perf-PID.map, the names of its JIT code,
 * as `jcmd PID Compiler.perfmap` does (JDK 17 or later), but without needing a jcmd in its container.
 *
 * HotSpot's attach protocol: a file /tmp/.attach_pidPID that belongs to the machine's user, then
 * SIGQUIT; the machine opens the socket /tmp/.java_pidPID, and takes one request of NUL-terminated words
 * (sources of the JDK: attachListener_posix.cpp). All of it is in the target's root, with its own PID
 * there, as the target's user. The machine stops at a safepoint while it writes.
 *
 * Called in a process of its own: it changes the user and waits for the target's answers.
 */
#ifndef ASSAY_REMOTE_JVMATTACH_H
#define ASSAY_REMOTE_JVMATTACH_H

#include "base/base.h"
#include "base/err.h"

/* A process whose identity is held, so that the process id cannot be that of another one later. */
struct jvm {
	int32_t pid;
	int pid_fd;
};

/* Returns whether the process has mapped libjvm.so. If so, the caller closes ret_vm->pid_fd. */
bool jvm_find(struct jvm *ret_vm, int32_t pid);
/*
 * Changes to the user of the target and asks. -ETIMEDOUT: no answer by @deadline_ns (monotonic);
 * -ENOTSUP: the machine cannot do it, or does not catch SIGQUIT, which would end it.
 */
int jvm_write_perfmap(const struct jvm *vm, uint64_t deadline_ns, struct err *err);

#endif
