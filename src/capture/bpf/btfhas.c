/* Finds tracepoints in BTF by the types btf_trace_<name>; see btfhas.h. */
#include "base/base.h"

#include "capture/bpf/btfhas.h"

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

/* typedef void (*btf_trace_x)(void *, arguments of the tracepoint ...) */
bool btf_has_tracepoint_with_args(const char *name, unsigned nr_args)
{
	struct btf *btf = btf__load_vmlinux_btf();
	CLEANUP(free_p) char *type = xasprintf("btf_trace_%s", name);
	int id = btf ? btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) : -1;
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	bool has = t && btf_is_func_proto(t) && btf_vlen(t) == nr_args + 1;
	btf__free(btf);
	return has;
}
