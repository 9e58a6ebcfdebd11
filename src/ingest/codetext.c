/* Disassembles functions of a profile; see codetext.h. */
#include "base/base.h"
#include "ingest/codetext.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "ingest/modules.h"
#include "object/disasm.h"
#include "object/ehframe.h"
#include "symbol/demangle.h"
#include "symbol/symbolizer.h"

/* One binary, opened once for all of its functions. */
struct binary {
	module_id module;
	struct ingest_module *im; /* NULL: the module has no code */
	struct debug_search search;
	struct symbolizer *symbolizer; /* NULL: no file */
	struct disasm *disasm;
	const char *missing;
};

struct reader {
	struct arena *a;
	const struct profile *p;
	struct modules modules;
	VEC(struct binary *) binaries;
};

struct extent {
	uint64_t start; /* link-time */
	uint64_t end;
};

static const char *missing_of(struct reader *r, const struct ingest_module *im)
{
	const char *path = im ? im->path : "";
	switch (im ? im->kind : MODULE_NONE) {
	case MODULE_KERNEL:
	case MODULE_KMODULE:
		return "kernel code is in no file that assay reads";
	case MODULE_JIT:
		return "JIT code is in no file: a recording does not have its bytes";
	case MODULE_ELF:
		break;
	case MODULE_VDSO:
		return "the vDSO is in no file";
	case MODULE_NONE:
	case MODULE_UNKNOWN:
	case MODULE_PSEUDO:
	case MODULE_NAMED:
		return "its binary is not known";
	}
	if (profile_get_fact(r->p, FACT_REDACTED))
		return "paths of binaries were removed (--redact)";
	switch (im->missing) {
	case MODULE_CHANGED:
		return arena_fmt(r->a, "'%s' is another build now than in the recording", path);
	case MODULE_LOADING:
	case MODULE_SILENT:
		return arena_fmt(r->a, "'%s' did not answer in time", path);
	case MODULE_NOT_FOUND:
	case MODULE_FOUND:
		break;
	}
	return arena_fmt(r->a, "'%s' is not on this machine, or may not be read", path);
}

static void open_binary(struct reader *r, struct binary *b)
{
	CLEANUP(err_release) struct err err = {0};
	b->im = modules_restore_one(&r->modules, b->module);
	if (!b->im || !b->im->elf) {
		b->missing = missing_of(r, b->im);
		return;
	}
	if (disasm_new(&b->disasm, elf_machine(b->im->elf), &err)) {
		b->missing = arena_strdup(r->a, err_msg(&err));
		return;
	}
	b->search = (struct debug_search){.open = r->modules.files->open_path, .root_fd = -1};
	b->symbolizer =
		symbolizer_new(TAKE(b->im->elf), b->im->path, b->search.open ? &b->search : NULL,
			       SYMBOLIZER_NO_INLINES | SYMBOLIZER_NO_LINES | SYMBOLIZER_NO_DWARF);
}

static struct binary *binary_of(struct reader *r, module_id module)
{
	vec_foreach(b, &r->binaries)
		if ((*b)->module == module)
			return *b;
	struct binary *b = xcalloc(1, sizeof(*b));
	b->module = module;
	vec_push(&r->binaries, b);
	open_binary(r, b);
	return b;
}

static void reader_release(struct reader *r)
{
	vec_foreach(b, &r->binaries) {
		symbolizer_free((*b)->symbolizer);
		disasm_free((*b)->disasm);
		free(*b);
	}
	vec_release(&r->binaries);
	modules_release(&r->modules);
}

/* ---- where a function is ------------------------------------------------------------------- */

static bool find_by_unwind_table(const struct binary *b, uint64_t vaddr, struct extent *ret)
{
	struct ehframe_iter it;
	struct ehframe_fde fde;
	if (!ehframe_start_elf(&it, symbolizer_elf(b->symbolizer), ".eh_frame"))
		return false;
	while (ehframe_next(&it, &fde))
		if (fde.start <= vaddr && vaddr < fde.end) {
			*ret = (struct extent){fde.start, fde.end};
			return true;
		}
	return false;
}

static bool find_extent(const struct binary *b, uint64_t vaddr, struct extent *ret)
{
	struct symtab_hit hit;
	if (symtab_find(symbolizer_functions(b->symbolizer), vaddr, &hit) && hit.has_size)
		*ret = (struct extent){hit.start, hit.end};
	else if (!find_by_unwind_table(b, vaddr, ret))
		return false;
	return ret->end > ret->start;
}

/* Returns the code's bytes, or NULL: they are not in the file. */
static uint8_t *read_bytes(struct arena *a, const struct binary *b, const struct extent *at,
			   uint64_t *ret_offset)
{
	struct elf *elf = symbolizer_elf(b->symbolizer);
	size_t n = (size_t)(at->end - at->start);
	if (!elf_is_code(elf, at->start) || !elf_offset_from_vaddr(elf, at->start, ret_offset))
		return NULL;
	uint8_t *bytes = arena_alloc(a, n);
	return elf_read(elf, bytes, n, *ret_offset, NULL) ? NULL : bytes;
}

/* ---- targets of calls ---------------------------------------------------------------------- */

struct targets {
	VEC(uint64_t) vaddrs;
	VEC(size_t) insns; /* of each address: index in the function's instructions */
	struct arena *a;
	struct code_function *f;
};

static void name_target(void *ctx, size_t query, const struct symbol_frame *frames, size_t nr,
			enum symbol_source source)
{
	struct targets *t = ctx;
	const struct symbol_frame *f = &frames[nr - 1];
	if (source == SYMBOL_NONE || !f->linkage.n)
		return;
	CLEANUP(buf_release) struct buf name = {0};
	struct code_insn *insn = &t->f->insns[t->insns.p[query]];
	demangle(&name, f->linkage, 0);
	insn->text = f->func_start && f->func_start < t->vaddrs.p[query]
			     ? arena_fmt(t->a, "%s <%s+0x%" PRIx64 ">", insn->text, buf_str(&name),
					 t->vaddrs.p[query] - f->func_start)
			     : arena_fmt(t->a, "%s <%s>", insn->text, buf_str(&name));
}

/* ---- text ---------------------------------------------------------------------------------- */

static void add_insn(struct arena *a, struct code_function *f, const struct disasm_insn *i,
		     uint64_t offset)
{
	f->insns[f->nr_insns++] = (struct code_insn){
		.offset = offset,
		.vaddr = i->vaddr,
		.text = *i->operands ? arena_fmt(a, "%-6s %s", i->mnemonic, i->operands)
				     : arena_strdup(a, i->mnemonic)};
}

static void disassemble(struct reader *r, struct binary *b, struct code_function *f,
			const struct extent *at, const uint8_t *bytes, uint64_t offset)
{
	struct targets targets = {.a = r->a, .f = f};
	struct disasm_insn i;
	size_t n = (size_t)(at->end - at->start);
	f->insns = arena_calloc(r->a, n, sizeof(*f->insns));
	for (size_t k = 0; disasm_next(b->disasm, bytes + k, n - k, at->start + k, &i);
	     k += i.nr_bytes) {
		bool is_outside = i.target && (i.target < at->start || i.target >= at->end);
		if (is_outside) {
			vec_push(&targets.vaddrs, i.target);
			vec_push(&targets.insns, f->nr_insns);
		}
		add_insn(r->a, f, &i, offset + k);
	}
	if (targets.vaddrs.n) /* without names, the addresses remain */
		(void)symbolizer_query(b->symbolizer, targets.vaddrs.p, targets.vaddrs.n,
				       name_target, &targets, NULL);
	vec_release(&targets.vaddrs);
	vec_release(&targets.insns);
}

static void read_function(struct reader *r, struct code_function *f)
{
	struct binary *b = binary_of(r, f->module);
	struct extent at;
	uint64_t offset;
	f->missing = b->missing;
	if (!b->symbolizer)
		return;
	if (!find_extent(b, module_vaddr(b->im, f->offsets[0]), &at)) {
		f->missing = "no symbol and no unwind table says where it begins and ends";
		return;
	}
	at.end = MIN(at.end, at.start + CODETEXT_BYTES_MAX);
	const uint8_t *bytes = read_bytes(r->a, b, &at, &offset);
	if (bytes)
		disassemble(r, b, f, &at, bytes, offset);
	else
		f->missing = "its code is not in the file";
}

void codetext_read(struct arena *a, const struct profile *p, const struct file_access *files,
		   struct code_function *f, size_t n)
{
	/* The profile is sealed; restored modules only read it. */
	struct reader r = {.a = a, .p = p, .modules = {.p = (struct profile *)p, .files = files}};
	for (size_t i = 0; i < n; i++)
		read_function(&r, &f[i]);
	reader_release(&r);
}
