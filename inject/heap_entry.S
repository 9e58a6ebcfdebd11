/*
 * Where stubs jump to (wire/heap_wire.h): r11 = site, everything else as the caller set it.
 */
#define HEAP_DATA_LOCAL    8
#define HEAP_DATA_ORIGINAL 16

	.macro ENTRY name
	.globl heap_entry_\name
	.hidden heap_entry_\name
	.type heap_entry_\name, @function
	.balign 16
heap_entry_\name:
	.cfi_startproc
	endbr64
	lea heap_data + HEAP_DATA_ORIGINAL(%rip), %r10
	jmp *(%r10, %r11, 8)
	.cfi_endproc
	.size heap_entry_\name, . - heap_entry_\name
	.endm

	.text
	ENTRY alloc_0
	ENTRY alloc_1
	ENTRY alloc_01
	ENTRY alloc_12
	ENTRY alloc_out
	ENTRY realloc_1
	ENTRY realloc_12
	ENTRY realloc_2
	ENTRY resize
	ENTRY free_0
	ENTRY mmap
	ENTRY munmap
	ENTRY mremap
	ENTRY brk
	ENTRY sbrk

	.section .note.GNU-stack, "", @progbits
