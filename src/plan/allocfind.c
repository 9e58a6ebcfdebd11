/*
 * Finds allocators in a binary; see allocfind.h.
 *
 * First one scan of each symbol table collects candidate names; a binary has 10^5 symbols, so a
 * name's last byte is tested first. Then they are interpreted together, since the owner of `malloc`
 * depends on the other symbols.
 */
#include "base/base.h"
#include "plan/allocfind.h"

#include <elf.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sv.h"
#include "object/ehframe.h"
#include "plan/alloccode.h"
#include "plan/allocnames.h"
#include "plan/allocstrip.h"

#define NAME_BYTES_MAX 64
#define NAMES_MAX      ((size_t)1 << 17)
#define OPERATOR_BYTES 512 /* of an operator, searched for calls */

struct symbol {
	struct sv name; /* into the string table, which is kept */
	uint64_t vaddr;
	uint64_t nr_bytes;
	bool is_global;
	bool is_dynamic;
};

struct finder {
	struct elf *image;
	struct allocfind *to;
	VEC(struct symbol) symbols;
	VEC(struct sv) prefixes;   /* of <prefix>mallctl */
	enum heap_allocator plain; /* owner of malloc, free and so on */
	uint64_t malloc_vaddr;
	uint64_t free_vaddr;
};

static void finder_release(struct finder *f)
{
	vec_release(&f->symbols);
	vec_release(&f->prefixes);
}

void allocfind_release(struct allocfind *f)
{
	vec_foreach(fn, &f->functions)
		free_p(&fn->name);
	vec_release(&f->functions);
	heap_ranges_release(&f->code);
	free_p(&f->jemalloc.prefix);
	free_p(&f->jemalloc.variable);
	free_p(&f->jemalloc.version_text);
	*f = (struct allocfind){0};
}

/* ---- symbols ------------------------------------------------------------------------------- */

static bool is_candidate_name(struct sv n)
{
	static const struct sv ends[] = {
		{"alloc", 5},    {"free", 4},        {"memalign", 8},     {"allocx", 6},
		{"mallctl", 7},  {"allocarray", 10}, {"free_sized", 10},  {"aligned_sized", 13},
		{"reallocf", 8}, {"mmap", 4},        {"mmap64", 6},       {"munmap", 6},
		{"mremap", 6},   {"brk", 3},         {"_start_main", 11}, {"CreateJavaVM", 12},
		{"mallocgc", 8}, {"prctl", 5},       {"syscall", 7},
	};
	if (n.p[0] == 'm' || n.p[0] == 't' || n.p[0] == 'T' || n.p[0] == '_') {
		static const struct sv starts[] = {{"mi_", 3},   {"tc_", 3},   {"TCMallocI", 9},
						   {"_Znwm", 5}, {"_Znam", 5}, {"_ZdlPv", 6},
						   {"_ZdaPv", 6}};
		for (size_t i = 0; i < ARRAY_LEN(starts); i++)
			if (sv_has_prefix(n, starts[i]))
				return true;
	}
	char last = n.p[n.n - 1];
	if (!memchr("cenxlydfp4k", last, 11) && last != 'M')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (ends[i].p[ends[i].n - 1] == last && sv_has_suffix(n, ends[i]))
			return true;
	return false;
}

static void add_symbol(struct finder *f, const Elf64_Sym *s, struct sv names, bool is_dynamic)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);
	if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
	    s->st_shndx == SHN_UNDEF || !s->st_value || s->st_name >= names.n)
		return;
	size_t limit = MIN(names.n - s->st_name, NAME_BYTES_MAX);
	size_t n = strnlen(names.p + s->st_name, limit);
	if (!n || n == limit)
		return;
	struct sv name = sv_from(names.p + s->st_name, n);
	ssize_t version = sv_index(name, '@');
	if (version > 0)
		name.n = (size_t)version;
	if (!is_candidate_name(name) || f->symbols.n >= NAMES_MAX)
		return;
	vec_push(&f->symbols, (struct symbol){name, s->st_value, s->st_size,
					      ELF64_ST_BIND(s->st_info) != STB_LOCAL, is_dynamic});
}

/* Names are borrowed from @e. */
static int add_symbols(struct finder *f, struct elf *e, uint32_t type, struct err *err)
{
	size_t nr;
	const struct elf_section *s = elf_sections(e, &nr);
	for (size_t i = 0; i < nr; i++) {
		if (s[i].type != type || !s[i].nr_bytes || s[i].link >= nr)
			continue;
		CLEANUP(buf_release) struct buf bytes = {0};
		struct sv names;
		TRY(elf_section_read(e, &s[i], &bytes, err));
		TRY(elf_section_bytes(e, &s[s[i].link], &names, err));
		for (size_t at = 0; at + sizeof(Elf64_Sym) <= bytes.n; at += sizeof(Elf64_Sym)) {
			Elf64_Sym symbol;
			memcpy(&symbol, bytes.p + at, sizeof(symbol));
			add_symbol(f, &symbol, names, type == SHT_DYNSYM);
		}
	}
	return 0;
}

static const struct symbol *find(const struct finder *f, struct sv prefix, const char *name)
{
	size_t n = strlen(name);
	vec_foreach(s, &f->symbols)
		if (s->name.n == prefix.n + n && sv_has_prefix(s->name, prefix) &&
		    !memcmp(s->name.p + prefix.n, name, n))
			return s;
	return NULL;
}

static bool has(const struct finder *f, const char *name)
{
	return find(f, SV(""), name) != NULL;
}

/* ---- allocators ------------------------------------------------------------------------------ */

/*
 * Other libraries may have a mallctl; mallocx and the like are only in jemalloc. A linker that drops
 * unused functions (rustc: --gc-sections) may leave one of them, but also jemalloc's strings.
 */
static bool is_jemalloc(const struct finder *f, struct sv prefix)
{
	static const char *const jemalloc_names[] = {"mallocx", "rallocx", "xallocx", "sdallocx",
						     "dallocx"};
	size_t nr = 0;
	for (size_t i = 0; i < ARRAY_LEN(jemalloc_names); i++)
		nr += find(f, prefix, jemalloc_names[i]) != NULL;
	return nr >= 3 || (nr && alloccode_has_strings(f->image));
}

static void find_prefixes(struct finder *f)
{
	vec_foreach(s, &f->symbols) {
		if (!sv_has_suffix(s->name, SV("mallctl")))
			continue;
		struct sv prefix = sv_from(s->name.p, s->name.n - 7);
		bool is_known = !is_jemalloc(f, prefix);
		vec_foreach(p, &f->prefixes)
			is_known |= sv_eq(*p, prefix);
		if (is_known)
			continue;
		vec_push(&f->prefixes, prefix);
		if (f->to->jemalloc.prefix)
			continue;
		f->to->jemalloc.prefix = xstrndup(prefix.p, prefix.n);
		f->to->jemalloc.mallctl = s->vaddr;
	}
}

/* The owner of malloc: by its other name at the same address, or in the same binary. */
static enum heap_allocator plain_owner(struct finder *f)
{
	const struct symbol *m = find(f, SV(""), "malloc");
	const struct symbol *own = NULL;
	if (!m)
		return HEAP_ALLOCATOR_NONE;
	f->malloc_vaddr = m->vaddr;
	const struct symbol *fr = find(f, SV(""), "free");
	f->free_vaddr = fr ? fr->vaddr : 0;
	vec_foreach(p, &f->prefixes)
		if (!p->n)
			return HEAP_ALLOCATOR_JEMALLOC;
	if ((own = find(f, SV(""), "tc_malloc")) ||
	    (own = find(f, SV(""), "TCMallocInternalMalloc")))
		return HEAP_ALLOCATOR_TCMALLOC;
	if ((own = find(f, SV(""), "mi_malloc")) && (own->vaddr == m->vaddr || !f->to->is_libc))
		return HEAP_ALLOCATOR_MIMALLOC;
	if (f->to->is_libc)
		return has(f, "__libc_calloc") || has(f, "_int_malloc") ? HEAP_ALLOCATOR_GLIBC
									: HEAP_ALLOCATOR_MUSL;
	return HEAP_ALLOCATOR_OTHER;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void add(struct finder *f, const struct symbol *s, enum heap_allocator kind,
		enum heap_shape shape, bool is_plain)
{
	vec_foreach(fn, &f->to->functions) {
		if (fn->vaddr != s->vaddr)
			continue;
		/* Prefer the standard name, then one without underscores. */
		bool is_better = (is_plain && !fn->is_plain) ||
				 (is_plain == fn->is_plain && fn->name[0] == '_' &&
				  s->name.p[0] != '_' && kind != HEAP_ALLOCATOR_JEMALLOC);
		if (is_better) {
			free(fn->name);
			fn->name = xstrndup(s->name.p, s->name.n);
		}
		fn->is_plain |= is_plain;
		if (!fn->end && s->nr_bytes)
			fn->end = s->vaddr + s->nr_bytes;
		return;
	}
	uint64_t end =
		s->nr_bytes && s->nr_bytes < UINT64_MAX - s->vaddr ? s->vaddr + s->nr_bytes : 0;
	vec_push(&f->to->functions,
		 (struct allocfind_function){s->vaddr, end, kind, shape, is_plain,
					     xstrndup(s->name.p, s->name.n)});
}

/* Whether an operator only calls or jumps to malloc or free. */
static bool is_wrapper(const struct finder *f, const struct symbol *s)
{
	uint8_t code[OPERATOR_BYTES];
	size_t n = (size_t)MIN(s->nr_bytes, sizeof(code));
	uint64_t offset;
	if (!n || !elf_offset_from_vaddr(f->image, s->vaddr, &offset) ||
	    elf_read(f->image, code, n, offset, NULL))
		return true;
	if (elf_machine(f->image) == ELF_MACHINE_ARM64) {
		for (size_t i = 0; i + 4 <= n; i += 4) {
			uint32_t word;
			memcpy(&word, code + i, sizeof(word));
			if ((word & 0x7c000000) != 0x14000000) /* b, bl */
				continue;
			int64_t by = (int64_t)((uint64_t)word << 38) >> 36;
			uint64_t to = s->vaddr + i + (uint64_t)by;
			if (to == f->malloc_vaddr || to == f->free_vaddr)
				return true;
		}
		return false;
	}
	for (size_t i = 0; i + 5 <= n; i++) {
		int32_t by;
		if (code[i] != 0xe8 && code[i] != 0xe9) /* call, jmp */
			continue;
		memcpy(&by, code + i + 1, sizeof(by));
		uint64_t to = s->vaddr + i + 5 + (uint64_t)(int64_t)by;
		if (to == f->malloc_vaddr || to == f->free_vaddr)
			return true;
	}
	return false;
}

static void add_prefixed(struct finder *f, const struct symbol *s)
{
	vec_foreach(p, &f->prefixes) {
		if (!sv_has_prefix(s->name, *p))
			continue;
		struct sv base = sv_from_idx(s->name, p->n);
		enum heap_shape shape = allocnames_jemalloc(base);
		if (shape)
			add(f, s, HEAP_ALLOCATOR_JEMALLOC, shape, !p->n && allocnames_plain(base));
	}
	enum heap_shape shape = allocnames_mimalloc(s->name);
	if (shape && has(f, "mi_malloc"))
		add(f, s, HEAP_ALLOCATOR_MIMALLOC, shape, false);
	shape = allocnames_tcmalloc(s->name);
	if (shape)
		add(f, s, HEAP_ALLOCATOR_TCMALLOC, shape, false);
}

/*
 * Linkers may make functions of a statically linked C library local (Rust's version scripts,
 * --exclude-libs). A local symbol counts if no other symbol has its name; otherwise it may be a
 * static function of other code.
 */
static bool is_public(const struct finder *f, const struct symbol *s)
{
	if (s->is_global || !f->to->is_libc)
		return s->is_global;
	vec_foreach(o, &f->symbols)
		if (o->vaddr != s->vaddr && sv_eq(o->name, s->name))
			return false;
	return true;
}

static void add_plain(struct finder *f, const struct symbol *s)
{
	enum heap_shape shape = allocnames_plain(s->name);
	if (shape && f->plain && is_public(f, s))
		add(f, s, f->plain, shape, true);
	shape = allocnames_pages(s->name);
	if (shape && f->to->is_libc && is_public(f, s))
		add(f, s, HEAP_ALLOCATOR_PAGES, shape, true);
	shape = allocnames_operator(s->name);
	bool has_own = f->plain == HEAP_ALLOCATOR_JEMALLOC || f->plain == HEAP_ALLOCATOR_TCMALLOC ||
		       f->plain == HEAP_ALLOCATOR_MIMALLOC;
	if (shape && has_own && s->is_global && !is_wrapper(f, s))
		add(f, s, f->plain, shape, true);
	if (s->is_dynamic && sv_eq(s->name, SV("malloc")))
		f->to->exports_malloc = true;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct allocfind_function *x = a;
	const struct allocfind_function *y = b;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* Symbols without size: take the end from .eh_frame. */
static void find_ends(struct finder *f)
{
	bool is_open = false;
	vec_foreach(fn, &f->to->functions)
		is_open |= !fn->end;
	struct ehframe_iter it;
	struct ehframe_fde fde;
	if (!is_open || !ehframe_start_elf(&it, f->image, ".eh_frame"))
		return;
	while (ehframe_next(&it, &fde))
		vec_foreach(fn, &f->to->functions)
			if (fn->vaddr == fde.start && !fn->end)
				fn->end = fde.end;
}

static void decide(struct finder *f)
{
	f->to->is_libc = has(f, "__libc_start_main");
	f->to->is_jvm = has(f, "JNI_CreateJavaVM");
	f->to->is_go = has(f, "runtime.mallocgc") || elf_section(f->image, ".go.buildinfo") != NULL;
	find_prefixes(f);
	f->plain = plain_owner(f);
	/* Allocator-specific names first: a standard name at the same address is then an alias. */
	vec_foreach(s, &f->symbols)
		add_prefixed(f, s);
	vec_foreach(s, &f->symbols)
		add_plain(f, s);
	find_ends(f);
	if (f->to->functions.n)
		qsort(f->to->functions.p, f->to->functions.n, sizeof(*f->to->functions.p),
		      by_vaddr);
}

/* A jemalloc without symbols and prefix: the functions that the binary exports are its own. */
static void claim_exported(struct allocfind *f)
{
	const struct allocfind_jemalloc *j = &f->jemalloc;
	if (j->prefix || !j->variable || strcmp(j->variable, "MALLOC_CONF"))
		return;
	vec_foreach(fn, &f->functions)
		if (fn->kind == HEAP_ALLOCATOR_OTHER)
			fn->kind = HEAP_ALLOCATOR_JEMALLOC;
}

int allocfind_image(struct allocfind *ret_f, struct elf *image, struct elf *debug, struct elf *mini,
		    struct err *err)
{
	CLEANUP(allocfind_release) struct allocfind found = {0};
	CLEANUP(finder_release) struct finder f = {.image = image, .to = &found};
	TRY(add_symbols(&f, image, SHT_DYNSYM, err));
	TRY(add_symbols(&f, image, SHT_SYMTAB, err));
	TRY(debug ? add_symbols(&f, debug, SHT_SYMTAB, err) : 0);
	TRY(mini ? add_symbols(&f, mini, SHT_SYMTAB, err) : 0);
	decide(&f);
	alloccode_facts(&found, image);
	claim_exported(&found);
	if (found.jemalloc.prefix)
		alloccode_ranges(&found, debug ? debug : mini ? mini : image);
	else if (found.jemalloc.version_text)
		(void)allocstrip_find(&found, image); /* false: mallctl stays 0 */
	*ret_f = found;
	found = (struct allocfind){0};
	return 0;
}
