/* PLT entries, named by their GOT slots; see plt.h. */
#include "base/base.h"
#include "symbol/plt.h"

#include <elf.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"

#define ENTRIES_MAX    ((size_t)1 << 20)
#define NAME_BYTES_MAX ((size_t)16 << 10)
#define TABLES_MAX     16 /* maximum number of relocation sections */

struct slot { /* a GOT slot with a relocation */
	uint64_t vaddr;
	uint64_t addend;
	uint32_t symbol;
	bool is_relative; /* IRELATIVE: addend is the resolver */
	bool is_local;    /* RELATIVE: addend is the function */
};

struct plt {
	struct symtab *to;
	const struct symtab *functions;
	unsigned tag;
	VEC(struct slot) slots; /* sorted */
	VEC(struct slot) jumps; /* of .rela.plt, by relocation index, for "push index" stubs */
	struct sv symbols;
	struct sv names;
	struct buf name;
	uint64_t local_start; /* slots in this range are kept if they are RELATIVE as well */
	uint64_t local_end;
};

static void plt_release(struct plt *p)
{
	vec_release(&p->slots);
	vec_release(&p->jumps);
	buf_release(&p->name);
}

static int compare_slots(const void *a, const void *b)
{
	uint64_t va = ((const struct slot *)a)->vaddr;
	uint64_t vb = ((const struct slot *)b)->vaddr;
	return va < vb ? -1 : va > vb;
}

/* Returns whether a relocation writes a function's address into its slot. */
static bool is_slot_type(enum elf_machine m, uint32_t type)
{
	if (m == ELF_MACHINE_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
		       type == R_X86_64_IRELATIVE;
	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT ||
	       type == R_AARCH64_IRELATIVE;
}

static void add_slots(struct plt *p, enum elf_machine m, struct sv bytes, bool is_jump_table)
{
	uint32_t relative = m == ELF_MACHINE_X86_64 ? R_X86_64_IRELATIVE : R_AARCH64_IRELATIVE;
	uint32_t local = m == ELF_MACHINE_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE;
	size_t nr = bytes.n / sizeof(Elf64_Rela);
	for (size_t i = 0; i < nr && p->slots.n < ENTRIES_MAX; i++) {
		Elf64_Rela r;
		memcpy(&r, bytes.p + i * sizeof(r), sizeof(r));
		struct slot s = {.vaddr = r.r_offset,
				 .addend = (uint64_t)r.r_addend,
				 .symbol = (uint32_t)ELF64_R_SYM(r.r_info),
				 .is_relative = ELF64_R_TYPE(r.r_info) == relative};
		if (is_jump_table)
			vec_push(&p->jumps, s);
		s.is_local = ELF64_R_TYPE(r.r_info) == local && r.r_offset >= p->local_start &&
			     r.r_offset < p->local_end;
		if (s.is_local || is_slot_type(m, (uint32_t)ELF64_R_TYPE(r.r_info)))
			vec_push(&p->slots, s);
	}
}

static int read_slots(struct plt *p, struct elf *e, struct err *err)
{
	size_t nr;
	const struct elf_section *s = elf_sections(e, &nr);
	for (size_t i = 0, nr_tables = 0; i < nr && nr_tables < TABLES_MAX; i++) {
		if (s[i].type != SHT_RELA || !(s[i].flags & SHF_ALLOC))
			continue;
		nr_tables++;
		bool is_jump_table = sv_eq(s[i].name, SV(".rela.plt"));
		CLEANUP(buf_release) struct buf bytes = {0};
		TRY(elf_section_read(e, &s[i], &bytes, err));
		add_slots(p, elf_machine(e), buf_sv(&bytes), is_jump_table);
		if (!p->symbols.n && s[i].link < nr && s[i].link &&
		    s[s[i].link].type == SHT_DYNSYM && s[s[i].link].link < nr) {
			TRY(elf_section_bytes(e, &s[s[i].link], &p->symbols, err));
			TRY(elf_section_bytes(e, &s[s[s[i].link].link], &p->names, err));
		}
	}
	if (p->slots.n)
		qsort(p->slots.p, p->slots.n, sizeof(*p->slots.p), compare_slots);
	return 0;
}

static const struct slot *slot_at(const struct plt *p, uint64_t vaddr)
{
	struct slot key = {.vaddr = vaddr};
	if (!p->slots.n)
		return NULL;
	return bsearch(&key, p->slots.p, p->slots.n, sizeof(key), compare_slots);
}

static struct sv slot_name(const struct plt *p, const struct slot *s)
{
	if (s->is_relative) {
		struct symtab_hit hit;
		if (p->functions && symtab_find(p->functions, s->addend, &hit) &&
		    hit.start == s->addend)
			return hit.name;
		return SV("");
	}
	if (!s->symbol || s->symbol >= p->symbols.n / sizeof(Elf64_Sym))
		return SV("");
	Elf64_Sym sym;
	memcpy(&sym, p->symbols.p + s->symbol * sizeof(sym), sizeof(sym));
	if (sym.st_name >= p->names.n)
		return SV("");
	const char *name = p->names.p + sym.st_name;
	return sv_from(name, strnlen(name, MIN(p->names.n - sym.st_name, NAME_BYTES_MAX)));
}

static void add_entry(struct plt *p, uint64_t start, uint64_t nr_bytes, const struct slot *s)
{
	struct sv name = slot_name(p, s);
	if (!name.n)
		return;
	buf_clear(&p->name);
	buf_add_sv(&p->name, name);
	buf_add_str(&p->name, "@plt");
	symtab_add(p->to, start, nr_bytes, buf_sv(&p->name), p->tag, SYMTAB_RANK_STUB);
}

/*
 * x86-64. Entries are 16 bytes, or 8 in .plt.got without IBT:
 *	[f3 0f 1e fa] [f2] ff 25 disp32		jmp *slot(%rip)
 *	[f3 0f 1e fa] 68 imm32 [f2] e9 rel32	push $index; jmp plt0	(.plt beside .plt.sec)
 */
static void scan_x86_64(struct plt *p, const struct elf_section *s, struct sv code)
{
	size_t step = s->entry_bytes == 8 ? 8 : 16;
	const uint8_t *c = (const uint8_t *)code.p;
	for (size_t at = 0; at + step <= code.n; at += step) {
		size_t i = at;
		if (!memcmp(c + i, "\xf3\x0f\x1e\xfa", 4))
			i += 4;
		if (c[i] == 0xf2)
			i++;
		const struct slot *slot = NULL;
		if (c[i] == 0xff && c[i + 1] == 0x25 && i + 6 <= at + step) {
			int32_t disp;
			memcpy(&disp, c + i + 2, 4);
			slot = slot_at(p, s->vaddr + i + 6 + (uint64_t)(int64_t)disp);
		} else if (c[i] == 0x68 && i + 5 <= at + step) {
			uint32_t idx;
			memcpy(&idx, c + i + 1, 4);
			slot = idx < p->jumps.n ? &p->jumps.p[idx] : NULL;
		}
		if (slot)
			add_entry(p, s->vaddr + at, step, slot);
	}
}

/* arm64: [bti c;] adrp x16, page; ldr x17, [x16, #low]; add x16, x16, #low; br x17. */
static void scan_arm64(struct plt *p, const struct elf_section *s, struct sv code)
{
	for (size_t at = 0; at + 8 <= code.n; at += 4) {
		uint32_t adrp;
		uint32_t ldr;
		uint32_t before = 0;
		memcpy(&adrp, code.p + at, 4);
		memcpy(&ldr, code.p + at + 4, 4);
		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		uint64_t pages = ((adrp >> 29) & 3) | ((adrp >> 3) & 0x1ffffc);
		uint64_t page = (s->vaddr + at) & ~(uint64_t)0xfff;
		page += (uint64_t)((int64_t)(pages << 43) >> 43) << 12;
		const struct slot *slot = slot_at(p, page + (uint64_t)((ldr >> 10) & 0xfff) * 8);
		if (!slot)
			continue;
		size_t start = at;
		if (at >= 4)
			memcpy(&before, code.p + at - 4, 4);
		if (before == 0xd503245f) /* bti c */
			start -= 4;
		add_entry(p, s->vaddr + start, 16 + (at - start), slot);
	}
}

/* ---- slots of .got ------------------------------------------------------------------------ */

struct got {
	struct plt plt;
};

struct got *got_new(struct elf *e)
{
	struct got *g = xcalloc(1, sizeof(*g));
	const struct elf_section *s = elf_section(e, ".got");
	if (!s)
		return g;
	g->plt.local_start = s->vaddr;
	g->plt.local_end = s->vaddr + MIN(s->nr_bytes, UINT64_MAX - s->vaddr);
	if (read_slots(&g->plt, e, NULL))
		vec_clear(&g->plt.slots);
	return g;
}

void got_free(struct got *g)
{
	if (!g)
		return;
	plt_release(&g->plt);
	free(g);
}

bool got_find(const struct got *g, uint64_t slot, uint64_t *ret_vaddr, struct sv *ret_name)
{
	const struct slot *s = slot_at(&g->plt, slot);
	if (!s || s->is_relative || slot < g->plt.local_start || slot >= g->plt.local_end)
		return false;
	*ret_vaddr = s->is_local ? s->addend : 0;
	*ret_name = s->is_local ? SV("") : slot_name(&g->plt, s);
	return *ret_vaddr || ret_name->n;
}

int plt_add(struct symtab *to, struct elf *e, const struct symtab *functions, unsigned tag,
	    struct err *err)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got", ".iplt", ".plt.bnd"};
	CLEANUP(plt_release) struct plt p = {.to = to, .functions = functions, .tag = tag};
	int rc = read_slots(&p, e, err);
	for (size_t i = 0; !rc && i < ARRAY_LEN(sections); i++) {
		const struct elf_section *s = elf_section(e, sections[i]);
		struct sv code;
		if (!s || s->nr_bytes > ENTRIES_MAX * 16)
			continue;
		rc = elf_section_bytes(e, s, &code, err);
		if (rc)
			break;
		if (elf_machine(e) == ELF_MACHINE_X86_64)
			scan_x86_64(&p, s, code);
		else
			scan_arm64(&p, s, code);
	}
	return rc;
}
