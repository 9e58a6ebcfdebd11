/*
 * ELF images; see elf.h.
 *
 * Kept in memory are the header tables, copied at open, the section names, and each section that
 * was requested. If the section table does not fit the file (truncated copy, stripped headers), the
 * image has no sections. That is not an error: the segments are enough to unwind and to find
 * dynamic symbols.
 */
#include "base/base.h"
#include "object/elf.h"

#include <elf.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "object/elfstream.h"

#define SECTIONS_MAX   ((uint64_t)1 << 18)
#define SEGMENTS_MAX   ((uint64_t)1 << 12)
#define NAMES_MAX      ((uint64_t)64 << 20)
#define NAME_MAX_BYTES 1024
#define NOTE_BYTES_MAX ((uint64_t)64 << 10)
#define NOTES_MAX      256
#define PAGE_BYTES     ((uint64_t)4096)

struct cell { /* the cached bytes of a section */
	struct buf bytes;
	bool is_read;
};

struct elf {
	struct byte_source source;
	uint64_t nr_bytes;
	enum elf_machine machine;
	unsigned type;
	uint64_t entry;
	struct elf_section *sections;
	struct cell *cells; /* one per section */
	size_t nr_sections;
	char *names;
	struct elf_segment *segments;
	size_t nr_segments;
	uint8_t build_id[ELF_BUILD_ID_MAX];
	size_t nr_build_id;
	unsigned nr_notes_tried;
	int *silence; /* see elf_silence; owned */
};

int elf_read(const struct elf *e, void *to, size_t n, uint64_t offset, struct err *err)
{
	if (offset > e->nr_bytes || n > e->nr_bytes - offset)
		return err_set(err, -ENODATA,
			       "%zu bytes at offset %" PRIu64 " pass the end of the file (%" PRIu64
			       ")",
			       n, offset, e->nr_bytes);
	int rc = n ? e->source.ops->read(e->source.ctx, to, n, offset, err) : 0;
	if (rc == -ETIMEDOUT || rc == -EINPROGRESS)
		*e->silence = rc;
	return rc;
}

/* ---- notes ---- */

static bool build_id_from_notes(struct elf *e, uint64_t offset, uint64_t nr_bytes, uint64_t align)
{
	uint8_t *notes CLEANUP(free_p) = NULL;
	size_t n = (size_t)MIN(nr_bytes, NOTE_BYTES_MAX);
	size_t step = align == 8 ? 8 : 4;
	if (offset > e->nr_bytes || e->nr_notes_tried++ >= NOTES_MAX)
		return false;
	n = (size_t)MIN((uint64_t)n, e->nr_bytes - offset);
	notes = xmalloc(n + 1);
	if (elf_read(e, notes, n, offset, NULL))
		return false;

	for (size_t at = 0; n - at >= sizeof(Elf64_Nhdr);) {
		Elf64_Nhdr h;
		memcpy(&h, notes + at, sizeof(h));
		uint64_t name_at = at + sizeof(h);
		uint64_t desc_at = (name_at + h.n_namesz + step - 1) & ~(uint64_t)(step - 1);
		uint64_t next = (desc_at + h.n_descsz + step - 1) & ~(uint64_t)(step - 1);
		if (desc_at > n || h.n_descsz > n - desc_at)
			return false;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && h.n_descsz &&
		    !memcmp(notes + name_at, "GNU", 4)) {
			e->nr_build_id = MIN((size_t)h.n_descsz, (size_t)ELF_BUILD_ID_MAX);
			memcpy(e->build_id, notes + desc_at, e->nr_build_id);
			return true;
		}
		if (next >= n)
			return false;
		at = (size_t)next;
	}
	return false;
}

/* ---- header tables ---- */

static const char *name_at(const struct elf *e, uint64_t nr_names, uint32_t at, size_t *ret_n)
{
	if (!e->names || at >= nr_names) {
		*ret_n = 0;
		return "";
	}
	*ret_n = strnlen(e->names + at, NAME_MAX_BYTES); /* the table is followed by a NUL */
	return e->names + at;
}

/* Reads the section names; returns their size, 0 if there is no usable table. */
static uint64_t read_names(struct elf *e, const Elf64_Shdr *sh, size_t nr, uint32_t idx)
{
	if (idx >= nr || sh[idx].sh_type == SHT_NOBITS || sh[idx].sh_size > NAMES_MAX ||
	    sh[idx].sh_size > e->nr_bytes)
		return 0;
	size_t n = (size_t)sh[idx].sh_size;
	e->names = xmalloc(n + 1);
	e->names[n] = 0;
	if (elf_read(e, e->names, n, sh[idx].sh_offset, NULL)) {
		free(TAKE(e->names));
		return 0;
	}
	return n;
}

static void read_sections(struct elf *e, const Elf64_Ehdr *eh, const Elf64_Shdr *first)
{
	uint64_t nr = eh->e_shnum ? eh->e_shnum : first->sh_size;
	uint32_t names_idx = eh->e_shstrndx == SHN_XINDEX ? first->sh_link : eh->e_shstrndx;
	if (!nr || nr > SECTIONS_MAX)
		return;
	Elf64_Shdr *sh CLEANUP(free_p) = NULL;
	if (eh->e_shoff > e->nr_bytes || nr > (e->nr_bytes - eh->e_shoff) / sizeof(*sh))
		return;
	sh = xcalloc(nr, sizeof(*sh));
	if (elf_read(e, sh, nr * sizeof(*sh), eh->e_shoff, NULL))
		return;

	uint64_t nr_names = read_names(e, sh, nr, names_idx);
	e->nr_sections = nr;
	e->sections = xcalloc(nr, sizeof(*e->sections));
	e->cells = xcalloc(nr, sizeof(*e->cells));
	for (size_t i = 0; i < nr; i++) {
		struct elf_section *s = &e->sections[i];
		size_t n;
		const char *name = name_at(e, nr_names, sh[i].sh_name, &n);
		*s = (struct elf_section){
			.name = sv_from(name, n),
			.type = sh[i].sh_type,
			.flags = sh[i].sh_flags,
			.vaddr = sh[i].sh_addr,
			.offset = sh[i].sh_offset,
			.nr_bytes = sh[i].sh_type == SHT_NOBITS ? 0 : sh[i].sh_size,
			.nr_mem_bytes = sh[i].sh_size,
			.link = sh[i].sh_link,
			.info = sh[i].sh_info,
			.entry_bytes = sh[i].sh_entsize,
			.align = sh[i].sh_addralign,
		};
		if (s->type == SHT_NOTE && !e->nr_build_id)
			(void)build_id_from_notes(e, s->offset, s->nr_bytes, sh[i].sh_addralign);
	}
}

static int read_segments(struct elf *e, const Elf64_Ehdr *eh, const Elf64_Shdr *first,
			 struct err *err)
{
	uint64_t nr = eh->e_phnum == PN_XNUM ? first->sh_info : eh->e_phnum;
	if (!nr)
		return 0;
	if (nr > SEGMENTS_MAX || eh->e_phentsize != sizeof(Elf64_Phdr))
		return err_set(err, -EBADMSG, "bad program headers (%" PRIu64 " of %u bytes)", nr,
			       eh->e_phentsize);
	Elf64_Phdr *ph CLEANUP(free_p) = xcalloc(nr, sizeof(*ph));
	if (elf_read(e, ph, nr * sizeof(*ph), eh->e_phoff, err))
		return err_wrap(err, "reading program headers");
	e->segments = xcalloc(nr, sizeof(*e->segments));
	e->nr_segments = nr;
	for (size_t i = 0; i < nr; i++) {
		e->segments[i] = (struct elf_segment){ph[i].p_type,  ph[i].p_flags,  ph[i].p_offset,
						      ph[i].p_vaddr, ph[i].p_filesz, ph[i].p_memsz};
		if (ph[i].p_type == PT_NOTE && !e->nr_build_id)
			(void)build_id_from_notes(e, ph[i].p_offset, ph[i].p_filesz, ph[i].p_align);
	}
	return 0;
}

static int read_headers(struct elf *e, struct err *err)
{
	Elf64_Ehdr eh;
	Elf64_Shdr first = {0};
	if (e->nr_bytes < sizeof(eh))
		return err_set(err, -ENOEXEC, "not an ELF image: %" PRIu64 " bytes", e->nr_bytes);
	TRY(elf_read(e, &eh, sizeof(eh), 0, err));
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG))
		return err_set(err, -ENOEXEC, "not an ELF image");
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return err_set(err, -ENOTSUP, "not a 64-bit little-endian ELF image");
	if (eh.e_machine != EM_X86_64 && eh.e_machine != EM_AARCH64)
		return err_set(err, -ENOTSUP, "ELF machine %u is neither x86-64 nor arm64",
			       eh.e_machine);
	e->machine = eh.e_machine == EM_X86_64 ? ELF_MACHINE_X86_64 : ELF_MACHINE_ARM64;
	e->type = eh.e_type;
	e->entry = eh.e_entry;

	/* Counts that do not fit the header are stored in section 0 (gABI, ELF header). */
	bool has_sections = eh.e_shoff && eh.e_shentsize == sizeof(Elf64_Shdr) &&
			    !elf_read(e, &first, sizeof(first), eh.e_shoff, NULL);
	if (has_sections)
		read_sections(e, &eh, &first);
	return read_segments(e, &eh, &first, err);
}

/* ---- open and free ---- */

int elf_open_source(struct elf **ret_e, struct byte_source source, struct err *err)
{
	struct elf *e CLEANUP(elf_free_p) = xcalloc(1, sizeof(*e));
	e->source = source;
	e->nr_bytes = (uint64_t)source.st.st_size;
	e->silence = xcalloc(1, sizeof(*e->silence));
	TRY(read_headers(e, err));
	if (*e->silence)
		return err_set(err, *e->silence, "its headers cannot be read in time");
	*ret_e = TAKE(e);
	return 0;
}

int elf_open_fd(struct elf **ret_e, int fd, struct err *err)
{
	struct byte_source source;
	TRY(source_from_fd(&source, fd, err));
	return elf_open_source(ret_e, source, err);
}

int elf_open_bytes(struct elf **ret_e, const void *p, size_t n, struct err *err)
{
	struct byte_source source;
	source_from_bytes(&source, p, n);
	return elf_open_source(ret_e, source, err);
}

void elf_free(struct elf *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->nr_sections; i++)
		buf_release(&e->cells[i].bytes);
	source_close(&e->source);
	free(e->silence);
	free(e->sections);
	free(e->cells);
	free(e->names);
	free(e->segments);
	free(e);
}

/* ---- properties ---- */

enum elf_machine elf_machine(const struct elf *e)
{
	return e->machine;
}

bool elf_is_executable(const struct elf *e)
{
	return e->type == ET_EXEC;
}

bool elf_is_relocatable(const struct elf *e)
{
	return e->type == ET_REL;
}

uint64_t elf_entry(const struct elf *e)
{
	return e->entry;
}

uint64_t elf_nr_bytes(const struct elf *e)
{
	return e->nr_bytes;
}

const struct elf_segment *elf_segments(const struct elf *e, size_t *ret_nr)
{
	*ret_nr = e->nr_segments;
	return e->segments;
}

const struct elf_section *elf_sections(const struct elf *e, size_t *ret_nr)
{
	*ret_nr = e->nr_sections;
	return e->sections;
}

const struct elf_section *elf_section(const struct elf *e, const char *name)
{
	for (size_t i = 0; i < e->nr_sections; i++) {
		const struct elf_section *s = &e->sections[i];
		if (s->nr_bytes && s->type != SHT_NOBITS && sv_eq_str(s->name, name))
			return s;
	}
	return NULL;
}

const struct elf_section *elf_debug_section(const struct elf *e, const char *name)
{
	const struct elf_section *s = elf_section(e, name);
	if (s || strncmp(name, ".debug_", 7) != 0)
		return s;
	char *old CLEANUP(free_p) = xasprintf(".z%s", name + 1);
	return elf_section(e, old);
}

int elf_identity(const struct elf *e, struct file_identity *ret_i)
{
	return e->source.ops->identify(e->source.ctx, ret_i);
}

int elf_silence(const struct elf *e)
{
	return *e->silence;
}

size_t elf_build_id(const struct elf *e, uint8_t to[ELF_BUILD_ID_MAX])
{
	memcpy(to, e->build_id, sizeof(e->build_id));
	return e->nr_build_id;
}

/* ---- section bytes ---- */

static int read_section(const struct elf *e, const struct elf_section *s, struct buf *to,
			struct err *err)
{
	CLEANUP(elf_stream_free_p) struct elf_stream *stream = NULL;
	TRY(elf_stream_open(&stream, e, s, err));
	size_t n = (size_t)elf_stream_nr_bytes(stream);
	TRY(elf_stream_read(stream, buf_reserve(to, n), n, 0, err));
	TRY(elf_stream_finish(stream, err));
	to->n = n;
	return 0;
}

int elf_section_read(const struct elf *e, const struct elf_section *s, struct buf *to,
		     struct err *err)
{
	CLEANUP(buf_release) struct buf bytes = {0};
	if (s->type != SHT_NOBITS && s->nr_bytes) {
		int rc = read_section(e, s, &bytes, err);
		if (rc) {
			err_wrap(err, "section '%.*s'", SV_ARGS(s->name));
			return rc;
		}
	}
	buf_release(to);
	*to = bytes;
	bytes = (struct buf){0};
	return 0;
}

int elf_section_bytes(struct elf *e, const struct elf_section *s, struct sv *ret_bytes,
		      struct err *err)
{
	ASSERT(s >= e->sections && s < e->sections + e->nr_sections);
	struct cell *c = &e->cells[s - e->sections];
	if (!c->is_read) {
		TRY(elf_section_read(e, s, &c->bytes, err));
	}
	c->is_read = true;
	*ret_bytes = c->bytes.p ? buf_sv(&c->bytes) : SV("");
	return 0;
}

int elf_named_bytes(struct elf *e, const char *name, struct sv *ret_bytes, struct err *err)
{
	const struct elf_section *s = elf_debug_section(e, name);
	if (!s) {
		*ret_bytes = SV("");
		return 0;
	}
	return elf_section_bytes(e, s, ret_bytes, err);
}

/* ---- addresses ---- */

/* Finds a segment by file offset. @slack: page mask; the segment then includes its whole pages. */
static const struct elf_segment *segment_at(const struct elf *e, uint64_t offset, uint32_t flag,
					    uint64_t slack)
{
	for (size_t i = 0; i < e->nr_segments; i++) {
		const struct elf_segment *s = &e->segments[i];
		if (s->type != PT_LOAD || (flag && !(s->flags & flag)) || !s->nr_file_bytes)
			continue;
		uint64_t before = s->offset & slack;
		uint64_t start = s->offset - before;
		uint64_t len = s->nr_file_bytes + before;
		if (len < before || len + slack < len)
			continue;
		len = (len + slack) & ~slack;
		if (offset >= start && offset - start < len)
			return s;
	}
	return NULL;
}

bool elf_vaddr_from_offset(const struct elf *e, uint64_t offset, uint64_t *ret_vaddr)
{
	const struct elf_segment *s = segment_at(e, offset, PF_X, 0);
	if (!s)
		s = segment_at(e, offset, PF_X, PAGE_BYTES - 1);
	if (!s)
		s = segment_at(e, offset, 0, 0);
	if (!s)
		s = segment_at(e, offset, 0, PAGE_BYTES - 1);
	if (!s)
		return false;
	*ret_vaddr = offset - s->offset + s->vaddr;
	return true;
}

bool elf_offset_from_vaddr(const struct elf *e, uint64_t vaddr, uint64_t *ret_offset)
{
	for (size_t i = 0; i < e->nr_segments; i++) {
		const struct elf_segment *s = &e->segments[i];
		if (s->type != PT_LOAD || vaddr < s->vaddr || vaddr - s->vaddr >= s->nr_file_bytes)
			continue;
		uint64_t offset = vaddr - s->vaddr + s->offset;
		if (offset < s->offset)
			continue;
		*ret_offset = offset;
		return true;
	}
	return false;
}

bool elf_is_code(const struct elf *e, uint64_t vaddr)
{
	for (size_t i = 0; i < e->nr_segments; i++) {
		const struct elf_segment *s = &e->segments[i];
		if (s->type == PT_LOAD && s->flags & PF_X && vaddr - s->vaddr < s->nr_mem_bytes)
			return true;
	}
	return false;
}
