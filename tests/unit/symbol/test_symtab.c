/* symbol/symtab: which symbol covers an address. */
#include "base/base.h"
#include "tap.h"

#include "base/mem.h"
#include "object/debugfile.h"
#include "object/elf.h"
#include "symbol/plt.h"
#include "symbol/symtab.h"
#include "elf_path.h"

#define FIXTURES "tests/fixtures/debug/"

static void symtab_free_p(struct symtab **t)
{
	symtab_free(*t);
}

static void add(struct symtab *t, uint64_t start, uint64_t nr_bytes, const char *name,
		enum symtab_rank rank)
{
	symtab_add(t, start, nr_bytes, sv_from_str(name), rank, rank);
}

/* "name" or "name+" for no size, "-" for nothing. */
static const char *at(const struct symtab *t, uint64_t vaddr)
{
	static char name[64]; /* tests are forked */
	struct symtab_hit hit;
	if (!symtab_find(t, vaddr, &hit))
		return "-";
	CHECK(vaddr >= hit.start && vaddr < hit.end);
	(void)snprintf(name, sizeof(name), "%.*s%s", SV_ARGS(hit.name), hit.has_size ? "" : "+");
	return name;
}

TEST(symtab_symbols_without_size_end_at_the_next_one)
{
	CLEANUP(symtab_free_p) struct symtab *t = symtab_new();
	add(t, 0x300, 0, "third", SYMTAB_RANK_TYPED);
	add(t, 0x100, 0x10, "first", SYMTAB_RANK_TYPED);
	add(t, 0x200, 0, "second", SYMTAB_RANK_TYPED);
	symtab_seal(t);
	CHECK_STR(at(t, 0xff), "-");
	CHECK_STR(at(t, 0x100), "first");
	CHECK_STR(at(t, 0x10f), "first");
	CHECK_STR(at(t, 0x110), "-");
	CHECK_STR(at(t, 0x2ff), "second+");
	CHECK_STR(at(t, 0x300), "third+");
	CHECK_STR(at(t, UINT64_MAX), "-");
}

TEST(symtab_inner_symbols_win_until_they_end)
{
	CLEANUP(symtab_free_p) struct symtab *t = symtab_new();
	add(t, 0x100, 0x100, "outer", SYMTAB_RANK_TYPED);
	add(t, 0x140, 0x10, "inner", SYMTAB_RANK_TYPED);
	add(t, 0x148, 0x100, "across", SYMTAB_RANK_TYPED);
	symtab_seal(t);
	CHECK_STR(at(t, 0x13f), "outer");
	CHECK_STR(at(t, 0x147), "inner");
	CHECK_STR(at(t, 0x148), "across");
	CHECK_STR(at(t, 0x200), "across");
	CHECK_STR(at(t, 0x248), "-");
}

TEST(symtab_lower_ranks_only_fill_uncovered_ranges)
{
	CLEANUP(symtab_free_p) struct symtab *t = symtab_new();
	add(t, 0x100, 0x40, "typed", SYMTAB_RANK_TYPED);
	add(t, 0x120, 0, "label", SYMTAB_RANK_UNTYPED);
	add(t, 0x150, 0, "entry", SYMTAB_RANK_UNTYPED);
	add(t, 0x200, 0x100, "", SYMTAB_RANK_GUESS);
	add(t, 0x210, 0x10, "memcpy@plt", SYMTAB_RANK_STUB);
	symtab_seal(t);
	CHECK_STR(at(t, 0x130), "typed");
	CHECK_STR(at(t, 0x145), "-");
	CHECK_STR(at(t, 0x160), "entry+");
	CHECK_STR(at(t, 0x208), "");
	CHECK_STR(at(t, 0x218), "memcpy@plt");
	CHECK_STR(at(t, 0x220), "");
}

TEST(symtab_alias_choice_does_not_depend_on_order)
{
	static const char *const names[] = {"__GI_write", "write", "_write", "writes"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP(symtab_free_p) struct symtab *t = symtab_new();
		for (size_t j = 0; j < ARRAY_LEN(names); j++)
			add(t, 0x100, 0x10, names[(i + j) % ARRAY_LEN(names)], SYMTAB_RANK_TYPED);
		add(t, 0x100, 0, "a", SYMTAB_RANK_TYPED);
		symtab_seal(t);
		CHECK_STR(at(t, 0x100), "write");
		CHECK(symtab_has_alias(t, 0x100, SV("__GI_write")));
		CHECK(!symtab_has_alias(t, 0x100, SV("read")));
	}
}

TEST(symtab_reads_static_mini_and_debug_tables)
{
	CLEANUP(elf_free_p) struct elf *debug = NULL;
	CLEANUP(elf_free_p) struct elf *mini = NULL;
	CLEANUP(elf_free_p) struct elf *with_mini = NULL;
	CHECK(!elf_open_path(&debug, FIXTURES "prog.debug", NULL));
	CHECK(!elf_open_path(&with_mini, FIXTURES "mini", NULL));
	CHECK(!debugfile_mini(&mini, with_mini, NULL));
	struct elf *const images[] = {debug, mini};
	for (size_t i = 0; i < ARRAY_LEN(images); i++) {
		CLEANUP(symtab_free_p) struct symtab *t = symtab_new();
		size_t nr = 0;
		CHECK(!symtab_add_elf(t, images[i], SYMTAB_STATIC, 7, &nr, NULL));
		CHECK(nr >= 3);
		symtab_seal(t);
		CHECK_STR(at(t, 0x401000), "hidden_function");
		CHECK_STR(at(t, 0x401030), "_start");
	}
}

TEST(symtab_finds_functions_and_plt_of_the_running_program)
{
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CHECK(!elf_open_path(&e, "/proc/self/exe", NULL));
	CLEANUP(symtab_free_p) struct symtab *t = symtab_new();
	CHECK(!symtab_add_elf(t, e, SYMTAB_STATIC, 1, NULL, NULL));
	symtab_seal(t);
	CLEANUP(symtab_free_p) struct symtab *plt = symtab_new();
	CHECK(!plt_add(plt, e, t, 2, NULL));
	if (!elf_section(e, ".plt"))
		tap_skip("linked without a PLT");
	CHECK(symtab_count(plt) > 10);
	symtab_seal(plt);
	const struct elf_section *s = elf_section(e, ".plt.sec");
	CHECK_STR(at(plt, elf_section(e, ".plt")->vaddr), "-"); /* the entry of the linker */
	s = s ? s : elf_section(e, ".plt");
	struct symtab_hit hit;
	CHECK(symtab_find(plt, s->vaddr + 0x20, &hit));
	CHECK(sv_has_suffix(hit.name, SV("@plt")));
}
