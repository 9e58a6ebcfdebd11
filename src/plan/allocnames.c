/* Names of allocators' functions; see allocnames.h. */
#include "base/base.h"
#include "plan/allocnames.h"

struct shaped {
	const char *name;
	enum heap_shape shape;
};

static enum heap_shape find(const struct shaped *t, size_t n, struct sv name)
{
	for (size_t i = 0; i < n; i++)
		if (t[i].name[0] == name.p[0] && sv_eq_str(name, t[i].name))
			return t[i].shape;
	return HEAP_SHAPE_NONE;
}

#define NAME_BYTES_MAX 48
#define FIND(t, name) \
	((name).n && (name).n <= NAME_BYTES_MAX ? find(t, ARRAY_LEN(t), name) : HEAP_SHAPE_NONE)

static const struct shaped plain[] = {
	{"malloc", HEAP_ALLOC_0},
	{"free", HEAP_FREE_0},
	{"calloc", HEAP_ALLOC_01},
	{"realloc", HEAP_REALLOC_1},
	{"reallocarray", HEAP_REALLOC_12},
	{"reallocf", HEAP_REALLOC_1},
	{"memalign", HEAP_ALLOC_1},
	{"aligned_alloc", HEAP_ALLOC_1},
	{"posix_memalign", HEAP_ALLOC_OUT},
	{"valloc", HEAP_ALLOC_0},
	{"pvalloc", HEAP_ALLOC_0},
	{"cfree", HEAP_FREE_0},
	{"vfree", HEAP_FREE_0},
	{"free_sized", HEAP_FREE_0},
	{"free_aligned_sized", HEAP_FREE_0},
	{"__libc_malloc", HEAP_ALLOC_0},
	{"__libc_free", HEAP_FREE_0},
	{"__libc_calloc", HEAP_ALLOC_01},
	{"__libc_realloc", HEAP_REALLOC_1},
	{"__libc_reallocarray", HEAP_REALLOC_12},
	{"__libc_memalign", HEAP_ALLOC_1},
	{"__libc_valloc", HEAP_ALLOC_0},
	{"__libc_pvalloc", HEAP_ALLOC_0},
	{"__libc_cfree", HEAP_FREE_0},
	{"__posix_memalign", HEAP_ALLOC_OUT},
};

enum heap_shape allocnames_plain(struct sv name)
{
	return FIND(plain, name);
}

enum heap_shape allocnames_pages(struct sv name)
{
	static const struct shaped pages[] = {
		{"mmap", HEAP_MMAP},     {"mmap64", HEAP_MMAP},     {"munmap", HEAP_MUNMAP},
		{"mremap", HEAP_MREMAP}, {"brk", HEAP_BRK},         {"sbrk", HEAP_SBRK},
		{"prctl", HEAP_PRCTL},   {"syscall", HEAP_SYSCALL},
	};
	return FIND(pages, name);
}

enum heap_shape allocnames_operator(struct sv name)
{
	/* All variants begin like this: nothrow and alignment follow, the first argument stays. */
	if (sv_has_prefix(name, SV("_Znwm")) || sv_has_prefix(name, SV("_Znam")))
		return HEAP_ALLOC_0;
	if (sv_has_prefix(name, SV("_ZdlPv")) || sv_has_prefix(name, SV("_ZdaPv")))
		return HEAP_FREE_0;
	return HEAP_SHAPE_NONE;
}

enum heap_shape allocnames_jemalloc(struct sv name)
{
	static const struct shaped own[] = {
		{"mallocx", HEAP_ALLOC_0}, {"rallocx", HEAP_REALLOC_1}, {"xallocx", HEAP_RESIZE},
		{"dallocx", HEAP_FREE_0},  {"sdallocx", HEAP_FREE_0},   {"smallocx", HEAP_ALLOC_0},
	};
	enum heap_shape s = FIND(own, name);
	if (s || (name.n && name.p[0] == '_'))
		return s;
	return allocnames_plain(name);
}

enum heap_shape allocnames_mimalloc(struct sv name)
{
	static const struct shaped mi[] = {
		{"mi_malloc", HEAP_ALLOC_0},
		{"mi_malloc_small", HEAP_ALLOC_0},
		{"mi_malloc_aligned", HEAP_ALLOC_0},
		{"mi_malloc_aligned_at", HEAP_ALLOC_0},
		{"mi_zalloc", HEAP_ALLOC_0},
		{"mi_zalloc_small", HEAP_ALLOC_0},
		{"mi_zalloc_aligned", HEAP_ALLOC_0},
		{"mi_zalloc_aligned_at", HEAP_ALLOC_0},
		{"mi_valloc", HEAP_ALLOC_0},
		{"mi_pvalloc", HEAP_ALLOC_0},
		{"mi_new", HEAP_ALLOC_0},
		{"mi_new_aligned", HEAP_ALLOC_0},
		{"mi_new_nothrow", HEAP_ALLOC_0},
		{"mi_new_aligned_nothrow", HEAP_ALLOC_0},
		{"_aligned_malloc", HEAP_ALLOC_0},
		{"mi_calloc", HEAP_ALLOC_01},
		{"mi_calloc_aligned", HEAP_ALLOC_01},
		{"mi_calloc_aligned_at", HEAP_ALLOC_01},
		{"mi_mallocn", HEAP_ALLOC_01},
		{"mi_new_n", HEAP_ALLOC_01},
		{"mi_memalign", HEAP_ALLOC_1},
		{"mi_aligned_alloc", HEAP_ALLOC_1},
		{"mi_heap_malloc", HEAP_ALLOC_1},
		{"mi_heap_malloc_small", HEAP_ALLOC_1},
		{"mi_heap_malloc_aligned", HEAP_ALLOC_1},
		{"mi_heap_malloc_aligned_at", HEAP_ALLOC_1},
		{"mi_heap_zalloc", HEAP_ALLOC_1},
		{"mi_heap_zalloc_aligned", HEAP_ALLOC_1},
		{"mi_heap_zalloc_aligned_at", HEAP_ALLOC_1},
		{"mi_heap_alloc_new", HEAP_ALLOC_1},
		{"mi_heap_calloc", HEAP_ALLOC_12},
		{"mi_heap_calloc_aligned", HEAP_ALLOC_12},
		{"mi_heap_calloc_aligned_at", HEAP_ALLOC_12},
		{"mi_heap_mallocn", HEAP_ALLOC_12},
		{"mi_heap_alloc_new_n", HEAP_ALLOC_12},
		{"mi_posix_memalign", HEAP_ALLOC_OUT},
		{"mi_realloc", HEAP_REALLOC_1},
		{"mi_reallocf", HEAP_REALLOC_1},
		{"mi_realloc_aligned", HEAP_REALLOC_1},
		{"mi_realloc_aligned_at", HEAP_REALLOC_1},
		{"mi_rezalloc", HEAP_REALLOC_1},
		{"mi_rezalloc_aligned", HEAP_REALLOC_1},
		{"mi_rezalloc_aligned_at", HEAP_REALLOC_1},
		{"mi_new_realloc", HEAP_REALLOC_1},
		{"mi_reallocn", HEAP_REALLOC_12},
		{"mi_reallocarray", HEAP_REALLOC_12},
		{"mi_recalloc", HEAP_REALLOC_12},
		{"mi_recalloc_aligned", HEAP_REALLOC_12},
		{"mi_recalloc_aligned_at", HEAP_REALLOC_12},
		{"mi_new_reallocn", HEAP_REALLOC_12},
		{"mi_heap_realloc", HEAP_REALLOC_2},
		{"mi_heap_reallocf", HEAP_REALLOC_2},
		{"mi_heap_rezalloc", HEAP_REALLOC_2},
		{"mi_heap_realloc_aligned", HEAP_REALLOC_2},
		{"mi_heap_realloc_aligned_at", HEAP_REALLOC_2},
		{"mi_heap_rezalloc_aligned", HEAP_REALLOC_2},
		{"mi_heap_rezalloc_aligned_at", HEAP_REALLOC_2},
		{"mi_free", HEAP_FREE_0},
		{"mi_cfree", HEAP_FREE_0},
		{"mi_free_size", HEAP_FREE_0},
		{"mi_free_aligned", HEAP_FREE_0},
		{"mi_free_size_aligned", HEAP_FREE_0},
	};
	return FIND(mi, name);
}

enum heap_shape allocnames_tcmalloc(struct sv name)
{
	static const struct shaped tc[] = {
		{"tc_malloc", HEAP_ALLOC_0},
		{"tc_malloc_skip_new_handler", HEAP_ALLOC_0},
		{"tc_calloc", HEAP_ALLOC_01},
		{"tc_realloc", HEAP_REALLOC_1},
		{"tc_memalign", HEAP_ALLOC_1},
		{"tc_aligned_alloc", HEAP_ALLOC_1},
		{"tc_posix_memalign", HEAP_ALLOC_OUT},
		{"tc_valloc", HEAP_ALLOC_0},
		{"tc_pvalloc", HEAP_ALLOC_0},
		{"tc_new", HEAP_ALLOC_0},
		{"tc_new_nothrow", HEAP_ALLOC_0},
		{"tc_new_aligned", HEAP_ALLOC_0},
		{"tc_new_aligned_nothrow", HEAP_ALLOC_0},
		{"tc_newarray", HEAP_ALLOC_0},
		{"tc_newarray_nothrow", HEAP_ALLOC_0},
		{"tc_newarray_aligned", HEAP_ALLOC_0},
		{"tc_newarray_aligned_nothrow", HEAP_ALLOC_0},
		{"tc_free", HEAP_FREE_0},
		{"tc_free_sized", HEAP_FREE_0},
		{"tc_cfree", HEAP_FREE_0},
		{"tc_delete", HEAP_FREE_0},
		{"tc_delete_sized", HEAP_FREE_0},
		{"tc_delete_nothrow", HEAP_FREE_0},
		{"tc_delete_aligned", HEAP_FREE_0},
		{"tc_delete_sized_aligned", HEAP_FREE_0},
		{"tc_delete_aligned_nothrow", HEAP_FREE_0},
		{"tc_deletearray", HEAP_FREE_0},
		{"tc_deletearray_sized", HEAP_FREE_0},
		{"tc_deletearray_nothrow", HEAP_FREE_0},
		{"tc_deletearray_aligned", HEAP_FREE_0},
		{"tc_deletearray_sized_aligned", HEAP_FREE_0},
		{"tc_deletearray_aligned_nothrow", HEAP_FREE_0},
		{"TCMallocInternalMalloc", HEAP_ALLOC_0},
		{"TCMallocInternalCalloc", HEAP_ALLOC_01},
		{"TCMallocInternalRealloc", HEAP_REALLOC_1},
		{"TCMallocInternalMemalign", HEAP_ALLOC_1},
		{"TCMallocInternalAlignedAlloc", HEAP_ALLOC_1},
		{"TCMallocInternalPosixMemalign", HEAP_ALLOC_OUT},
		{"TCMallocInternalValloc", HEAP_ALLOC_0},
		{"TCMallocInternalPvalloc", HEAP_ALLOC_0},
		{"TCMallocInternalFree", HEAP_FREE_0},
		{"TCMallocInternalCfree", HEAP_FREE_0},
		{"TCMallocInternalSdallocx", HEAP_FREE_0},
		{"TCMallocInternalFreeSized", HEAP_FREE_0},
		{"TCMallocInternalFreeAlignedSized", HEAP_FREE_0},
		{"TCMallocInternalNew", HEAP_ALLOC_0},
		{"TCMallocInternalNewArray", HEAP_ALLOC_0},
		{"TCMallocInternalDelete", HEAP_FREE_0},
		{"TCMallocInternalDeleteArray", HEAP_FREE_0},
	};
	return FIND(tc, name);
}
