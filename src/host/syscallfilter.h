/*
 * Limits the system calls of this process by a seccomp filter: a list of what is permitted, all else
 * fails with EPERM. For all threads, and for good; a second filter can only permit less. There is no
 * exec, no network, no mount, no change of users, and nothing is typed into a terminal.
 *
 * Not in builds with sanitizers, whose run time needs other calls.
 */
#ifndef ASSAY_HOST_SYSCALLFILTER_H
#define ASSAY_HOST_SYSCALLFILTER_H

#include "base/base.h"

#ifndef __has_feature
#define __has_feature(x) 0 /* gcc before 14, which defines the macros below */
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HOST_LIMITS_CALLS 0
#else
#define HOST_LIMITS_CALLS 1 /* builds with sanitizers, which make other calls, have no filter */
#endif

/* What is permitted beside reading and writing files, memory, threads and time. */
enum host_calls {
	HOST_CALLS_READING = 0, /* parsing, symbolization, rendering */
	HOST_CALLS_CAPTURE =
		1 << 0, /* BPF maps and links, local sockets, fork, signals, scheduling */
	HOST_CALLS_TRACE = 1 << 1, /* ptrace and the memory of other processes */
	HOST_CALLS_LOAD = 1 << 2,  /* new perf events and BPF programs */
	HOST_CALLS_FORK = 1 << 3,  /* fork, and pairs of sockets to the children */
};

/*
 * @calls: of enum host_calls. Requires no_new_privs (host_drop). If the kernel has no seccomp, calls
 * are not limited.
 */
void host_limit_calls(unsigned calls);
/*
 * For commands that trace until their end: keeps the rights to (HOST_CAPS_TRACE) and to read files.
 * @suspends_filters: of targets (target_has_filter); then also CAP_SYS_ADMIN, and calls are not limited.
 */
void host_confine_tracer(bool suspends_filters);
/* Drops all rights, then permits only what reading needs. Other threads have dropped theirs. */
void host_confine(void);

#endif
