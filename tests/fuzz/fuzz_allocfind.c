/*
 * Search for allocators in ELF images: for any input the functions and code ranges found are sorted
 * and inside the image.
 */
#include "base/base.h"

#include "object/elf.h"
#include "plan/allocfind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CLEANUP(allocfind_release) struct allocfind f = {0};
	if (elf_open_bytes(&e, data, n, NULL) || allocfind_image(&f, e, NULL, NULL, NULL))
		return 0;
	uint64_t before = 0;
	vec_foreach(fn, &f.functions) {
		ASSERT(fn->name && fn->vaddr >= before);
		ASSERT(fn->shape > HEAP_SHAPE_NONE && fn->shape < HEAP_SHAPE_NR);
		before = fn->vaddr;
	}
	vec_foreach(r, &f.code)
		ASSERT(r->start < r->end);
	ASSERT(!f.jemalloc.is_stripped || (f.jemalloc.mallctl && f.jemalloc.prefix));
	return 0;
}
