#include "base/base.h"
#include "unwind/gapcode.h"

#include "arch.h"
#include "base/mem.h"
#include "unwind_row.h"

#define CHUNK_BYTES    ((size_t)256 << 10)
#define SCAN_MAX_BYTES ((uint64_t)256 << 20)
/* In a binary with CFI a larger gap is no C library: JIT snapshots, holes that BOLT left. */
#define GAP_MAX_BYTES ((uint64_t)1 << 20)
#define ENTRY_BYTES   64 /* longer than any _start before its call and hlt */
#define OVERLAP_BYTES 32 /* longer than any pattern */

void gap_code_init(struct gap_code *g, struct elf *elf)
{
	enum { EHDR_ENTRY_OFFSET = 24 };
	uint8_t le[8];
	uint64_t entry = 0;

	if (!elf_read(elf, le, sizeof(le), EHDR_ENTRY_OFFSET, NULL))
		memcpy(&entry, le, sizeof(entry));
	g->entry = entry;
}

void gap_code_release(struct gap_code *g)
{
	vec_release(&g->rules);
	free(g->chunk);
	g->chunk = NULL;
}

/* Keeps the list sorted and disjoint: what came first stays. */
static void add_rule(struct gap_code *g, uint64_t start, uint64_t end, uint32_t rule)
{
	size_t at = 0;

	while (at < g->rules.n && g->rules.p[at].end <= start)
		at++;
	if (at < g->rules.n && g->rules.p[at].start < end)
		end = g->rules.p[at].start;
	if (start >= end)
		return;
	vec_push(&g->rules, (struct gap_rule){0});
	memmove(&g->rules.p[at + 1], &g->rules.p[at], (g->rules.n - 1 - at) * sizeof(*g->rules.p));
	g->rules.p[at] = (struct gap_rule){start, end, rule};
}

#if defined(__x86_64__)
static void add_plt_entries(struct gap_code *g, const uint8_t *p, uint64_t start, uint64_t end)
{
	static const uint8_t push_got[] = {0xff, 0x35};
	static const uint8_t jmp_got[] = {0xff, 0x25};
	static const uint8_t endbr_push[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x68};
	const uint32_t plain = row_make(ROW_SP, 8, ROW_FP_SAME);

	if (memcmp(p, push_got, sizeof(push_got))) { /* .plt.got, .plt.sec: nothing is pushed */
		add_rule(g, start, end, plain);
		return;
	}
	/* Entry 0 is jumped to with the index pushed, and pushes one word more. */
	add_rule(g, start, start + 6, row_make(ROW_SP, 16, ROW_FP_SAME));
	add_rule(g, start + 6, start + 16, row_make(ROW_SP, 24, ROW_FP_SAME));
	if (!memcmp(p + 16, jmp_got, sizeof(jmp_got)))
		add_rule(g, start + 16, end, row_make(ROW_PLT, 11 * 8, ROW_FP_SAME));
	else if (!memcmp(p + 16, endbr_push, sizeof(endbr_push)))
		add_rule(g, start + 16, end, row_make(ROW_PLT, 9 * 8, ROW_FP_SAME));
}

/* PLT stubs of sections that have no FDE at all. */
static void scan_plt(struct gap_code *g, struct elf *elf, uint64_t start, uint64_t end)
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

/* @p points at a syscall instruction, nr_before bytes before it are there; vaddr is p's. */
static void match_syscall(struct gap_code *g, const uint8_t *p, size_t nr_before, uint64_t vaddr,
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
		/* A byte early: the handler's return address is looked up by the byte before. */
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

static void scan_chunk(struct gap_code *g, size_t n, size_t from, uint64_t vaddr,
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

static void scan_syscalls(struct gap_code *g, struct elf *elf, uint64_t start, uint64_t end)
{
	if (!g->chunk)
		g->chunk = xmalloc(CHUNK_BYTES);
	for (uint64_t at = start; at < end;) {
		/* What was seen before stays in view for patterns that cross the border. */
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

void gap_code_scan(struct gap_code *g, struct elf *elf, uint64_t start, uint64_t end)
{
	vec_clear(&g->rules);
	if (g->entry >= start && g->entry < end)
		add_rule(g, g->entry, MIN(g->entry + ENTRY_BYTES, end), ROW_STOP);
#if defined(__x86_64__)
	scan_plt(g, elf, start, end);
	if (g->nr_scanned_bytes < SCAN_MAX_BYTES && (!g->has_cfi || end - start <= GAP_MAX_BYTES))
		scan_syscalls(g, elf, start, end);
#else
	(void)elf;
#endif
}
