/* Names of operators: Itanium C++ ABI, 5.1.5; the others are mimalloc's and gperftools'. */
#include "base/base.h"
#include "remote/heaptwin.h"

#include "base/sv.h"

#define NOTHROW_CXX "RKSt9nothrow_t"

/* All in other ways. An empty twin: there is none. */
static const char *const others[][2] = {
	{"mi_new", "mi_new_nothrow"},
	{"mi_new_aligned", "mi_new_aligned_nothrow"},
	{"mi_new_n", ""},
	{"mi_new_realloc", ""},
	{"mi_new_reallocn", ""},
	{"mi_heap_alloc_new", ""},
	{"mi_heap_alloc_new_n", ""},
	{"tc_new", "tc_new_nothrow"},
	{"tc_newarray", "tc_newarray_nothrow"},
	{"tc_new_aligned", "tc_new_aligned_nothrow"},
	{"tc_newarray_aligned", "tc_newarray_aligned_nothrow"},
};

static bool is_operator(struct sv name)
{
	return (sv_has_prefix(name, SV("_Znwm")) || sv_has_prefix(name, SV("_Znam"))) &&
	       !strstr(name.p, "nothrow");
}

static const char *other_twin(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (!strcmp(others[i][0], name))
			return others[i][1];
	return NULL;
}

bool heaptwin_throws(const char *name)
{
	return is_operator(sv_from_str(name)) || other_twin(name);
}

static bool is_twin(const char *of, const char *name)
{
	const char *other = other_twin(of);
	size_t n = strlen(of);

	if (other)
		return *other && !strcmp(other, name);
	return !strncmp(of, name, n) && !strcmp(name + n, NOTHROW_CXX);
}

const struct heap_site *heaptwin_find(const struct heap_plan *plan, const struct heap_site *site)
{
	vec_foreach(s, &plan->sites) {
		bool is_same_file = !s->path || !site->path || !strcmp(s->path, site->path);
		if (s->shape == site->shape && is_same_file && is_twin(site->name, s->name))
			return s;
	}
	return NULL;
}
