/*
 * Reads the memory of another process while it runs. It is not stopped, so data may change between
 * two reads: the caller validates pointers before it follows them. Needs permission to ptrace the
 * process.
 */
#ifndef ASSAY_HOST_PROCMEM_H
#define ASSAY_HOST_PROCMEM_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

/*
 * Opens /proc/PID/mem; @access: O_RDONLY or O_RDWR. Returns a descriptor that the caller closes, or
 * -errno: -EACCES or -EPERM without permission to ptrace.
 */
int host_open_mem(int32_t pid, int access);
/* Reads exactly @n bytes; 0 or -errno. */
int host_read_mem(int mem_fd, uint64_t addr, void *to, size_t n);
/*
 * Finds the thread of another process that traces thread @tid of a process (0: none), and the seccomp mode
 * (0 none, 1 strict, 2 filter), from its status. Another assay, and others that read a state, detach
 * after some milliseconds: waits half a second for that. Returns 0 or -errno.
 */
int host_find_tracer(int32_t pid, int32_t tid, int32_t *ret_tracer, unsigned *ret_seccomp);
/* Appends what traces, "gdb (pid 42)". */
void host_add_tracer(struct buf *to, int32_t tracer);
/* Sets the error -EPERM, which names the tracer. */
int host_refuse_traced(int32_t pid, int32_t tracer, struct err *err);

#endif
