/* Which tracepoints the running kernel has, according to its BTF. */
#ifndef ASSAY_CAPTURE_BPF_BTFHAS_H
#define ASSAY_CAPTURE_BPF_BTFHAS_H

#include "base/base.h"

/* Whether it has all of @names (NULL after the last). False without BTF. */
bool btf_has_tracepoints(const char *const *names);
/* Whether it has a tracepoint with exactly @nr_args arguments, which differ between kernels. */
bool btf_has_tracepoint_of(const char *name, unsigned nr_args);

#endif
