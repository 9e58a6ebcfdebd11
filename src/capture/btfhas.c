/* Tracepoints by the types that typed programs attach to; see btfhas.h. */
#include "base/base.h"

#include "capture/btfhas.h"

#ifdef ASSAY_NO_BPF

bool btf_has_tracepoints(const char *const *names)
{
	(void)names;
	return false;
}

#else

#include <bpf/btf.h>

#include "base/mem.h"

bool btf_has_tracepoints(const char *const *names)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool has = btf != NULL;
	for (size_t i = 0; has && names[i]; i++) {
		CLEANUP(free_p) char *type = xasprintf("btf_trace_%s", names[i]);
		has = btf__find_by_name(btf, type) > 0;
	}
	btf__free(btf);
	return has;
}

#endif
