/*
 * Reads the sysctls and resource limits that refuse or restrict a capture, gives the remedy for a
 * refusal, and sets the limits and priority of assay itself. Values are read at each call.
 */
#ifndef ASSAY_HOST_LIMITS_H
#define ASSAY_HOST_LIMITS_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

/* Returns the value of /proc/sys/kernel/<name>, or @fallback if it cannot be read. */
int64_t host_sysctl(const char *name, int64_t fallback);
unsigned host_nr_cpus(void); /* online */
/* Online CPU numbers, ascending, up to cap; returns how many there are. */
size_t host_cpus(int32_t *cpus, size_t cap);
/* Raises RLIMIT_NOFILE to its hard limit; returns it. */
uint64_t host_raise_nofile(void);
/*
 * Sets the calling thread's nice value to -10, or back to 0: the thread that drains ring buffers
 * must not wait for a CPU behind the load that fills them. Raising does nothing without
 * CAP_SYS_NICE; new threads inherit the value.
 */
void host_raise_priority(void);
void host_lower_priority(void);
bool host_is_root(void);
/*
 * Returns half of the memory per CPU that this user may lock for perf ring buffers
 * (perf_event_mlock_kb and RLIMIT_MEMLOCK), for a source that runs beside another. 0: no limit.
 */
uint32_t host_ring_share(void);
/* Appends the remedy for a refused perf_event_open (-errno). @pid: -1 for a system-wide event. */
void host_perf_remedy(struct buf *to, int refusal, int32_t pid);
/* Appends the CPU's model name, for the facts of a recording. */
void host_describe_cpu(struct buf *to);

#endif
