/*
 * Checks whether BPF programs can be loaded, and gives the remedy if not. Called before loading, so
 * that the error names the cause and not just the kernel's errno.
 */
#ifndef ASSAY_HOST_BPFRIGHTS_H
#define ASSAY_HOST_BPFRIGHTS_H

#include "base/base.h"
#include "base/err.h"

#define HOST_BTF_PATH "/sys/kernel/btf/vmlinux"

/* Returns whether assay is in the initial PID namespace, whose pids BPF programs see. */
bool host_is_first_pidns(void);
/*
 * Returns 0 if programs can be loaded. -EPERM: CAP_BPF or CAP_PERFMON is missing; -ENOTSUP: the
 * kernel has no BTF (@btf_path, normally HOST_BTF_PATH), or assay is not in the initial PID
 * namespace. The hint has the remedy.
 */
int host_bpf_rights(const char *btf_path, struct err *err);

#endif
