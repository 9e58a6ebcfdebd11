/*
 * The entry points that stubs jump to (wire/heap_wire.h): r11 = site, all other registers as the
 * caller set them, the return address on the stack. An entry builds a frame, saves the arguments in
 * it (struct heap_call of heap_recorder.h), calls the original function with unchanged arguments
 * and returns its result. In the original the stack has the same alignment as in the caller.
 * Neither this code nor anything that it calls uses vector registers.
 */
#define HEAP_DATA_LOCAL    8
#define HEAP_DATA_ORIGINAL 16
#define HEAP_DATA_NOTHROW     (16 + 256 * 8)

/* struct heap_call, followed by the saved rbp and the return address */
#define CALL_ARGS   0
#define CALL_RAX    48
#define CALL_SITE   56
#define CALL_THREAD   64
#define CALL_LOCAL  72
#define CALL_RESULT 112
#define CALL_RDX    120
#define CALL_BYTES  128

/* struct heap_local, heap_thread_state, heap_slot */
#define HEAP_SYSCALLS_ALLOWED 1
#define HEAP_FS0_IS_TP    4
#define LOCAL_SHARED      8
#define LOCAL_THREAD_STATES       24
#define LOCAL_NR_SLOTS    32
#define LOCAL_FLAGS       36
#define LOCAL_BLOCKS      48
#define THREAD_TP           8
#define THREAD_SLOT         16
#define THREAD_HASH_MASK    40
#define SLOT_OWNER        0
#define SLOT_NR_FREES     48
#define SHARED_TSC_FORBIDDEN   108
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
	jz heap_call_original
	cmpl $0, (%r10)
	je heap_call_original
	FRAME_BEGIN
	sub $CALL_BYTES, %rsp
	SAVE_4_ARGS
	mov %rax, CALL_RAX(%rsp)
	mov %r11, CALL_SITE(%rsp)
	.endm

	/*
	 * Loads the thread state into r11 and makes this call its outermost call, or jumps to
	 * \slow. r10 is local; clobbers rax and rcx.
	 */
	.macro CALL_BEGIN slow
	testb $HEAP_FS0_IS_TP, LOCAL_FLAGS(%r10)
	jz \slow
	mov %fs:0, %rax
	mov %rax, %rcx
	shr $6, %rcx
	mov LOCAL_NR_SLOTS(%r10), %r11d
	imul $HASH_32, %ecx, %ecx
	imul %r11, %rcx
	shr $32, %rcx
	mov %rcx, %r11
	shl $16, %r11
	/* 0: local memory was zeroed while a signal handler interrupted this thread here */
	mov LOCAL_THREAD_STATES(%r10), %rcx
	test %rcx, %rcx
	jz \slow
	add %rcx, %r11
	cmp %rax, THREAD_TP(%r11)
	jne \slow
	mov THREAD_SLOT(%r11), %rcx
	test %rcx, %rcx
	jz \slow
	cmp %rax, SLOT_OWNER(%rcx)
	jne \slow
	cmpq $0, (%r11)
	jne \slow
	mov %r10, CALL_LOCAL(%rsp)
	mov %r11, CALL_THREAD(%rsp)
	mov %rsp, (%r11)
	.endm

	/* Calls a C function with the call and local, and restores the argument registers. */
	.macro CALL_C function
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
	cmpq $0, CALL_THREAD(%rsp)
	je 8f
	mov %rax, CALL_RESULT(%rsp)
	mov %rdx, CALL_RDX(%rsp)
	mov %rsp, %rdi
	call \after
	mov CALL_RESULT(%rsp), %rax
	mov CALL_RDX(%rsp), %rdx
8:	FRAME_END
	.endm

	/* An allocation: all work is done after the call. */
	.macro ENTRY_ALLOC name
	ENTRY_BEGIN \name
	CALL_BEGIN 2f
1:	CALL_ORIGINAL
	CALL_AFTER heap_after_\name
	.cfi_def_cfa %rbp, 16
2:	CALL_C heap_before_alloc
	jmp 1b
	ENTRY_END \name
	.endm

	.macro ENTRY_OTHER name, before
	ENTRY_BEGIN \name
	CALL_C \before
	CALL_ORIGINAL
	CALL_AFTER heap_after_\name
	ENTRY_END \name
	.endm

	.text
heap_call_original:
	.cfi_startproc
	lea heap_data + HEAP_DATA_ORIGINAL(%rip), %r10
	jmp *(%r10, %r11, 8)
	.cfi_endproc

	/*
	 * Calls by which a program forbids itself system calls (seccomp filter) or rdtsc (strict
	 * seccomp, PR_SET_TSC). Before the call, the recorder stops using them in all threads.
	 * Clobbers only r10 and the flags.
	 */
	.macro PRCTL option, value
	cmp $PR_SET_TSC, \option
	je 9f
	cmp $PR_SET_SECCOMP, \option
	jne heap_call_original
	cmp $SECCOMP_MODE_STRICT, \value
	je heap_deactivate
	jmp heap_forbid_syscalls
9:	cmp $PR_TSC_SIGSEGV, \value
	je heap_deactivate
	jmp heap_call_original
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
	jne heap_call_original
	cmp $SECCOMP_SET_MODE_STRICT, %esi
	je heap_deactivate
	cmp $SECCOMP_SET_MODE_FILTER, %esi
	je heap_forbid_syscalls
	jmp heap_call_original
1:	PRCTL %esi, %rdx
	ENTRY_END syscall

heap_deactivate:
	.cfi_startproc
	mov heap_data + HEAP_DATA_LOCAL(%rip), %r10
	test %r10, %r10
	jz heap_call_original
	cmpl $0, (%r10)
	je heap_call_original
	movl $0, (%r10)
	mov LOCAL_SHARED(%r10), %r10
	movl $1, SHARED_TSC_FORBIDDEN(%r10)
	jmp heap_call_original
	.cfi_endproc

heap_forbid_syscalls:
	.cfi_startproc
	mov heap_data + HEAP_DATA_LOCAL(%rip), %r10
	test %r10, %r10
	jz heap_call_original
	lock andl $~HEAP_SYSCALLS_ALLOWED, LOCAL_FLAGS(%r10)
	jmp heap_call_original
	.cfi_endproc

	/* Throwing functions call their nothrow variant; see heap_data.nothrow. */
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
2:	CALL_C heap_before_alloc
	jmp 1b
3:	mov 24(%rsp), %rcx
	mov CALL_RAX(%rsp), %rax
	call *%r10
	test %rax, %rax
	jnz 4b
	mov CALL_THREAD(%rsp), %r11
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
	jmp heap_call_original
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

	/* One bit of the filter says that a block is not in the set of sampled blocks. */
	ENTRY_BEGIN free_0
	test %rdi, %rdi
	jz 5f
	/* Allocators read the word before the block first: prefetch it during this code. */
	prefetcht0 -16(%rdi)
	CALL_BEGIN 3f
	mov %rdi, %rax
	shr $4, %rax
	mov THREAD_HASH_MASK(%r11), %ecx
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
	mov CALL_THREAD(%rsp), %r11
	mov THREAD_SLOT(%r11), %rax
	test %rax, %rax
	jz 1f
	incq SLOT_NR_FREES(%rax)
1:	CALL_ORIGINAL
	mov CALL_THREAD(%rsp), %r11
	test %r11, %r11
	jz 2f
	movq $0, (%r11)
2:	FRAME_END
	.cfi_def_cfa %rbp, 16
3:	CALL_C heap_before_free
	jmp 1b
4:	CALL_C heap_before_free_slow
	jmp 1b
5:	movq $0, CALL_THREAD(%rsp)
	jmp 1b
	ENTRY_END free_0

	/*
	 * A hook, called like a normal function. Its frame is a struct heap_call, as the stack walk
	 * expects; \function gets a pointer to it.
	 */
	.macro HOOK name, function
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
	call \function
	FRAME_END
	.cfi_endproc
	.size \name, . - \name
	.endm

	HOOK heap_hook_alloc, heap_hooked_alloc
	HOOK heap_hook_dalloc, heap_hooked_dalloc
	HOOK heap_hook_expand, heap_hooked_expand

	/*
	 * prof_backtrace(vec, &len, max). If the recorder returns no stack, jumps to the function
	 * that jemalloc used before, after removing this frame, which that function's unwinder
	 * would not know.
	 */
	GLOBAL heap_prof_backtrace
	.cfi_startproc
	FRAME_BEGIN
	sub $CALL_BYTES, %rsp
	mov %rdi, 0(%rsp)
	mov %rsi, 8(%rsp)
	mov %rdx, 16(%rsp)
	mov %rsp, %rdi
	call heap_hooked_backtrace
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
