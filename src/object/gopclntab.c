/* The functions of Go programs; see gopclntab.h. */
#include "base/base.h"
#include "object/gopclntab.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"

#define HEAD_BYTES  8u /* magic, two zeros, the smallest instruction's size, the size of a pointer */
#define TABLE_MAX   ((uint64_t)512 << 20)
#define SEARCH_MAX  ((uint64_t)256 << 20) /* of a section that holds the table and other data */
#define SEARCH_STEP 8u
#define R_RELATIVE  8u /* R_X86_64_RELATIVE */

/* struct _func of the runtime: flags in the byte before the number of funcdata. */
#define FLAG_OUTERMOST 1u
#define FLAG_WRITES_SP 2u

enum go_version { GO_1_2 = 0, GO_1_16, GO_1_18, GO_1_20, GO_NR_VERSIONS };

static const struct go_layout {
	uint32_t magic;
	uint32_t nr_words;    /* of the header, after HEAD_BYTES */
	uint32_t entry_bytes; /* of the table of functions: address and offset */
	/* In the runtime's struct _func: the name, the steps of the stack pointer, the flags (0: none). */
	uint32_t name_at;
	uint32_t steps_at;
	uint32_t flags_at;
} go_layouts[GO_NR_VERSIONS] = {
	[GO_1_2] = {0xfffffffbu, 1, 16, 8, 20, 0},
	[GO_1_16] = {0xfffffffau, 7, 16, 8, 20, 41},
	[GO_1_18] = {0xfffffff0u, 8, 8, 4, 16, 37},
	[GO_1_20] = {0xfffffff1u, 8, 8, 4, 16, 41},
};

struct gopclntab {
	struct buf bytes; /* the section, or the part of it from the table on */
	const char *p;
	size_t n;
	enum go_version version;
	size_t nr_functions;
	uint64_t text_start; /* to which addresses of 1.18 and later are relative */
	uint64_t text_end;   /* end of the code */
	size_t functions;    /* offsets in the table: of the table of functions, */
	size_t names;        /* of names, */
	size_t steps;        /* and of the sequences of pairs of value and address */
};

static bool read_u32(const struct gopclntab *t, uint64_t at, uint32_t *ret_v)
{
	if (at > t->n || t->n - at < sizeof(*ret_v))
		return false;
	memcpy(ret_v, t->p + at, sizeof(*ret_v));
	return true;
}

static bool read_u64(const struct gopclntab *t, uint64_t at, uint64_t *ret_v)
{
	if (at > t->n || t->n - at < sizeof(*ret_v))
		return false;
	memcpy(ret_v, t->p + at, sizeof(*ret_v));
	return true;
}

/* ---- finding the table ---- */

static bool find_version(const char *p, size_t n, enum go_version *ret_version)
{
	uint32_t magic;
	if (n < HEAD_BYTES + 8)
		return false;
	memcpy(&magic, p, sizeof(magic));
	if (magic < go_layouts[GO_1_16].magic - 10 || p[4] || p[5] || p[7] != 8)
		return false;
	for (int i = 0; i < GO_NR_VERSIONS; i++)
		if (go_layouts[i].magic == magic) {
			*ret_version = (enum go_version)i;
			return true;
		}
	return false;
}

/* Reads the header at the start of the table; false: it is none. */
static bool read_header(struct gopclntab *t, uint64_t *ret_text)
{
	uint64_t word[8] = {0};
	if (!find_version(t->p, t->n, &t->version))
		return false;
	const struct go_layout *l = &go_layouts[t->version];
	for (size_t i = 0; i < l->nr_words; i++)
		if (!read_u64(t, HEAD_BYTES + i * 8, &word[i]))
			return false;
	*ret_text = t->version >= GO_1_18 ? word[2] : 0;
	size_t skip = t->version >= GO_1_18
			      ? 3
			      : 2; /* to the offsets: names, units, files, steps, functions */
	t->names = t->version == GO_1_2 ? 0 : (size_t)word[skip];
	t->steps = t->version == GO_1_2 ? 0 : (size_t)word[skip + 3];
	t->functions = t->version == GO_1_2 ? HEAD_BYTES + 8 : (size_t)word[skip + 4];
	if (t->names >= t->n || t->steps >= t->n || t->functions >= t->n)
		return false;
	t->nr_functions = (size_t)MIN(word[0], (t->n - t->functions) / l->entry_bytes);
	return t->nr_functions > 0 && t->nr_functions == word[0];
}

/* Takes the table at @offset of the file; @nr_bytes: what the section still has. */
static bool take_table(struct gopclntab *t, struct elf *e, uint64_t offset, uint64_t nr_bytes,
		       uint64_t *ret_text)
{
	nr_bytes = MIN(nr_bytes, TABLE_MAX);
	buf_clear(&t->bytes);
	char *to = buf_reserve(&t->bytes, nr_bytes);
	if (elf_read(e, to, nr_bytes, offset, NULL))
		return false;
	t->bytes.n = nr_bytes;
	t->p = t->bytes.p;
	t->n = nr_bytes;
	return read_header(t, ret_text);
}

/* Searches a section of other data for the table. */
static bool search(struct gopclntab *t, struct elf *e, const struct elf_section *s,
		   uint64_t *ret_at, uint64_t *ret_text)
{
	CLEANUP(buf_release) struct buf all = {0};
	enum go_version version;
	if (s->nr_bytes > SEARCH_MAX || elf_section_read(e, s, &all, NULL))
		return false;
	for (size_t at = (size_t)(-s->vaddr % SEARCH_STEP); at + HEAD_BYTES < all.n;
	     at += SEARCH_STEP) {
		if (!find_version(all.p + at, all.n - at, &version))
			continue;
		t->p = all.p + at;
		t->n = all.n - at;
		if (read_header(t, ret_text) &&
		    take_table(t, e, s->offset + at, s->nr_bytes - at, ret_text)) {
			*ret_at = s->vaddr + at;
			return true;
		}
	}
	return false;
}

static bool find_table(struct gopclntab *t, struct elf *e, uint64_t *ret_at, uint64_t *ret_text)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct elf_section *s = elf_section(e, names[i]);
		if (s && take_table(t, e, s->offset, s->nr_bytes, ret_text)) {
			*ret_at = s->vaddr;
			return true;
		}
	}
	/* An external linker merges sections. */
	const struct elf_section *s = elf_section(e, ".data.rel.ro");
	return s && elf_section(e, ".go.buildinfo") && search(t, e, s, ret_at, ret_text);
}

/* ---- the address of the first function ---- */

/* Reads what the dynamic linker adds to the load address at @vaddr; false: nothing. */
static bool relocated(struct elf *e, uint64_t vaddr, uint64_t *ret_v)
{
	CLEANUP(buf_release) struct buf all = {0};
	const struct elf_section *s = elf_section(e, ".rela.dyn");
	if (!s || s->nr_bytes > SEARCH_MAX || elf_section_read(e, s, &all, NULL))
		return false;
	for (size_t at = 0; at + 24 <= all.n; at += 24) {
		uint64_t rela[3]; /* address, type, addend */
		memcpy(rela, all.p + at, sizeof(rela));
		if (rela[0] == vaddr && (uint32_t)rela[1] == R_RELATIVE) {
			*ret_v = rela[2];
			return true;
		}
	}
	return false;
}

static bool entry_of(const struct gopclntab *t, size_t i, uint64_t *ret_start, uint64_t *ret_func)
{
	uint64_t at = t->functions + i * go_layouts[t->version].entry_bytes;
	uint32_t start, func;
	if (t->version < GO_1_18)
		return read_u64(t, at, ret_start) && read_u64(t, at + 8, ret_func);
	if (!read_u32(t, at, &start) || !read_u32(t, at + 4, &func))
		return false;
	*ret_start = t->text_start + start;
	*ret_func = func;
	return true;
}

/* The program's entry point is a function of the table, unless it is C's. */
static bool text_by_entry(struct gopclntab *t, struct elf *e)
{
	struct gopclntab_function f;
	t->text_start = 0;
	for (size_t i = 0; i < t->nr_functions; i++)
		if (gopclntab_function(t, i, &f) && sv_eq(f.name, SV("_rt0_amd64_linux"))) {
			t->text_start = elf_entry(e) - f.start;
			return true;
		}
	return false;
}

static bool has_code_at(const struct gopclntab *t, struct elf *e)
{
	uint64_t first, last, func;
	return entry_of(t, 0, &first, &func) && entry_of(t, t->nr_functions - 1, &last, &func) &&
	       first <= last && elf_is_code(e, first) && elf_is_code(e, last);
}

/* Versions up to 1.16 have addresses. Newer ones have the start of the text, but not all. */
static bool find_text(struct gopclntab *t, struct elf *e, uint64_t vaddr, uint64_t text)
{
	t->text_end = UINT64_MAX;
	t->text_start = text;
	if (t->version < GO_1_18 || text)
		return has_code_at(t, e);
	if (relocated(e, vaddr + HEAD_BYTES + 2 * 8, &t->text_start) && has_code_at(t, e))
		return true;
	if (text_by_entry(t, e) && has_code_at(t, e))
		return true;
	const struct elf_section *s = elf_section(e, ".text");
	t->text_start = s ? s->vaddr : 0;
	return s && has_code_at(t, e);
}

struct gopclntab *gopclntab_open(struct elf *e)
{
	CLEANUP(gopclntab_free_p) struct gopclntab *t = xcalloc(1, sizeof(*t));
	uint64_t vaddr = 0, text = 0, func;

	if (elf_machine(e) != ELF_MACHINE_X86_64 || !find_table(t, e, &vaddr, &text) ||
	    !find_text(t, e, vaddr, text))
		return NULL;
	/* After the last function comes its end. */
	uint64_t at = t->functions + t->nr_functions * go_layouts[t->version].entry_bytes;
	uint32_t end32 = 0;
	if (t->version >= GO_1_18 && read_u32(t, at, &end32))
		t->text_end = t->text_start + end32;
	else if (t->version < GO_1_18 && read_u64(t, at, &func))
		t->text_end = func;
	return TAKE(t);
}

void gopclntab_free(struct gopclntab *t)
{
	if (!t)
		return;
	buf_release(&t->bytes);
	free(t);
}

/* ---- functions ---- */

size_t gopclntab_count(const struct gopclntab *t)
{
	return t->nr_functions;
}

static struct sv name_at(const struct gopclntab *t, uint32_t offset)
{
	if (offset >= t->n - t->names)
		return SV("");
	const char *p = t->p + t->names + offset;
	const char *end = memchr(p, 0, t->n - t->names - offset);
	return end ? sv_from(p, (size_t)(end - p)) : SV("");
}

static bool is_one_of(struct sv name, const char *const *names, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (sv_eq(name, sv_from_str(names[i])))
			return true;
	return false;
}

/* @flags: of the runtime's struct; versions before 1.17 have none. */
static enum gopclntab_kind kind_of(struct sv name, unsigned flags)
{
	/*
	 * mcall continues on the thread's own stack and does not return: what runs there was not called
	 * by the goroutine, which may be running elsewhere.
	 */
	static const char *const outermost[] = {"runtime.goexit",   "runtime.mstart",
						"runtime.rt0_go",   "runtime.mcall",
						"_rt0_amd64_linux", "runtime.gogo"};
	static const char *const switching[] = {"runtime.systemstack", "runtime.asmcgocall",
						"runtime.morestack", "runtime.cgocallback",
						"runtime.cgocallback_gofunc"};
	static const char restorer[] = "runtime.sigreturn";

	if (name.n >= sizeof(restorer) - 1 && !memcmp(name.p, restorer, sizeof(restorer) - 1))
		return GO_RESTORER;
	if (flags & FLAG_OUTERMOST || is_one_of(name, outermost, ARRAY_LEN(outermost)))
		return GO_OUTERMOST;
	if (flags & FLAG_WRITES_SP || is_one_of(name, switching, ARRAY_LEN(switching)))
		return GO_SWITCHES_STACK;
	return GO_ORDINARY;
}

static struct sv without_abi(struct sv name)
{
	static const char *const suffixes[] = {".abi0", ".abiinternal"};
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		size_t n = strlen(suffixes[i]);
		if (name.n > n && !memcmp(name.p + name.n - n, suffixes[i], n))
			return sv_from(name.p, name.n - n);
	}
	return name;
}

bool gopclntab_function(const struct gopclntab *t, size_t i, struct gopclntab_function *ret_f)
{
	const struct go_layout *l = &go_layouts[t->version];
	uint64_t func, next_func;
	uint32_t name;

	*ret_f = (struct gopclntab_function){.end = t->text_end};
	if (i >= t->nr_functions || !entry_of(t, i, &ret_f->start, &func) ||
	    (i + 1 < t->nr_functions && !entry_of(t, i + 1, &ret_f->end, &next_func)))
		return false;
	/* Offsets of functions are relative to their table; of 1.2 to the whole. */
	uint64_t at = (t->version == GO_1_2 ? 0 : t->functions) + func;
	if (ret_f->end <= ret_f->start || at > t->n || at + l->flags_at >= t->n ||
	    !read_u32(t, at + l->name_at, &name) || !read_u32(t, at + l->steps_at, &ret_f->steps))
		return false;
	unsigned flags = l->flags_at ? (uint8_t)t->p[at + l->flags_at] : 0;
	ret_f->name = name_at(t, name);
	ret_f->kind = kind_of(without_abi(ret_f->name), flags);
	return ret_f->name.n > 0;
}

/* ---- distances ---- */

struct gopclntab_steps gopclntab_steps(const struct gopclntab *t,
				       const struct gopclntab_function *f)
{
	struct gopclntab_steps s = {
		.end = f->start, .nr_bytes = -1, .function_end = f->end, .is_first = true};
	/* Offset 0 means: none. */
	size_t n = f->steps && f->steps < t->n - t->steps ? t->n - t->steps - f->steps : 0;
	s.rd = rd_from(t->p + t->steps + f->steps, n);
	if (!n)
		s.rd = rd_from(NULL, 0);
	return s;
}

bool gopclntab_next(struct gopclntab_steps *s)
{
	if (s->end >= s->function_end)
		return false;
	uint64_t change = rd_uleb(&s->rd);
	/* A change of 0 ends the sequence, except in its first pair. */
	if (s->rd.is_bad || (change == 0 && !s->is_first))
		return false;
	uint64_t nr_code = rd_uleb(&s->rd);
	if (s->rd.is_bad || !nr_code)
		return false;
	s->is_first = false;
	s->nr_bytes += (int64_t)(change >> 1) ^ -(int64_t)(change & 1);
	s->start = s->end;
	s->end = MIN(s->function_end, s->start + MIN(nr_code, UINT64_MAX - s->start));
	return true;
}
