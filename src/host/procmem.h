/*
 * Reads the memory of another process while it runs. It is not stopped, so data may change between
 * two reads: the caller validates pointers before it follows them. Needs permission to ptrace the
 * process.
 */
#ifndef ASSAY_HOST_PROCMEM_H
#define ASSAY_HOST_PROCMEM_H

#include "base/base.h"
#include "base/buf.h"

/*
 * Opens /proc/PID/mem; @access: O_RDONLY or O_RDWR. Returns a descriptor that the caller closes, or
 * -errno: -EACCES or -EPERM without permission to ptrace.
 */
int host_open_mem(int32_t pid, int access);
/* Reads exactly @n bytes; 0 or -errno. */
int host_read_mem(int mem_fd, uint64_t addr, void *to, size_t n);
/*
 * Reads the tracer's pid (0 = none) and the seccomp mode (0 none, 1 strict, 2 filter) from
 * /proc/PID/status. Returns 0 or -errno.
 */
int host_trace_state(int32_t pid, int32_t *ret_tracer, unsigned *ret_seccomp);

#endif
