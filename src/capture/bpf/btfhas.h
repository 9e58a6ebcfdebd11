/* Which tracepoints the running kernel has, according to its BTF (engine_kernel_types). */
#ifndef ASSAY_CAPTURE_BPF_BTFHAS_H
#define ASSAY_CAPTURE_BPF_BTFHAS_H

#include "base/base.h"

struct btf;

/*
 * Returns whether the kernel has all of @names (NULL after the last). False if @types is NULL, as is
 * the case without BTF.
 */
bool btf_has_tracepoints(const struct btf *types, const char *const *names);
/*
 * Returns whether the kernel has this tracepoint with exactly @nr_args arguments; their number
 * differs between kernel versions.
 */
bool btf_has_tracepoint_with_args(const struct btf *types, const char *name, unsigned nr_args);

#endif
