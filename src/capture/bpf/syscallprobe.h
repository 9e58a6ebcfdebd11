/*
 * Attaches BPF programs to the entry and return of one system call, by its tracepoints
 * (sys_enter_X, sys_exit_X). The trace file system need not be mounted (host/tracefs.h).
 */
#ifndef ASSAY_CAPTURE_BPF_SYSCALLPROBE_H
#define ASSAY_CAPTURE_BPF_SYSCALLPROBE_H

#include "base/base.h"
#include "base/err.h"
#include "capture/bpf/deferclose.h"

struct bpf_program;

enum syscallprobe_at { SYSCALLPROBE_ENTER, SYSCALLPROBE_EXIT };

/*
 * Attaches @p to system call @name ("pread64") and adds the link to @links. @tracefs_fd: from
 * tracefs_open. @cookie: what bpf_get_attach_cookie returns in the program. -ENOENT: this kernel
 * has no such system call. -EACCES: not permitted; the hint has the remedy.
 */
int syscallprobe_attach(struct bpf_links *links, int tracefs_fd, const struct bpf_program *p,
			enum syscallprobe_at at, const char *name, uint64_t cookie,
			struct err *err);

#endif
