/* Made tables of Go's functions, in each of the four formats: functions, names, distances, unwind rows. */
#include "base/base.h"
#include "object/gopclntab.h"
#include "tap.h"

#include <stdlib.h>

#include "base/buf.h"
#include "cfi_image.h"
#include "symbol/funcfind.h"
#include "unwind/table.h"

#define CODE_BYTES 0x400u

struct made_function {
	uint32_t start; /* from the start of the code */
	const char *name;
	const char *steps; /* pairs of (distance, zigzag) and code bytes; ends with 0 */
	uint8_t flags;
};

/* 0x00-0x10: 0, to 0x30: 0x20, then 0. */
#define STEPS_ORDINARY "\x02\x10\x40\x20\x3f\x10"
#define STEPS_NONE     "\x02\x40"

static const struct made_function made_functions[] = {
	{0x000, "runtime.goexit", STEPS_NONE, 1},
	{0x040, "main.work", STEPS_ORDINARY, 0},
	{0x080, "runtime.systemstack.abi0", STEPS_NONE, 2},
	{0x0c0, "runtime.sigreturn", STEPS_NONE, 0},
	{0x100, "main.(*Db).Commit", STEPS_ORDINARY, 0},
};
#define MADE_END 0x140u

static void patch_u32(struct buf *b, size_t at, uint32_t v)
{
	memcpy(b->p + at, &v, sizeof(v));
}

static void patch_u64(struct buf *b, size_t at, uint64_t v)
{
	memcpy(b->p + at, &v, sizeof(v));
}

/* What the linker writes; @version as in Go's releases: 2, 16, 18 or 20. */
static void make_table(struct buf *b, int version, uint64_t text)
{
	static const uint32_t magics[] = {
		[2] = 0xfffffffb, [16] = 0xfffffffa, [18] = 0xfffffff0, [20] = 0xfffffff1};
	enum { NR = ARRAY_LEN(made_functions) };
	bool is_new = version >= 18;
	size_t nr_words = is_new ? 8 : version == 16 ? 7 : 1;
	uint32_t names[NR], steps[NR];

	buf_add_u32le(b, magics[version]);
	buf_add(b, "\0\0\1\10", 4);
	size_t head = b->n;
	for (size_t i = 0; i < nr_words; i++)
		buf_add_u64le(b, 0);
	size_t functions = b->n;
	patch_u64(b, head, NR);
	size_t entry = is_new ? 8 : 16;
	if (version != 2) {
		size_t first = is_new ? 3 : 2;
		if (is_new)
			patch_u64(b, head + 16, text);
		/* Names, units, files and steps have one place here. */
		size_t names_at = b->n;
		for (size_t i = 0; i < 4; i++)
			patch_u64(b, head + (first + i) * 8, names_at);
		buf_add_ch(b, 0);
		for (size_t i = 0; i < NR; i++) {
			names[i] = (uint32_t)(b->n - names_at);
			buf_add(b, made_functions[i].name, strlen(made_functions[i].name) + 1);
			steps[i] = (uint32_t)(b->n - names_at);
			buf_add(b, made_functions[i].steps, strlen(made_functions[i].steps) + 1);
		}
		functions = b->n;
		patch_u64(b, head + (first + 4) * 8, functions);
	}
	buf_add_repeat(b, 0, NR * entry + entry / 2);
	if (version == 2)
		for (size_t i = 0; i < NR; i++) {
			names[i] = (uint32_t)b->n;
			buf_add(b, made_functions[i].name, strlen(made_functions[i].name) + 1);
			steps[i] = (uint32_t)b->n;
			buf_add(b, made_functions[i].steps, strlen(made_functions[i].steps) + 1);
		}
	for (size_t i = 0; i < NR; i++) {
		const struct made_function *f = &made_functions[i];
		uint64_t func = b->n - (version == 2 ? 0 : functions);
		size_t at = functions + i * entry;
		if (is_new) {
			patch_u32(b, at, f->start);
			patch_u32(b, at + 4, (uint32_t)func);
		} else {
			patch_u64(b, at, text + f->start);
			patch_u64(b, at + 8, func);
		}
		size_t func_at = b->n;
		size_t address = is_new ? 4 : 8;
		buf_add_repeat(b, 0, 48);
		patch_u32(b, func_at + address, names[i]);
		patch_u32(b, func_at + address + 12, steps[i]);
		if (version != 2)
			b->p[func_at + (version == 18 ? 37 : 41)] = (char)f->flags;
	}
	if (is_new)
		patch_u32(b, functions + NR * entry, MADE_END);
	else
		patch_u64(b, functions + NR * entry, text + MADE_END);
}

static struct elf *image_of(const struct buf *table)
{
	CLEANUP(buf_release) struct buf image = {0};
	struct elf *elf = NULL;
	char code[CODE_BYTES];

	memset(code, 0xcc, sizeof(code));
	cfi_image(&image, (struct sv){0}, CFI_IMAGE_GOPCLNTAB, buf_sv(table),
		  sv_from(code, sizeof(code)));
	CHECK(elf_open_bytes(&elf, image.p, image.n, NULL) == 0);
	return elf;
}

static void check_functions(int version)
{
	CLEANUP(buf_release) struct buf table = {0};
	make_table(&table, version, CFI_IMAGE_CODE);
	CLEANUP(elf_free_p) struct elf *elf = image_of(&table);
	CLEANUP(gopclntab_free_p) struct gopclntab *t = gopclntab_open(elf);
	struct gopclntab_function f;

	CHECK(t != NULL);
	if (!t)
		return;
	CHECK_U64(gopclntab_count(t), ARRAY_LEN(made_functions));
	for (size_t i = 0; i < ARRAY_LEN(made_functions); i++) {
		CHECK(gopclntab_function(t, i, &f));
		CHECK_U64(f.start, CFI_IMAGE_CODE + made_functions[i].start);
		CHECK_U64(f.end, CFI_IMAGE_CODE + (i + 1 < ARRAY_LEN(made_functions)
							   ? made_functions[i + 1].start
							   : MADE_END));
		CHECK(sv_eq_str(f.name, made_functions[i].name));
	}
	CHECK(gopclntab_function(t, 0, &f) && f.kind == GO_OUTERMOST);
	CHECK(gopclntab_function(t, 2, &f) && f.kind == GO_SWITCHES_STACK);
	CHECK(gopclntab_function(t, 3, &f) && f.kind == GO_RESTORER);
	CHECK(gopclntab_function(t, 4, &f) && f.kind == GO_ORDINARY);
	struct gopclntab_steps s = gopclntab_steps(t, &f);
	static const uint64_t ends[] = {0x110, 0x130, 0x140};
	static const int64_t distances[] = {0, 32, 0};
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		CHECK(gopclntab_next(&s));
		CHECK_U64(s.end, CFI_IMAGE_CODE + ends[i]);
		CHECK_U64((uint64_t)s.nr_bytes, (uint64_t)distances[i]);
	}
	CHECK(!gopclntab_next(&s));
}

TEST(gopclntab_reads_functions_names_and_distances_of_four_formats)
{
	check_functions(2);
	check_functions(16);
	check_functions(18);
	check_functions(20);
}

TEST(gopclntab_gives_rows_that_follow_go_from_stack_to_stack)
{
	CLEANUP(buf_release) struct buf table = {0};
	make_table(&table, 20, CFI_IMAGE_CODE);
	CLEANUP(elf_free_p) struct elf *elf = image_of(&table);
	CLEANUP(unwind_table_free_p) struct unwind_table *t = NULL;

	CHECK(unwind_table_build(&t, elf, NULL, NULL) == 0);
	static const struct {
		uint32_t at;
		uint32_t kind;
		uint32_t cfa_bytes;
		int32_t fp_slot;
	} rows[] = {
		{0x000, ROW_STOP, 0, 0}, {0x04f, ROW_SP, 8, ROW_FP_SAME}, {0x050, ROW_SP, 40, -2},
		{0x06f, ROW_SP, 40, -2}, {0x070, ROW_SP, 8, ROW_FP_SAME}, {0x110, ROW_SP, 40, -2},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct unwind_row *row = unwind_table_find(t, CFI_IMAGE_CODE + rows[i].at);
		CHECK(row != NULL);
		if (!row)
			continue;
		CHECK_U64(row_kind(row->rule), rows[i].kind);
		CHECK_U64(row_cfa_bytes(row->rule), rows[i].cfa_bytes);
		CHECK(rows[i].kind == ROW_STOP || row_fp_slot(row->rule) == rows[i].fp_slot);
	}
	const struct unwind_row *switching = unwind_table_find(t, CFI_IMAGE_CODE + 0x90);
	CHECK(switching && row_kind(switching->rule) == ROW_SPECIAL);
	CHECK_U64(t->specials[row_special_idx(switching->rule)].flags, SPECIAL_OTHER_STACK);
	/* The restorer has the kernel's frame, which this table does not describe. */
	const struct unwind_row *restorer = unwind_table_find(t, CFI_IMAGE_CODE + 0xd0);
	CHECK(restorer && row_kind(restorer->rule) == ROW_NONE);
}

TEST(gopclntab_without_an_address_of_code_is_not_used)
{
	CLEANUP(buf_release) struct buf table = {0};
	make_table(&table, 18, 0); /* nor is there a section .text */
	CLEANUP(elf_free_p) struct elf *elf = image_of(&table);
	CHECK(gopclntab_open(elf) == NULL);
}

TEST(gopclntab_survives_each_truncation_and_each_changed_byte)
{
	CLEANUP(buf_release) struct buf table = {0};
	make_table(&table, 18, CFI_IMAGE_CODE);
	for (size_t i = 0; i < table.n * 2; i++) {
		CLEANUP(buf_release) struct buf bad = {0};
		buf_add(&bad, table.p, i < table.n ? i : table.n);
		if (i >= table.n)
			bad.p[i - table.n] ^= (char)0x81;
		CLEANUP(elf_free_p) struct elf *elf = image_of(&bad);
		CLEANUP(unwind_table_free_p) struct unwind_table *t = NULL;
		CHECK(unwind_table_build(&t, elf, NULL, NULL) == 0);
		for (uint32_t k = 1; t && k < t->nr_rows; k++)
			CHECK(t->rows[k].pc > t->rows[k - 1].pc);
	}
}

TEST(functions_of_go_are_found_by_name_and_marked)
{
	CLEANUP(buf_release) struct buf table = {0};
	make_table(&table, 18, CFI_IMAGE_CODE);
	CLEANUP(elf_free_p) struct elf *elf = image_of(&table);
	struct funcs_found found = {0};

	CHECK(func_find(&found, elf, NULL, "main.*", 9, NULL, NULL) == 0);
	CHECK_U64(found.list.n, 2);
	vec_foreach(f, &found.list) {
		CHECK(f->is_go);
		free(f->name);
	}
	vec_release(&found.list);
}
