/*
 * The DWARF reader on small programs compiled in many ways (tests/fixtures/dwarf), and on hand-made
 * and damaged sections.
 */
#include "base/base.h"
#include "tap.h"

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/vec.h"
#include "host/reader/hostfile.h"
#include "object/elf.h"
#include "symbol/dwarf/dwarf.h"
#include "symbol/dwarf/sections.h"
#include "elf_path.h"

static const struct debug_search on_host = {.open = hostfile_open_path, .root_fd = -1};

#define FIXTURES "tests/fixtures/dwarf/"

struct answers {
	const uint64_t *vaddrs;
	struct buf text;
};

/* The format of the .exp files. */
static void take(void *ctx, size_t query, const struct dwarf_frame *frames, size_t nr)
{
	struct answers *a = ctx;
	buf_addf(&a->text, "0x%" PRIx64 "\n", a->vaddrs[query]);
	for (size_t i = 0; i < nr; i++) {
		const struct dwarf_frame *f = &frames[i];
		buf_add_sv(&a->text, f->linkage.n ? f->linkage : SV("??"));
		buf_add_ch(&a->text, '\n');
		buf_add_sv(&a->text, f->file.n ? f->file : SV("??"));
		buf_addf(&a->text, ":%" PRIu32 "\n", f->line);
		CHECK(f->is_inlined == (i + 1 < nr));
	}
	if (!nr)
		buf_add_str(&a->text, "??\n??:0\n");
	buf_add_ch(&a->text, '\n');
}

typedef VEC(uint64_t) vaddr_vec;

/* The addresses of an .exp file: its lines that start with 0x. */
static vaddr_vec read_vaddrs(struct sv text)
{
	vaddr_vec v = {0};
	while (text.n) {
		struct sv line = sv_split(&text, '\n');
		uint64_t vaddr;
		if (sv_has_prefix(line, SV("0x")) && sv_to_hex(line, &vaddr))
			vec_push(&v, vaddr);
	}
	return v;
}

static struct dwarf *open_fixture(struct elf **ret_e, const char *name, unsigned nr_threads)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(free_p) char *path = xasprintf(FIXTURES "%s", name);
	struct dwarf *d = NULL;
	if (elf_open_path(ret_e, path, &err) ||
	    dwarf_new(&d, *ret_e, path, &on_host, nr_threads, &err) || !d)
		tap_fail(__FILE__, __LINE__, "%s: %s", path, err_msg(&err));
	return d;
}

static void check_fixture(const char *name, unsigned nr_threads)
{
	CLEANUP(free_p) char *exp_path = xasprintf(FIXTURES "%s.exp", name);
	CLEANUP(buf_release) struct buf exp = {0};
	CHECK(!file_read(&exp, exp_path, 1 << 20, NULL));
	vaddr_vec v = read_vaddrs(buf_sv(&exp));
	CHECK(v.n > 20);
	struct elf *e = NULL;
	struct dwarf *d = open_fixture(&e, name, nr_threads);
	struct answers a = {.vaddrs = v.p};
	/* First by a partial load, where possible; then with the whole file. */
	for (int i = 0; i < 2; i++) {
		buf_clear(&a.text);
		CHECK(!dwarf_query(d, v.p, v.n, 0, take, &a, NULL));
		if (strcmp(buf_str(&a.text), buf_str(&exp)))
			tap_fail(__FILE__, __LINE__, "%s: got\n%s", name, buf_str(&a.text));
	}
	struct dwarf_stats st = dwarf_stats(d);
	CHECK_U64(st.nr_units_bad, 0);
	CHECK_U64(st.nr_dwo_missing, 0);
	dwarf_free(d);
	elf_free(e);
	buf_release(&a.text);
	vec_release(&v);
}

TEST(dwarf_reads_versions_2_to_5_of_gcc_and_clang)
{
	static const char *const names[] = {"gcc2",   "gcc3",   "gcc4",   "gcc5",
					    "clang2", "clang3", "clang4", "clang5"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		check_fixture(names[i], 1);
}

TEST(dwarf_reads_64_bit_mixed_versions_type_units_and_discarded_code)
{
	static const char *const names[] = {"gcc64", "mixed", "types", "lld"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		check_fixture(names[i], 2);
}

TEST(dwarf_names_in_units_without_code_are_found)
{
	check_fixture("lto", 1);
	check_fixture("lto", 3);
}

static void ignore(void *ctx, size_t query, const struct dwarf_frame *frames, size_t nr)
{
	(void)ctx, (void)query, (void)frames, (void)nr;
}

TEST(dwarf_loads_only_the_units_of_the_addresses)
{
	CLEANUP(buf_release) struct buf exp = {0};
	CHECK(!file_read(&exp, FIXTURES "gcc5.exp", 1 << 20, NULL));
	vaddr_vec v = read_vaddrs(buf_sv(&exp));
	CHECK(v.n > 20);
	for (size_t i = 0; i < v.n; i++) {
		struct elf *e = NULL;
		struct dwarf *d = open_fixture(&e, "gcc5", 1);
		CHECK(!dwarf_query(d, &v.p[i], 1, 0, ignore, NULL, NULL));
		CHECK_U64(dwarf_stats(d).nr_units, 1);
		CHECK(!dwarf_query(d, v.p, v.n, 0, ignore, NULL, NULL));
		CHECK_U64(dwarf_stats(d).nr_units, 2);
		dwarf_free(d);
		elf_free(e);
	}
	vec_release(&v);
}

TEST(dwarf_split_units_are_found_in_dwo_files_and_packages)
{
	check_fixture("split4", 1);
	check_fixture("split5", 3);
	check_fixture("package/split4", 1);
	check_fixture("package/split5", 3);
}

TEST(dwarf_dwz_supplements_are_followed)
{
	check_fixture("dwz4", 1);
	check_fixture("dwz5", 2);
}

static void count_frames(void *ctx, size_t query, const struct dwarf_frame *frames, size_t nr)
{
	(void)query;
	size_t *n = ctx;
	for (size_t i = 0; i < nr; i++) {
		n[0]++;
		n[1] += frames[i].is_inlined;
		n[2] += frames[i].line != 0;
	}
}

TEST(dwarf_flags_omit_inlines_and_lines)
{
	struct elf *e = NULL;
	struct dwarf *d = open_fixture(&e, "gcc5", 1);
	uint64_t vaddrs[64];
	for (size_t i = 0; i < ARRAY_LEN(vaddrs); i++)
		vaddrs[i] = 0x401000 + i;
	size_t all[3] = {0}, none[3] = {0};
	CHECK(!dwarf_query(d, vaddrs, ARRAY_LEN(vaddrs), 0, count_frames, all, NULL));
	CHECK(!dwarf_query(d, vaddrs, ARRAY_LEN(vaddrs), DWARF_NO_INLINES | DWARF_NO_LINES,
			   count_frames, none, NULL));
	CHECK(all[1] > 0 && all[2] == all[0]);
	CHECK_U64(none[1], 0);
	CHECK_U64(none[2], 0);
	CHECK_U64(none[0], all[0] - all[1]);
	dwarf_free(d);
	elf_free(e);
}

/* Copies the sections of a fixture into separate memory, to be damaged. */
static void load_sections(const char *name, struct sv sections[DW_SEC_NR], struct elf **ret_e)
{
	CLEANUP(free_p) char *path = xasprintf(FIXTURES "%s", name);
	struct dw_file f = {0};
	CHECK(!elf_open_path(ret_e, path, NULL));
	CHECK(!dw_file_load(&f, *ret_e, false, NULL));
	memcpy(sections, f.sec, sizeof(f.sec));
}

static void query_some(const struct sv sections[DW_SEC_NR])
{
	uint64_t vaddrs[100];
	for (size_t i = 0; i < ARRAY_LEN(vaddrs); i++)
		vaddrs[i] = 0x401000 + 2 * i;
	struct dwarf *d = dwarf_new_sections(sections, NULL, 0x401000, 1);
	size_t n[3] = {0};
	CHECK(!dwarf_query(d, vaddrs, ARRAY_LEN(vaddrs), 0, count_frames, n, NULL));
	dwarf_free(d);
}

/* Truncates each section at each byte; memory after its end is not readable. */
static void check_truncated(const char *name)
{
	struct sv sections[DW_SEC_NR];
	struct elf *e = NULL;
	load_sections(name, sections, &e);
	for (int s = 0; s < DW_SEC_NR; s++) {
		struct sv whole = sections[s];
		for (size_t n = 0; n < whole.n; n++) {
			CLEANUP(free_p) char *part = n ? xmemdup(whole.p, n) : NULL;
			sections[s] = sv_from(n ? part : "", n);
			query_some(sections);
		}
		sections[s] = whole;
	}
	elf_free(e);
}

TEST(dwarf_truncated_at_any_byte_does_not_crash)
{
	check_truncated("gcc4");
	check_truncated("clang5");
}

TEST(dwarf_changed_bytes_do_not_crash)
{
	struct sv sections[DW_SEC_NR];
	struct elf *e = NULL;
	load_sections("gcc5", sections, &e);
	uint32_t x = 1;
	for (int s = 0; s < DW_SEC_NR; s++) {
		struct sv whole = sections[s];
		for (size_t i = 0; i < whole.n; i++) {
			CLEANUP(free_p) char *copy = xmemdup(whole.p, whole.n);
			x = x * 1664525 + 1013904223;
			copy[i] = (char)(x >> 24);
			sections[s] = sv_from(copy, whole.n);
			query_some(sections);
		}
		sections[s] = whole;
	}
	elf_free(e);
}

/* A hand-made unit of version 4 with contents that compilers do not write. */
struct hand {
	struct buf abbrev;
	struct buf info;
};

static void add_abbrev(struct hand *h, uint64_t code, uint64_t tag, bool has_children,
		       const uint16_t *specs)
{
	buf_add_uleb(&h->abbrev, code);
	buf_add_uleb(&h->abbrev, tag);
	buf_add_ch(&h->abbrev, has_children);
	for (; *specs; specs += 2) {
		buf_add_uleb(&h->abbrev, specs[0]);
		buf_add_uleb(&h->abbrev, specs[1]);
	}
	buf_add_u16le(&h->abbrev, 0);
}

static void start_unit(struct hand *h)
{
	static const uint16_t unit[] = {DW_AT_low_pc,
					DW_FORM_addr,
					DW_AT_high_pc,
					DW_FORM_data4,
					DW_AT_language,
					DW_FORM_data1,
					0};
	static const uint16_t func[] = {DW_AT_low_pc,
					DW_FORM_addr,
					DW_AT_high_pc,
					DW_FORM_data4,
					DW_AT_abstract_origin,
					DW_FORM_ref4,
					0};
	static const uint16_t named[] = {DW_AT_name, DW_FORM_string, 0};
	static const uint16_t chained[] = {DW_AT_specification, DW_FORM_ref4, 0};
	add_abbrev(h, 1, DW_TAG_compile_unit, true, unit);
	add_abbrev(h, 2, DW_TAG_subprogram, false, func);
	add_abbrev(h, 9, DW_TAG_namespace, true, named); /* codes with gaps */
	add_abbrev(h, 7, DW_TAG_subprogram, false, named);
	add_abbrev(h, 8, DW_TAG_subprogram, false, chained);
	buf_add_ch(&h->abbrev, 0);
	buf_add_u32le(&h->info, 0); /* the length, set by finish_unit */
	buf_add_u16le(&h->info, 4);
	buf_add_u32le(&h->info, 0);
	buf_add_ch(&h->info, 8);
	buf_add_uleb(&h->info, 1);
	buf_add_u64le(&h->info, 0x1000);
	buf_add_u32le(&h->info, 0x100);
	buf_add_ch(&h->info, DW_LANG_C_plus_plus);
}

static void add_func(struct hand *h, uint64_t lo, uint32_t nr_bytes, uint32_t origin)
{
	buf_add_uleb(&h->info, 2);
	buf_add_u64le(&h->info, lo);
	buf_add_u32le(&h->info, nr_bytes);
	buf_add_u32le(&h->info, origin);
}

static void check_hand(struct hand *h, uint64_t vaddr, const char *text)
{
	uint32_t nr_bytes = (uint32_t)h->info.n - 4;
	memcpy(h->info.p, &nr_bytes, 4);
	struct sv sections[DW_SEC_NR];
	for (int i = 0; i < DW_SEC_NR; i++)
		sections[i] = sv_from("", 0);
	sections[DW_SEC_INFO] = buf_sv(&h->info);
	sections[DW_SEC_ABBREV] = buf_sv(&h->abbrev);
	struct dwarf *d = dwarf_new_sections(sections, NULL, 0x1000, 1);
	struct answers a = {.vaddrs = &vaddr};
	CHECK(!dwarf_query(d, &vaddr, 1, 0, take, &a, NULL));
	CHECK_STR(buf_str(&a.text), text);
	dwarf_free(d);
	buf_release(&a.text);
	buf_release(&h->info);
	buf_release(&h->abbrev);
}

TEST(dwarf_plain_names_are_qualified_by_their_namespaces)
{
	struct hand h = {0};
	start_unit(&h);
	uint32_t origin = (uint32_t)h.info.n + 2 * (1 + 6) + 0;
	buf_add(&h.info, "\011outer", 7);
	buf_add(&h.info, "\011inner", 7);
	buf_add(&h.info, "\007run", 5);
	buf_add(&h.info, "\0\0", 2);
	add_func(&h, 0x1010, 0x10, origin);
	check_hand(&h, 0x101f, "0x101f\nouter::inner::run\n??:0\n\n");
}

TEST(dwarf_reference_loops_terminate)
{
	struct hand h = {0};
	start_unit(&h);
	uint32_t first = (uint32_t)h.info.n;
	buf_add_uleb(&h.info, 8);
	buf_add_u32le(&h.info, first + 5);
	buf_add_uleb(&h.info, 8);
	buf_add_u32le(&h.info, first);
	add_func(&h, 0x1010, 0x10, first);
	check_hand(&h, 0x1010, "0x1010\n??\n??:0\n\n");
}

TEST(dwarf_code_below_the_lowest_section_is_ignored)
{
	struct hand h = {0};
	start_unit(&h);
	uint32_t live = (uint32_t)h.info.n;
	buf_add(&h.info, "\007live", 6);
	uint32_t dead = (uint32_t)h.info.n;
	buf_add(&h.info, "\007dead", 6);
	add_func(&h, 0x1010, 0x10, live);
	add_func(&h, 0, 0x2000, dead);
	check_hand(&h, 0x1010, "0x1010\nlive\n??:0\n\n");
}

/* A unit whose unit DIE has no ranges, with or without an entry in .debug_aranges. */
static void check_silent(bool has_aranges, const char *text)
{
	static const uint16_t unit[] = {DW_AT_language, DW_FORM_data1, 0};
	static const uint16_t func[] = {DW_AT_low_pc,
					DW_FORM_addr,
					DW_AT_high_pc,
					DW_FORM_data4,
					DW_AT_name,
					DW_FORM_string,
					0};
	struct hand h = {0};
	add_abbrev(&h, 1, DW_TAG_compile_unit, true, unit);
	add_abbrev(&h, 2, DW_TAG_subprogram, false, func);
	buf_add_ch(&h.abbrev, 0);
	buf_add_u32le(&h.info, 7 + 2 + 13 + 5 + 1); /* bytes behind this field */
	buf_add_u16le(&h.info, 4);
	buf_add_u32le(&h.info, 0);
	buf_add_ch(&h.info, 8);
	buf_add(&h.info, "\001\004", 2);
	buf_add_ch(&h.info, 2);
	buf_add_u64le(&h.info, 0x1010);
	buf_add_u32le(&h.info, 0x10);
	buf_add(&h.info, "func", 5);
	buf_add_ch(&h.info, 0);

	CLEANUP(buf_release) struct buf aranges = {0};
	buf_add_u32le(&aranges, 8 + 4 + 32);
	buf_add_u16le(&aranges, 2);
	buf_add_u32le(&aranges, 0);
	buf_add_ch(&aranges, 8);
	buf_add_ch(&aranges, 0);
	buf_add_u32le(&aranges, 0);
	buf_add_u64le(&aranges, 0x1010);
	buf_add_u64le(&aranges, 0x8); /* less than the function has: it is believed */
	buf_add_u64le(&aranges, 0);
	buf_add_u64le(&aranges, 0);

	struct sv sections[DW_SEC_NR];
	for (int i = 0; i < DW_SEC_NR; i++)
		sections[i] = sv_from("", 0);
	sections[DW_SEC_INFO] = buf_sv(&h.info);
	sections[DW_SEC_ABBREV] = buf_sv(&h.abbrev);
	if (has_aranges)
		sections[DW_SEC_ARANGES] = buf_sv(&aranges);
	const uint64_t vaddrs[] = {0x1010, 0x101f};
	struct dwarf *d = dwarf_new_sections(sections, NULL, 0x1000, 1);
	struct answers a = {.vaddrs = vaddrs};
	CHECK(!dwarf_query(d, vaddrs, 2, 0, take, &a, NULL));
	CHECK_STR(buf_str(&a.text), text);
	CHECK_U64(dwarf_stats(d).nr_units_bad, 0);
	dwarf_free(d);
	buf_release(&a.text);
	buf_release(&h.info);
	buf_release(&h.abbrev);
}

TEST(dwarf_units_without_ranges_are_found_by_aranges_or_functions)
{
	check_silent(true, "0x1010\nfunc\n??:0\n\n0x101f\n??\n??:0\n\n");
	check_silent(false, "0x1010\nfunc\n??:0\n\n0x101f\nfunc\n??:0\n\n");
}
