/* The embedded image; inject/heap_image.sh checks its properties and computes the offsets. */
#include "base/base.h"
#include "remote/patch/image.h"

#include "heap_image.h"

#ifdef HEAP_IMAGE_FILE
__asm__(".section .rodata\n"
	".balign 64\n"
	"heap_image_start:\n"
	".incbin \"" HEAP_IMAGE_FILE "\"\n"
	"heap_image_end:\n"
	".byte 0\n"
	".previous\n");
extern const uint8_t heap_image_start[];
extern const uint8_t heap_image_end[];

static const struct heap_image image = {
	.text_bytes = HEAP_IMAGE_TEXT_BYTES,
	.data_start = HEAP_IMAGE_DATA_START,
	.data_bytes = HEAP_IMAGE_DATA_BYTES,
	.data = HEAP_IMAGE_heap_data,
	.entry =
		{
			[HEAP_ALLOC_0] = HEAP_IMAGE_heap_entry_alloc_0,
			[HEAP_ALLOC_1] = HEAP_IMAGE_heap_entry_alloc_1,
			[HEAP_ALLOC_01] = HEAP_IMAGE_heap_entry_alloc_01,
			[HEAP_ALLOC_12] = HEAP_IMAGE_heap_entry_alloc_12,
			[HEAP_ALLOC_OUT] = HEAP_IMAGE_heap_entry_alloc_out,
			[HEAP_REALLOC_1] = HEAP_IMAGE_heap_entry_realloc_1,
			[HEAP_REALLOC_12] = HEAP_IMAGE_heap_entry_realloc_12,
			[HEAP_REALLOC_2] = HEAP_IMAGE_heap_entry_realloc_2,
			[HEAP_RESIZE] = HEAP_IMAGE_heap_entry_resize,
			[HEAP_FREE_0] = HEAP_IMAGE_heap_entry_free_0,
			[HEAP_MMAP] = HEAP_IMAGE_heap_entry_mmap,
			[HEAP_MUNMAP] = HEAP_IMAGE_heap_entry_munmap,
			[HEAP_MREMAP] = HEAP_IMAGE_heap_entry_mremap,
			[HEAP_BRK] = HEAP_IMAGE_heap_entry_brk,
			[HEAP_SBRK] = HEAP_IMAGE_heap_entry_sbrk,
			[HEAP_PRCTL] = HEAP_IMAGE_heap_entry_prctl,
			[HEAP_SYSCALL] = HEAP_IMAGE_heap_entry_syscall,
		},
	.frames = HEAP_IMAGE_heap_frames,
	.hook_alloc = HEAP_IMAGE_heap_hook_alloc,
	.hook_dalloc = HEAP_IMAGE_heap_hook_dalloc,
	.hook_expand = HEAP_IMAGE_heap_hook_expand,
	.prof_backtrace = HEAP_IMAGE_heap_prof_backtrace,
};

const uint8_t *heap_image_bytes(size_t *ret_n)
{
	*ret_n = (size_t)(heap_image_end - heap_image_start);
	return heap_image_start;
}
#else
static const struct heap_image image;

const uint8_t *heap_image_bytes(size_t *ret_n)
{
	*ret_n = 0;
	return (const uint8_t *)"";
}
#endif

const struct heap_image *heap_image(void)
{
	return &image;
}
