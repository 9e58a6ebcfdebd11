/*
 * Where stubs jump to (wire/heap_wire.h): r11 = site, everything else as the caller set it, the
 * return address on the stack. An entry makes a frame, keeps the arguments in it (struct
 * heap_call of heap_inner.h), calls the original function with the very same, and returns what it
 * returned. The stack's alignment is the caller's in the original, whatever that was. Vector
 * registers are not touched here or in anything that is called from here.
 */
#define HEAP_DATA_LOCAL    8
#define HEAP_DATA_ORIGINAL 16
#define HEAP_DATA_NOTHROW     (16 + 256 * 8)

/* struct heap_call, and what lies behind it: rbp of the caller, return address */
#define CALL_ARGS   0
#define CALL_RAX    48
#define CALL_SITE   56
#define CALL_MEMO   64
#define CALL_LOCAL  72
#define CALL_RESULT 112
#define CALL_RDX    120
#define CALL_BYTES  128

/* struct heap_local, heap_memo, heap_slot */
#define HEAP_MAY_CALL_KERNEL 1
#define HEAP_FS_IS_SET    4
#define LOCAL_SHARED      8
#define LOCAL_MEMOS       24
#define LOCAL_NR_SLOTS    32
#define LOCAL_FLAGS       36
#define LOCAL_BLOCKS      48
#define MEMO_TP           8
#define MEMO_SLOT         16
#define MEMO_HASH_MASK    40
#define SLOT_OWNER        0
#define SLOT_NR_FREES     48
#define SHARED_HAS_SHUT   108
#define HASH_32           0x9e3779b1

/* linux/prctl.h, linux/seccomp.h, asm/unistd_64.h */
#define PR_SET_SECCOMP          22
#define PR_SET_TSC              26
#define PR_TSC_SIGSEGV          2
#define SECCOMP_MODE_STRICT     1
#define SECCOMP_SET_MODE_STRICT 0
#define SECCOMP_SET_MODE_FILTER 1
#define SYS_PRCTL               157
#define SYS_SECCOMP             317

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

	.macro SAVE_4_ARGS
	mov %rdi, 0(%rsp)
	mov %rsi, 8(%rsp)
	mov %rdx, 16(%rsp)
	mov %rcx, 24(%rsp)
	.endm

	.macro ENTRY_BEGIN name
	GLOBAL heap_entry_\name
	.cfi_startproc
	mov heap_data + HEAP_DATA_LOCAL(%rip), %r10
	test %r10, %r10
	jz heap_pass
	cmpl $0, (%r10)
	je heap_pass
	FRAME_BEGIN
	sub $CALL_BYTES, %rsp
	SAVE_4_ARGS
	mov %rax, CALL_RAX(%rsp)
	mov %r11, CALL_SITE(%rsp)
	.endm

	/*
	 * The thread's memo becomes r11 and the call its own, or else it goes to \far. r10 is local;
	 * rax and rcx are used.
	 */
	.macro CALL_BEGIN far
	testb $HEAP_FS_IS_SET, LOCAL_FLAGS(%r10)
	jz \far
	mov %fs:0, %rax
	mov %rax, %rcx
	shr $6, %rcx
	mov LOCAL_NR_SLOTS(%r10), %r11d
	imul $HASH_32, %ecx, %ecx
	imul %r11, %rcx
	shr $32, %rcx
	mov %rcx, %r11
	shl $16, %r11
	/* 0: cleared while a signal's handler kept this thread just here */
	mov LOCAL_MEMOS(%r10), %rcx
	test %rcx, %rcx
	jz \far
	add %rcx, %r11
	cmp %rax, MEMO_TP(%r11)
	jne \far
	mov MEMO_SLOT(%r11), %rcx
	test %rcx, %rcx
	jz \far
	cmp %rax, SLOT_OWNER(%rcx)
	jne \far
	cmpq $0, (%r11)
	jne \far
	mov %r10, CALL_LOCAL(%rsp)
	mov %r11, CALL_MEMO(%rsp)
	mov %rsp, (%r11)
	.endm

	/* A C function that gets the call and local; all arguments as they were. */
	.macro CALL_FAR function
	mov %r8, 32(%rsp)
	mov %r9, 40(%rsp)
	mov %rsp, %rdi
	mov %r10, %rsi
	call \function
	mov 0(%rsp), %rdi
	mov 8(%rsp), %rsi
	mov 16(%rsp), %rdx
	mov 32(%rsp), %r8
	mov 40(%rsp), %r9
	.endm

	.macro CALL_ORIGINAL
	mov CALL_SITE(%rsp), %r11
	mov 24(%rsp), %rcx
	mov CALL_RAX(%rsp), %rax
	lea heap_data + HEAP_DATA_ORIGINAL(%rip), %r10
	call *(%r10, %r11, 8)
	.endm

	.macro ENTRY_END name
	.cfi_endproc
	.size heap_entry_\name, . - heap_entry_\name
	.endm

	.macro CALL_AFTER after
	cmpq $0, CALL_MEMO(%rsp)
	je 8f
	mov %rax, CALL_RESULT(%rsp)
	mov %rdx, CALL_RDX(%rsp)
	mov %rsp, %rdi
	call \after
	mov CALL_RESULT(%rsp), %rax
	mov CALL_RDX(%rsp), %rdx
8:	FRAME_END
	.endm

	/* A function of which little is known before. */
	.macro ENTRY_ALLOC name
	ENTRY_BEGIN \name
	CALL_BEGIN 2f
1:	CALL_ORIGINAL
	CALL_AFTER heap_after_\name
	.cfi_def_cfa %rbp, 16
2:	CALL_FAR heap_before_alloc
	jmp 1b
	ENTRY_END \name
	.endm

	.macro ENTRY_OTHER name, before
	ENTRY_BEGIN \name
	CALL_FAR \before
	CALL_ORIGINAL
	CALL_AFTER heap_after_\name
	ENTRY_END \name
	.endm

	.text
heap_pass:
	.cfi_startproc
	lea heap_data + HEAP_DATA_ORIGINAL(%rip), %r10
	jmp *(%r10, %r11, 8)
	.cfi_endproc

	/*
	 * The functions by which a program forbids itself what the recorder does: system calls (a
	 * filter), or even the time stamp counter (strict mode, PR_SET_TSC). It is given up before,
	 * for all threads. Only r10 and the flags are used.
	 */
	.macro PRCTL option, value
	cmp $PR_SET_TSC, \option
	je 9f
	cmp $PR_SET_SECCOMP, \option
	jne heap_pass
	cmp $SECCOMP_MODE_STRICT, \value
	je heap_shut
	jmp heap_still
9:	cmp $PR_TSC_SIGSEGV, \value
	je heap_shut
	jmp heap_pass
	.endm

	GLOBAL heap_entry_prctl
	.cfi_startproc
	PRCTL %edi, %rsi
	ENTRY_END prctl

	GLOBAL heap_entry_syscall
	.cfi_startproc
	cmp $SYS_PRCTL, %rdi
	je 1f
	cmp $SYS_SECCOMP, %rdi
	jne heap_pass
	cmp $SECCOMP_SET_MODE_STRICT, %esi
	je heap_shut
	cmp $SECCOMP_SET_MODE_FILTER, %esi
	je heap_still
	jmp heap_pass
1:	PRCTL %esi, %rdx
	ENTRY_END syscall

heap_shut:
	.cfi_startproc
	mov heap_data + HEAP_DATA_LOCAL(%rip), %r10
	test %r10, %r10
	jz heap_pass
	cmpl $0, (%r10)
	je heap_pass
	movl $0, (%r10)
	mov LOCAL_SHARED(%r10), %r10
	movl $1, SHARED_HAS_SHUT(%r10)
	jmp heap_pass
	.cfi_endproc

heap_still:
	.cfi_startproc
	mov heap_data + HEAP_DATA_LOCAL(%rip), %r10
	test %r10, %r10
	jz heap_pass
	lock andl $~HEAP_MAY_CALL_KERNEL, LOCAL_FLAGS(%r10)
	jmp heap_pass
	.cfi_endproc

	/* Some of these throw; see heap_data.twin. */
	ENTRY_BEGIN alloc_0
	CALL_BEGIN 2f
1:	mov CALL_SITE(%rsp), %r11
	lea heap_data + HEAP_DATA_NOTHROW(%rip), %r10
	mov (%r10, %r11, 8), %r10
	test %r10, %r10
	jnz 3f
	CALL_ORIGINAL
4:	CALL_AFTER heap_after_alloc_0
	.cfi_def_cfa %rbp, 16
2:	CALL_FAR heap_before_alloc
	jmp 1b
3:	mov 24(%rsp), %rcx
	mov CALL_RAX(%rsp), %rax
	call *%r10
	test %rax, %rax
	jnz 4b
	mov CALL_MEMO(%rsp), %r11
	test %r11, %r11
	jz 5f
	movq $0, (%r11)
5:	mov 0(%rsp), %rdi
	mov 8(%rsp), %rsi
	mov 16(%rsp), %rdx
	mov 24(%rsp), %rcx
	mov CALL_RAX(%rsp), %rax
	mov CALL_SITE(%rsp), %r11
	leave
	.cfi_def_cfa %rsp, 8
	jmp heap_pass
	ENTRY_END alloc_0

	ENTRY_ALLOC alloc_1
	ENTRY_ALLOC alloc_01
	ENTRY_ALLOC alloc_12
	ENTRY_ALLOC alloc_out
	ENTRY_OTHER realloc_1, heap_before_realloc_0
	ENTRY_OTHER realloc_12, heap_before_realloc_0
	ENTRY_OTHER realloc_2, heap_before_realloc_1
	ENTRY_OTHER resize, heap_before_realloc_0
	ENTRY_OTHER mmap, heap_before_map
	ENTRY_OTHER munmap, heap_before_map
	ENTRY_OTHER mremap, heap_before_map
	ENTRY_OTHER brk, heap_before_brk
	ENTRY_OTHER sbrk, heap_before_map

	/* Blocks that are not in the set of sampled ones are told by one bit of the filter. */
	ENTRY_BEGIN free_0
	test %rdi, %rdi
	jz 5f
	/* Allocators look before the block first: that miss passes while the record is made. */
	prefetcht0 -16(%rdi)
	CALL_BEGIN 3f
	mov %rdi, %rax
	shr $4, %rax
	mov MEMO_HASH_MASK(%r11), %ecx
	imul $HASH_32, %eax, %eax
	test %ecx, %ecx
	jz 4f
	shr $16, %eax
	and %ecx, %eax
	mov LOCAL_BLOCKS(%r10), %rcx
	test %rcx, %rcx
	jz 4f
	mov %eax, %r11d
	shr $3, %r11d
	movzbl (%rcx, %r11), %ecx
	and $7, %eax
	bt %eax, %ecx
	jc 4f
	mov CALL_MEMO(%rsp), %r11
	mov MEMO_SLOT(%r11), %rax
	test %rax, %rax
	jz 1f
	incq SLOT_NR_FREES(%rax)
1:	CALL_ORIGINAL
	mov CALL_MEMO(%rsp), %r11
	test %r11, %r11
	jz 2f
	movq $0, (%r11)
2:	FRAME_END
	.cfi_def_cfa %rbp, 16
3:	CALL_FAR heap_before_free
	jmp 1b
4:	CALL_FAR heap_free_begun
	jmp 1b
5:	movq $0, CALL_MEMO(%rsp)
	jmp 1b
	ENTRY_END free_0

	/*
	 * Called like any function. The frame is one of a struct heap_call, for the walk's sake;
	 * \inner gets it behind up to six arguments.
	 */
	.macro HOOK name, inner
	GLOBAL \name
	.cfi_startproc
	FRAME_BEGIN
	sub $CALL_BYTES, %rsp
	SAVE_4_ARGS
	mov %r8, 32(%rsp)
	mov %r9, 40(%rsp)
	mov 16(%rbp), %rax
	mov %rax, CALL_RESULT(%rsp)
	mov %rsp, %rdi
	call \inner
	FRAME_END
	.cfi_endproc
	.size \name, . - \name
	.endm

	HOOK heap_hook_alloc, heap_inner_alloc
	HOOK heap_hook_dalloc, heap_inner_dalloc
	HOOK heap_hook_expand, heap_inner_expand

	/*
	 * prof_backtrace(vec, &len, max). Where the recorder does not say the stack, the function that
	 * jemalloc had before does, called as if by jemalloc itself: no frame of ours, which its
	 * unwinder would not know, is on the stack by then.
	 */
	GLOBAL heap_prof_backtrace
	.cfi_startproc
	FRAME_BEGIN
	sub $CALL_BYTES, %rsp
	mov %rdi, 0(%rsp)
	mov %rsi, 8(%rsp)
	mov %rdx, 16(%rsp)
	mov %rsp, %rdi
	call heap_inner_backtrace
	test %eax, %eax
	jz 1f
	FRAME_END
1:	.cfi_def_cfa %rbp, 16
	mov 0(%rsp), %rdi
	mov 8(%rsp), %rsi
	mov 16(%rsp), %rdx
	mov heap_data + HEAP_DATA_ORIGINAL(%rip), %rax
	leave
	.cfi_def_cfa %rsp, 8
	test %rax, %rax
	jz 2f
	jmp *%rax
2:	movl $0, (%rsi)
	ret
	.cfi_endproc
	.size heap_prof_backtrace, . - heap_prof_backtrace

	.section .note.GNU-stack, "", @progbits
