/*
 * Memory of another process, read while it runs (nothing is stopped, so what is read may change
 * meanwhile: the caller checks what it follows). Needs the right to trace it.
 */
#ifndef ASSAY_HOST_PROCMEM_H
#define ASSAY_HOST_PROCMEM_H

#include "base/base.h"
#include "base/buf.h"

/*
 * A descriptor, or -errno: -EACCES and -EPERM where tracing is refused. @access: O_RDONLY, O_RDWR.
 */
int host_open_mem(int32_t pid, int access);
/* Exactly @n bytes; 0 or -errno. */
int host_read_mem(int mem_fd, uint64_t addr, void *to, size_t n);
/* The process that traces it, 0 = none; its seccomp mode (0, 1, 2). -errno. */
int host_trace_state(int32_t pid, int32_t *ret_tracer, unsigned *ret_seccomp);

#endif
