/* Names of operator new: Itanium C++ ABI, 5.1.5; the others are mimalloc's and gperftools'. */
#include "base/base.h"
#include "remote/patch/nothrow.h"

#include "base/sv.h"

#define NOTHROW_CXX "RKSt9nothrow_t"

/* Other throwing functions. Their nothrow variant, if any, is called NAME_nothrow. */
static const char others[] =
	"mi_new mi_new_aligned mi_new_n mi_new_realloc mi_new_reallocn mi_heap_alloc_new "
	"mi_heap_alloc_new_n tc_new tc_newarray tc_new_aligned tc_newarray_aligned";

static bool is_operator(struct sv name)
{
	return (sv_has_prefix(name, SV("_Znwm")) || sv_has_prefix(name, SV("_Znam"))) &&
	       !strstr(name.p, "nothrow");
}

bool nothrow_is_needed(const char *name)
{
	struct sv n = sv_from_str(name);
	return is_operator(n) || sv_has_item(sv_from_str(others), ' ', n);
}

static bool is_nothrow(const char *of, const char *name)
{
	size_t n = strlen(of);
	return !strncmp(of, name, n) && !strcmp(name + n, of[0] == '_' ? NOTHROW_CXX : "_nothrow");
}

const struct heap_function *nothrow_find(const struct heap_plan *plan,
					 const struct heap_function *site)
{
	vec_foreach(s, &plan->functions) {
		bool is_same_file = !s->path || !site->path || !strcmp(s->path, site->path);
		if (s->shape == site->shape && is_same_file && is_nothrow(site->name, s->name))
			return s;
	}
	return NULL;
}
