/*
 * Compares code with the objects of an archive; see libcmatch.h.
 *
 * Archives: ar(5). The first member "/" has the number of symbols, the offsets of the members that
 * define them, big-endian, and their names. Relocations: ELF x86-64 ABI, table 4.9; GOT and TLS
 * relocations may have the linker change the opcode before the field, too.
 */
#include "base/base.h"
#include "plan/libcmatch.h"

#include <elf.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sv.h"
#include "base/vec.h"
#include "host/reader/hostfile.h"

#define ARCHIVE_MAX  ((uint64_t)64 << 20)
#define CODE_MAX     ((uint64_t)64 << 20)
#define OBJECTS_MAX  256u
#define SYMBOLS_MAX  65536u
#define ARMAG_BYTES  8u
#define HEADER_BYTES 60u
#define FIXED_MIN    48u /* bytes that prove a section by themselves */
#define ROUNDS_MAX   8
#define OPCODE_BYTES 3 /* before the field of a GOT or TLS relocation */

struct symbol {
	struct sv name;
	uint64_t value;
	uint64_t nr_bytes;
	uint32_t section; /* SHN_UNDEF: defined elsewhere */
	uint8_t type;
	bool is_global;
};

struct object {
	struct elf *e;
	bool is_wanted; /* its symbols are part of the result */
	VEC(struct symbol) symbols;
};

struct part { /* a section of code */
	uint32_t object;
	uint32_t section;
	struct buf bytes;
	uint8_t *is_fixed;
	size_t nr_fixed;
	size_t anchor; /* the longest row of fixed bytes */
	size_t nr_anchor;
	uint64_t align;
	VEC(Elf64_Rela) relocations;
	uint64_t vaddr; /* where it is in the program; 0 = not found */
	bool is_absent; /* it is not there */
};

struct known {
	struct sv name;
	uint64_t vaddr;
};

struct matcher {
	const struct elf *image;
	struct buf code;
	uint64_t code_vaddr;
	const char *archive;
	size_t nr_archive;
	VEC(uint64_t) members; /* offsets of the objects that were opened */
	VEC(struct object) objects;
	VEC(struct part) parts;
	VEC(struct known) known;
};

static void matcher_release(struct matcher *m)
{
	vec_foreach(o, &m->objects) {
		elf_free(o->e);
		vec_release(&o->symbols);
	}
	vec_foreach(p, &m->parts) {
		buf_release(&p->bytes);
		free(p->is_fixed);
		vec_release(&p->relocations);
	}
	vec_release(&m->objects);
	vec_release(&m->parts);
	vec_release(&m->known);
	vec_release(&m->members);
	buf_release(&m->code);
}

/* ---- the archive --------------------------------------------------------------------------- */

static uint64_t big_endian(const char *p)
{
	const uint8_t *b = (const uint8_t *)p;
	return (uint64_t)b[0] << 24 | (uint64_t)b[1] << 16 | (uint64_t)b[2] << 8 | b[3];
}

/* The bytes of the member at @at; empty: it does not fit. */
static struct sv member_at(const struct matcher *m, uint64_t at)
{
	uint64_t n = 0;
	if (at > m->nr_archive || m->nr_archive - at < HEADER_BYTES)
		return (struct sv){0};
	const char *head = m->archive + at;
	if (memcmp(head + 58, "`\n", 2) != 0 || !sv_to_u64(sv_trim(sv_from(head + 48, 10)), &n) ||
	    n > m->nr_archive - at - HEADER_BYTES)
		return (struct sv){0};
	return sv_from(head + HEADER_BYTES, n);
}

/* The member that defines @name; 0 = none. */
static uint64_t member_of(const struct matcher *m, struct sv name)
{
	struct sv table = member_at(m, ARMAG_BYTES);
	if (table.n < 4 || m->archive[ARMAG_BYTES] != '/' || m->archive[ARMAG_BYTES + 1] != ' ')
		return 0;
	uint64_t nr = big_endian(table.p);
	if (nr > (table.n - 4) / 4)
		return 0;
	struct sv names = sv_from_idx(table, 4 + nr * 4);
	for (uint64_t i = 0; i < nr && names.n; i++) {
		struct sv one = sv_split(&names, '\0');
		if (sv_eq(one, name))
			return big_endian(table.p + 4 + i * 4);
	}
	return 0;
}

static void read_symbols(struct object *o)
{
	size_t nr;
	const struct elf_section *s = elf_sections(o->e, &nr);
	for (size_t i = 0; i < nr; i++) {
		CLEANUP(buf_release) struct buf bytes = {0};
		struct sv names;
		if (s[i].type != SHT_SYMTAB || s[i].link >= nr ||
		    elf_section_read(o->e, &s[i], &bytes, NULL) ||
		    elf_section_bytes(o->e, &s[s[i].link], &names, NULL))
			continue;
		for (size_t at = 0; at + sizeof(Elf64_Sym) <= bytes.n && o->symbols.n < SYMBOLS_MAX;
		     at += sizeof(Elf64_Sym)) {
			Elf64_Sym y;
			memcpy(&y, bytes.p + at, sizeof(y));
			struct sv name = {0};
			if (y.st_name < names.n)
				name = sv_from(names.p + y.st_name,
					       strnlen(names.p + y.st_name, names.n - y.st_name));
			vec_push(&o->symbols,
				 (struct symbol){.name = name,
						 .value = y.st_value,
						 .nr_bytes = y.st_size,
						 .section = y.st_shndx,
						 .type = ELF64_ST_TYPE(y.st_info),
						 .is_global =
							 ELF64_ST_BIND(y.st_info) != STB_LOCAL});
		}
	}
}

/* How many bytes before and in its field a relocation changes. */
static void mask_relocation(struct part *p, const Elf64_Rela *r)
{
	uint64_t type = ELF64_R_TYPE(r->r_info);
	uint64_t before = type == R_X86_64_PC32 || type == R_X86_64_PLT32 || type == R_X86_64_32 ||
					  type == R_X86_64_32S || type == R_X86_64_64 ||
					  type == R_X86_64_TPOFF32
				  ? 0
				  : OPCODE_BYTES;
	uint64_t n = type == R_X86_64_64 ? 8 : 4;
	uint64_t from = r->r_offset - MIN(before, r->r_offset);
	for (uint64_t i = from; i < r->r_offset + n && i < p->bytes.n; i++)
		p->is_fixed[i] = 0;
}

static void find_anchor(struct part *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->bytes.n; i++) {
		n = p->is_fixed[i] ? n + 1 : 0;
		p->nr_fixed += p->is_fixed[i];
		if (n <= p->nr_anchor)
			continue;
		p->nr_anchor = n;
		p->anchor = i + 1 - n;
	}
}

static void add_part(struct matcher *m, struct object *o, const struct elf_section *s, size_t nr,
		     size_t idx)
{
	struct part p = {.object = (uint32_t)(o - m->objects.p),
			 .section = (uint32_t)idx,
			 .align = MAX(s[idx].align, (uint64_t)1)};
	if (elf_section_read(o->e, &s[idx], &p.bytes, NULL) || !p.bytes.n) {
		buf_release(&p.bytes);
		return;
	}
	p.is_fixed = xmalloc(p.bytes.n);
	memset(p.is_fixed, 1, p.bytes.n);
	for (size_t i = 0; i < nr; i++) {
		CLEANUP(buf_release) struct buf bytes = {0};
		if (s[i].type != SHT_RELA || s[i].info != idx ||
		    elf_section_read(o->e, &s[i], &bytes, NULL))
			continue;
		for (size_t at = 0; at + sizeof(Elf64_Rela) <= bytes.n; at += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			memcpy(&r, bytes.p + at, sizeof(r));
			mask_relocation(&p, &r);
			vec_push(&p.relocations, r);
		}
	}
	find_anchor(&p);
	vec_push(&m->parts, p);
}

static void add_object(struct matcher *m, struct sv name, bool is_wanted)
{
	uint64_t at = member_of(m, name);
	struct sv bytes = member_at(m, at);
	vec_foreach(known, &m->members)
		if (*known == at)
			return;
	if (!at || !bytes.n || m->objects.n >= OBJECTS_MAX)
		return;
	struct object o = {.is_wanted = is_wanted};
	vec_push(&m->members, at);
	if (elf_open_bytes(&o.e, bytes.p, bytes.n, NULL))
		return;
	read_symbols(&o);
	vec_push(&m->objects, o);
	struct object *added = vec_last(&m->objects);
	size_t nr;
	const struct elf_section *s = elf_sections(added->e, &nr);
	for (size_t i = 0; i < nr; i++)
		if (s[i].type == SHT_PROGBITS && s[i].flags & SHF_EXECINSTR)
			add_part(m, added, s, nr, i);
}

/* The objects of the functions. */
static void add_wanted(struct matcher *m)
{
	static const char *const wanted[] = {
		"malloc",         "free",         "calloc",  "realloc",
		"memalign",       "valloc",       "pvalloc", "aligned_alloc",
		"posix_memalign", "reallocarray", "mmap",    "munmap",
		"mremap",         "brk",          "sbrk",    "__libc_start_main",
	};
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		add_object(m, sv_from_str(wanted[i]), true);
}

/* The objects that those refer to. */
static void add_referenced(struct matcher *m)
{
	size_t nr = m->objects.n;
	for (size_t i = 0; i < nr; i++)
		for (size_t k = 0; k < m->objects.p[i].symbols.n; k++) {
			const struct symbol *y = &m->objects.p[i].symbols.p[k];
			if (y->section == SHN_UNDEF && y->name.n)
				add_object(m, y->name, false);
		}
}

/* ---- comparison ---------------------------------------------------------------------------- */

static uint64_t vaddr_of_section(const struct matcher *m, uint32_t object, uint32_t section)
{
	vec_foreach(p, &m->parts)
		if (p->object == object && p->section == section)
			return p->vaddr;
	return 0;
}

/* Whether a relocation can lead to @vaddr; *is_proof: where it leads to is known. */
static bool fits(const struct matcher *m, const struct part *p, const Elf64_Rela *r, uint64_t vaddr,
		 bool *is_proof)
{
	const struct object *o = &m->objects.p[p->object];
	uint64_t idx = ELF64_R_SYM(r->r_info);
	*is_proof = false;
	if (idx >= o->symbols.n)
		return true;
	const struct symbol *y = &o->symbols.p[idx];
	if (y->type == STT_GNU_IFUNC) /* called through the PLT */
		return true;
	if (!y->is_global) {
		uint64_t base = vaddr_of_section(m, p->object, y->section);
		*is_proof = base != 0;
		return !base || vaddr == base + y->value;
	}
	bool is_named = false;
	vec_foreach(k, &m->known) {
		if (!sv_eq(k->name, y->name))
			continue;
		is_named = true;
		*is_proof |= k->vaddr == vaddr;
	}
	return !is_named || *is_proof;
}

/* Whether the bytes of the part are at @at in the code. */
static bool has_bytes(const struct matcher *m, const struct part *p, size_t at)
{
	const char *code = m->code.p + at;
	if (p->bytes.n > m->code.n - at || (m->code_vaddr + at) % p->align)
		return false;
	for (size_t i = 0; i < p->bytes.n; i++)
		if (p->is_fixed[i] && code[i] != p->bytes.p[i])
			return false;
	return true;
}

/* Whether its relocations there can be; *nr_proofs: of those that lead to known places. */
static bool fit_relocations(const struct matcher *m, const struct part *p, size_t at,
			    size_t *nr_proofs)
{
	*nr_proofs = 0;
	vec_foreach(r, &p->relocations) {
		int32_t field;
		bool is_proof;
		uint64_t type = ELF64_R_TYPE(r->r_info);
		if ((type != R_X86_64_PC32 && type != R_X86_64_PLT32) ||
		    r->r_offset + sizeof(field) > p->bytes.n)
			continue;
		memcpy(&field, m->code.p + at + r->r_offset, sizeof(field));
		uint64_t to = m->code_vaddr + at + r->r_offset + (uint64_t)(int64_t)field -
			      (uint64_t)r->r_addend;
		if (!fits(m, p, r, to, &is_proof))
			return false;
		*nr_proofs += is_proof;
	}
	return true;
}

/* Whether a part is long, or a relocation of it leads to something known: then 0 does not fit. */
static bool may_prove(const struct matcher *m, const struct part *p)
{
	bool is_proof;
	if (p->nr_fixed >= FIXED_MIN)
		return true;
	vec_foreach(r, &p->relocations)
		if (!fits(m, p, r, 0, &is_proof))
			return true;
	return false;
}

/* Where a part must be if the one before it in its object was found: linkers keep their order. */
static uint64_t expected_vaddr(const struct matcher *m, const struct part *p)
{
	const struct part *before = p > m->parts.p ? p - 1 : NULL;
	if (!before || before->object != p->object || !before->vaddr)
		return 0;
	uint64_t end = before->vaddr + before->bytes.n;
	return (end + p->align - 1) / p->align * p->align;
}

/*
 * Finds the only place of a part; false: there is none, or several, or it proves nothing yet. Of several
 * (functions that only jump to the same one) the place behind the part before counts.
 */
static bool find_part(const struct matcher *m, struct part *p)
{
	bool is_long = p->nr_fixed >= FIXED_MIN;
	size_t nr = 0;
	uint64_t found = 0;
	uint64_t expected = expected_vaddr(m, p);
	bool is_expected = false;
	bool is_there = false;
	const char *from = m->code.p;
	const char *end = m->code.p + m->code.n;
	while (p->nr_anchor &&
	       (from = memmem(from, (size_t)(end - from), p->bytes.p + p->anchor, p->nr_anchor))) {
		size_t hit = (size_t)(from++ - m->code.p);
		size_t nr_proofs = 0;
		if (hit < p->anchor || !has_bytes(m, p, hit - p->anchor))
			continue;
		is_there = true;
		if (!fit_relocations(m, p, hit - p->anchor, &nr_proofs) || (!is_long && !nr_proofs))
			continue;
		nr++;
		found = m->code_vaddr + hit - p->anchor;
		is_expected |= found == expected;
	}
	p->is_absent = !is_there;
	if (!nr || (nr > 1 && !is_expected))
		return false;
	p->vaddr = nr > 1 ? expected : found;
	return true;
}

static void note_symbols(struct matcher *m, const struct part *p)
{
	vec_foreach(y, &m->objects.p[p->object].symbols)
		if (y->section == p->section && y->is_global && y->type != STT_GNU_IFUNC)
			vec_push(&m->known, (struct known){y->name, p->vaddr + y->value});
}

static void match(struct matcher *m)
{
	bool is_new = true;
	for (int round = 0; is_new && round < ROUNDS_MAX; round++) {
		is_new = false;
		vec_foreach(p, &m->parts) {
			if (p->vaddr || p->is_absent || !may_prove(m, p) || !find_part(m, p))
				continue;
			note_symbols(m, p);
			is_new = true;
		}
	}
}

static bool is_known(const struct matcher *m, const char *name)
{
	vec_foreach(k, &m->known)
		if (sv_eq(k->name, sv_from_str(name)))
			return true;
	return false;
}

/* ---- the result ---------------------------------------------------------------------------- */

static struct elf *to_image(const struct matcher *m)
{
	CLEANUP(buf_release) struct buf image = {0};
	CLEANUP(buf_release) struct buf table = {0};
	CLEANUP(buf_release) struct buf names = {0};
	buf_add_ch(&names, 0);
	buf_add(&table, &(Elf64_Sym){0}, sizeof(Elf64_Sym));
	vec_foreach(p, &m->parts) {
		const struct object *o = &m->objects.p[p->object];
		for (size_t i = 0; p->vaddr && o->is_wanted && i < o->symbols.n; i++) {
			const struct symbol *y = &o->symbols.p[i];
			if (y->section != p->section || !y->is_global || y->type != STT_FUNC)
				continue;
			const Elf64_Sym s = {.st_name = (Elf64_Word)names.n,
					     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					     .st_shndx = 1,
					     .st_value = p->vaddr + y->value,
					     .st_size = y->nr_bytes};
			buf_add(&table, &s, sizeof(s));
			buf_add_sv(&names, y->name);
			buf_add_ch(&names, 0);
		}
	}
	const Elf64_Ehdr eh = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					   EV_CURRENT},
			       .e_type = ET_DYN,
			       .e_machine = EM_X86_64,
			       .e_version = EV_CURRENT,
			       .e_shoff = sizeof(eh),
			       .e_ehsize = sizeof(eh),
			       .e_shentsize = sizeof(Elf64_Shdr),
			       .e_shnum = 3};
	const uint64_t at = sizeof(eh) + 3 * sizeof(Elf64_Shdr);
	const Elf64_Shdr sh[3] = {
		{0},
		{.sh_type = SHT_SYMTAB,
		 .sh_offset = at,
		 .sh_size = table.n,
		 .sh_link = 2,
		 .sh_entsize = sizeof(Elf64_Sym)},
		{.sh_type = SHT_STRTAB, .sh_offset = at + table.n, .sh_size = names.n}};
	buf_add(&image, &eh, sizeof(eh));
	buf_add(&image, sh, sizeof(sh));
	buf_add_sv(&image, buf_sv(&table));
	buf_add_sv(&image, buf_sv(&names));
	struct elf *e = NULL;
	return elf_open_bytes(&e, image.p, image.n, NULL) ? NULL : e;
}

/* The largest executable segment. */
static bool read_code(struct matcher *m)
{
	size_t nr;
	const struct elf_segment *s = elf_segments(m->image, &nr);
	const struct elf_segment *best = NULL;
	for (size_t i = 0; i < nr; i++)
		if (s[i].type == PT_LOAD && s[i].flags & PF_X &&
		    (!best || s[i].nr_file_bytes > best->nr_file_bytes))
			best = &s[i];
	if (!best || !best->nr_file_bytes || best->nr_file_bytes > CODE_MAX)
		return false;
	size_t n = (size_t)best->nr_file_bytes;
	char *to = buf_reserve(&m->code, n);
	m->code.n = n;
	m->code_vaddr = best->vaddr;
	return !elf_read(m->image, to, n, best->offset, NULL);
}

struct elf *libcmatch_with(const struct elf *image, const char *archive, size_t nr_bytes)
{
	CLEANUP(matcher_release)
	struct matcher m = {.image = image, .archive = archive, .nr_archive = nr_bytes};
	if (elf_machine(image) != ELF_MACHINE_X86_64 || nr_bytes < ARMAG_BYTES ||
	    memcmp(archive, "!<arch>\n", ARMAG_BYTES) != 0 || !read_code(&m))
		return NULL;
	add_wanted(&m);
	match(&m);
	if (!m.known.n) /* another library or version */
		return NULL;
	add_referenced(&m);
	match(&m);
	if (!is_known(&m, "malloc") || !is_known(&m, "free") || !is_known(&m, "__libc_start_main"))
		return NULL;
	return to_image(&m);
}

struct elf *libcmatch_symbols(const struct elf *image)
{
	static const char *const paths[] = {
		"/usr/lib/x86_64-linux-gnu/libc.a",
		"/usr/lib64/libc.a",
		"/usr/lib/libc.a",
		"/usr/lib/x86_64-linux-musl/libc.a",
		"/usr/lib/musl/lib/libc.a",
		"/usr/local/musl/lib/libc.a",
		"/usr/x86_64-linux-musl/lib64/libc.a",
	};
	struct elf *found = NULL;
	for (size_t i = 0; i < ARRAY_LEN(paths) && !found; i++) {
		CLEANUP(buf_release) struct buf bytes = {0};
		struct byte_source s = {0};
		if (hostfile_open_path(&s, -1, paths[i]))
			continue;
		uint64_t n = s.st.st_size > 0 ? (uint64_t)s.st.st_size : 0;
		if (n && n <= ARCHIVE_MAX) {
			char *to = buf_reserve(&bytes, (size_t)n);
			if (!s.ops->read(s.ctx, to, (size_t)n, 0, NULL))
				found = libcmatch_with(image, to, (size_t)n);
		}
		source_close(&s);
	}
	return found;
}
