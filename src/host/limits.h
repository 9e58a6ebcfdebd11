/*
 * Reads the sysctls and resource limits by which the kernel restricts a capture, gives the remedy
 * for a refused event, and sets the limits and priority of assay itself. Values are read at each
 * call.
 */
#ifndef ASSAY_HOST_LIMITS_H
#define ASSAY_HOST_LIMITS_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

/* Returns the value of /proc/sys/kernel/<name>, or @fallback if it cannot be read. */
int64_t host_sysctl(const char *name, int64_t fallback);
unsigned host_nr_cpus(void); /* online */
/* Stores the numbers of online CPUs, ascending, at most @cap; returns the number of online CPUs. */
size_t host_cpus(int32_t *cpus, size_t cap);
/* Raises RLIMIT_NOFILE to its hard limit; returns it. */
uint64_t host_raise_nofile(void);
/*
 * Raises it and fails with -EMFILE and the remedy if it is too low for a capture: binaries and
 * events could not be opened, and each loss would have another false cause.
 */
int host_need_files(struct err *err);
/*
 * Sets the calling thread's nice value to -10, or back to 0: the thread that drains ring buffers
 * must not wait for a CPU while other threads fill them. host_raise_priority does nothing without
 * CAP_SYS_NICE; new threads inherit the nice value.
 */
void host_raise_priority(void);
void host_lower_priority(void);
bool host_is_root(void);
/*
 * Returns half of the bytes per CPU that this user may lock for perf ring buffers
 * (perf_event_mlock_kb and RLIMIT_MEMLOCK), for a source whose perf ring buffers exist beside those
 * of the sampler. 0: no limit.
 */
uint32_t host_ring_share(void);
/* Appends the remedy for a refused perf_event_open (-errno). @pid: -1 for a system-wide event. */
void host_perf_remedy(struct buf *to, int refusal, int32_t pid);
/*
 * CPU time of all CPUs that the hypervisor took since boot, by the kernel's account (/proc/stat); 0
 * if it has none.
 */
uint64_t host_steal_ns(void);
/* Appends the CPU's model name: a fact (key/value metadata, model/facts.h) of a recording. */
void host_describe_cpu(struct buf *to);

#endif
