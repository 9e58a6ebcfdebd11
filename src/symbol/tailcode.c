/*
 * Functions that a tail call removed from a stack; see tailcode.h.
 *
 * Functions are nodes of a graph whose edges are direct jumps to the start of another function. A
 * search from the called function looks for all paths to the function of the next frame. Each function
 * is scanned once.
 */
#include "base/base.h"
#include "symbol/tailcode.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "object/x86insn.h"
#include "symbol/plt.h"
#include "symbol/symtab.h"

#define FUNCTION_BYTES ((uint64_t)64 << 10)
#define JUMPS_MAX      64   /* of one function; more: not followed */
#define STEPS_MAX      1000 /* functions visited by one search */

struct jump {
	uint64_t from;
	uint64_t to;
};

struct function_code {
	uint64_t start;
	uint64_t end;
	uint32_t first_jump;
	uint32_t nr_jumps;
	bool has_unknown; /* an indirect jump, or code that was not understood */
};

struct tailcode {
	struct symbolizer *symbolizer;
	struct elf *elf;
	const struct symtab *functions; /* NULL: not opened yet */
	const struct symtab *plt;       /* PLT entries */
	struct got *got;                /* NULL: not read yet */
	struct map code_idx;            /* start -> index + 1 into codes */
	struct map name_idx;            /* hash of a name -> index + 1 into named */
	VEC(struct symtab_hit) named;   /* what symtab_find_name found; start 0: nothing */
	VEC(struct function_code) codes;
	VEC(struct jump) jumps;
};

struct tailcode *tailcode_new(struct symbolizer *s)
{
	struct tailcode *t = xcalloc(1, sizeof(*t));
	t->symbolizer = s;
	t->elf = symbolizer_elf(s);
	return t;
}

void tailcode_free(struct tailcode *t)
{
	if (!t)
		return;
	map_release(&t->code_idx);
	vec_release(&t->codes);
	map_release(&t->name_idx);
	vec_release(&t->named);
	vec_release(&t->jumps);
	got_free(t->got);
	free(t);
}

/* ---- code --------------------------------------------------------------------------------- */

/* Copies the code at a link-time address; false: not all of it is in the file. */
static bool read_code(struct tailcode *t, uint64_t vaddr, uint8_t *to, size_t n)
{
	uint64_t offset;
	return elf_is_code(t->elf, vaddr) && elf_offset_from_vaddr(t->elf, vaddr, &offset) &&
	       !elf_read(t->elf, to, n, offset, NULL);
}

static int64_t sign_extend(uint64_t v, unsigned nr_bits)
{
	return (int64_t)(v << (64 - nr_bits)) >> (64 - nr_bits);
}

/* What a slot of .got leads to: a function of the binary, or the slot itself (find_plt_entry); 0: unknown. */
static uint64_t slot_target(struct tailcode *t, uint64_t slot)
{
	uint64_t vaddr;
	struct sv name;
	if (!t->got)
		t->got = got_new(t->elf);
	if (!got_find(t->got, slot, &vaddr, &name))
		return 0;
	return vaddr ? vaddr : slot;
}

/* call rel32: e8; call *slot(%rip): ff 15. */
static uint64_t target_x86_64(struct tailcode *t, uint64_t return_vaddr)
{
	uint8_t code[6];
	int32_t disp;
	if (return_vaddr < 6 || !read_code(t, return_vaddr - 6, code, 6))
		return 0;
	memcpy(&disp, code + 2, sizeof(disp));
	uint64_t to = return_vaddr + (uint64_t)(int64_t)disp;
	if (code[1] == 0xe8)
		return to;
	return code[0] == 0xff && code[1] == 0x15 ? slot_target(t, to) : 0;
}

uint64_t tailcode_target(struct tailcode *t, uint64_t return_vaddr)
{
	if (elf_machine(t->elf) == ELF_MACHINE_X86_64)
		return target_x86_64(t, return_vaddr);
	uint8_t code[4];
	uint32_t insn;
	if (return_vaddr < 4 || !read_code(t, return_vaddr - 4, code, 4))
		return 0;
	memcpy(&insn, code, sizeof(insn));
	if ((insn & 0xfc000000) != 0x94000000)
		return 0;
	return return_vaddr - 4 + (uint64_t)(sign_extend(insn & 0x3ffffff, 26) * 4);
}

/* ---- functions ---------------------------------------------------------------------------- */

static void open_functions(struct tailcode *t)
{
	if (t->functions)
		return;
	t->functions = symbolizer_functions(t->symbolizer);
	t->plt = symbolizer_plt(t->symbolizer);
}

/* Name of the function that a PLT entry or a slot of .got leads to. */
static bool find_plt_entry(struct tailcode *t, uint64_t vaddr, struct sv *ret_name)
{
	struct symtab_hit hit;
	uint64_t local;
	if (t->got && got_find(t->got, vaddr, &local, ret_name))
		return !local;
	if (!symtab_find(t->plt, vaddr, &hit))
		return false;
	*ret_name = hit.name;
	if (sv_has_suffix(hit.name, SV("@plt")))
		ret_name->n -= 4;
	return true;
}

static void add_jump(struct tailcode *t, struct function_code *f, uint64_t from, uint64_t to)
{
	if (to >= f->start && to < f->end)
		return;
	for (uint32_t i = 0; i < f->nr_jumps; i++)
		if (t->jumps.p[f->first_jump + i].to == to) {
			t->jumps.p[f->first_jump + i].from = f->start; /* one of several */
			return;
		}
	if (f->nr_jumps < JUMPS_MAX) {
		vec_push(&t->jumps, (struct jump){from, to});
		f->nr_jumps++;
	} else {
		f->has_unknown = true;
	}
}

/* "add reg, reg; jmp *reg" with the same register: a jump table, whose entries are offsets. */
static bool is_table_jump(const struct x86_insn *jump, const struct x86_insn *before)
{
	bool is_add = before->map == 0 && (before->opcode == 0x01 || before->opcode == 0x03) &&
		      before->modrm >= 0xc0;
	if (!is_add || jump->modrm < 0xc0)
		return false;
	unsigned target = (jump->modrm & 7u) | (jump->rex & 1u) << 3;
	unsigned reg = before->opcode == 0x01 ? (before->modrm & 7u) | (before->rex & 1u) << 3
					      : (before->modrm >> 3 & 7u) | (before->rex & 4u) << 1;
	return target == reg;
}

static void add_indirect_jump(struct tailcode *t, struct function_code *f, uint64_t from,
			      const struct x86_insn *jump, const struct x86_insn *before)
{
	bool is_slot = (jump->modrm & 0xc7) == 5; /* slot(%rip) */
	uint64_t to =
		is_slot ? slot_target(t, from + jump->nr_bytes + (uint64_t)(int64_t)jump->disp) : 0;
	if (to)
		add_jump(t, f, from, to);
	else if (!is_table_jump(jump, before))
		f->has_unknown = true;
}

static void scan_x86_64(struct tailcode *t, struct function_code *f, const uint8_t *code, size_t n)
{
	struct x86_insn before = {0};
	struct x86_insn i;
	for (size_t at = 0; at < n; at += i.nr_bytes, before = i) {
		if (!x86_decode(code + at, n - at, &i)) {
			f->has_unknown = true;
			return;
		}
		bool is_conditional = (i.map == 0 && (i.opcode & 0xf0) == 0x70) ||
				      (i.map == 1 && (i.opcode & 0xf0) == 0x80);
		if (is_conditional || x86_is_jump(&i))
			add_jump(t, f, f->start + at, f->start + at + i.nr_bytes + (uint64_t)i.imm);
		else if (x86_is_indirect_jump(&i) && code[at] != 0x3e /* notrack: a jump table */)
			add_indirect_jump(t, f, f->start + at, &i, &before);
	}
}

/* b, b.cond, cbz, cbnz, tbz, tbnz; br reg. */
static void scan_arm64(struct tailcode *t, struct function_code *f, const uint8_t *code, size_t n)
{
	for (size_t at = 0; at + 4 <= n; at += 4) {
		uint32_t insn;
		uint64_t pc = f->start + at;
		memcpy(&insn, code + at, sizeof(insn));
		if ((insn & 0xfc000000) == 0x14000000)
			add_jump(t, f, pc, pc + (uint64_t)(sign_extend(insn & 0x3ffffff, 26) * 4));
		else if ((insn & 0xff000000) == 0x54000000 || (insn & 0x7e000000) == 0x34000000)
			add_jump(t, f, pc,
				 pc + (uint64_t)(sign_extend(insn >> 5 & 0x7ffff, 19) * 4));
		else if ((insn & 0x7e000000) == 0x36000000)
			add_jump(t, f, pc,
				 pc + (uint64_t)(sign_extend(insn >> 5 & 0x3fff, 14) * 4));
		else if ((insn & 0xfffffc1f) == 0xd61f0000)
			f->has_unknown = true;
	}
}

static void scan(struct tailcode *t, struct function_code *f)
{
	uint64_t n = f->end - f->start;
	f->first_jump = (uint32_t)t->jumps.n;
	CLEANUP(free_p) uint8_t *code = n <= FUNCTION_BYTES ? xmalloc((size_t)n + 1) : NULL;
	if (!code || !read_code(t, f->start, code, (size_t)n))
		f->has_unknown = true;
	else if (elf_machine(t->elf) == ELF_MACHINE_X86_64)
		scan_x86_64(t, f, code, (size_t)n);
	else
		scan_arm64(t, f, code, (size_t)n);
}

/* Index of the function that starts at the address; UINT32_MAX: no function with a symbol does. */
static uint32_t function_at(struct tailcode *t, uint64_t start)
{
	uint32_t *known = map_put(&t->code_idx, start, NULL);
	if (*known)
		return *known == UINT32_MAX ? UINT32_MAX : *known - 1;
	struct symtab_hit hit;
	if (!symtab_find(t->functions, start, &hit) || hit.start != start || hit.end <= start ||
	    !hit.has_size) {
		*known = UINT32_MAX;
		return UINT32_MAX;
	}
	struct function_code f = {.start = hit.start, .end = hit.end};
	scan(t, &f);
	vec_push(&t->codes, f);
	*known = (uint32_t)t->codes.n;
	return *known - 1;
}

/* ---- names -------------------------------------------------------------------------------- */

static struct sv name_at(const struct tailcode *t, uint64_t start)
{
	struct symtab_hit hit;
	return symtab_find(t->functions, start, &hit) && hit.start == start ? hit.name : SV("");
}

/* The name of the function that a fragment belongs to: without .cold, .part.0, .llvm.123. */
static struct sv whole_name(struct sv name)
{
	static const char *const suffixes[] = {".cold",  ".part.",     ".constprop.", ".isra.",
					       ".llvm.", ".lto_priv.", ".warm",       ".__uniq."};
	size_t end = name.n;
	for (size_t k = 0; k < ARRAY_LEN(suffixes); k++) {
		size_t n = strlen(suffixes[k]);
		for (size_t i = 1; i + n <= end; i++)
			if (!memcmp(name.p + i, suffixes[k], n))
				end = i;
	}
	name.n = end;
	return name;
}

static bool is_same_function(const struct tailcode *a, uint64_t a_start, const struct tailcode *b,
			     uint64_t b_start)
{
	if (a == b && a_start == b_start)
		return true;
	struct sv name = whole_name(name_at(a, a_start));
	return name.n && sv_eq(name, whole_name(name_at(b, b_start)));
}

/* Code that compilers and linkers add, which is not a function of the program. */
static bool is_added_code(struct sv name)
{
	static const char *const prefixes[] = {"OUTLINED_FUNCTION_",    "__x86_indirect_thunk",
					       "__x86_return_thunk",    "__llvm_retpoline",
					       "__AArch64AbsLongThunk", "__AArch64ADRPThunk",
					       "__llvm_slsblr_thunk"};
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (sv_has_prefix(name, sv_from_str(prefixes[i])))
			return true;
	return sv_has_suffix(name, SV("_veneer"));
}

/* ---- the search --------------------------------------------------------------------------- */

struct place {
	struct tailcode *in;
	uint64_t start;
	uint64_t jump; /* that left the function */
};

struct search {
	struct place goal;
	struct place path[TAIL_CHAIN_MAX];
	size_t nr_path;
	struct place found[TAIL_CHAIN_MAX];
	size_t nr_found_path;
	unsigned nr_found;
	unsigned nr_steps;
	bool is_unsure; /* a jump may lead anywhere, or the search was limited */
};

/* symtab_find_name, once per name. */
static bool find_by_name(struct tailcode *t, struct sv name, struct symtab_hit *ret_hit)
{
	bool is_new;
	uint32_t *idx = map_put(&t->name_idx, hash_bytes(name.p, name.n), &is_new);
	if (is_new) {
		struct symtab_hit hit = {0};
		if (!symtab_find_name(t->functions, name, &hit))
			hit.start = 0;
		vec_push(&t->named, hit);
		*idx = (uint32_t)t->named.n;
	}
	*ret_hit = t->named.p[*idx - 1];
	return ret_hit->start != 0;
}

/*
 * Finds the function of that name where the dynamic linker would: in the goal's binary, or in the one
 * that jumps. False: neither has it, or it has several.
 */
static bool find_named(const struct search *s, struct tailcode *from, struct sv name,
		       struct place *ret_to)
{
	struct symtab_hit hit;
	if (symtab_has_alias(s->goal.in->functions, s->goal.start, name)) {
		*ret_to = (struct place){.in = s->goal.in, .start = s->goal.start};
		return true;
	}
	struct tailcode *in = s->goal.in;
	if (!find_by_name(in, name, &hit)) {
		in = from;
		if (in == s->goal.in || !find_by_name(in, name, &hit))
			return false;
	}
	*ret_to = (struct place){.in = in, .start = hit.start};
	return true;
}

static bool is_place(const struct place *a, const struct place *b)
{
	return a->in == b->in && a->start == b->start;
}

static void keep_path(struct search *s)
{
	if (!s->nr_found++) {
		memcpy(s->found, s->path, sizeof(s->found));
		s->nr_found_path = s->nr_path;
	}
}

static void visit(struct search *s, struct place at);

static void follow(struct search *s, struct place at, const struct jump *jump)
{
	struct place to = {.in = at.in, .start = jump->to};
	struct sv plt_name;
	s->path[s->nr_path - 1].jump = jump->from;
	if (find_plt_entry(at.in, jump->to, &plt_name)) {
		if (!find_named(s, at.in, plt_name, &to)) {
			s->is_unsure = true;
			return;
		}
	} else if (!is_place(&to, &s->goal) && function_at(at.in, jump->to) == UINT32_MAX) {
		struct symtab_hit hit;
		s->is_unsure |= !symtab_find(at.in->functions, jump->to, &hit);
		return; /* into the middle of a function: not a call */
	}
	if (is_place(&to, &s->goal)) {
		keep_path(s);
		return;
	}
	for (size_t i = 0; i < s->nr_path; i++)
		if (is_place(&to, &s->path[i]))
			return; /* a loop: what is on the only path without one is on all paths */
	visit(s, to);
}

/* Recursive with follow(), at most TAIL_CHAIN_MAX deep. */
static void visit(struct search *s, struct place at)
{
	uint32_t idx = function_at(at.in, at.start);
	if (idx == UINT32_MAX || s->nr_path == TAIL_CHAIN_MAX || ++s->nr_steps > STEPS_MAX) {
		s->is_unsure = true;
		return;
	}
	s->path[s->nr_path++] = at;
	struct function_code f = at.in->codes.p[idx];
	s->is_unsure |= f.has_unknown;
	for (uint32_t i = 0; i < f.nr_jumps; i++) {
		struct jump jump = at.in->jumps.p[f.first_jump + i];
		follow(s, at, &jump);
	}
	s->nr_path--;
}

/* Removes fragments of a function that follow it, and the goal's own ones. Returns how many are left. */
static size_t whole_functions(const struct search *s, struct place *path, size_t nr)
{
	size_t n = 0;
	for (size_t i = 0; i < nr; i++) {
		if (n &&
		    is_same_function(path[n - 1].in, path[n - 1].start, path[i].in, path[i].start))
			path[n - 1].jump = path[n - 1].start;
		else
			path[n++] = path[i];
	}
	while (n && is_same_function(path[n - 1].in, path[n - 1].start, s->goal.in, s->goal.start))
		n--;
	return n;
}

/* The function that a call enters: itself, or what a PLT entry leads to. */
static bool find_entered(const struct search *s, struct tailcode *caller, uint64_t target,
			 struct place *ret_to, bool *ret_is_plt)
{
	struct sv plt_name;
	*ret_to = (struct place){.in = caller, .start = target};
	*ret_is_plt = find_plt_entry(caller, target, &plt_name);
	return *ret_is_plt ? find_named(s, caller, plt_name, ret_to)
			   : function_at(caller, target) != UINT32_MAX;
}

size_t tailcode_hidden(struct tailcode *caller, uint64_t target, struct tailcode *callee,
		       uint64_t start, struct tail_function ret_chain[TAIL_CHAIN_MAX])
{
	open_functions(caller);
	open_functions(callee);
	struct search s = {.goal = {.in = callee, .start = start}};
	struct place entered;
	bool is_plt;
	if (!name_at(callee, start).n || !find_entered(&s, caller, target, &entered, &is_plt) ||
	    is_same_function(entered.in, entered.start, callee, start) ||
	    is_added_code(name_at(entered.in, entered.start)))
		return 0;
	visit(&s, entered);
	if (!s.nr_found && (is_plt || !s.is_unsure))
		return 0;
	bool is_sure = s.nr_found == 1 && !s.is_unsure;
	struct place *path = is_sure ? s.found : &entered;
	size_t nr = whole_functions(&s, path, is_sure ? s.nr_found_path : 1);
	size_t n = 0;
	for (size_t i = 0; i < nr; i++)
		if (!is_added_code(name_at(path[i].in, path[i].start)))
			ret_chain[n++] = (struct tail_function){
				path[i].in, path[i].jump ? path[i].jump : path[i].start};
	return n;
}
