/*
 * Compiles FDEs to rows.
 *
 *	collect   start, end and place of each FDE that lies in an executable segment
 *	sort      if the linker left them unsorted
 *	compile   each program once, in address order; equal neighbours become one row
 *	index     the first row of every page
 *
 * Measured on librustc_driver (1.0 M rows): see tests/bench/bench_unwind.c.
 */
#include "base/base.h"
#include "unwind/table.h"

#include <errno.h>
#include <stdlib.h>

#include "arch.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/vec.h"
#include "object/gopclntab.h"
#include "unwind/cfi.h"
#include "unwind/nocfi.h"
#include "unwind/rowcode.h"
#include "unwind/tablecache.h"

#define PAGE_SHIFT 12
/* Padding between functions up to this size is covered by the rule of the function before it. */
#define GAP_MERGED_BYTES 15
/* Limits memory for hostile files; the largest real ones have 8 M rows. */
#define ROWS_MAX ((size_t)32 << 20)
#define SPAN_MAX ((uint64_t)2 << 30) /* of code, first to last */
#define CFI_MAX  ((size_t)512 << 20)

struct fde_ref {
	uint32_t start; /* relative to the table's base */
	uint32_t end;
	uint32_t where;
};

/* Cache of the initial rules of CIEs. */
#define NR_INITS 16
struct init_cache {
	uint64_t keys[NR_INITS]; /* where + 1 */
	bool is_bad[NR_INITS];
	struct cfi_rules rules[NR_INITS];
};

struct builder {
	struct unwind_table *t;
	struct elf *elf;
	VEC(struct fde_ref) refs;
	VEC(struct unwind_row) rows;
	struct row_coder coder;
	struct nocfi_code gaps;
	struct ehframe_iter iters[UNWIND_NR_SECTIONS];
	struct gopclntab *go; /* NULL: not a Go program */
	size_t next_go;       /* the first function of it that is not compiled yet */
	struct init_cache inits;
	struct cfi_run run;
	uint32_t last_rule;
	uint32_t covered_to; /* relative address up to which there are rows */
};

static void builder_free_p(struct builder **pb)
{
	struct builder *b = *pb;
	if (!b)
		return;
	vec_release(&b->refs);
	vec_release(&b->rows);
	row_coder_release(&b->coder);
	nocfi_release(&b->gaps);
	gopclntab_free(b->go);
	unwind_table_free(b->t);
	free(b);
}

/* Gets the address range of all executable segments; false if there are none. */
static bool code_span(struct elf *elf, uint64_t *ret_base, uint64_t *ret_end)
{
	size_t nr;
	const struct elf_segment *seg = elf_segments(elf, &nr);
	uint64_t base = UINT64_MAX;
	uint64_t end = 0;

	for (size_t i = 0; i < nr; i++) {
		if (seg[i].type != 1 || !(seg[i].flags & 1) || !seg[i].nr_mem_bytes ||
		    seg[i].vaddr + seg[i].nr_mem_bytes < seg[i].vaddr)
			continue;
		base = MIN(base, seg[i].vaddr);
		end = MAX(end, seg[i].vaddr + seg[i].nr_mem_bytes);
	}
	if (base >= end)
		return false;
	*ret_base = base & ~(uint64_t)((1 << PAGE_SHIFT) - 1);
	*ret_end = MIN(end, *ret_base + SPAN_MAX);
	return true;
}

static void collect(struct builder *b, enum unwind_section which, uint64_t code_end)
{
	struct ehframe_iter *it = &b->iters[which];
	struct ehframe_fde fde;
	struct unwind_table *t = b->t;

	ehframe_start(it, &t->cfi[which]);
	while (ehframe_next(it, &fde)) {
		/* Linkers set FDEs of discarded sections to address 0. */
		if (fde.start < t->base || fde.start >= code_end || fde.start == fde.end ||
		    !elf_is_code(b->elf, fde.start))
			continue;
		vec_push(&b->refs,
			 (struct fde_ref){(uint32_t)(fde.start - t->base),
					  (uint32_t)(MIN(fde.end, code_end) - t->base),
					  (uint32_t)fde.offset |
						  (uint32_t)which << UNWIND_FDE_SECTION_SHIFT});
	}
	t->nr_bad += it->nr_bad;
}

/* Stable sort by start. */
static void refs_sort(struct fde_ref *p, size_t n)
{
	sort_records(p, n, sizeof(*p), UINT32_MAX);
}

static void emit(struct builder *b, uint32_t pc, uint32_t rule)
{
	if (b->rows.n && vec_last(&b->rows)->pc == pc) { /* replaces the last row */
		b->rows.n--;
		b->last_rule = b->rows.n ? vec_last(&b->rows)->rule : 0;
	}
	if (rule == b->last_rule && b->rows.n)
		return;
	if (UNLIKELY(b->rows.n >= ROWS_MAX)) {
		b->t->nr_bad++;
		return;
	}
	vec_push(&b->rows, (struct unwind_row){pc, rule});
	b->last_rule = rule;
}

/* Emits rows for code without any table. */
static void emit_code(struct builder *b, uint32_t from, uint32_t to)
{
	if (from >= to)
		return;
	emit(b, from, ROW_NONE);
	nocfi_scan(&b->gaps, b->elf, b->t->base + from, b->t->base + to);
	vec_foreach(g, &b->gaps.rules) {
		emit(b, (uint32_t)(g->start - b->t->base), g->rule);
		const struct nocfi_rule *next = g + 1;
		if (next == b->gaps.rules.p + b->gaps.rules.n || next->start != g->end)
			emit(b, (uint32_t)(g->end - b->t->base), ROW_NONE);
	}
}

/*
 * A Go function's frame: the return address is at the distance that the table says; where there is a
 * frame, the caller's frame pointer is below it.
 */
static void emit_go_function(struct builder *b, const struct gopclntab_function *f)
{
	/* The caller is found by the frame pointer, on the other stack. */
	static const struct unwind_special other_stack = {.cfa_kind = SPECIAL_CFA_REG,
							  .cfa_reg = ARCH_DWARF_FP,
							  .cfa_off = 16,
							  .fp_kind = SPECIAL_AT_REG,
							  .fp_reg = ARCH_DWARF_FP,
							  .ra_kind = SPECIAL_AT_REG,
							  .ra_reg = ARCH_DWARF_FP,
							  .ra_off = 8,
							  .flags = SPECIAL_OTHER_STACK};
	struct gopclntab_steps step = gopclntab_steps(b->go, f);
	uint32_t start = (uint32_t)(f->start - b->t->base);

	if (f->kind == GO_OUTERMOST) {
		emit(b, start, row_make(ROW_STOP, 0, 0));
		return;
	}
	if (f->kind == GO_SWITCHES_STACK) {
		emit(b, start, row_code_special(&b->coder, &other_stack));
		return;
	}
	emit(b, start, ROW_NONE);
	while (gopclntab_next(&step)) {
		uint64_t nr_bytes = (uint64_t)step.nr_bytes + 8;
		bool is_good = step.nr_bytes >= 0 && nr_bytes % 8 == 0 && nr_bytes < ROW_CFA_REACH;
		emit(b, (uint32_t)(step.start - b->t->base),
		     is_good ? row_make(ROW_SP, (uint32_t)nr_bytes,
					step.nr_bytes ? -2 : ROW_FP_SAME)
			     : ROW_NONE);
	}
}

/* Emits rows for the range between two FDEs: padding, Go's functions, or code without any table. */
static void emit_gap(struct builder *b, uint32_t from, uint32_t to)
{
	if (from >= to)
		return;
	if (b->rows.n && to - from <= GAP_MERGED_BYTES)
		return;
	for (size_t nr = b->go ? gopclntab_count(b->go) : 0; b->next_go < nr; b->next_go++) {
		struct gopclntab_function f;
		if (!gopclntab_function(b->go, b->next_go, &f) || f.start < b->t->base + from ||
		    f.kind == GO_RESTORER)
			continue;
		if (f.start >= b->t->base + to)
			break;
		f.end = MIN(f.end, b->t->base + to);
		emit_code(b, from, (uint32_t)(f.start - b->t->base));
		emit_go_function(b, &f);
		from = (uint32_t)(f.end - b->t->base);
	}
	emit_code(b, from, to);
}

static const struct cfi_rules *init_rules(struct builder *b, const struct ehframe_cie *cie,
					  uint32_t which)
{
	struct init_cache *c = &b->inits;
	uint64_t key = (cie->offset << 1 | which) + 1;
	size_t slot = (cie->offset ^ cie->offset >> 6) / 4 % NR_INITS;

	if (UNLIKELY(c->keys[slot] != key)) {
		c->keys[slot] = key;
		c->is_bad[slot] = !cfi_init_rules(cie, &c->rules[slot]);
	}
	return c->is_bad[slot] ? NULL : &c->rules[slot];
}

static void compile_fde(struct builder *b, const struct fde_ref *ref, uint32_t end)
{
	uint32_t which = ref->where >> UNWIND_FDE_SECTION_SHIFT;
	struct ehframe_iter *it = &b->iters[which];
	struct cfi_run *run = &b->run;
	struct ehframe_fde fde;

	it->offset = ref->where & ~(1u << UNWIND_FDE_SECTION_SHIFT);
	if (!ehframe_next(it, &fde))
		return;
	const struct cfi_rules *init = init_rules(b, fde.cie, which);
	if (!init) {
		b->t->nr_bad++;
		emit(b, ref->start, ROW_NONE);
		return;
	}
	cfi_start(run, &fde, init);
	run->fde_end = b->t->base + end;
	while (cfi_next(run))
		emit(b, (uint32_t)(run->start - b->t->base), row_code(&b->coder, &run->rules));
	if (run->is_bad) {
		b->t->nr_bad++;
		emit(b, (uint32_t)(run->start - b->t->base), ROW_NONE);
	}
}

static void compile(struct builder *b, uint64_t code_end)
{
	struct unwind_table *t = b->t;
	size_t nr = b->refs.n;

	t->fdes = xreallocarray(NULL, MAX(nr, 1), sizeof(*t->fdes));
	/* An FDE has about 60 bytes of instructions and gives about 10 rows. */
	vec_reserve(&b->rows, MIN(nr * 10, ROWS_MAX) + 16);
	for (size_t i = 0; i < nr; i++) {
		const struct fde_ref *ref = &b->refs.p[i];
		/* Where two FDEs overlap, the later start wins, as in a search in .eh_frame_hdr. */
		uint32_t end = i + 1 < nr ? MIN(ref->end, ref[1].start) : ref->end;
		if (end <= ref->start)
			continue;
		emit_gap(b, b->covered_to, ref->start);
		compile_fde(b, ref, end);
		t->fdes[t->nr_fdes++] = (struct unwind_fde){ref->start, ref->where};
		b->covered_to = end;
	}
	emit_gap(b, b->covered_to, (uint32_t)(code_end - t->base));
	if (b->rows.n && b->last_rule == ROW_NONE) {
		t->end = t->base + vec_last(&b->rows)->pc;
		b->rows.n--;
	} else {
		t->end = code_end;
	}
}

static void index_pages(struct unwind_table *t)
{
	t->nr_pages = (uint32_t)((t->end - t->base + (1 << PAGE_SHIFT) - 1) >> PAGE_SHIFT);
	t->pages = xreallocarray(NULL, (size_t)t->nr_pages + 1, sizeof(*t->pages));
	uint32_t row = 0;
	for (uint32_t i = 0; i < t->nr_pages; i++) {
		while (row < t->nr_rows && t->rows[row].pc < (uint64_t)i << PAGE_SHIFT)
			row++;
		t->pages[i] = row;
	}
	t->pages[t->nr_pages] = t->nr_rows;
}

static void keep_section(struct unwind_table *t, enum unwind_section which, uint8_t *bytes,
			 size_t n, uint64_t vaddr)
{
	t->cfi[which] = (struct ehframe_section){
		.p = bytes, .n = n, .vaddr = vaddr, .is_debug_frame = which == UNWIND_DEBUG_FRAME};
}

/* Reads into memory owned by the table, not through the image's cache: the section is large. */
static int read_eh_frame(struct unwind_table *t, struct elf *elf, uint64_t vaddr, uint64_t offset,
			 uint64_t nr_bytes, struct err *err)
{
	if (!nr_bytes || nr_bytes > CFI_MAX)
		return 0;
	CLEANUP(free_p) uint8_t *p = xmalloc(nr_bytes);
	if (elf_read(elf, p, nr_bytes, offset, err))
		return err_wrap(err, "reading .eh_frame");
	keep_section(t, UNWIND_EH_FRAME, TAKE(p), nr_bytes, vaddr);
	return 0;
}

/* Without section headers: .eh_frame is located by PT_GNU_EH_FRAME and ends with a terminator. */
static int find_by_segment(struct unwind_table *t, struct elf *elf, struct err *err)
{
	enum { SEGMENT_GNU_EH_FRAME = 0x6474e550, HDR_BYTES = 16 };
	size_t nr;
	const struct elf_segment *seg = elf_segments(elf, &nr);

	for (size_t i = 0; i < nr; i++) {
		char hdr[HDR_BYTES];
		uint64_t vaddr, offset;
		if (seg[i].type != SEGMENT_GNU_EH_FRAME || seg[i].nr_file_bytes < sizeof(hdr))
			continue;
		if (elf_read(elf, hdr, sizeof(hdr), seg[i].offset, err))
			return err->code;
		if (!ehframe_hdr_to_vaddr(sv_from(hdr, sizeof(hdr)), seg[i].vaddr, &vaddr) ||
		    !elf_offset_from_vaddr(elf, vaddr, &offset))
			return 0;
		for (size_t j = 0; j < nr; j++) {
			uint64_t skip = vaddr - seg[j].vaddr;
			if (seg[j].type != 1 || skip >= seg[j].nr_file_bytes)
				continue;
			uint64_t n = MIN(seg[j].nr_file_bytes - skip, CFI_MAX);
			int r = read_eh_frame(t, elf, vaddr, offset, n, err);
			t->cfi[UNWIND_EH_FRAME].is_terminated = true;
			return r;
		}
	}
	return 0;
}

static int find_sections(struct unwind_table *t, struct elf *elf, struct err *err)
{
	enum { SECTION_COMPRESSED = 0x800 };
	struct sv bytes;

	const struct elf_section *s = elf_section(elf, ".eh_frame");
	if (s && !(s->flags & SECTION_COMPRESSED)) {
		if (read_eh_frame(t, elf, s->vaddr, s->offset, s->nr_bytes, err))
			return err->code;
	} else if (find_by_segment(t, elf, err)) {
		return err->code;
	}
	/* .debug_frame is optional: if it is damaged, only .eh_frame is used. */
	if (elf_named_bytes(elf, ".debug_frame", &bytes, NULL) == 0 && bytes.n &&
	    bytes.n <= CFI_MAX)
		keep_section(t, UNWIND_DEBUG_FRAME, xmemdup(bytes.p, bytes.n), bytes.n, 0);
	return 0;
}

/* Removes FDEs of .debug_frame where .eh_frame has one. Both parts of refs are sorted. */
static void drop_covered(struct builder *b, size_t nr_eh)
{
	struct fde_ref *p = b->refs.p;
	size_t kept = nr_eh;

	for (size_t i = nr_eh, at = 0; i < b->refs.n; i++) {
		while (at < nr_eh && p[at].end <= p[i].start)
			at++;
		if (at == nr_eh || p[i].end <= p[at].start)
			p[kept++] = p[i];
	}
	b->refs.n = kept;
}

static void collect_all(struct builder *b, uint64_t code_end)
{
	collect(b, UNWIND_EH_FRAME, code_end);
	size_t nr_eh = b->refs.n;
	refs_sort(b->refs.p, nr_eh);
	/* Of Go's functions .debug_frame says less: not where the frame pointer is, nor what switches stacks. */
	if (!b->t->cfi[UNWIND_DEBUG_FRAME].n || b->go)
		return;
	collect(b, UNWIND_DEBUG_FRAME, code_end);
	if (b->refs.n == nr_eh)
		return;
	refs_sort(b->refs.p + nr_eh, b->refs.n - nr_eh);
	drop_covered(b, nr_eh);
	refs_sort(b->refs.p, b->refs.n);
}

/* Returns whether a quarter of the code or more has no FDE (a static musl binary, for example). */
static bool has_much_code_without_fde(const struct builder *b, uint64_t code_end)
{
	uint64_t nr_covered = 0;

	for (size_t i = 0; i < b->refs.n; i++)
		nr_covered += b->refs.p[i].end - b->refs.p[i].start;
	return nr_covered < (code_end - b->t->base) / 4 * 3;
}

static void finish(struct builder *b)
{
	struct unwind_table *t = b->t;

	t->nr_rows = (uint32_t)b->rows.n;
	t->rows = b->rows.p;
	b->rows.p = NULL;
	if (t->nr_rows)
		t->rows = xreallocarray(t->rows, t->nr_rows, sizeof(*t->rows));
	t->nr_specials = (uint32_t)b->coder.specials.n;
	t->specials = b->coder.specials.p;
	b->coder.specials.p = NULL;
	index_pages(t);
	t->nr_bytes = sizeof(*t) + t->nr_rows * sizeof(*t->rows) +
		      ((size_t)t->nr_pages + 1) * sizeof(*t->pages) +
		      t->nr_specials * sizeof(*t->specials) + t->nr_fdes * sizeof(*t->fdes) +
		      t->cfi[0].n + t->cfi[1].n;
}

static int build(struct unwind_table **ret_t, struct elf *elf, struct err *err)
{
	CLEANUP(builder_free_p) struct builder *b = xcalloc(1, sizeof(*b));
	uint64_t code_end;

	b->elf = elf;
	b->t = xcalloc(1, sizeof(*b->t));
	if (code_span(elf, &b->t->base, &code_end)) {
		if (find_sections(b->t, elf, err))
			return err->code;
		nocfi_init(&b->gaps, elf);
		b->go = gopclntab_open(elf);
		collect_all(b, code_end);
		b->gaps.has_cfi = b->refs.n > 0;
		if (!b->go && has_much_code_without_fde(b, code_end))
			nocfi_find_calls(&b->gaps, elf, b->t->base, code_end);
		compile(b, code_end);
	}
	finish(b);
	*ret_t = TAKE(b->t);
	return 0;
}

int unwind_table_build(struct unwind_table **ret_t, struct elf *elf, const char *cache_dir,
		       struct err *err)
{
	CLEANUP(err_release) struct err own_err = {0};

	if (elf_machine(elf) != ARCH_ELF_MACHINE)
		return err_set(err, -ENOTSUP, "cannot unwind a binary of another machine");
	struct file_identity from;
	bool is_cached = cache_dir && !elf_identity(elf, &from);
	if (is_cached && table_cache_load(ret_t, elf, cache_dir) == 0)
		return 0;
	if (build(ret_t, elf, &own_err))
		return err_move(err, &own_err);
	if (is_cached)
		table_cache_store(*ret_t, elf, &from, cache_dir);
	return 0;
}

void unwind_table_free(struct unwind_table *t)
{
	if (!t)
		return;
	if (t->mapping) {
		table_cache_unmap(t);
	} else {
		free(t->rows);
		free(t->pages);
		free(t->specials);
		free(t->fdes);
		for (size_t i = 0; i < UNWIND_NR_SECTIONS; i++)
			free((void *)(uintptr_t)t->cfi[i].p);
	}
	free(t);
}

const struct unwind_row *unwind_table_find(const struct unwind_table *t, uint64_t vaddr)
{
	if (vaddr < t->base || vaddr >= t->end || !t->nr_rows)
		return NULL;
	uint32_t pc = (uint32_t)(vaddr - t->base);
	uint32_t page = pc >> PAGE_SHIFT;
	/* The last row at or before pc: in its page, or the last one before the page. */
	uint32_t first = t->pages[page];
	size_t nr = first + upper_bound(t->rows + first, t->pages[page + 1] - first, pc, pc);
	return nr ? &t->rows[nr - 1] : NULL;
}

bool unwind_table_fde(const struct unwind_table *t, uint64_t vaddr, struct ehframe_fde *ret_fde,
		      struct ehframe_cie *ret_cie)
{
	if (vaddr < t->base || vaddr >= t->end)
		return false;
	uint32_t pc = (uint32_t)(vaddr - t->base);
	size_t nr = upper_bound(t->fdes, t->nr_fdes, pc, pc);
	if (!nr)
		return false;
	uint32_t where = t->fdes[nr - 1].where;
	return ehframe_fde_at(&t->cfi[where >> UNWIND_FDE_SECTION_SHIFT],
			      where & ~(1u << UNWIND_FDE_SECTION_SHIFT), ret_fde, ret_cie) &&
	       vaddr >= ret_fde->start && vaddr < ret_fde->end;
}
