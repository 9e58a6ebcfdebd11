/*
 * BPF programs on the entry and the return of one system call, by its tracepoints. The trace file
 * system need not be mounted (host/tracefs.h).
 */
#ifndef ASSAY_CAPTURE_BPF_SYSCALLPROBE_H
#define ASSAY_CAPTURE_BPF_SYSCALLPROBE_H

#include "base/base.h"
#include "base/err.h"
#include "capture/bpf/deferclose.h"

struct bpf_program;

enum syscallprobe_at { SYSCALLPROBE_ENTER, SYSCALLPROBE_EXIT };

/*
 * @tracefs_fd: of tracefs_open. @name: "pread64". The link is added to @links. -ENOENT: this
 * kernel has no such call. -EACCES: not for this user, with the remedy.
 */
int syscallprobe_attach(struct bpf_links *links, int tracefs_fd, const struct bpf_program *p,
			enum syscallprobe_at at, const char *name, uint64_t cookie,
			struct err *err);

#endif
