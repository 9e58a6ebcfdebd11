/* Chooses which bytes of a function become a jump; see patch.h. */
#include "base/base.h"
#include "remote/patch/patch.h"

#include <elf.h>

#include "base/mem.h"
#include "object/x86insn.h"

#define CODE_BYTES        64u /* of a function that are analyzed */
#define BRANCH_SCAN_MAX   65536u
#define GAP_MAX           64u /* longer gaps are not padding */
#define SHORT_REACH       127
#define FDES_MAX          (1u << 20)
#define TARGET_PAGE_BYTES 4096u

/* ---- bounds of functions --------------------------------------------------------------------- */

static bool find_hdr(uint64_t base, heappatch_read_fn read, void *ctx, uint64_t *ret_addr)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph[32];
	uint64_t first = UINT64_MAX;
	uint64_t hdr = 0;
	if (read(ctx, base, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	    eh.e_phentsize != sizeof(ph[0]) || eh.e_phnum > ARRAY_LEN(ph) ||
	    read(ctx, base + eh.e_phoff, ph, eh.e_phnum * sizeof(ph[0])))
		return false;
	for (size_t i = 0; i < eh.e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD && first == UINT64_MAX)
			first = ph[i].p_vaddr - ph[i].p_offset;
		if (ph[i].p_type == PT_GNU_EH_FRAME)
			hdr = ph[i].p_vaddr;
	}
	*ret_addr = base - first + hdr;
	return hdr && first != UINT64_MAX;
}

/*
 * LSB core, "Exception Frames": version 1, pointer pcrel|sdata4, count udata4, table
 * datarel|sdata4 of (function, its description).
 */
struct frame_hdr {
	uint8_t version;
	uint8_t ptr_enc;
	uint8_t count_enc;
	uint8_t table_enc;
	int32_t ptr;
	uint32_t count;
};

struct frame_row {
	int32_t start;
	int32_t fde;
};

/* Index of the first row that starts at or after @rel. */
static size_t lower_row(uint64_t table, uint32_t n, int64_t rel, heappatch_read_fn read, void *ctx)
{
	size_t lo = 0;
	size_t hi = n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		struct frame_row row;
		if (read(ctx, table + mid * sizeof(row), &row, sizeof(row)))
			return n;
		if (row.start < rel)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The function's range by its FDE, whose start (pcrel|sdata4) must equal the row's. */
static bool fde_range(uint64_t hdr, const struct frame_row *row, heappatch_read_fn read, void *ctx,
		      struct heap_range *ret)
{
	uint64_t fde = hdr + (uint64_t)(int64_t)row->fde;
	struct {
		uint32_t nr_bytes;
		uint32_t cie;
		int32_t start;
		uint32_t range;
	} d;
	if (read(ctx, fde, &d, sizeof(d)))
		return false;
	uint64_t start = hdr + (uint64_t)(int64_t)row->start;
	if (fde + 8 + (uint64_t)(int64_t)d.start != start || !d.range)
		return false;
	*ret = (struct heap_range){start, start + d.range};
	return true;
}

void heap_bounds_load(struct heap_bounds *b, uint64_t base, uint64_t lo, uint64_t hi,
		      heappatch_read_fn read, void *ctx)
{
	uint64_t hdr;
	struct frame_hdr h;
	if (!find_hdr(base, read, ctx, &hdr) || read(ctx, hdr, &h, sizeof(h)) || h.version != 1 ||
	    h.ptr_enc != 0x1b || h.count_enc != 0x03 || h.table_enc != 0x3b || h.count > FDES_MAX)
		return;
	uint64_t table = hdr + sizeof(h);
	size_t i = lower_row(table, h.count, (int64_t)(lo - hdr), read, ctx);
	for (i = i ? i - 1 : 0; i < h.count; i++) {
		struct frame_row row;
		struct heap_range range;
		if (read(ctx, table + i * sizeof(row), &row, sizeof(row)) ||
		    !fde_range(hdr, &row, read, ctx, &range)) {
			vec_clear(&b->v);
			return;
		}
		vec_push(&b->v, range);
		if (range.start >= hi)
			return;
	}
}

/* Input of the search in one function. */
struct search {
	const struct heap_function *site;
	const struct heap_bounds *bounds;
	struct heap_gaps *gaps;
	heappatch_read_fn read;
	void *ctx;
	const uint8_t *code;
	size_t nr_code;
};

/*
 * Whether a five-byte jump at @addr crosses a page: the kernel writes the pages one after the other,
 * and a SIGKILL of assay between them would leave half a jump.
 */
static bool crosses_page(uint64_t addr)
{
	return (addr & (TARGET_PAGE_BYTES - 1)) > TARGET_PAGE_BYTES - 5;
}

/* ---- padding --------------------------------------------------------------------------------- */

static bool is_padding_insn(const uint8_t *p, const struct x86_insn *i)
{
	if (i->map == 0 && !i->has_modrm)
		return (i->opcode == 0x90 && !i->rex) || i->opcode == 0xcc;
	if (i->map == 1)
		return i->opcode == 0x1f; /* nop with an operand */
	/* xchg %ax, %ax; lea 0(%rsi), %rsi in forms without effect */
	return p[0] == 0x8d && i->disp == 0 && (i->modrm >> 3 & 7) == 6 && i->base == 6 &&
	       !i->has_index && !i->rex;
}

static bool is_padding(const uint8_t *p, size_t n)
{
	size_t at = 0;
	while (at < n) {
		struct x86_insn i;
		if (!x86_decode(p + at, n - at, &i) || !is_padding_insn(p + at, &i))
			return false;
		at += i.nr_bytes;
	}
	return n > 0;
}

static bool is_taken(const struct heap_gaps *g, uint64_t addr)
{
	for (size_t i = 0; i < g->taken.n; i++)
		if (addr < g->taken.p[i] + 5 && g->taken.p[i] < addr + 5)
			return true;
	return false;
}

/* Uses the five bytes at @addr if the two-byte jump at p->at reaches them. */
static bool claim_gap(struct heap_patch *p, struct heap_gaps *g, uint64_t addr, const uint8_t *old)
{
	int64_t rel = (int64_t)(addr - (p->at + 2));
	if (rel < -128 || rel > SHORT_REACH || is_taken(g, addr) || crosses_page(addr))
		return false;
	vec_push(&g->taken, addr);
	p->kind = PATCH_GAP;
	p->gap = addr;
	memcpy(p->gap_old, old, 5);
	return true;
}

static bool gap_by_bounds(struct heap_patch *p, const struct search *s)
{
	const struct heap_bounds *b = s->bounds;
	uint8_t code[GAP_MAX];
	for (size_t i = 0; i + 1 < b->v.n; i++) {
		uint64_t lo = b->v.p[i].end;
		uint64_t hi = b->v.p[i + 1].start;
		if (hi < lo + 5 || hi - lo > GAP_MAX || hi + 256 < p->at || lo > p->at + 256)
			continue;
		size_t n = (size_t)(hi - lo);
		if (s->read(s->ctx, lo, code, n) || !is_padding(code, n))
			continue;
		for (size_t at = 0; at + 5 <= n; at++)
			if (claim_gap(p, s->gaps, hi - 5 - at, code + n - 5 - at))
				return true;
	}
	return false;
}

/* Whether the @n bytes of code before @end end with an instruction that does not fall through. */
static bool is_end_of_code(const uint8_t *end, size_t n)
{
	return (n >= 1 && (end[-1] == 0xc3 || end[-1] == 0xf4)) ||
	       (n >= 2 && (end[-2] == 0xeb || (end[-2] == 0x0f && end[-1] == 0x0b))) ||
	       (n >= 5 && end[-5] == 0xe9);
}

static bool gap_before(struct heap_patch *p, const struct search *s)
{
	uint8_t code[GAP_MAX];
	size_t n = sizeof(code);
	if (p->function % 16 || s->read(s->ctx, p->function - n, code, n))
		return false;
	for (size_t len = 16; len >= 5; len--) {
		const uint8_t *start = code + n - len;
		if (is_padding(start, len) && is_end_of_code(start, n - len))
			return claim_gap(p, s->gaps, p->function - 5, code + n - 5);
	}
	return false;
}

/* ---- functions ------------------------------------------------------------------------------- */

/*
 * The effect of the instructions before the replaced one: only those are accepted that the stub can
 * undo and the trampoline execute again.
 */
struct prologue {
	uint8_t undo[HEAPCODE_UNDO_MAX]; /* filled from the end */
	size_t nr_undo;
	uint32_t pushed; /* bit r: register r is saved on the stack, or dead */
};

#define RAX 0
#define RSP 4

static bool add_undo(struct prologue *p, const uint8_t *code, size_t n)
{
	if (p->nr_undo + n > sizeof(p->undo))
		return false;
	p->nr_undo += n;
	memcpy(p->undo + sizeof(p->undo) - p->nr_undo, code, n);
	return true;
}

static bool track_push(struct prologue *p, const struct x86_insn *i)
{
	unsigned reg = (i->opcode & 7) | (i->rex & 1u) << 3;
	uint8_t pop[2] = {0x41, (uint8_t)(0x58 | (reg & 7))};
	if (reg == RSP)
		return false;
	p->pushed |= 1u << reg;
	return reg < 8 ? add_undo(p, pop + 1, 1) : add_undo(p, pop, 2);
}

/* sub imm, %rsp is undone by lea imm(%rsp), %rsp, which does not change the flags. */
static bool track_sub(struct prologue *p, const struct x86_insn *i)
{
	uint8_t lea[8] = {0x48, 0x8d, 0xa4, 0x24};
	int32_t imm = (int32_t)i->imm;
	memcpy(lea + 4, &imm, 4);
	return i->modrm == 0xec && i->rex == 0x48 && i->imm > 0 && add_undo(p, lea, sizeof(lea));
}

/* Whether a register may change: saved before, or dead at the start of a function. */
static bool is_changeable(const struct prologue *p, unsigned reg)
{
	return reg != RSP && (p->pushed >> reg & 1);
}

/* and, or, add, sub, xor, mov of a constant to a register; cmp anywhere. */
static bool track_constant(struct prologue *p, const struct x86_insn *i, unsigned rm)
{
	unsigned what = i->modrm >> 3 & 7;
	bool is_reg = i->modrm >> 6 == 3;
	if (what == 5 && is_reg && rm == RSP)
		return track_sub(p, i);
	bool needs_flags = what == 2 || what == 3;
	return what == 7 || (is_reg && !needs_flags && is_changeable(p, rm));
}

/* Whether the instruction can be undone or has no effect, and may be executed again. */
static bool track_insn(struct prologue *p, const uint8_t *code, const struct x86_insn *i)
{
	unsigned reg = (i->modrm >> 3 & 7) | (i->rex & 4u) << 1;
	unsigned rm = (i->modrm & 7) | (i->rex & 1u) << 3;
	bool is_reg = i->modrm >> 6 == 3;
	bool is_endbr = i->map == 1 && i->opcode == 0x1e && i->modrm == 0xfa && code[0] == 0xf3;
	if (i->map == 1) {
		bool is_extended = (i->opcode & 0xf6) == 0xb6; /* movzx, movsx */
		return i->opcode == 0x1f || is_endbr || (is_extended && is_changeable(p, reg));
	}
	if (i->map)
		return false;
	if ((i->opcode & 0xf8) == 0x50)
		return track_push(p, i);
	if ((i->opcode & 0xf8) == 0xb8) /* mov of a constant */
		return is_changeable(p, (i->opcode & 7) | (i->rex & 1u) << 3);
	switch (i->opcode) {
	case 0x90: /* nop, unless it exchanges registers */
		return !i->rex;
	case 0x01: /* add, or, and, sub, xor, mov to r/m */
	case 0x09:
	case 0x21:
	case 0x29:
	case 0x31:
	case 0x89:
		return is_reg && is_changeable(p, rm);
	case 0x03: /* add, or, and, sub, xor, movsxd, mov, lea to r */
	case 0x0b:
	case 0x23:
	case 0x2b:
	case 0x33:
	case 0x63:
	case 0x8b:
	case 0x8d:
		return is_changeable(p, reg);
	case 0x38: /* cmp, test */
	case 0x39:
	case 0x3a:
	case 0x3b:
	case 0x84:
	case 0x85:
		return true;
	case 0x81:
	case 0x83:
		return track_constant(p, i, rm);
	case 0x80:
		return (i->modrm >> 3 & 7) == 7;
	case 0xf6:
	case 0xf7:
		return (i->modrm >> 3 & 7) < 2;
	}
	return false;
}

static bool is_movable(const uint8_t *p, size_t n, uint64_t addr)
{
	uint8_t to[HEAPCODE_STUB_BYTES];
	size_t nr_new;
	return heapcode_move(p, n, addr, to, sizeof(to), addr + 4096, &nr_new);
}

/* Whether the function has a branch into [lo, hi), or may have one. */
static bool is_branched_into(const struct search *s, uint64_t lo, uint64_t hi)
{
	const struct heap_function *site = s->site;
	if (site->end <= site->addr || site->end - site->addr > BRANCH_SCAN_MAX)
		return true;
	size_t n = (size_t)(site->end - site->addr);
	CLEANUP(free_p) uint8_t *code = xmalloc(n);
	if (s->read(s->ctx, site->addr, code, n))
		return true;
	for (size_t at = 0; at < n;) {
		struct x86_insn i;
		if (!x86_decode(code + at, n - at, &i))
			return true;
		bool is_rel = (i.map == 0 &&
			       ((i.opcode & 0xf0) == 0x70 || i.opcode == 0xeb || i.opcode == 0xe9 ||
				i.opcode == 0xe8 || (i.opcode >= 0xe0 && i.opcode <= 0xe3))) ||
			      (i.map == 1 && (i.opcode & 0xf0) == 0x80);
		uint64_t target = site->addr + at + i.nr_bytes + (uint64_t)i.imm;
		if (is_rel && target >= lo && target < hi)
			return true;
		at += i.nr_bytes;
	}
	return false;
}

static void plan_multi(struct heap_patch *p, const struct search *s)
{
	const struct heap_function *site = s->site;
	size_t len = 0;
	while (len < 5) {
		struct x86_insn i;
		if (!x86_decode(s->code + len, s->nr_code - len, &i))
			return;
		len += i.nr_bytes;
	}
	if (len > sizeof(p->displaced) || crosses_page(site->addr) ||
	    !is_movable(s->code, len, site->addr) || (site->end && site->addr + len > site->end) ||
	    is_branched_into(s, site->addr + 1, site->addr + len))
		return;
	p->kind = PATCH_MULTI;
	p->at = site->addr;
	p->nr_undo = 0;
	p->nr_displaced = len;
}

static bool find_gap(struct heap_patch *p, const struct search *s)
{
	if (p->at % 8 == 7)
		return false;
	return s->bounds->v.n ? gap_by_bounds(p, s) : gap_before(p, s);
}

/* Finds the first instruction that a jump of this kind can replace. */
static bool find_insn(struct heap_patch *p, enum patch_kind kind, const struct search *s)
{
	struct prologue pro = {.pushed = 1u << RAX | 1u << 10 | 1u << 11};
	size_t at = 0;
	for (;;) {
		struct x86_insn i;
		if (!x86_decode(s->code + at, s->nr_code - at, &i) ||
		    at + i.nr_bytes > sizeof(p->displaced) ||
		    (s->site->end && s->site->addr + at + i.nr_bytes > s->site->end))
			return false;
		p->at = s->site->addr + at;
		p->nr_displaced = at + i.nr_bytes;
		bool is_direct = i.nr_bytes >= 5 && p->at % 8 <= 3;
		bool fits = kind == PATCH_DIRECT ? is_direct : i.nr_bytes >= 2;
		if (fits && is_movable(s->code, p->nr_displaced, s->site->addr) &&
		    (!at || !is_branched_into(s, s->site->addr + 1, p->at + 1)) &&
		    (kind == PATCH_DIRECT || find_gap(p, s)))
			break;
		if (!track_insn(&pro, s->code + at, &i))
			return false;
		at += i.nr_bytes;
	}
	p->kind = kind;
	p->nr_undo = pro.nr_undo;
	memcpy(p->undo, pro.undo + sizeof(pro.undo) - pro.nr_undo, pro.nr_undo);
	return true;
}

void heappatch_plan(struct heap_patch *ret_p, const struct heap_function *site, uint32_t number,
		    bool allow_multi, const struct heap_bounds *bounds, struct heap_gaps *gaps,
		    heappatch_read_fn read, void *ctx)
{
	struct heap_patch *p = ret_p;
	uint8_t code[CODE_BYTES];
	*p = (struct heap_patch){.site = number, .function = site->addr, .at = site->addr};
	if (read(ctx, site->addr, code, sizeof(code))) {
		p->why = "its code cannot be read";
		return;
	}
	struct search s = {site, bounds, gaps, read, ctx, code, sizeof(code)};
	if (!find_insn(p, PATCH_DIRECT, &s) && !find_insn(p, PATCH_GAP, &s)) {
		if (allow_multi)
			plan_multi(p, &s);
		if (p->kind == PATCH_NONE)
			p->why = "no jump fits over its first instructions";
	}
	memcpy(p->displaced, code, MIN(p->nr_displaced, sizeof(p->displaced)));
}

size_t heappatch_jump(const struct heap_patch *p, uint8_t to[5])
{
	if (p->kind == PATCH_GAP) {
		to[0] = 0xeb;
		to[1] = (uint8_t)(p->gap - (p->at + 2));
		return 2;
	}
	return heapcode_jump(to, p->at, p->stub) ? 5 : 0;
}
