/* Which tracepoints this kernel has, by its own description of its types. */
#ifndef ASSAY_CAPTURE_BPF_BTFHAS_H
#define ASSAY_CAPTURE_BPF_BTFHAS_H

#include "base/base.h"

/* Has it all of them (NULL after the last)? False where it describes nothing. */
bool btf_has_tracepoints(const char *const *names);
/* Has it one that tells exactly these many things? They change from kernel to kernel. */
bool btf_has_tracepoint_of(const char *name, unsigned nr_args);

#endif
