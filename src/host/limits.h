/*
 * What this host permits a profiler: the sysctls and limits that refuse or shrink a capture, and
 * the exact remedy for each refusal. Read when asked; nothing is changed.
 */
#ifndef ASSAY_HOST_LIMITS_H
#define ASSAY_HOST_LIMITS_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"

/* The value of /proc/sys/kernel/<name>, or @fallback when it cannot be read. */
int64_t host_sysctl(const char *name, int64_t fallback);
unsigned host_nr_cpus(void); /* online */
/* Online CPU numbers, ascending, up to cap; returns how many there are. */
size_t host_cpus(int32_t *cpus, size_t cap);
/* Raises RLIMIT_NOFILE to its hard limit; returns it. */
uint64_t host_raise_nofile(void);
/*
 * The calling thread before or after others: who drains rings must not wait behind the load that
 * fills them. Does nothing without the right to it (CAP_SYS_NICE); new threads inherit it.
 */
void host_raise_priority(void);
void host_lower_priority(void);
bool host_is_root(void);
/*
 * Half of the memory for rings of perf events that this user may lock on a CPU (perf_event_mlock_kb
 * and RLIMIT_MEMLOCK), for a source that is not the only one. 0: no limit.
 */
uint32_t host_ring_share(void);
/* Appends what to do about a refused perf_event_open; @is_kernel: kernel or system-wide asked. */
void host_perf_remedy(struct buf *to, int refusal, int32_t pid);
/* CPU model, kernel release and host name, one line each key, for the facts of a recording. */
void host_describe_cpu(struct buf *to);

#endif
