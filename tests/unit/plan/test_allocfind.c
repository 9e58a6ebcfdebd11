/* plan/allocfind: whose functions are in a binary, on made images; words of dump triggers. */
#include "base/base.h"
#include "tap.h"

#include <elf.h>
#include <errno.h>
#include <unistd.h>

#include "arch.h"
#include "base/buf.h"
#include "base/mem.h"
#include "plan/allocfind.h"
#include "plan/allocnames.h"
#include "plan/heapchoice.h"
#include "plan/heaptargets.h"
#include "session/dumps.h"
#include "elf_path.h"

#define CODE_AT    0x1000u
#define CODE_BYTES 0x1000u

struct made_function {
	const char *name;
	uint64_t vaddr;
	uint64_t nr_bytes;
	bool is_local;
};

/* An image with these functions, this .rodata, and code: zeros, or what @code says. */
static void make_image(struct buf *to, const struct made_function *f, size_t nr, struct sv rodata,
		       const uint8_t *code)
{
	static const char names[] = "\0.text\0.rodata\0.dynsym\0.dynstr\0.shstrtab";
	CLEANUP(buf_release) struct buf syms = {0};
	CLEANUP(buf_release) struct buf strs = {0};
	buf_add(&syms, &(Elf64_Sym){0}, sizeof(Elf64_Sym));
	buf_add_ch(&strs, 0);
	for (size_t i = 0; i < nr; i++) {
		Elf64_Sym s = {.st_name = (Elf64_Word)strs.n,
			       .st_info = ELF64_ST_INFO(f[i].is_local ? STB_LOCAL : STB_GLOBAL,
							STT_FUNC),
			       .st_shndx = 1,
			       .st_value = f[i].vaddr,
			       .st_size = f[i].nr_bytes};
		buf_add(&syms, &s, sizeof(s));
		buf_add(&strs, f[i].name, strlen(f[i].name) + 1);
	}
	Elf64_Ehdr eh = {.e_type = ET_DYN,
			 .e_machine = ARCH_ELF_MACHINE,
			 .e_version = 1,
			 .e_ehsize = sizeof(eh),
			 .e_phoff = sizeof(eh),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1,
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = 6,
			 .e_shstrndx = 5};
	memcpy(eh.e_ident, ELFMAG "\2\1\1", 7);
	uint64_t at = sizeof(eh) + sizeof(Elf64_Phdr);
	Elf64_Phdr ph = {.p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_offset = at,
			 .p_vaddr = CODE_AT,
			 .p_filesz = CODE_BYTES,
			 .p_memsz = CODE_BYTES};
	const struct {
		uint32_t name, type, flags, link;
		uint64_t n, entry;
	} parts[] = {{1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, CODE_BYTES, 0},
		     {7, SHT_PROGBITS, SHF_ALLOC, 0, rodata.n, 0},
		     {15, SHT_DYNSYM, SHF_ALLOC, 4, syms.n, sizeof(Elf64_Sym)},
		     {23, SHT_STRTAB, SHF_ALLOC, 0, strs.n, 0},
		     {31, SHT_STRTAB, 0, 0, sizeof(names), 0}};
	Elf64_Shdr sh[6] = {{0}};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		sh[i + 1] = (Elf64_Shdr){.sh_name = parts[i].name,
					 .sh_type = parts[i].type,
					 .sh_flags = parts[i].flags,
					 .sh_link = parts[i].link,
					 .sh_addr = i == 0 ? CODE_AT : 0,
					 .sh_offset = at,
					 .sh_size = parts[i].n,
					 .sh_entsize = parts[i].entry};
		at += parts[i].n;
	}
	eh.e_shoff = at;
	buf_add(to, &eh, sizeof(eh));
	buf_add(to, &ph, sizeof(ph));
	if (code)
		buf_add(to, code, CODE_BYTES);
	else
		buf_add_repeat(to, 0, CODE_BYTES);
	buf_add_sv(to, rodata);
	buf_add_sv(to, buf_sv(&syms));
	buf_add_sv(to, buf_sv(&strs));
	buf_add(to, names, sizeof(names));
	buf_add(to, sh, sizeof(sh));
}

static void find_in(struct allocfind *ret_f, const struct made_function *f, size_t nr,
		    struct sv rodata, const uint8_t *code)
{
	CLEANUP(buf_release) struct buf image = {0};
	CLEANUP(elf_free_p) struct elf *e = NULL;
	make_image(&image, f, nr, rodata, code);
	CHECK(!elf_open_bytes(&e, image.p, image.n, NULL));
	CHECK(!allocfind_image(ret_f, e, NULL, NULL, NULL));
}

static const struct allocfind_function *named(const struct allocfind *f, const char *name)
{
	vec_foreach(fn, &f->functions)
		if (!strcmp(fn->name, name))
			return fn;
	return NULL;
}

#define HASH "54eaed1d8b56b1aa528be3bdd1877e59c56fa90c"
#define STRINGS   \
	"other\0" \
	"5.3.0-0-g" HASH "\0_RJEM_MALLOC_CONF\0"

static const struct made_function prefixed[] = {
	{"_rjem_mallctl", 0x1100, 16, true},  {"_rjem_mallocx", 0x1200, 16, true},
	{"_rjem_rallocx", 0x1300, 16, true},  {"_rjem_xallocx", 0x1400, 16, true},
	{"_rjem_sdallocx", 0x1500, 16, true}, {"_rjem_malloc", 0x1600, 16, true},
	{"_rjem_free", 0x1700, 16, true},     {"xfree", 0x1800, 16, false},
	{"g_malloc", 0x1900, 16, false},
};

TEST(allocfind_knows_a_jemalloc_by_its_sisters_and_strings)
{
	CLEANUP(allocfind_release) struct allocfind f = {0};
	find_in(&f, prefixed, ARRAY_LEN(prefixed), SV(STRINGS "heap_v2/%lu\n\0"), NULL);
	CHECK_STR(f.jemalloc.prefix, "_rjem_");
	CHECK_STR(f.jemalloc.variable, "_RJEM_MALLOC_CONF");
	CHECK_STR(f.jemalloc.version_text, "5.3.0-0-g" HASH);
	CHECK_U64(f.jemalloc.mallctl, 0x1100);
	CHECK(f.jemalloc.version[0] == 5 && f.jemalloc.version[1] == 3);
	CHECK(f.jemalloc.has_prof);
	CHECK_U64(f.functions.n, 6);
	CHECK(named(&f, "_rjem_xallocx")->shape == HEAP_RESIZE);
	CHECK(named(&f, "_rjem_sdallocx")->shape == HEAP_FREE_0);
	CHECK_U64(named(&f, "_rjem_malloc")->end, 0x1610);
	CHECK(!named(&f, "_rjem_malloc")->is_plain && !f.exports_malloc);
	CHECK(!named(&f, "xfree") && !named(&f, "g_malloc"));
	CHECK_U64(f.code.n, 6); /* these functions: no .symtab tells of others */
}

TEST(allocfind_recognises_a_jemalloc_without_profiling)
{
	CLEANUP(allocfind_release) struct allocfind f = {0};
	find_in(&f, prefixed, ARRAY_LEN(prefixed), SV(STRINGS), NULL);
	CHECK(f.jemalloc.prefix && !f.jemalloc.has_prof);
}

TEST(allocfind_reads_versions_with_and_without_a_commit)
{
	const struct {
		struct sv rodata;
		const char *version;
	} t[] = {
		{SV("5.2.1-0-g0\0_RJEM_MALLOC_CONF\0"), "5.2.1-0-g0"},
		{SV("v7.0.15-3-gea6b3e9\0" STRINGS), "5.3.0-0-g" HASH}, /* of the program */
		{SV("5.2.1-0-g01\0_RJEM_MALLOC_CONF\0"), NULL},
		{SV("5.2-0-g0\0_RJEM_MALLOC_CONF\0"), NULL},
		{SV("_RJEM_MALLOC_CONF\0"
		    "5.2.1-0-g0"),
		 NULL}, /* not ended by NUL */
	};
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		CLEANUP(allocfind_release) struct allocfind f = {0};
		find_in(&f, prefixed, ARRAY_LEN(prefixed), t[i].rodata, NULL);
		CHECK_STR(f.jemalloc.version_text ? f.jemalloc.version_text : "none",
			  t[i].version ? t[i].version : "none");
	}
}

TEST(allocfind_takes_the_exported_functions_of_a_stripped_jemalloc_for_its_own)
{
	static const struct made_function exported[] = {{"malloc", 0x1300, 16, false},
							{"calloc", 0x1400, 16, false},
							{"realloc", 0x1500, 16, false},
							{"free", 0x1600, 16, false}};
	CLEANUP(allocfind_release) struct allocfind f = {0};
	find_in(&f, exported, ARRAY_LEN(exported), SV("5.2.1-0-g0\0MALLOC_CONF\0"), NULL);
	CHECK(named(&f, "malloc")->kind == HEAP_ALLOCATOR_JEMALLOC);

	/* a jemalloc with a prefix beside a malloc */
	CLEANUP(allocfind_release) struct allocfind g = {0};
	find_in(&g, exported, ARRAY_LEN(exported), SV("5.2.1-0-g0\0_RJEM_MALLOC_CONF\0"), NULL);
	CHECK(g.jemalloc.version_text && named(&g, "malloc")->kind == HEAP_ALLOCATOR_OTHER);
}

TEST(allocfind_wants_more_than_a_function_called_mallctl)
{
	static const struct made_function lone[] = {{"my_mallctl", 0x1100, 16, false},
						    {"my_malloc", 0x1200, 16, false}};
	CLEANUP(allocfind_release) struct allocfind f = {0};
	find_in(&f, lone, ARRAY_LEN(lone), SV("MALLOC_CONF\0"), NULL);
	CHECK(!f.jemalloc.prefix && !f.jemalloc.version_text && !f.functions.n);
}

TEST(allocfind_knows_a_jemalloc_whose_unused_functions_were_dropped)
{
	static const struct made_function gced[] = {
		{"mallctl", 0x1100, 16, false}, {"mallocx", 0x1200, 16, true},
		{"malloc", 0x1300, 16, false},  {"calloc", 0x1400, 16, false},
		{"realloc", 0x1500, 16, false}, {"free", 0x1600, 16, false},
	};
	CLEANUP(allocfind_release) struct allocfind f = {0};
	find_in(&f, gced, ARRAY_LEN(gced), SV("5.3.0-1-g" HASH "\0MALLOC_CONF\0"), NULL);
	CHECK_STR(f.jemalloc.prefix, "");
	CHECK_STR(f.jemalloc.version_text, "5.3.0-1-g" HASH);
	CHECK(!f.jemalloc.is_stripped && f.exports_malloc);
	CHECK(named(&f, "malloc")->kind == HEAP_ALLOCATOR_JEMALLOC && named(&f, "mallocx"));

	/* a program that only has these names */
	CLEANUP(allocfind_release) struct allocfind g = {0};
	find_in(&g, gced, ARRAY_LEN(gced), SV("MALLOC_CONF\0"), NULL);
	CHECK(!g.jemalloc.prefix && named(&g, "malloc")->kind == HEAP_ALLOCATOR_OTHER);
}

TEST(allocfind_gives_plain_names_to_their_owner)
{
	static const struct made_function libc[] = {
		{"malloc", 0x1100, 16, false},        {"__libc_malloc", 0x1100, 16, false},
		{"__libc_calloc", 0x1200, 16, false}, {"calloc", 0x1200, 16, false},
		{"free", 0x1300, 0, false},           {"__libc_start_main", 0x1400, 16, false},
		{"mmap", 0x1500, 16, false},          {"mmap64", 0x1500, 16, false},
		{"_Znwm", 0x1600, 16, false},
	};
	CLEANUP(allocfind_release) struct allocfind f = {0};
	find_in(&f, libc, ARRAY_LEN(libc), SV(""), NULL);
	CHECK(f.is_libc && f.exports_malloc);
	CHECK(named(&f, "malloc")->kind == HEAP_ALLOCATOR_GLIBC);
	CHECK(named(&f, "malloc")->is_plain && !named(&f, "__libc_malloc"));
	CHECK_U64(named(&f, "free")->end, 0);
	CHECK(named(&f, "mmap")->kind == HEAP_ALLOCATOR_PAGES);
	CHECK(!named(&f, "_Znwm")); /* the C library has none of its own */
	CHECK_U64(f.functions.n, 4);

	static const struct made_function musl[] = {{"malloc", 0x1100, 16, false},
						    {"free", 0x1300, 16, false},
						    {"__libc_start_main", 0x1400, 16, false}};
	CLEANUP(allocfind_release) struct allocfind m = {0};
	find_in(&m, musl, ARRAY_LEN(musl), SV(""), NULL);
	CHECK(named(&m, "malloc")->kind == HEAP_ALLOCATOR_MUSL);
}

TEST(allocfind_knows_a_c_library_whose_functions_were_made_local)
{
	static const struct made_function rust[] = {
		{"malloc", 0x1100, 16, true},       {"__malloc", 0x1100, 16, false},
		{"calloc", 0x1200, 16, false},      {"__libc_calloc", 0x1200, 16, true},
		{"free", 0x1300, 16, true},         {"mmap", 0x1500, 16, true},
		{"realloc", 0x1600, 16, true},      {"realloc", 0x1700, 16, true},
		{"memalign", 0x1800, 16, true},     {"memalign", 0x1900, 16, false},
		{"_start_main", 0x1a00, 16, false}, {"__libc_start_main", 0x1400, 16, true},
	};
	CLEANUP(allocfind_release) struct allocfind f = {0};
	find_in(&f, rust, ARRAY_LEN(rust), SV(""), NULL);
	CHECK(f.is_libc);
	CHECK(named(&f, "malloc") && named(&f, "malloc")->kind == HEAP_ALLOCATOR_GLIBC);
	CHECK(named(&f, "free") && named(&f, "mmap") && named(&f, "calloc"));
	CHECK(!named(&f, "realloc")); /* whose is it? */
	CHECK_U64(named(&f, "memalign")->vaddr, 0x1900);

	/* no C library: a static function that is called so */
	static const struct made_function own[] = {{"malloc", 0x1100, 16, true},
						   {"free", 0x1300, 16, true}};
	CLEANUP(allocfind_release) struct allocfind o = {0};
	find_in(&o, own, ARRAY_LEN(own), SV(""), NULL);
	CHECK_U64(o.functions.n, 0);
}

#ifdef __x86_64__
TEST(allocfind_takes_operators_that_do_not_only_call_malloc)
{
	static const struct made_function tc[] = {
		{"tc_malloc", 0x1100, 16, false}, {"malloc", 0x1100, 16, false},
		{"free", 0x1200, 16, false},      {"_Znwm", 0x1300, 16, false},
		{"_Znam", 0x1400, 16, false},     {"_ZdlPv", 0x1200, 16, false},
	};
	static uint8_t code[CODE_BYTES];
	int32_t by = 0x1100 - (0x1400 + 5);
	code[0x400] = 0xe8; /* call malloc */
	memcpy(code + 0x401, &by, sizeof(by));
	CLEANUP(allocfind_release) struct allocfind f = {0};
	find_in(&f, tc, ARRAY_LEN(tc), SV(""), code);
	CHECK(named(&f, "malloc")->kind == HEAP_ALLOCATOR_TCMALLOC);
	CHECK(named(&f, "_Znwm") && !named(&f, "_Znam"));
	CHECK(named(&f, "free") && !named(&f, "_ZdlPv")); /* one address, once */
	CHECK_U64(f.functions.n, 3);
}
#endif

TEST(allocfind_survives_cut_and_damaged_images)
{
	CLEANUP(buf_release) struct buf image = {0};
	make_image(&image, prefixed, ARRAY_LEN(prefixed), SV(STRINGS), NULL);
	for (size_t n = 0; n < image.n; n += 13) {
		CLEANUP(elf_free_p) struct elf *e = NULL;
		CLEANUP(allocfind_release) struct allocfind f = {0};
		char saved = image.p[n];
		image.p[n] ^= 0x55;
		if (!elf_open_bytes(&e, image.p, image.n, NULL))
			(void)allocfind_image(&f, e, NULL, NULL, NULL); /* either way */
		image.p[n] = saved;
		CLEANUP(elf_free_p) struct elf *cut = NULL;
		CLEANUP(allocfind_release) struct allocfind g = {0};
		if (!elf_open_bytes(&cut, image.p, n, NULL))
			(void)allocfind_image(&g, cut, NULL, NULL, NULL);
	}
	CHECK(image.n > 0);
}

TEST(allocfind_finds_mallctl_in_a_stripped_binary)
{
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CLEANUP(allocfind_release) struct allocfind f = {0};
	CHECK(!elf_open_path(&e, "tests/fixtures/alloc/stripped.so", NULL));
	CHECK(!allocfind_image(&f, e, NULL, NULL, NULL));
	CHECK(f.jemalloc.is_stripped && f.jemalloc.has_prof);
	CHECK_STR(f.jemalloc.prefix, "_rjem_");
	CHECK_U64(f.jemalloc.mallctl, 0x1140);
	bool has_own = false;
	vec_foreach(r, &f.code)
		has_own |= r->start <= 0x1140 && r->end > 0x1140;
	CHECK(has_own);
}

TEST(allocnames_say_what_arguments_mean)
{
	CHECK(allocnames_plain(SV("posix_memalign")) == HEAP_ALLOC_OUT);
	CHECK(allocnames_plain(SV("reallocarray")) == HEAP_REALLOC_12);
	CHECK(allocnames_mimalloc(SV("mi_heap_realloc")) == HEAP_REALLOC_2);
	CHECK(allocnames_mimalloc(SV("mi_heap_calloc")) == HEAP_ALLOC_12);
	CHECK(allocnames_operator(SV("_ZnwmSt11align_val_tRKSt9nothrow_t")) == HEAP_ALLOC_0);
	CHECK(allocnames_operator(SV("_ZdaPvm")) == HEAP_FREE_0);
	CHECK(allocnames_operator(SV("_Znwj")) == HEAP_SHAPE_NONE);
	CHECK(allocnames_jemalloc(SV("xallocx")) == HEAP_RESIZE);
	CHECK(allocnames_jemalloc(SV("__libc_malloc")) == HEAP_SHAPE_NONE);
	CHECK(allocnames_plain(SV("")) == HEAP_SHAPE_NONE);
}

TEST(heaptargets_find_the_c_library_of_this_process)
{
	struct heaptargets *t CLEANUP(heaptargets_free_p) = heaptargets_new(HEAPTARGETS_RECORDER);
	CLEANUP(heaptarget_release) struct heaptarget h = {0};
	CHECK(!heaptargets_inspect(t, getpid(), &h, NULL));
	size_t nr_used = 0;
	bool has_pages = false;
	vec_foreach(m, &h.images) {
		nr_used += m->is_used;
		vec_foreach(fn, &m->found->functions)
			has_pages |= fn->kind == HEAP_ALLOCATOR_PAGES &&
				     (h.is_static || fn->vaddr + m->bias != 0);
	}
	CHECK_U64(nr_used, 1);
	CHECK(has_pages);
	CLEANUP(heap_plan_release) struct heap_plan p = {0};
	CLEANUP(err_release) struct err err = {0};
	CHECK(heapchoice_plan(&h, HEAP_METHOD_HOOKS, NULL, &p, &err) == -ENOTSUP);
	CHECK(err.hint && strstr(err_msg(&err), "does not use jemalloc"));
}

TEST(heapchoice_knows_which_versions_have_hooks)
{
	CHECK(!heapchoice_has_hooks((uint32_t[]){5, 1, 0}));
	CHECK(heapchoice_has_hooks((uint32_t[]){5, 2, 0}));
	CHECK(heapchoice_has_hooks((uint32_t[]){5, 2, 1}));
	CHECK(heapchoice_has_hooks((uint32_t[]){5, 3, 1}));
	CHECK(!heapchoice_has_hooks((uint32_t[]){5, 3, 2}));
	CHECK(!heapchoice_has_hooks((uint32_t[]){6, 2, 0}));
	CHECK(!heapchoice_has_hooks((uint32_t[]){0, 0, 0}));
}

TEST(dump_triggers_are_times_amounts_or_growth)
{
	struct dump_trigger t;
	CHECK(!dump_trigger_parse(&t, "10s", NULL));
	CHECK(t.kind == DUMP_BY_TIME && t.step == 10000000000u);
	CHECK(!dump_trigger_parse(&t, "8GiB-allocated", NULL));
	CHECK(t.kind == DUMP_BY_ALLOCATED && t.step == (uint64_t)8 << 30);
	CHECK(!dump_trigger_parse(&t, "+1GiB-rss", NULL));
	CHECK(t.kind == DUMP_BY_RSS && t.step == (uint64_t)1 << 30);
	static const char *const bad[] = {"", "0s", "10ms", "-rss", "1GiB", "0-rss", "x-allocated"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (dump_trigger_parse(&t, bad[i], NULL) != -EINVAL)
			tap_fail(__FILE__, __LINE__, "'%s' was taken", bad[i]);
}
