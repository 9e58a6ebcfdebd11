/*
 * Where stubs jump to (wire/heap_wire.h): r11 = site, everything else as the caller set it, the
 * return address on the stack. An entry makes a frame, keeps the arguments in it (struct
 * heap_call of heap_inner.h), calls the original function with the very same, and returns what it
 * returned. The stack's alignment is the caller's in the original, whatever that was. Vector
 * registers are not touched here or in anything that is called from here.
 */
#define HEAP_DATA_LOCAL    8
#define HEAP_DATA_ORIGINAL 16

/* struct heap_call, and what lies behind it: rbp of the caller, return address */
#define CALL_ARGS   0
#define CALL_RAX    48
#define CALL_SITE   56
#define CALL_MEMO   64
#define CALL_RESULT 112
#define CALL_RDX    120
#define CALL_BYTES  128

	.macro GLOBAL name
	.globl \name
	.hidden \name
	.type \name, @function
	.balign 16
\name:
	.endm

	.macro FRAME_BEGIN
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	.endm

	.macro FRAME_END
	leave
	.cfi_def_cfa %rsp, 8
	ret
	.endm

	/* after: the C function for what comes after the call; none: only that it is over */
	.macro ENTRY name, before, after
	GLOBAL heap_entry_\name
	.cfi_startproc
	mov heap_data + HEAP_DATA_LOCAL(%rip), %r10
	test %r10, %r10
	jz heap_pass
	cmpl $0, (%r10)
	je heap_pass
	FRAME_BEGIN
	sub $CALL_BYTES, %rsp
	mov %rdi, 0(%rsp)
	mov %rsi, 8(%rsp)
	mov %rdx, 16(%rsp)
	mov %rcx, 24(%rsp)
	mov %r8, 32(%rsp)
	mov %r9, 40(%rsp)
	mov %rax, CALL_RAX(%rsp)
	mov %r11, CALL_SITE(%rsp)
	mov %rsp, %rdi
	mov %r10, %rsi
	cld
	call \before
	mov CALL_SITE(%rsp), %r11
	mov 0(%rsp), %rdi
	mov 8(%rsp), %rsi
	mov 16(%rsp), %rdx
	mov 24(%rsp), %rcx
	mov 32(%rsp), %r8
	mov 40(%rsp), %r9
	mov CALL_RAX(%rsp), %rax
	lea heap_data + HEAP_DATA_ORIGINAL(%rip), %r10
	call *(%r10, %r11, 8)
	cmpq $0, CALL_MEMO(%rsp)
	je 1f
	mov %rax, CALL_RESULT(%rsp)
	mov %rdx, CALL_RDX(%rsp)
	mov %rsp, %rdi
	call \after
	mov CALL_RESULT(%rsp), %rax
	mov CALL_RDX(%rsp), %rdx
1:
	FRAME_END
	.cfi_endproc
	.size heap_entry_\name, . - heap_entry_\name
	.endm

	.text
heap_pass:
	.cfi_startproc
	lea heap_data + HEAP_DATA_ORIGINAL(%rip), %r10
	jmp *(%r10, %r11, 8)
	.cfi_endproc

	ENTRY alloc_0, heap_before_alloc, heap_after_alloc_0
	ENTRY alloc_1, heap_before_alloc, heap_after_alloc_1
	ENTRY alloc_01, heap_before_alloc, heap_after_alloc_01
	ENTRY alloc_12, heap_before_alloc, heap_after_alloc_12
	ENTRY alloc_out, heap_before_alloc, heap_after_alloc_out
	ENTRY realloc_1, heap_before_realloc_0, heap_after_realloc_1
	ENTRY realloc_12, heap_before_realloc_0, heap_after_realloc_12
	ENTRY realloc_2, heap_before_realloc_1, heap_after_realloc_2
	ENTRY resize, heap_before_realloc_0, heap_after_resize
	ENTRY free_0, heap_before_free, heap_after_free
	ENTRY mmap, heap_before_map, heap_after_mmap
	ENTRY munmap, heap_before_map, heap_after_munmap
	ENTRY mremap, heap_before_map, heap_after_mremap
	ENTRY brk, heap_before_brk, heap_after_brk
	ENTRY sbrk, heap_before_map, heap_after_sbrk

	/*
	 * Called like any function. The frame is one of a struct heap_call, for the walk's sake;
	 * \inner gets it behind up to six arguments.
	 */
	.macro HOOK name, inner
	GLOBAL \name
	.cfi_startproc
	FRAME_BEGIN
	sub $CALL_BYTES, %rsp
	mov %rdi, 0(%rsp)
	mov %rsi, 8(%rsp)
	mov %rdx, 16(%rsp)
	mov %rcx, 24(%rsp)
	mov %r8, 32(%rsp)
	mov %r9, 40(%rsp)
	mov 16(%rbp), %rax
	mov %rax, CALL_RESULT(%rsp)
	mov %rsp, %rdi
	cld
	call \inner
	FRAME_END
	.cfi_endproc
	.size \name, . - \name
	.endm

	HOOK heap_hook_alloc, heap_inner_alloc
	HOOK heap_hook_dalloc, heap_inner_dalloc
	HOOK heap_hook_expand, heap_inner_expand
	HOOK heap_prof_backtrace, heap_inner_backtrace

	.section .note.GNU-stack, "", @progbits
