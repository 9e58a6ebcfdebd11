/*
 * Compares the walker with libgcc: registers and stack bytes are copied in a signal handler and
 * walked with our tables; every frame must be that of _Unwind_Backtrace at the same place.
 */
#include "base/base.h"
#include "tap.h"
#include "unwind/walk.h"

#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "arch.h"
#include "base/mem.h"
#include "object/elf.h"
#include "unwind_process.h"

#if defined(__x86_64__)

#define NR_TRUTH   4096
#define STACK_COPY ((size_t)1 << 20)

/* What the handler recorded. Each test is a process, so static variables will do. */
static uint64_t truth[NR_TRUTH];
static bool truth_is_call[NR_TRUTH];
static size_t nr_truth;
static uint64_t regs[ARCH_NR_DWARF_REG];
static uint64_t regs_perf[24];
static uint8_t *stack_copy;
static size_t nr_stack_copy;
static volatile sig_atomic_t nr_hits;
static struct unwind_process process;

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *c, void *arg)
{
	(void)arg;
	int is_before = 0;
	uint64_t ip = _Unwind_GetIPInfo(c, &is_before);
	if (nr_truth < NR_TRUTH && ip) {
		truth[nr_truth] = ip;
		truth_is_call[nr_truth++] = !is_before;
	}
	return _URC_NO_REASON;
}

static void take_regs(const ucontext_t *uc)
{
	static const int from_dwarf[ARCH_NR_DWARF_REG] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
		REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
	static const uint8_t perf[] = ARCH_PERF_FROM_DWARF;

	for (size_t i = 0; i < ARCH_NR_DWARF_REG; i++) {
		regs[i] = (uint64_t)uc->uc_mcontext.gregs[from_dwarf[i]];
		uint64_t below = ARCH_PERF_REGS_MASK & (((uint64_t)1 << perf[i]) - 1);
		regs_perf[__builtin_popcountll(below)] = regs[i];
	}
}

/* Not memcpy: the address sanitizer would report its red zones between variables. */
static __attribute__((no_sanitize("address"))) void copy_stack(uint64_t sp, size_t n)
{
	const volatile uint8_t *from = (const volatile uint8_t *)(uintptr_t)sp;

	for (size_t i = 0; i < n; i++)
		stack_copy[i] = from[i];
}

static void on_signal(int sig, siginfo_t *si, void *context)
{
	(void)sig;
	(void)si;
	const ucontext_t *uc = context;

	nr_truth = 0;
	_Unwind_Backtrace(note_frame, NULL);
	take_regs(uc);
	/* Skip the handler's own frames, up to the sampled pc. */
	size_t skip = 0;
	while (skip < nr_truth && truth[skip] != regs[ARCH_DWARF_PC])
		skip++;
	memmove(truth, truth + skip, (nr_truth - skip) * sizeof(*truth));
	memmove(truth_is_call, truth_is_call + skip, (nr_truth - skip) * sizeof(*truth_is_call));
	nr_truth -= skip;
	uint64_t sp = regs[ARCH_DWARF_SP];
	nr_stack_copy = unwind_process_stack_bytes(&process, sp, STACK_COPY);
	copy_stack(sp, nr_stack_copy);
	nr_hits++;
}

static void setup(void)
{
	if (!unwind_process_init(&process))
		tap_skip("cannot read /proc/self/maps");
	stack_copy = xmalloc(STACK_COPY);
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGPROF, &sa, NULL);
}

static enum walk_end walk_taken(const struct walk_frame **frames, uint32_t *nr)
{
	struct walk_input in = {.space = process.space,
				.regs = regs_perf,
				.regs_mask = ARCH_PERF_REGS_MASK,
				.stack = stack_copy,
				.nr_stack = nr_stack_copy};
	return walker_walk(process.walker, &in, frames, nr);
}

static void check_taken(void)
{
	const struct walk_frame *f;
	uint32_t nr;

	CHECK(nr_truth > 3);
	enum walk_end end = walk_taken(&f, &nr);
	CHECK_U64(end, WALK_ROOT);
	CHECK_U64(nr, nr_truth);
	for (uint32_t i = 0; i < nr && i < nr_truth; i++) {
		CHECK_U64(f[i].addr, truth[i]);
		CHECK_U64(f[i].is_call, truth_is_call[i]);
	}
}

#define NO_FP __attribute__((noinline, noclone, optimize("O2", "omit-frame-pointer")))

static NO_FP int leaf(int x)
{
	raise(SIGUSR1);
	return x + 1;
}

static NO_FP int deep(int x)
{
	volatile char pad[40] = {0};
	pad[x % 40] = 1;
	int r = x ? deep(x - 1) : leaf(x);
	return r + pad[3];
}

static NO_FP int with_alloca(int x)
{
	volatile char *p = alloca((size_t)x * 100 + 24);
	p[x] = 1;
	return deep(3) + p[x];
}

static NO_FP int compare(const void *a, const void *b)
{
	if (!nr_hits)
		(void)with_alloca(3);
	return *(const int *)a - *(const int *)b;
}

TEST(walk_equals_libgcc_in_a_call_chain)
{
	setup();
	(void)deep(5);
	CHECK_U64(nr_hits, 1);
	check_taken();
}

TEST(walk_equals_libgcc_at_depth_1000)
{
	setup();
	(void)deep(1000);
	check_taken();
	CHECK(nr_truth > 1000);
}

TEST(walk_equals_libgcc_through_alloca_and_qsort_callback)
{
	int v[] = {4, 3, 9, 1, 2};
	setup();
	qsort(v, ARRAY_LEN(v), sizeof(*v), compare);
	check_taken();
}

static NO_FP void on_outer(int sig)
{
	(void)sig;
	(void)with_alloca(2);
}

TEST(walk_equals_libgcc_under_a_signal_handler)
{
	setup();
	signal(SIGUSR2, on_outer);
	raise(SIGUSR2);
	check_taken();
	bool has_interrupted = false;
	for (size_t i = 1; i < nr_truth; i++)
		has_interrupted |= !truth_is_call[i];
	CHECK(has_interrupted);
}

/* ---- frames that need more than pc, sp and fp ---------------------------------------------- */

/* The CFA of a caller is in r12: the walk has to start over with all registers. */
void call_by_r12(int (*fn)(int));
__asm__(".text\n"
	".type call_by_r12, @function\n"
	"call_by_r12:\n"
	"	.cfi_startproc\n"
	"	push %r12\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset 12, -16\n"
	"	mov %rsp, %r12\n"
	"	.cfi_def_cfa 12, 16\n"
	"	sub $176, %rsp\n"
	"	mov %rdi, %rax\n"
	"	mov $3, %edi\n"
	"	call *%rax\n"
	"	mov %r12, %rsp\n"
	"	.cfi_def_cfa 7, 16\n"
	"	pop %r12\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size call_by_r12, .-call_by_r12\n");

/* The CFA is an expression: rsp + 40 + 8. rbx is saved at the address of another expression. */
void call_by_expression(int (*fn)(int));
__asm__(".text\n"
	".type call_by_expression, @function\n"
	"call_by_expression:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	sub $32, %rsp\n"
	"	.cfi_escape 0x0f, 4, 0x77, 40, 0x38, 0x22\n"
	"	.cfi_escape 0x10, 3, 2, 0x40, 0x1c\n" /* CFA - 16 */
	"	mov %rdi, %rax\n"
	"	mov $3, %edi\n"
	"	call *%rax\n"
	"	add $32, %rsp\n"
	"	.cfi_def_cfa 7, 16\n"
	"	.cfi_offset 3, -16\n"
	"	pop %rbx\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size call_by_expression, .-call_by_expression\n");

static NO_FP int clobbers_saved(int x)
{
	__asm__ volatile("xor %%r12d, %%r12d; xor %%ebx, %%ebx" ::: "r12", "rbx", "r13", "r14");
	return deep(x) + x;
}

TEST(walk_equals_libgcc_where_the_cfa_is_in_r12)
{
	setup();
	call_by_r12(clobbers_saved);
	check_taken();
	CHECK(process.walker != NULL);
}

TEST(walk_equals_libgcc_where_the_cfa_is_an_expression)
{
	setup();
	call_by_expression(clobbers_saved);
	check_taken();
}

static NO_FP int through_r12(int x)
{
	call_by_r12(clobbers_saved);
	return x;
}

TEST(walk_equals_libgcc_through_r12_expression_and_a_signal)
{
	setup();
	signal(SIGUSR2, on_outer);
	call_by_expression(through_r12);
	check_taken();
}

/* ---- reasons why a walk ends --------------------------------------------------------------- */

TEST(walk_of_a_short_copy_ends_as_unreadable)
{
	const struct walk_frame *f;
	uint32_t nr, nr_whole;

	setup();
	(void)deep(50);
	CHECK_U64(walk_taken(&f, &nr_whole), WALK_ROOT);
	size_t whole = nr_stack_copy;
	nr_stack_copy = 1500;
	CHECK_U64(walk_taken(&f, &nr), WALK_UNREADABLE);
	CHECK(nr > 3 && nr < nr_whole);
	nr_stack_copy = 0;
	CHECK_U64(walk_taken(&f, &nr), WALK_UNREADABLE);
	CHECK_U64(nr, 1);
	nr_stack_copy = whole;
	CHECK_U64(walk_taken(&f, &nr), WALK_ROOT);
	CHECK_U64(nr, nr_whole);
}

TEST(walk_of_garbage_terminates)
{
	const struct walk_frame *f;
	uint32_t nr;
	uint64_t seed = 99;

	setup();
	(void)deep(20);
	for (int round = 0; round < 2000; round++) {
		for (int i = 0; i < 16; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			stack_copy[(seed >> 20) % nr_stack_copy] = (uint8_t)(seed >> 56);
		}
		enum walk_end end = walk_taken(&f, &nr);
		CHECK(end < WALK_NEEDS_FULL && nr >= 1 && nr <= WALK_DEPTH_MAX);
	}
}

TEST(walk_without_pc_or_sp_has_no_frames)
{
	const struct walk_frame *f;
	uint32_t nr = 7;

	setup();
	(void)deep(1);
	struct walk_input in = {.space = process.space, .regs = regs_perf, .regs_mask = 1};
	CHECK_U64(walker_walk(process.walker, &in, &f, &nr), WALK_NO_MAP);
	CHECK_U64(nr, 0);
}

#endif
