/* symbol/symbolizer: symbolization of addresses by a binary and its debug files. */
#include "base/base.h"
#include "tap.h"

#include <elf.h>
#include <sys/auxv.h>

#include "base/buf.h"
#include "base/mem.h"
#include "host/reader/hostfile.h"
#include "symbol/symbolizer.h"
#include "elf_path.h"

#define FIXTURES "tests/fixtures/debug/"

static const char *const sources[] = {"none",  "symtab", "dynsym",  "mini",   "debug",
				      "dwarf", "plt",    "ehframe", "called", "go"};

struct answers {
	struct buf text; /* of the last one */
	uint64_t last;   /* address of the last one */
	size_t nr;       /* answers so far */
	const uint64_t *asked;
	bool is_ascending;
};

static void answers_release(struct answers *a)
{
	buf_release(&a->text);
}

/* "name base.c:line < name base.c:line (source)" */
static void keep(void *ctx, size_t query, const struct symbol_frame *frames, size_t nr,
		 enum symbol_source source)
{
	struct answers *a = ctx;
	a->is_ascending = (!a->nr || a->is_ascending) && a->asked[query] >= a->last;
	a->last = a->asked[query];
	a->nr++;
	buf_clear(&a->text);
	for (size_t i = 0; i < nr; i++) {
		buf_add_str(&a->text, i ? " < " : "");
		if (frames[i].linkage.n)
			buf_add_sv(&a->text, frames[i].linkage);
		else if (frames[i].is_guessed)
			buf_addf(&a->text, "fn_%" PRIx64, frames[i].func_start);
		else
			buf_add_str(&a->text, "?");
		ssize_t slash = sv_rindex(frames[i].file, '/');
		if (frames[i].line)
			buf_addf(&a->text, " %.*s:%u",
				 SV_ARGS(sv_from_idx(frames[i].file, (size_t)(slash + 1))),
				 frames[i].line);
		CHECK(frames[i].is_inlined == (i + 1 < nr));
	}
	buf_addf(&a->text, " (%s)", sources[source]);
}

static struct symbolizer *open_symbolizer(const char *path, const struct debug_search *search,
					  unsigned flags)
{
	struct elf *e = NULL;
	struct symbolizer *s = NULL;
	CHECK(!elf_open_path(&e, path, NULL));
	s = symbolizer_new(e, path, search, flags);
	return s;
}

static void check_answer(struct symbolizer *s, uint64_t vaddr, const char *expected)
{
	CLEANUP(answers_release) struct answers a = {.asked = &vaddr};
	CHECK(!symbolizer_query(s, &vaddr, 1, keep, &a, NULL));
	CHECK_U64(a.nr, 1);
	CHECK_STR(buf_str(&a.text), expected);
}

TEST(symbolizer_uses_a_debug_file_in_a_debug_dir)
{
	/* The fixture directory is passed as --debug-dir. */
	const char *dirs[] = {FIXTURES};
	struct debug_search search = {
		.open = hostfile_open_path, .root_fd = -1, .dirs = dirs, .nr_dirs = 1};
	struct elf *e = NULL;
	CHECK(!elf_open_path(&e, FIXTURES "prog", NULL));
	CLEANUP(symbolizer_free_p) struct symbolizer *s = NULL;
	s = symbolizer_new(e, "/srv/bin/prog", &search, 0);
	check_answer(s, 0x401014, "hidden_function prog.c:13 (debug)");
	check_answer(s, 0x401006,
		     "deepest prog.c:4 < middle prog.c:9 < hidden_function prog.c:13 "
		     "(debug)");
	check_answer(s, 0x400000, "? (none)");
	check_answer(s, UINT64_MAX, "? (none)");
}

TEST(symbolizer_flags_omit_inlines_lines_and_dwarf)
{
	const char *dirs[] = {FIXTURES};
	struct debug_search search = {
		.open = hostfile_open_path, .root_fd = -1, .dirs = dirs, .nr_dirs = 1};
	static const struct {
		unsigned flags;
		const char *expected;
	} cases[] = {
		{SYMBOLIZER_NO_DWARF, "hidden_function (debug)"},
		{SYMBOLIZER_NO_INLINES | SYMBOLIZER_NO_LINES, "hidden_function (debug)"},
		{SYMBOLIZER_NO_LINES, "deepest < middle < hidden_function (debug)"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct elf *e = NULL;
		CHECK(!elf_open_path(&e, FIXTURES "prog", NULL));
		CLEANUP(symbolizer_free_p) struct symbolizer *s = NULL;
		s = symbolizer_new(e, "/srv/bin/prog", &search, cases[i].flags);
		check_answer(s, 0x401006, cases[i].expected);
	}
}

TEST(symbolizer_uses_mini_debug_information)
{
	CLEANUP(symbolizer_free_p)
	struct symbolizer *s = open_symbolizer(FIXTURES "mini", NULL, SYMBOLIZER_NO_DWARF);
	check_answer(s, 0x401006, "hidden_function (mini)");
	check_answer(s, 0x401031, "_start (mini)");
}

TEST(symbolizer_distinguishes_stripped_functions)
{
	struct elf *e = NULL;
	CHECK(!elf_open_path(&e, FIXTURES "noid", NULL));
	CLEANUP(symbolizer_free_p) struct symbolizer *s = NULL;
	s = symbolizer_new(e, "/elsewhere/noid", NULL, 0);
	check_answer(s, 0x401006, "fn_401000 (ehframe)");
	check_answer(s, 0x401021, "fn_401020 (ehframe)");
}

TEST(symbolizer_without_unwind_tables_uses_call_targets)
{
	struct elf *e = NULL;
	CHECK(!elf_open_path(&e, FIXTURES "noeh", NULL));
	CHECK(!elf_section(e, ".eh_frame"));
	CLEANUP(symbolizer_free_p) struct symbolizer *s = NULL;
	s = symbolizer_new(e, "/elsewhere/noeh", NULL, 0);
	check_answer(s, 0x401023, "fn_401020 (called)"); /* called by _start */
	check_answer(s, 0x401035, "fn_401030 (called)"); /* the entry point */
	check_answer(s, 0x401002, "? (none)");
}

TEST(symbolizer_reports_every_query_in_address_order)
{
	CLEANUP(symbolizer_free_p)
	struct symbolizer *s = open_symbolizer("/proc/self/exe", NULL, SYMBOLIZER_NO_DWARF);
	uint64_t asked[500];
	for (size_t i = 0; i < ARRAY_LEN(asked); i++)
		asked[i] = (i * 7919) % 331 * 64;
	CLEANUP(answers_release) struct answers a = {.asked = asked};
	CHECK(!symbolizer_query(s, asked, ARRAY_LEN(asked), keep, &a, NULL));
	CHECK_U64(a.nr, ARRAY_LEN(asked));
	CHECK(a.is_ascending);
	a.nr = 0;
	CHECK(!symbolizer_query(s, NULL, 0, keep, &a, NULL));
	CHECK_U64(a.nr, 0);
}

/* As glibc's write: DWARF calls what is inlined by an alias of the function. */
static inline __attribute__((always_inline)) unsigned long alias_part(unsigned long n)
{
	for (unsigned long i = n; i > 1; i /= 3)
		n ^= i * n;
	return n;
}
__attribute__((noinline, noclone, used)) static unsigned long aliased(unsigned long n)
{
	return alias_part(n);
}
__asm__(".local alias_part\n.set alias_part, aliased");

TEST(symbolizer_merges_a_part_that_is_inlined_under_an_alias)
{
	CLEANUP(symbolizer_free_p)
	struct symbolizer *s = open_symbolizer("/proc/self/exe", NULL, 0);
	struct symtab_hit f;
	size_t nr_lines = 0;
	CHECK(aliased(7) != 0);
	CHECK(symtab_find_name(symbolizer_functions(s), SV("aliased"), &f));
	for (uint64_t at = f.start; at < f.end; at++) {
		CLEANUP(answers_release) struct answers a = {.asked = &at};
		CHECK(!symbolizer_query(s, &at, 1, keep, &a, NULL));
		CHECK(!strstr(buf_str(&a.text), "alias_part"));
		nr_lines += !!strstr(buf_str(&a.text), "aliased test_symbolizer.c:");
	}
	CHECK(nr_lines > 0);
}

TEST(symbolizer_symbolizes_the_vdso)
{
	const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	if (!vdso)
		tap_skip("no vDSO");
	Elf64_Ehdr eh;
	memcpy(&eh, vdso, sizeof(eh));
	struct elf *e = NULL;
	CHECK(!elf_open_bytes(&e, vdso, eh.e_shoff + (size_t)eh.e_shnum * eh.e_shentsize, NULL));
	CLEANUP(symbolizer_free_p) struct symbolizer *s = NULL;
	s = symbolizer_new(e, "[vdso]", NULL, 0);
	const struct elf_section *text = elf_section(e, ".text");
	CHECK(text != NULL);
	bool has_clock = false;
	for (uint64_t at = text->vaddr; at < text->vaddr + text->nr_bytes; at += 16) {
		CLEANUP(answers_release) struct answers a = {.asked = &at};
		CHECK(!symbolizer_query(s, &at, 1, keep, &a, NULL));
		has_clock = has_clock || strstr(buf_str(&a.text), "clock_gettime (");
	}
	CHECK(has_clock);
}

TEST(symbolizer_without_section_headers_uses_the_dynamic_segment)
{
	/* libc without its section table: only PT_LOAD and PT_DYNAMIC remain. */
	CLEANUP(buf_release) struct buf image = {0};
	struct elf *whole = NULL;
	if (elf_open_path(&whole, "/lib/x86_64-linux-gnu/libc.so.6", NULL))
		tap_skip("no libc at the usual place");
	size_t n = elf_nr_bytes(whole);
	CHECK(!elf_read(whole, buf_reserve(&image, n), n, 0, NULL));
	image.n = n;
	memset(image.p + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
	memset(image.p + offsetof(Elf64_Ehdr, e_shnum), 0, 4); /* and e_shstrndx */
	struct elf *cut = NULL;
	CHECK(!elf_open_bytes(&cut, image.p, image.n, NULL));
	size_t nr_sections;
	(void)elf_sections(cut, &nr_sections);
	CHECK_U64(nr_sections, 0);

	struct symbolizer *s[2];
	s[0] = symbolizer_new(whole, NULL, NULL, SYMBOLIZER_NO_DWARF);
	s[1] = symbolizer_new(cut, NULL, NULL, SYMBOLIZER_NO_DWARF);
	uint64_t asked = 0x80000;
	for (int i = 0; i < 2; i++) {
		CLEANUP(answers_release) struct answers a = {.asked = &asked};
		CHECK(!symbolizer_query(s[i], &asked, 1, keep, &a, NULL));
		CHECK(symbolizer_stats(s[i]).nr_symbols > 2000);
	}
	symbolizer_free(s[0]);
	symbolizer_free(s[1]);
}
