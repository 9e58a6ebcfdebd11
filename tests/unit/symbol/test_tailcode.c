/* symbol/tailcode: functions that tail calls removed from a stack. Known code is in this program. */
#include "base/base.h"
#include "tap.h"

#include "base/mem.h"
#include "elf_path.h"
#include "host/reader/hostfile.h"
#include "symbol/tailcode.h"

#if defined(__x86_64__)

/* Most of them go to tc_goal. */
#define FUNCTION(name, body) \
	".type " name ", @function\n" name ":\n" body ".size " name ", .-" name "\n"

/* clang-format off */
__asm__(".text\n"
	FUNCTION("tc_goal", "ret\n")
	FUNCTION("tc_goal.cold", "ret\n")
	FUNCTION("tc_other", "ret\n")
	FUNCTION("tc_one", "nop\njmp tc_goal\n")
	FUNCTION("tc_two", "jmp tc_one\n")
	FUNCTION("tc_three", "test %eax, %eax\nje 1f\njmp tc_two\n1: jmp tc_two\n")
	FUNCTION("tc_fork_a", "jmp tc_goal\n")
	FUNCTION("tc_fork_b", "jmp tc_goal\n")
	FUNCTION("tc_fork", "test %eax, %eax\nje tc_fork_a\njmp tc_fork_b\n")
	FUNCTION("tc_pointer", "jmp *%rax\n")
	FUNCTION("tc_to_pointer", "jmp tc_pointer\n")
	FUNCTION("tc_table", "addq %rdx, %rax\njmp *%rax\n")
	FUNCTION("tc_no_way", "jmp tc_other\n")
	FUNCTION("tc_returns", "ret\n")
	FUNCTION("tc_into_middle", "jmp tc_one + 1\n")
	FUNCTION("tc_loop", "test %eax, %eax\nje tc_loop2\njmp tc_goal\n")
	FUNCTION("tc_loop2", "jmp tc_loop\n")
	FUNCTION("tc_parted.part.0", "jmp tc_goal\n")
	FUNCTION("tc_parted", "jmp tc_parted.part.0\n")
	FUNCTION("tc_to_cold", "jmp tc_one_more\n")
	FUNCTION("tc_one_more", "jmp tc_goal.cold\n")
	FUNCTION("OUTLINED_FUNCTION_7", "jmp tc_goal\n")
	FUNCTION("tc_caller", "call tc_one\ncall *tc_slot(%rip)\ncall *%rax\nret\n")
	".section .data.rel.ro, \"aw\"\ntc_slot: .quad tc_one\n.text\n");
/* clang-format on */

struct self {
	struct symbolizer *symbolizer;
	struct tailcode *code;
};

static struct self open_self(void)
{
	struct elf *e = NULL;
	CHECK(!elf_open_path(&e, "/proc/self/exe", NULL));
	struct symbolizer *s = symbolizer_new(e, "", NULL, SYMBOLIZER_NO_DWARF);
	return (struct self){s, tailcode_new(s)};
}

static void self_release(struct self *s)
{
	tailcode_free(s->code);
	symbolizer_free(s->symbolizer);
}

static uint64_t start_of(const struct self *s, const char *name)
{
	struct symtab_hit hit = {0};
	CHECK(symtab_find_name(symbolizer_functions(s->symbolizer), sv_from_str(name), &hit));
	return hit.start;
}

/* The functions between a call of @called and @goal: "a b". */
static void check_hidden(struct self *s, const char *called, const char *goal, const char *expected)
{
	struct tail_function chain[TAIL_CHAIN_MAX];
	size_t nr =
		tailcode_hidden(s->code, start_of(s, called), s->code, start_of(s, goal), chain);
	CLEANUP(buf_release) struct buf text = {0};
	for (size_t i = 0; i < nr; i++) {
		struct symtab_hit hit = {.name = SV("?")};
		CHECK(chain[i].in == s->code);
		(void)symtab_find(symbolizer_functions(s->symbolizer), chain[i].vaddr, &hit);
		buf_addf(&text, "%s%.*s", i ? " " : "", SV_ARGS(hit.name));
	}
	CHECK_STR(buf_str(&text), expected);
}

TEST(tailcode_reads_the_target_of_direct_calls_only)
{
	CLEANUP(self_release) struct self s = open_self();
	uint64_t at = start_of(&s, "tc_caller");
	CHECK_U64(tailcode_target(s.code, at + 5), start_of(&s, "tc_one"));
	CHECK_U64(tailcode_target(s.code, at + 11),
		  0); /* the pointer is not in .got: it may change */
	CHECK_U64(tailcode_target(s.code, at + 13), 0);
	CHECK_U64(tailcode_target(s.code, 3), 0);
}

TEST(tailcode_finds_the_only_chain_of_jumps)
{
	CLEANUP(self_release) struct self s = open_self();
	check_hidden(&s, "tc_one", "tc_goal", "tc_one");
	check_hidden(&s, "tc_three", "tc_goal", "tc_three tc_two tc_one");
	check_hidden(&s, "tc_loop", "tc_goal", "tc_loop");
}

TEST(tailcode_names_only_what_is_certain)
{
	CLEANUP(self_release) struct self s = open_self();
	check_hidden(&s, "tc_fork", "tc_goal", "tc_fork");
	check_hidden(&s, "tc_pointer", "tc_goal", "tc_pointer");
	check_hidden(&s, "tc_to_pointer", "tc_goal", "tc_to_pointer");
}

TEST(tailcode_finds_nothing_where_no_jump_leads_to_the_callee)
{
	CLEANUP(self_release) struct self s = open_self();
	check_hidden(&s, "tc_goal", "tc_goal", "");
	check_hidden(&s, "tc_no_way", "tc_goal", "");
	check_hidden(&s, "tc_returns", "tc_goal", "");
	check_hidden(&s, "tc_table", "tc_goal", "");
	check_hidden(&s, "tc_into_middle", "tc_goal", "");
	CHECK_U64(tailcode_hidden(s.code, start_of(&s, "tc_one") + 1, s.code,
				  start_of(&s, "tc_goal"),
				  (struct tail_function[TAIL_CHAIN_MAX]){0}),
		  0); /* not the start of a function */
}

TEST(tailcode_takes_fragments_for_their_function_and_skips_added_code)
{
	CLEANUP(self_release) struct self s = open_self();
	check_hidden(&s, "tc_parted", "tc_goal", "tc_parted");
	check_hidden(&s, "tc_parted", "tc_parted.part.0", "");
	check_hidden(&s, "tc_goal", "tc_goal.cold", "");
	check_hidden(&s, "tc_to_cold", "tc_goal.cold", "tc_to_cold tc_one_more");
	check_hidden(&s, "OUTLINED_FUNCTION_7", "tc_goal", "");
}

#endif
