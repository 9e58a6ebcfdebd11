/* Compares rules found by following instructions with the compiler's CFI for the same code. */
#include "base/base.h"
#include "tap.h"
#include "unwind/codescan.h"

#include <stdio.h>

#include "base/mem.h"
#include "object/elf.h"
#include "unwind/table.h"
#include "object/x86insn.h"
#include "elf_path.h"

#if defined(__x86_64__)

static uint8_t nr_bytes_of(const char *code, size_t n)
{
	struct x86_insn i;
	return x86_decode((const uint8_t *)code, n, &i) ? i.nr_bytes : 0;
}
#define LENGTH(code) nr_bytes_of(code, sizeof(code) - 1)

TEST(x86_instruction_lengths_are_right)
{
	CHECK_U64(LENGTH("\x90"), 1);
	CHECK_U64(LENGTH("\x48\x81\xec\x00\x01\x00\x00"), 7);
	CHECK_U64(LENGTH("\x66\x0f\x1f\x84\x00\x00\x00\x00\x00"), 9);
	CHECK_U64(LENGTH("\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08"), 10);
	CHECK_U64(LENGTH("\x66\xb8\x01\x02"), 4);
	CHECK_U64(LENGTH("\xf6\x05\x01\x02\x03\x04\x05"), 7);     /* test with immediate */
	CHECK_U64(LENGTH("\xf6\x15\x01\x02\x03\x04"), 6);         /* not without */
	CHECK_U64(LENGTH("\xc5\xf8\x77"), 3);                     /* vzeroupper */
	CHECK_U64(LENGTH("\xc4\xe3\x7d\x39\xc0\x01"), 6);         /* vextracti128 */
	CHECK_U64(LENGTH("\x62\xf1\xfe\x48\x6f\x46\x01"), 7);     /* vmovdqu64 */
	CHECK_U64(LENGTH("\x66\x0f\x3a\x0f\xc1\x08"), 6);         /* palignr */
	CHECK_U64(LENGTH("\x42\x8b\x84\x25\x00\x00\x00\x00"), 8); /* base rbp + index r12 */
	CHECK_U64(LENGTH("\xf3\x0f\x1e\xfa"), 4);                 /* endbr64 */
	CHECK_U64(LENGTH("\x0f\x84\x00\x00\x00\x00"), 6);
	CHECK_U64(LENGTH("\x0f\x84\x00\x00"), 0); /* cut */
	CHECK_U64(LENGTH("\x06"), 0);             /* none in 64-bit mode */
}

struct aggregate {
	uint64_t nr_same;
	uint64_t nr_other;
	uint64_t nr_silent;
};

static void compare_section(struct elf *elf, const struct unwind_table *t, struct aggregate *y)
{
	const struct elf_section *text = elf_section(elf, ".text");
	struct sv code;

	CHECK(text && elf_section_bytes(elf, text, &code, NULL) == 0);
	CLEANUP(free_p) uint32_t *rules = xcalloc(code.n, sizeof(*rules));
	CLEANUP(free_p) uint64_t *starts = xcalloc(t->nr_fdes, sizeof(*starts));
	for (uint32_t i = 0; i < t->nr_fdes; i++)
		starts[i] = t->base + t->fdes[i].pc - text->vaddr;
	code_scan((const uint8_t *)code.p, code.n, starts, t->nr_fdes, rules);
	for (size_t at = 0; at < code.n; at += 3) {
		const struct unwind_row *row = unwind_table_find(t, text->vaddr + at);
		if (!row || row_kind(row->rule) != ROW_SP)
			continue;
		if (rules[at] == ROW_NONE)
			y->nr_silent++;
		else if (row_kind(rules[at]) == ROW_SP &&
			 row_cfa_bytes(rules[at]) == row_cfa_bytes(row->rule))
			y->nr_same++;
		else
			y->nr_other++;
	}
}

TEST(codescan_rules_equal_the_compilers_cfi_for_libc)
{
	CLEANUP(elf_free_p) struct elf *elf = NULL;
	CLEANUP(unwind_table_free_p) struct unwind_table *t = NULL;
	struct aggregate y = {0};

	if (elf_open_path(&elf, "/lib/x86_64-linux-gnu/libc.so.6", NULL))
		tap_skip("no libc.so.6 where Debian has it");
	CHECK(unwind_table_build(&t, elf, NULL, NULL) == 0);
	compare_section(elf, t, &y);
	printf("# %" PRIu64 " same, %" PRIu64 " other, %" PRIu64 " silent\n", y.nr_same, y.nr_other,
	       y.nr_silent);
	CHECK(y.nr_same > 100000);
	CHECK(y.nr_other * 100 < y.nr_same); /* 1 % */
	CHECK(y.nr_silent * 10 < y.nr_same);
}

TEST(codescan_of_garbage_terminates)
{
	enum { NR = 65536 };
	CLEANUP(free_p) uint8_t *code = xmalloc(NR);
	CLEANUP(free_p) uint32_t *rules = xcalloc(NR, sizeof(*rules));
	uint64_t seed = 7;

	for (size_t i = 0; i < NR; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		code[i] = (uint8_t)(seed >> 56);
	}
	code_scan(code, NR, NULL, 0, rules);
	for (size_t i = 0; i < NR; i++)
		CHECK(row_kind(rules[i]) == ROW_NONE || row_kind(rules[i]) == ROW_SP ||
		      row_kind(rules[i]) == ROW_FP);
}

#endif
