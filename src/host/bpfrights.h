/*
 * Whether programs may be loaded into this kernel, and the remedy where not. Asked before
 * loading, so that the refusal names its cause instead of the kernel's bare errno.
 */
#ifndef ASSAY_HOST_BPFRIGHTS_H
#define ASSAY_HOST_BPFRIGHTS_H

#include "base/base.h"
#include "base/err.h"

#define HOST_BTF_PATH "/sys/kernel/btf/vmlinux"

/* Whether process numbers are those that BPF programs see. */
bool host_is_first_pidns(void);
/*
 * 0; -EPERM: CAP_BPF and CAP_PERFMON are missing; -ENOTSUP: the kernel describes no types of its
 * own (@btf_path, HOST_BTF_PATH), or this is not the first PID namespace, whose numbers our
 * programs see. The hint has the remedy.
 */
int host_bpf_rights(const char *btf_path, struct err *err);

#endif
