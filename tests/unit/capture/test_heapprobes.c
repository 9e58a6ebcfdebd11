/* capture/heap/probes_point.c: which instruction of a function is probed. */
#include "base/base.h"

#include "capture/heap/probes.h"

#include "tap.h"

#define POINT(shape, ret, ...)                                                                   \
	heapprobes_point((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), \
			 (shape), (ret))

TEST(probes_go_on_the_first_instruction_if_that_is_emulated)
{
	bool is_emulated = false;
	CHECK_U64(POINT(HEAP_REALLOC_12, &is_emulated, 0x55, 0x48, 0x89, 0xe5), 0); /* push rbp */
	CHECK(is_emulated);
	CHECK_U64(POINT(HEAP_REALLOC_12, &is_emulated, 0x41, 0x54, 0x53), 0); /* push r12 */
	CHECK(is_emulated);
}

TEST(probes_pass_by_what_keeps_arguments_and_stack)
{
	bool is_emulated = false;
	/* endbr64; cmpb $0,x(%rip); push %r12 */
	CHECK_U64(POINT(HEAP_REALLOC_12, &is_emulated, 0xf3, 0x0f, 0x1e, 0xfa, 0x80, 0x3d, 1, 2, 3,
			0, 0, 0x41, 0x54),
		  11);
	CHECK(is_emulated);
	/* test %rdi,%rdi; je */
	CHECK_U64(POINT(HEAP_FREE_0, &is_emulated, 0x48, 0x85, 0xff, 0x74, 0x10), 3);
	CHECK(is_emulated);
	/* mov %rdx,%r12; push %rbx */
	CHECK_U64(POINT(HEAP_REALLOC_12, &is_emulated, 0x49, 0x89, 0xd4, 0x53), 3);
	CHECK(is_emulated);
}

TEST(probes_do_not_pass_by_a_change_of_an_argument)
{
	bool is_emulated = true;
	/* mov %rsi,%rdi; push %rbx */
	CHECK_U64(POINT(HEAP_REALLOC_12, &is_emulated, 0x48, 0x89, 0xf7, 0x53), 0);
	CHECK(!is_emulated);
	/* lea 8(%rdi),%rsi; push */
	CHECK_U64(POINT(HEAP_REALLOC_12, &is_emulated, 0x48, 0x8d, 0x77, 0x08, 0x53), 0);
	CHECK(!is_emulated);
	/* xor %edi,%edi; push */
	CHECK_U64(POINT(HEAP_FREE_0, &is_emulated, 0x31, 0xff, 0x53), 0);
	CHECK(!is_emulated);
	/* an instruction that is not known to be harmless: syscall */
	CHECK_U64(POINT(HEAP_FREE_0, &is_emulated, 0x0f, 0x05, 0x53), 0);
	CHECK(!is_emulated);
}

TEST(probes_pass_by_a_change_of_the_stack_pointer_for_frees_only)
{
	bool is_emulated = false;
	/* sub $24,%rsp; test %rdi,%rdi; je */
#define SUB_TEST_JE 0x48, 0x83, 0xec, 0x18, 0x48, 0x85, 0xff, 0x74, 0x02
	CHECK_U64(POINT(HEAP_FREE_0, &is_emulated, SUB_TEST_JE), 7);
	CHECK(is_emulated);
	CHECK_U64(POINT(HEAP_REALLOC_12, &is_emulated, SUB_TEST_JE), 0);
	CHECK(!is_emulated);
}

TEST(probes_pass_by_changes_of_arguments_that_a_function_does_not_have)
{
	bool is_emulated = false;
	/* mov %rdi,%rax; mov x(%rip),%rdx; mov %rdi,%rcx; shr $26,%rax; and $240,%eax; je */
#define JEMALLOCS_FREE                                                                            \
	0x48, 0x89, 0xf8, 0x48, 0x8b, 0x15, 1, 2, 3, 0, 0x48, 0x89, 0xf9, 0x48, 0xc1, 0xe8, 0x1a, \
		0x25, 0xf0, 0, 0, 0, 0x74, 0x10
	CHECK_U64(POINT(HEAP_FREE_0, &is_emulated, JEMALLOCS_FREE), 22);
	CHECK(is_emulated);
	CHECK_U64(POINT(HEAP_ALLOC_0, &is_emulated, JEMALLOCS_FREE), 22);
	CHECK(is_emulated);
	CHECK_U64(POINT(HEAP_ALLOC_12, &is_emulated, JEMALLOCS_FREE), 0);
	CHECK(!is_emulated);
}

TEST(probes_of_code_that_is_cut_short_stay_at_its_start)
{
	bool is_emulated = true;
	CHECK_U64(POINT(HEAP_FREE_0, &is_emulated, 0x48), 0);
	CHECK(!is_emulated);
	CHECK_U64(POINT(HEAP_FREE_0, &is_emulated, 0x48, 0x85, 0xff), 0);
	CHECK(!is_emulated);
}
