/*
 * Malformed call frame information: compiled, looked up, and used to unwind a malformed stack. The
 * first byte selects the kind of input; the last 64 bytes are also registers and stack.
 */
#include "base/base.h"

#include "base/mem.h"
#include "base/file/rd.h"
#include "cfi_image.h"
#include "object/elf.h"
#include "unwind/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { IS_DEBUG_FRAME = 1, IS_WHOLE_ELF = 2, IS_GOPCLNTAB = 4 };

#define CODE_BYTES 512
#define BIAS       0x7f0000000000ull
#define STACK      0x7ffd00001000ull

static void check_rows(const struct unwind_table *t)
{
	for (uint32_t i = 0; i < t->nr_rows; i++) {
		ASSERT(!i || t->rows[i].pc > t->rows[i - 1].pc);
		ASSERT(unwind_table_find(t, t->base + t->rows[i].pc) == &t->rows[i]);
		if (row_kind(t->rows[i].rule) == ROW_SPECIAL)
			ASSERT(row_special_idx(t->rows[i].rule) < t->nr_specials);
	}
}

static void walk_all(const struct unwind_table *t, const uint8_t *data, size_t n)
{
	static struct walker *walker;
	struct unwind_module module = {.id = 1, .table = t};
	struct spaces spaces = {0};
	struct space *sp = spaces_get(&spaces, 1);
	struct space_map map = {
		.start = BIAS, .end = BIAS + ((uint64_t)1 << 32), .bias = BIAS, .module = &module};
	uint64_t regs[ARCH_NR_DWARF_REG + 8] = {0};
	uint8_t stack[512] = {0};

	if (!walker)
		walker = walker_new();
	space_add(&spaces, sp, &map);
	/* Incremented per input, as the unwinder is kept between inputs. */
	static uint32_t generation;
	sp->generation = ++generation;
	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = n ? data[i % n] : 0;
	for (size_t i = 0; i + 16 <= sizeof(stack); i += 24) { /* some words are addresses */
		uint64_t addr = BIAS + CFI_IMAGE_CODE + stack[i] * 2u;
		memcpy(stack + i, &addr, 8);
		addr = STACK + stack[i] * 8u;
		memcpy(stack + i + 8, &addr, 8);
	}
	for (uint64_t pc = CFI_IMAGE_CODE; pc < CFI_IMAGE_CODE + CODE_BYTES; pc += 3) {
		const struct walk_frame *f;
		uint32_t nr;
		for (size_t i = 0; i < ARRAY_LEN(regs); i++)
			regs[i] = STACK + (n ? data[(i + pc) % n] : 0) * 8u;
		regs[__builtin_popcountll(ARCH_PERF_REGS_MASK &
					  (((uint64_t)1 << ARCH_PERF_IP) - 1))] = BIAS + pc;
		regs[__builtin_popcountll(ARCH_PERF_REGS_MASK &
					  (((uint64_t)1 << ARCH_PERF_SP) - 1))] = STACK;
		struct walk_input in = {.space = sp,
					.regs = regs,
					.regs_mask = ARCH_PERF_REGS_MASK,
					.stack = stack,
					.nr_stack = sizeof(stack)};
		(void)walker_walk(walker, &in, &f, &nr);
		ASSERT(nr >= 1 && nr <= WALK_DEPTH_MAX);
	}
	spaces_release(&spaces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP(buf_release) struct buf image = {0};
	CLEANUP(elf_free_p) struct elf *elf = NULL;
	CLEANUP(unwind_table_free_p) struct unwind_table *t = NULL;
	char code[CODE_BYTES];

	if (!n)
		return 0;
	uint8_t how = data[0];
	bool is_other = how & (IS_DEBUG_FRAME | IS_GOPCLNTAB);
	struct sv rest = sv_from((const char *)data + 1, n - 1);
	for (size_t i = 0; i < sizeof(code); i++)
		code[i] = rest.n ? rest.p[i % rest.n] : 0;
	if (how & IS_WHOLE_ELF)
		buf_add(&image, rest.p, rest.n);
	else
		cfi_image(&image, is_other ? (struct sv){0} : rest,
			  how & IS_GOPCLNTAB ? CFI_IMAGE_GOPCLNTAB : CFI_IMAGE_DEBUG_FRAME,
			  is_other ? rest : (struct sv){0}, sv_from(code, sizeof(code)));
	if (elf_open_bytes(&elf, image.p, image.n, NULL) || unwind_table_build(&t, elf, NULL, NULL))
		return 0;
	check_rows(t);
	walk_all(t, data, n);
	return 0;
}
