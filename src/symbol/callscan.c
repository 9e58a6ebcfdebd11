/* Finds function starts by call instructions; see callscan.h. */
#include "base/base.h"
#include "symbol/callscan.h"

#include <elf.h>

#include "base/buf.h"
#include "base/sort.h"
#include "base/vec.h"

#define CODE_BYTES_MAX ((uint64_t)256 << 20)
#define STARTS_MAX     ((size_t)1 << 22)

struct code {
	uint64_t vaddr;
	const uint8_t *p;
	size_t n;
};

struct starts {
	VEC(uint64_t) v;
};

static void starts_release(struct starts *s)
{
	vec_release(&s->v);
}

/* Whether a function may begin here, by alignment and by the byte before. */
static bool is_plausible(const struct code *c, uint64_t at)
{
	static const uint8_t ends[] = {0xc3 /* ret */, 0x90 /* nop */, 0xcc /* int3 */,
				       0xf4 /* hlt */, 0x00 /* long nop */};
	if (!at || !((c->vaddr + at) & 15))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (c->p[at - 1] == ends[i])
			return true;
	return false;
}

static void add_target(struct starts *s, const struct code *c, uint64_t at)
{
	if (at < c->n && s->v.n < STARTS_MAX && is_plausible(c, at))
		vec_push(&s->v, c->vaddr + at);
}

static uint64_t relative(const struct code *c, size_t field)
{
	int32_t disp;
	memcpy(&disp, c->p + field, sizeof(disp));
	return field + 4 + (uint64_t)(int64_t)disp;
}

/* e8 rel32: call; 48/4c 8d, modrm 00 reg 101, disp32: lea disp(%rip), reg. */
static void scan_x86_64(struct starts *s, const struct code *c)
{
	for (size_t i = 0; i + 7 <= c->n; i++) {
		if (c->p[i] == 0xe8)
			add_target(s, c, relative(c, i + 1));
		else if (c->p[i] == 0x8d && i && (c->p[i - 1] | 4) == 0x4c &&
			 (c->p[i + 1] & 0xc7) == 5 && !((c->vaddr + relative(c, i + 2)) & 15))
			add_target(s, c, relative(c, i + 2));
	}
}

/* bl: 100101 imm26, in words. */
static void scan_arm64(struct starts *s, const struct code *c)
{
	for (size_t i = 0; i + 4 <= c->n; i += 4) {
		uint32_t insn;
		memcpy(&insn, c->p + i, 4);
		if ((insn & 0xfc000000) != 0x94000000)
			continue;
		uint64_t at = i + (uint64_t)((int64_t)((uint64_t)insn << 38) >> 36);
		if (at < c->n && s->v.n < STARTS_MAX)
			vec_push(&s->v, c->vaddr + at);
	}
}

static void scan(struct symtab *to, const struct elf *e, const struct code *c, unsigned tag)
{
	CLEANUP(starts_release) struct starts s = {0};
	uint64_t entry = elf_entry(e);
	if (elf_machine(e) == ELF_MACHINE_X86_64)
		scan_x86_64(&s, c);
	else
		scan_arm64(&s, c);
	if (entry >= c->vaddr && entry - c->vaddr < c->n)
		vec_push(&s.v, entry);
	sort_records(s.v.p, s.v.n, sizeof(*s.v.p), UINT64_MAX);
	for (size_t i = 0; i < s.v.n; i++) {
		uint64_t next = i + 1 < s.v.n ? s.v.p[i + 1] : c->vaddr + c->n;
		if (next > s.v.p[i])
			symtab_add(to, s.v.p[i], next - s.v.p[i], SV(""), tag, SYMTAB_RANK_CALLED);
	}
}

/* Scans the executable segment of a file without section headers. */
static int scan_segments(struct symtab *to, const struct elf *e, unsigned tag, struct err *err)
{
	size_t nr;
	const struct elf_segment *s = elf_segments(e, &nr);
	for (size_t i = 0; i < nr; i++) {
		if (s[i].type != PT_LOAD || !(s[i].flags & PF_X) ||
		    s[i].nr_file_bytes > MIN(CODE_BYTES_MAX, elf_nr_bytes(e)))
			continue;
		CLEANUP(buf_release) struct buf code = {0};
		size_t n = (size_t)s[i].nr_file_bytes;
		TRY(elf_read(e, buf_reserve(&code, n), n, s[i].offset, err));
		scan(to, e, &(struct code){s[i].vaddr, (const uint8_t *)code.p, n}, tag);
		return 0; /* programs have one executable segment */
	}
	return 0;
}

int callscan_add(struct symtab *to, struct elf *e, unsigned tag, struct err *err)
{
	size_t nr;
	const struct elf_section *s = elf_sections(e, &nr);
	const struct elf_section *text = elf_section(e, ".text");
	if (!nr)
		return scan_segments(to, e, tag, err);
	if (!s || !text || !(text->flags & SHF_EXECINSTR) || text->nr_bytes > CODE_BYTES_MAX)
		return 0;
	CLEANUP(buf_release) struct buf code = {0};
	TRY(elf_section_read(e, text, &code, err));
	scan(to, e, &(struct code){text->vaddr, (const uint8_t *)code.p, code.n}, tag);
	return 0;
}
