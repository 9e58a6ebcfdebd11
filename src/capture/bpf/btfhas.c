/* Finds tracepoints in BTF by the types btf_trace_<name>; see btfhas.h. */
#include "base/base.h"

#include "capture/bpf/btfhas.h"

#include <bpf/btf.h>

#include "base/mem.h"

bool btf_has_tracepoints(const struct btf *types, const char *const *names)
{
	bool has = types != NULL;
	for (size_t i = 0; has && names[i]; i++) {
		CLEANUP(free_p) char *type = xasprintf("btf_trace_%s", names[i]);
		has = btf__find_by_name(types, type) > 0;
	}
	return has;
}

/* typedef void (*btf_trace_x)(void *, arguments of the tracepoint ...) */
bool btf_has_tracepoint_with_args(const struct btf *types, const char *name, unsigned nr_args)
{
	CLEANUP(free_p) char *type = xasprintf("btf_trace_%s", name);
	int id = types ? btf__find_by_name_kind(types, type, BTF_KIND_TYPEDEF) : -1;
	const struct btf_type *t = id > 0 ? btf__type_by_id(types, (unsigned)id) : NULL;
	t = t ? btf__type_by_id(types, t->type) : NULL;
	t = t && btf_is_ptr(t) ? btf__type_by_id(types, t->type) : NULL;
	return t && btf_is_func_proto(t) && btf_vlen(t) == nr_args + 1;
}
