/* Names of allocators' functions; see allocnames.h. */
#include "base/base.h"
#include "plan/allocnames.h"

struct shaped {
	enum heap_shape shape;
	const char *names; /* separated by blanks */
};

static enum heap_shape find(const struct shaped *t, size_t n, struct sv name)
{
	for (size_t i = 0; i < n; i++)
		if (sv_has_item(sv_from_str(t[i].names), ' ', name))
			return t[i].shape;
	return HEAP_SHAPE_NONE;
}

#define FIND(t, name) find(t, ARRAY_LEN(t), name)

static bool cut_prefix(struct sv *name, struct sv prefix)
{
	bool has_it = sv_has_prefix(*name, prefix);
	if (has_it)
		*name = sv_from_idx(*name, prefix.n);
	return has_it;
}

static const struct shaped plain[] = {
	{HEAP_ALLOC_0, "malloc valloc pvalloc"},
	{HEAP_ALLOC_01, "calloc"},
	{HEAP_ALLOC_1, "memalign aligned_alloc"},
	{HEAP_ALLOC_OUT, "posix_memalign"},
	{HEAP_REALLOC_1, "realloc reallocf"},
	{HEAP_REALLOC_12, "reallocarray"},
	{HEAP_FREE_0, "free cfree vfree free_sized free_aligned_sized"},
};

/* Also with glibc's prefix __libc_. */
enum heap_shape allocnames_plain(struct sv name)
{
	if (!cut_prefix(&name, SV("__libc_")) && sv_eq(name, SV("__posix_memalign")))
		return HEAP_ALLOC_OUT;
	return FIND(plain, name);
}

enum heap_shape allocnames_pages(struct sv name)
{
	static const struct shaped pages[] = {
		{HEAP_MMAP, "mmap mmap64"}, {HEAP_MUNMAP, "munmap"}, {HEAP_MREMAP, "mremap"},
		{HEAP_BRK, "brk"},          {HEAP_SBRK, "sbrk"},     {HEAP_PRCTL, "prctl"},
		{HEAP_SYSCALL, "syscall"},
	};
	return FIND(pages, name);
}

enum heap_shape allocnames_operator(struct sv name)
{
	/* Prefixes of all variants; the first argument is the same in all. */
	if (sv_has_prefix(name, SV("_Znwm")) || sv_has_prefix(name, SV("_Znam")))
		return HEAP_ALLOC_0;
	if (sv_has_prefix(name, SV("_ZdlPv")) || sv_has_prefix(name, SV("_ZdaPv")))
		return HEAP_FREE_0;
	return HEAP_SHAPE_NONE;
}

enum heap_shape allocnames_jemalloc(struct sv name)
{
	static const struct shaped own[] = {
		{HEAP_ALLOC_0, "mallocx smallocx"},
		{HEAP_REALLOC_1, "rallocx"},
		{HEAP_RESIZE, "xallocx"},
		{HEAP_FREE_0, "dallocx sdallocx"},
	};
	enum heap_shape s = FIND(own, name);
	if (s || (name.n && name.p[0] == '_'))
		return s;
	return allocnames_plain(name);
}

static void cut_suffix(struct sv *name, struct sv suffix)
{
	if (sv_has_suffix(*name, suffix))
		name->n -= suffix.n;
}

/* An alignment follows the other arguments; a heap precedes them. */
enum heap_shape allocnames_mimalloc(struct sv name)
{
	static const struct shaped mi[] = {
		{HEAP_ALLOC_0, "malloc zalloc valloc pvalloc new"},
		{HEAP_ALLOC_01, "calloc mallocn new_n"},
		{HEAP_ALLOC_1, "memalign aligned_alloc"},
		{HEAP_ALLOC_OUT, "posix_memalign"},
		{HEAP_REALLOC_1, "realloc reallocf rezalloc new_realloc"},
		{HEAP_REALLOC_12, "reallocn reallocarray recalloc new_reallocn"},
		{HEAP_FREE_0, "free cfree free_size"},
	};
	static const enum heap_shape of_heap[HEAP_SHAPE_NR] = {
		[HEAP_ALLOC_0] = HEAP_ALLOC_1,
		[HEAP_ALLOC_01] = HEAP_ALLOC_12,
		[HEAP_REALLOC_1] = HEAP_REALLOC_2,
	};
	if (sv_eq(name, SV("_aligned_malloc")))
		return HEAP_ALLOC_0;
	if (!cut_prefix(&name, SV("mi_")))
		return HEAP_SHAPE_NONE;
	bool is_of_heap = cut_prefix(&name, SV("heap_"));
	if (is_of_heap && !cut_prefix(&name, SV("alloc_")) && sv_has_prefix(name, SV("new")))
		return HEAP_SHAPE_NONE; /* mi_heap_new makes a heap */
	static const struct sv kinds[] = {
		{"_nothrow", 8}, {"_at", 3}, {"_aligned", 8}, {"_small", 6}};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		cut_suffix(&name, kinds[i]);
	enum heap_shape shape = FIND(mi, name);
	return is_of_heap ? of_heap[shape] : shape;
}

enum heap_shape allocnames_tcmalloc(struct sv name)
{
	static const struct shaped internal[] = {
		{HEAP_ALLOC_0, "Malloc Valloc Pvalloc New NewArray"},
		{HEAP_ALLOC_01, "Calloc"},
		{HEAP_ALLOC_1, "Memalign AlignedAlloc"},
		{HEAP_ALLOC_OUT, "PosixMemalign"},
		{HEAP_REALLOC_1, "Realloc"},
		{HEAP_FREE_0, "Free Cfree FreeSized FreeAlignedSized Sdallocx Delete DeleteArray"},
	};
	if (cut_prefix(&name, SV("TCMallocInternal")))
		return FIND(internal, name);
	if (!cut_prefix(&name, SV("tc_")))
		return HEAP_SHAPE_NONE;
	/* As with operators, all variants have the size or the block first. */
	if (sv_has_prefix(name, SV("new")) || sv_eq(name, SV("malloc_skip_new_handler")))
		return HEAP_ALLOC_0;
	return sv_has_prefix(name, SV("delete")) ? HEAP_FREE_0 : FIND(plain, name);
}
