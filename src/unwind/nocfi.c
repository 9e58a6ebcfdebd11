#include "base/base.h"
#include "unwind/nocfi.h"

#include <stdlib.h>

#include "arch.h"
#include "base/mem.h"
#include "base/sort.h"
#include "unwind/codescan.h"
#include "object/x86insn.h"
#include "unwind_row.h"

#define CHUNK_BYTES    ((size_t)256 << 10)
#define SCAN_MAX_BYTES ((uint64_t)256 << 20)
/* In a binary with CFI larger gaps are not followed: they are JIT snapshots or left by BOLT. */
#define GAP_MAX_BYTES ((uint64_t)1 << 20)
/* A larger symbol table is not read for the few gaps of a binary with CFI: it takes too long. */
#define SYMBOLS_MAX_BYTES  ((uint64_t)1 << 20)
#define FOLLOWED_MAX_BYTES ((uint64_t)8 << 20) /* of followed code, all gaps together */
#define RULES_MAX          4096                /* per gap: insertion into the list is linear */
#define CALLS_MAX_BYTES    ((uint64_t)4 << 20) /* of code searched for calls */
#define ENTRY_BYTES        96                  /* longer than any _start */
#define OVERLAP_BYTES      32                  /* longer than any pattern */

/* Adds the functions of a symbol table; a large one only for binaries without .eh_frame. */
static void add_symbols(struct nocfi_code *g, struct elf *elf, const char *section)
{
	enum { SYM_BYTES = 24, SYM_VALUE_OFFSET = 8, SYM_INFO_OFFSET = 4, STT_FUNC = 2 };
	const struct elf_section *s = elf_section(elf, section);
	struct sv bytes;

	if (elf_section(elf, ".eh_frame") && s && s->nr_bytes > SYMBOLS_MAX_BYTES)
		return;
	if (!s || elf_section_bytes(elf, s, &bytes, NULL))
		return;
	for (size_t at = 0; at + SYM_BYTES <= bytes.n; at += SYM_BYTES) {
		uint64_t value;
		memcpy(&value, bytes.p + at + SYM_VALUE_OFFSET, sizeof(value));
		if ((bytes.p[at + SYM_INFO_OFFSET] & 15) == STT_FUNC && value)
			vec_push(&g->starts, value);
	}
}

void nocfi_init(struct nocfi_code *g, struct elf *elf)
{
	g->entry = elf_entry(elf);
	add_symbols(g, elf, ".dynsym");
	add_symbols(g, elf, ".symtab");
	sort_records(g->starts.p, g->starts.n, sizeof(*g->starts.p), UINT64_MAX);
}

void nocfi_find_calls(struct nocfi_code *g, struct elf *elf, uint64_t start, uint64_t end)
{
#if defined(__x86_64__)
	size_t nr;
	const struct elf_segment *seg = elf_segments(elf, &nr);

	for (size_t i = 0; i < nr; i++) {
		size_t n = (size_t)seg[i].nr_file_bytes;
		if (seg[i].type != 1 || !(seg[i].flags & 1) || !n || n > CALLS_MAX_BYTES ||
		    seg[i].vaddr < start || seg[i].vaddr >= end)
			continue;
		CLEANUP(free_p) uint8_t *code = xmalloc(n);
		if (elf_read(elf, code, n, seg[i].offset, NULL))
			continue;
		for (size_t at = 0; at < n;) {
			struct x86_insn insn;
			if (!x86_decode(code + at, n - at, &insn)) {
				at++;
				continue;
			}
			at += insn.nr_bytes;
			if (insn.map == 0 && insn.opcode == 0xe8 && insn.imm)
				vec_push(&g->starts, seg[i].vaddr + at + (uint64_t)insn.imm);
		}
	}
	sort_records(g->starts.p, g->starts.n, sizeof(*g->starts.p), UINT64_MAX);
#else
	(void)g;
	(void)elf;
	(void)start;
	(void)end;
#endif
}

void nocfi_release(struct nocfi_code *g)
{
	vec_release(&g->rules);
	vec_release(&g->starts);
	free(g->chunk);
	g->chunk = NULL;
}

/* Inserts a rule; the list stays sorted and disjoint, and earlier rules are kept. */
static void add_rule(struct nocfi_code *g, uint64_t start, uint64_t end, uint32_t rule)
{
	size_t at = 0;

	if (g->rules.n >= RULES_MAX)
		return;
	while (at < g->rules.n && g->rules.p[at].end <= start)
		at++;
	if (at < g->rules.n && g->rules.p[at].start < end)
		end = g->rules.p[at].start;
	if (start >= end)
		return;
	vec_push(&g->rules, (struct nocfi_rule){0});
	memmove(&g->rules.p[at + 1], &g->rules.p[at], (g->rules.n - 1 - at) * sizeof(*g->rules.p));
	g->rules.p[at] = (struct nocfi_rule){start, end, rule};
}

#if defined(__x86_64__)
static void add_plt_entries(struct nocfi_code *g, const uint8_t *p, uint64_t start, uint64_t end)
{
	static const uint8_t push_got[] = {0xff, 0x35};
	static const uint8_t jmp_got[] = {0xff, 0x25};
	static const uint8_t endbr_push[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x68};
	const uint32_t plain = row_make(ROW_SP, 8, ROW_FP_SAME);

	if (memcmp(p, push_got, sizeof(push_got))) { /* .plt.got, .plt.sec: nothing is pushed */
		add_rule(g, start, end, plain);
		return;
	}
	/* Entry 0 is entered with the index pushed, and pushes another word. */
	add_rule(g, start, start + 6, row_make(ROW_SP, 16, ROW_FP_SAME));
	add_rule(g, start + 6, start + 16, row_make(ROW_SP, 24, ROW_FP_SAME));
	if (!memcmp(p + 16, jmp_got, sizeof(jmp_got)))
		add_rule(g, start + 16, end, row_make(ROW_PLT, 11 * 8, ROW_FP_SAME));
	else if (!memcmp(p + 16, endbr_push, sizeof(endbr_push)))
		add_rule(g, start + 16, end, row_make(ROW_PLT, 9 * 8, ROW_FP_SAME));
}

/* Adds rules for PLT sections that no FDE covers. */
static void scan_plt(struct nocfi_code *g, struct elf *elf, uint64_t start, uint64_t end)
{
	size_t nr;
	const struct elf_section *s = elf_sections(elf, &nr);

	for (size_t i = 0; i < nr; i++) {
		uint8_t head[32] = {0};
		bool is_plt = sv_has_prefix(s[i].name, SV(".plt")) || sv_eq(s[i].name, SV(".iplt"));
		if (!is_plt || s[i].nr_bytes < 16 || s[i].vaddr < start || s[i].vaddr % 16 ||
		    s[i].vaddr + s[i].nr_bytes > end || s[i].vaddr + s[i].nr_bytes < s[i].vaddr)
			continue;
		if (elf_read(elf, head, MIN(s[i].nr_bytes, sizeof(head)), s[i].offset, NULL))
			continue;
		add_plt_entries(g, head, s[i].vaddr, s[i].vaddr + s[i].nr_bytes);
	}
}

/*
 * Matches the code before a syscall instruction at @p, address @vaddr; @nr_before bytes are valid.
 */
static void match_syscall(struct nocfi_code *g, const uint8_t *p, size_t nr_before, uint64_t vaddr,
			  uint64_t gap_start)
{
	static const uint8_t sigreturn[] = {0xb8, 0x0f, 0, 0, 0};
	static const uint8_t sigreturn_wide[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0};
	static const uint8_t exit_short[] = {0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c};
	static const uint8_t exit_long[] = {0x89, 0xc7, 0xb8, 0x3c, 0, 0, 0};
	size_t n;

#define ENDS_WITH(code) (nr_before >= sizeof(code) && !memcmp(p - sizeof(code), code, sizeof(code)))
	n = ENDS_WITH(sigreturn)        ? sizeof(sigreturn)
	    : ENDS_WITH(sigreturn_wide) ? sizeof(sigreturn_wide)
					: 0;
	if (n) {
		/*
		 * Starts one byte early: the handler's return address is looked up at address - 1.
		 */
		uint64_t start = vaddr - n;
		add_rule(g, start - (start > gap_start), vaddr + 2,
			 row_make(ROW_SIGNAL, ARCH_SIGFRAME_UC, ROW_FP_SAME));
		return;
	}
	n = ENDS_WITH(exit_short)  ? sizeof(exit_short)
	    : ENDS_WITH(exit_long) ? sizeof(exit_long)
				   : 0;
	if (n && nr_before >= n + 2 && p[-(ptrdiff_t)n - 2] == 0xff &&
	    (p[-(ptrdiff_t)n - 1] & 0xf8) == 0xd0)
		add_rule(g, vaddr - n - 1, vaddr + 2, ROW_STOP);
#undef ENDS_WITH
}

/* Derives rules by following the instructions, where no pattern matched. */
static void follow_code(struct nocfi_code *g, struct elf *elf, uint64_t start, uint64_t end)
{
	size_t n = (size_t)(end - start);
	uint64_t offset;

	if (end - start > GAP_MAX_BYTES || g->nr_followed_bytes > FOLLOWED_MAX_BYTES ||
	    !elf_offset_from_vaddr(elf, start, &offset))
		return;
	g->nr_followed_bytes += n;
	CLEANUP(free_p) uint8_t *code = xmalloc(n);
	if (elf_read(elf, code, n, offset, NULL))
		return;
	CLEANUP(free_p) uint32_t *rules = xcalloc(n, sizeof(*rules));
	vec_foreach(r, &g->rules)
		for (uint64_t at = r->start; at < r->end; at++)
			rules[at - start] = r->rule;
	VEC(uint64_t) starts = {0};
	size_t first = u64_lower_bound(g->starts.p, g->starts.n, start);
	for (size_t i = first; i < g->starts.n && g->starts.p[i] < end; i++)
		vec_push(&starts, g->starts.p[i] - start);
	code_scan(code, n, starts.p, starts.n, rules);
	vec_release(&starts);
	vec_clear(&g->rules);
	for (size_t at = 0, to; at < n; at = to) {
		for (to = at + 1; to < n && rules[to] == rules[at];)
			to++;
		if (rules[at] != ROW_NONE)
			vec_push(&g->rules, (struct nocfi_rule){start + at, start + to, rules[at]});
	}
}

static void scan_chunk(struct nocfi_code *g, size_t n, size_t from, uint64_t vaddr,
		       uint64_t gap_start)
{
	const uint8_t *end = g->chunk + n;

	for (const uint8_t *p = g->chunk + from;; p += 2) {
		p = memmem(p, (size_t)(end - p), "\x0f\x05", 2);
		if (!p)
			return;
		size_t before = (size_t)(p - g->chunk);
		match_syscall(g, p, before, vaddr + before, gap_start);
	}
}

static void scan_syscalls(struct nocfi_code *g, struct elf *elf, uint64_t start, uint64_t end)
{
	if (!g->chunk)
		g->chunk = xmalloc(CHUNK_BYTES);
	for (uint64_t at = start; at < end;) {
		/* Chunks overlap, for patterns that cross the boundary. */
		size_t overlap = MIN(at - start, OVERLAP_BYTES);
		size_t n = MIN(end - at + overlap, CHUNK_BYTES);
		uint64_t offset;
		if (!elf_offset_from_vaddr(elf, at - overlap, &offset) ||
		    elf_read(elf, g->chunk, n, offset, NULL))
			return;
		g->nr_scanned_bytes += n;
		scan_chunk(g, n, overlap ? overlap - 1 : 0, at - overlap, start);
		at += n - overlap;
	}
}
#endif

#if defined(__x86_64__)
/*
 * Returns the length of the entry code. It ends with a jump (the dynamic linker's jumps to the
 * program), with hlt, or before the padding after a call that does not return.
 */
static uint64_t entry_bytes(struct elf *elf, uint64_t entry)
{
	uint8_t code[ENTRY_BYTES];
	uint64_t offset;
	bool is_after_call = false;

	if (!elf_offset_from_vaddr(elf, entry, &offset) ||
	    elf_read(elf, code, sizeof(code), offset, NULL))
		return 1;
	for (size_t at = 0; at < sizeof(code);) {
		struct x86_insn i;
		if (!x86_decode(code + at, sizeof(code) - at, &i))
			return at + 1;
		if (x86_is_padding(&i) && is_after_call)
			return at;
		at += i.nr_bytes;
		is_after_call = x86_is_call(&i);
		if (x86_is_jump(&i) || x86_is_indirect_jump(&i) || (i.map == 0 && i.opcode == 0xf4))
			return at;
	}
	return sizeof(code);
}
#else
static uint64_t entry_bytes(struct elf *elf, uint64_t entry)
{
	(void)elf;
	(void)entry;
	return ENTRY_BYTES;
}
#endif

void nocfi_scan(struct nocfi_code *g, struct elf *elf, uint64_t start, uint64_t end)
{
	vec_clear(&g->rules);
	if (g->entry >= start && g->entry < end)
		add_rule(g, g->entry, MIN(g->entry + entry_bytes(elf, g->entry), end), ROW_STOP);
#if defined(__x86_64__)
	scan_plt(g, elf, start, end);
	if (g->nr_scanned_bytes < SCAN_MAX_BYTES && (!g->has_cfi || end - start <= GAP_MAX_BYTES)) {
		scan_syscalls(g, elf, start, end);
		follow_code(g, elf, start, end);
	}
#endif
}
