/* Finds jemalloc without symbols; see allocstrip.h. */
#include "base/base.h"
#include "plan/allocstrip.h"

#include <elf.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sv.h"
#include "base/vec.h"
#include "object/ehframe.h"
#include "object/x86insn.h"

#define NODE_WORDS     5 /* named, name, number of children, children, function */
#define DATA_BYTES_MAX ((uint64_t)64 << 20)
#define NEAR_BYTES     ((uint64_t)2 << 20) /* jemalloc's code is contiguous */
#define INDEXES_MAX    2048
#define TREE_BYTES     ((uint64_t)64 << 10)
#define CHILDREN_MAX   64
#define CALLS_MIN      20  /* stats.c calls mallctl more often than this */
#define OUTLIERS       100 /* fraction 1/100 ignored at either end */
#define ROUNDS_MAX     64

struct data { /* a writable section as it is after relocation, addresses link-time */
	uint64_t vaddr;
	uint64_t *words;
	size_t nr_words;
};

struct function {
	uint64_t start;
	uint64_t end;
	bool is_own;
	bool is_called; /* called, not only jumped to as cold parts are */
	bool has_names; /* searches a dot, as in "stats.allocated", or calls a function that does */
	bool has_node_call; /* calls by a register, as the function of a node of the tree */
};

struct edge { /* a direct call or jump to a function's start */
	uint32_t to;
	uint32_t from;
	bool is_call;
};

struct stripped {
	struct elf *e;
	VEC(struct data) data;
	VEC(struct edge) edges;         /* by callee */
	VEC(struct function) functions; /* near version_ctl, by address */
	uint64_t code_vaddr;            /* start of `code` */
	struct buf code;
	uint64_t root;
	uint64_t version_ctl;
};

static void stripped_release(struct stripped *s)
{
	vec_foreach(d, &s->data)
		free(d->words);
	vec_release(&s->data);
	vec_release(&s->functions);
	vec_release(&s->edges);
	buf_release(&s->code);
}

/* ---- data, relocated ----------------------------------------------------------------------- */

static void put_word(struct stripped *s, uint64_t vaddr, uint64_t value)
{
	vec_foreach(d, &s->data)
		if (vaddr >= d->vaddr && (vaddr - d->vaddr) / 8 < d->nr_words &&
		    !((vaddr - d->vaddr) & 7))
			d->words[(vaddr - d->vaddr) / 8] = value;
}

static void relocate(struct stripped *s)
{
	size_t nr;
	const struct elf_section *sections = elf_sections(s->e, &nr);
	for (size_t i = 0; i < nr; i++) {
		if (sections[i].type != SHT_RELA || sections[i].nr_bytes > DATA_BYTES_MAX)
			continue;
		CLEANUP(buf_release) struct buf bytes = {0};
		if (elf_section_read(s->e, &sections[i], &bytes, NULL))
			continue;
		for (size_t at = 0; at + sizeof(Elf64_Rela) <= bytes.n; at += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			memcpy(&r, bytes.p + at, sizeof(r));
			if (ELF64_R_TYPE(r.r_info) == R_X86_64_RELATIVE)
				put_word(s, r.r_offset, (uint64_t)r.r_addend);
		}
	}
	/* SHT_RELR needs no work: its addends are in place. */
}

static void read_data(struct stripped *s)
{
	size_t nr;
	const struct elf_section *sections = elf_sections(s->e, &nr);
	for (size_t i = 0; i < nr; i++) {
		const struct elf_section *c = &sections[i];
		bool is_data = c->type == SHT_PROGBITS && (c->flags & SHF_ALLOC) &&
			       !(c->flags & SHF_EXECINSTR) && sv_has_prefix(c->name, SV(".data"));
		bool is_constant = sv_has_prefix(c->name, SV(".rodata")) && elf_is_executable(s->e);
		if ((!is_data && !is_constant) || c->nr_bytes < 8 || c->nr_bytes > DATA_BYTES_MAX ||
		    c->vaddr & 7)
			continue;
		CLEANUP(buf_release) struct buf bytes = {0};
		if (elf_section_read(s->e, c, &bytes, NULL) || bytes.n < 8)
			continue;
		struct data d = {.vaddr = c->vaddr, .nr_words = bytes.n / 8};
		d.words = xmemdup(bytes.p, d.nr_words * 8);
		vec_push(&s->data, d);
	}
	relocate(s);
}

static bool is_text_at(const struct elf *e, uint64_t vaddr, const char *text)
{
	char got[32];
	size_t n = strlen(text) + 1;
	uint64_t offset;
	ASSERT(n <= sizeof(got));
	return vaddr && elf_offset_from_vaddr(e, vaddr, &offset) &&
	       !elf_read(e, got, n, offset, NULL) && !memcmp(got, text, n);
}

/* ---- the tree ------------------------------------------------------------------------------ */

static bool is_node(const uint64_t *w)
{
	return w[0] == 1 && w[1] && w[2] <= CHILDREN_MAX;
}

static bool find_root(struct stripped *s)
{
	vec_foreach(d, &s->data) {
		for (size_t i = 0; i + 2 * NODE_WORDS <= d->nr_words; i++) {
			const uint64_t *w = d->words + i;
			const uint64_t *next = w + NODE_WORDS;
			if (!is_node(w) || w[2] || w[3] || !w[4] || !is_node(next) || !next[4] ||
			    !is_text_at(s->e, w[1], "version") ||
			    !is_text_at(s->e, next[1], "epoch"))
				continue;
			s->root = d->vaddr + i * 8;
			s->version_ctl = w[4];
			return true;
		}
	}
	return false;
}

static uint64_t find_super_root(const struct stripped *s)
{
	vec_foreach(d, &s->data)
		for (size_t i = 0; i + NODE_WORDS <= d->nr_words; i++)
			if (is_node(d->words + i) && d->words[i + 2] > 4 &&
			    d->words[i + 3] == s->root && !d->words[i + 4])
				return d->vaddr + i * 8;
	return 0;
}

/* ---- code ---------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	const struct function *x = a;
	const struct function *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static bool read_code(struct stripped *s)
{
	size_t nr;
	const struct elf_segment *seg = elf_segments(s->e, &nr);
	for (size_t i = 0; i < nr; i++) {
		uint64_t lo = seg[i].vaddr;
		uint64_t hi = lo + seg[i].nr_file_bytes;
		if (seg[i].type != PT_LOAD || !(seg[i].flags & PF_X) || hi < lo ||
		    s->version_ctl < lo || s->version_ctl >= hi)
			continue;
		uint64_t start = MAX(lo, s->version_ctl - MIN(NEAR_BYTES, s->version_ctl));
		uint64_t end = MIN(hi, s->version_ctl + NEAR_BYTES);
		size_t n = (size_t)(end - start);
		char *to = buf_reserve(&s->code, n);
		if (elf_read(s->e, to, n, seg[i].offset + (start - lo), NULL))
			return false;
		s->code.n = n;
		s->code_vaddr = start;
		return true;
	}
	return false;
}

/* Removes overlapping functions, so that each byte of code is scanned once. */
static void drop_overlaps(struct stripped *s)
{
	uint64_t end = 0;
	size_t n = 0;
	vec_foreach(f, &s->functions) {
		if (f->start < end)
			continue;
		end = f->end;
		s->functions.p[n++] = *f;
	}
	s->functions.n = n;
}

static bool read_functions(struct stripped *s)
{
	struct ehframe_iter it;
	struct ehframe_fde fde;
	uint64_t end = s->code_vaddr + s->code.n;
	if (!ehframe_start_elf(&it, s->e, ".eh_frame"))
		return false;
	while (ehframe_next(&it, &fde))
		if (fde.start >= s->code_vaddr && fde.end <= end && fde.start < fde.end)
			vec_push(&s->functions,
				 (struct function){.start = fde.start, .end = fde.end});
	if (s->functions.n)
		qsort(s->functions.p, s->functions.n, sizeof(*s->functions.p), by_start);
	drop_overlaps(s);
	return s->functions.n > 0;
}

static struct function *function_at(const struct stripped *s, uint64_t vaddr)
{
	size_t nr = upper_bound(s->functions.p, s->functions.n, start, vaddr);
	if (!nr || vaddr >= s->functions.p[nr - 1].end)
		return NULL;
	return &s->functions.p[nr - 1];
}

static const uint8_t *code_at(const struct stripped *s, uint64_t vaddr)
{
	return (const uint8_t *)s->code.p + (vaddr - s->code_vaddr);
}

/* The target of the direct call or jump at @at; false: no such instruction. */
static bool target_of(const struct stripped *s, uint64_t at, uint64_t end, uint64_t *ret_to)
{
	const uint8_t *p = code_at(s, at);
	int32_t by;
	if (end - at < 5 || (*p != 0xe8 && *p != 0xe9))
		return false;
	memcpy(&by, p + 1, sizeof(by));
	*ret_to = at + 5 + (uint64_t)(int64_t)by;
	return true;
}

/* lea addr(%rip), reg; in programs with a fixed address also mov $addr, reg. */
static bool refers_to(const struct stripped *s, uint64_t at, uint64_t end, uint64_t addr)
{
	const uint8_t *p = code_at(s, at);
	int32_t by;
	if (end - at >= 7 && (p[0] & 0xf8) == 0x48 && p[1] == 0x8d && (p[2] & 0xc7) == 0x05) {
		memcpy(&by, p + 3, sizeof(by));
		return at + 7 + (uint64_t)(int64_t)by == addr;
	}
	if (end - at < 5 || (p[0] & 0xf8) != 0xb8 || !elf_is_executable(s->e))
		return false;
	memcpy(&by, p + 1, sizeof(by));
	return (uint64_t)(uint32_t)by == addr;
}

static int by_callee(const void *a, const void *b)
{
	const struct edge *x = a;
	const struct edge *y = b;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static void find_edges(struct stripped *s)
{
	for (size_t i = 0; i < s->functions.n; i++) {
		const struct function *f = &s->functions.p[i];
		uint64_t target;
		for (uint64_t at = f->start; at < f->end; at++) {
			if (!target_of(s, at, f->end, &target) || target < s->code_vaddr)
				continue;
			const struct function *to = function_at(s, target);
			if (to && to->start == target && to != f)
				vec_push(&s->edges,
					 (struct edge){(uint32_t)(to - s->functions.p), (uint32_t)i,
						       *code_at(s, at) == 0xe8});
		}
	}
	if (s->edges.n)
		qsort(s->edges.p, s->edges.n, sizeof(*s->edges.p), by_callee);
}

/* The edges to a function: [*ret, *ret + n). */
static size_t edges_to(const struct stripped *s, uint32_t to, const struct edge **ret)
{
	size_t first = lower_bound(s->edges.p, s->edges.n, to, to);
	size_t n = 0;
	while (first + n < s->edges.n && s->edges.p[first + n].to == to)
		n++;
	*ret = n ? s->edges.p + first : NULL;
	return n;
}

struct indexes {
	VEC(uint32_t) v;
};

/* The limit bounds the time for a hostile binary; no jemalloc has as many callers. */
static void add_index(struct indexes *l, uint32_t i)
{
	vec_foreach(x, &l->v)
		if (*x == i)
			return;
	if (l->v.n < INDEXES_MAX)
		vec_push(&l->v, i);
}

/* Adds the callers of a function, each once. */
static void add_callers(const struct stripped *s, uint32_t to, struct indexes *l)
{
	const struct edge *e;
	size_t n = edges_to(s, to, &e);
	for (size_t i = 0; i < n; i++)
		add_index(l, e[i].from);
}

/* Whether a function searches for '.': mov $0x2e, %esi for strchr. */
static bool has_dot(const struct stripped *s, const struct function *f)
{
	static const char code[] = {(char)0xbe, 0x2e, 0, 0, 0};
	return memmem(code_at(s, f->start), (size_t)(f->end - f->start), code, sizeof(code));
}

/* call *%reg or jmp *%reg */
static bool has_register_call(const struct stripped *s, const struct function *f)
{
	const uint8_t *p = code_at(s, f->start);
	size_t n = (size_t)(f->end - f->start);
	for (size_t i = 0; i + 1 < n; i++)
		if (p[i] == 0xff && ((p[i + 1] & 0xf8) == 0xd0 || (p[i + 1] & 0xf8) == 0xe0))
			return true;
	return false;
}

static void classify(const struct stripped *s)
{
	CLEANUP(free_p) bool *dots = xcalloc(s->functions.n + 1, sizeof(*dots));
	for (size_t i = 0; i < s->functions.n; i++) {
		dots[i] = has_dot(s, &s->functions.p[i]);
		s->functions.p[i].has_names = dots[i];
		s->functions.p[i].has_node_call = has_register_call(s, &s->functions.p[i]);
	}
	vec_foreach(e, &s->edges)
		s->functions.p[e->from].has_names |= dots[e->to];
}

/*
 * Among functions that are the only caller of one of @inner: the one with the most calls. ctl_byname
 * looks a name up and calls the function of its node; ctl_nametomib only does the one, ctl_bymib the
 * other.
 */
static bool best_caller(const struct stripped *s, const struct indexes *inner, uint32_t *ret_idx)
{
	size_t most = CALLS_MIN - 1;
	bool is_found = false;
	vec_foreach(f, &inner->v) {
		CLEANUP(vec_free_p) struct indexes outer = {0};
		const struct function *by_name = &s->functions.p[*f];
		if (!by_name->has_names || !by_name->has_node_call)
			continue;
		add_callers(s, *f, &outer);
		if (outer.v.n != 1) /* ctl_byname has one: mallctl */
			continue;
		const struct edge *calls;
		size_t nr = edges_to(s, outer.v.p[0], &calls);
		if (nr <= most)
			continue;
		most = nr;
		*ret_idx = outer.v.p[0];
		is_found = true;
	}
	return is_found;
}

static bool find_mallctl(const struct stripped *s, uint64_t super_root, uint32_t *ret_idx)
{
	CLEANUP(vec_free_p) struct indexes by_name = {0};
	classify(s);
	for (size_t i = 0; i < s->functions.n; i++) {
		const struct function *f = &s->functions.p[i];
		for (uint64_t at = f->start; at < f->end; at++)
			if (refers_to(s, at, f->end, super_root))
				add_index(&by_name, (uint32_t)i);
	}
	if (best_caller(s, &by_name, ret_idx))
		return true;
	/* 5.2 and before: ctl_lookup refers to it, called by ctl_byname and ctl_nametomib. */
	CLEANUP(vec_free_p) struct indexes middle = {0};
	vec_foreach(f, &by_name.v)
		add_callers(s, *f, &middle);
	return best_caller(s, &middle, ret_idx);
}

/* ---- all of its code ----------------------------------------------------------------------- */

/* A function with syscall instructions belongs to the C library, not to jemalloc. */
static bool makes_syscalls(const struct stripped *s, const struct function *f)
{
	const uint8_t *p = code_at(s, f->start);
	size_t n = (size_t)(f->end - f->start);
	struct x86_insn insn;
	if (!memmem(p, n, "\x0f\x05", 2)) /* else it may be a part of another instruction */
		return false;
	for (size_t i = 0; i < n; i += insn.nr_bytes)
		if (!x86_decode(p + i, n - i, &insn) || (insn.map == 1 && insn.opcode == 0x05))
			return true;
	return false;
}

static bool mark_own(const struct stripped *s, uint64_t start)
{
	struct function *f = function_at(s, start);
	if (!f || f->start != start || f->is_own || makes_syscalls(s, f))
		return false;
	f->is_own = true;
	return true;
}

/* A leaf node of the tree: a name and a function. */
static bool is_named_node(const struct stripped *s, const uint64_t *w)
{
	char name[4] = "";
	uint64_t offset;
	return is_node(w) && w[4] && !w[3] && !w[2] && elf_offset_from_vaddr(s->e, w[1], &offset) &&
	       !elf_read(s->e, name, 2, offset, NULL) && name[0] >= 'a' && name[0] <= 'z';
}

/* Marks the functions reachable by direct calls from mallctl and the functions of the tree. */
static void mark_reached(const struct stripped *s, uint32_t mallctl)
{
	s->functions.p[mallctl].is_own = true;
	vec_foreach(d, &s->data) {
		for (size_t i = 0; i + NODE_WORDS <= d->nr_words; i++) {
			uint64_t at = d->vaddr + i * 8;
			if (at + TREE_BYTES > s->root && at < s->root + TREE_BYTES &&
			    is_named_node(s, d->words + i))
				(void)mark_own(s, d->words[i + 4]);
		}
	}
	bool is_new = true;
	for (int round = 0; is_new && round < ROUNDS_MAX; round++) {
		is_new = false;
		vec_foreach(e, &s->edges)
			if (s->functions.p[e->from].is_own) {
				is_new |= mark_own(s, s->functions.p[e->to].start);
				s->functions.p[e->to].is_called |= e->is_call;
			}
	}
}

/* Whether linkers keep the function in object order: cold functions are moved, unaligned. */
static bool is_hot(const struct function *f)
{
	return f->is_own && f->is_called && !(f->start & 15);
}

/*
 * The functions around mallctl up to the nearest one with syscall instructions on each side: in a static
 * program the C library begins there. Before _start linkers put the cold parts of all objects, and main.
 */
static void find_window(const struct stripped *s, uint32_t mallctl, size_t *ret_from,
			size_t *ret_to)
{
	uint64_t entry = elf_entry(s->e);
	size_t from = mallctl;
	size_t to = mallctl + 1;
	while (from > 0 && s->functions.p[from - 1].start != entry &&
	       !makes_syscalls(s, &s->functions.p[from - 1]))
		from--;
	while (to < s->functions.n && !makes_syscalls(s, &s->functions.p[to]))
		to++;
	*ret_from = from;
	*ret_to = to;
}

/*
 * Objects of an archive are linked contiguously, so all code between the functions found so far is
 * jemalloc's, too (including malloc and free, which jemalloc does not call). Outliers are ignored.
 */
static void add_between(struct allocfind *to, const struct stripped *s, uint32_t mallctl)
{
	size_t from;
	size_t end;
	size_t nr = 0;
	find_window(s, mallctl, &from, &end);
	for (size_t i = from; i < end; i++)
		nr += is_hot(&s->functions.p[i]);
	struct heap_range all = {0, 0};
	size_t n = 0;
	for (size_t i = from; i < end; i++) {
		const struct function *f = &s->functions.p[i];
		if (!is_hot(f))
			continue;
		if (n == nr / OUTLIERS)
			all.start = f->start;
		if (n == nr - 1 - nr / OUTLIERS)
			all.end = f->end;
		n++;
	}
	if (all.end <= all.start)
		return;
	vec_push(&to->code, all);
	to->jemalloc.span = all;
}

static void add_code(struct allocfind *to, const struct stripped *s)
{
	vec_foreach(f, &s->functions)
		if (f->is_own)
			vec_push(&to->code, (struct heap_range){f->start, f->end});
}

/* "_rjem_" of "_RJEM_MALLOC_CONF". */
static char *prefix_of(const char *variable)
{
	size_t n = strlen(variable) - strlen("MALLOC_CONF");
	char *prefix = xstrndup(variable, n);
	for (size_t i = 0; i < n; i++)
		if (prefix[i] >= 'A' && prefix[i] <= 'Z')
			prefix[i] = (char)(prefix[i] - 'A' + 'a');
	return prefix;
}

bool allocstrip_find(struct allocfind *f, struct elf *e)
{
	CLEANUP(stripped_release) struct stripped s = {.e = e};
	if (elf_machine(e) != ELF_MACHINE_X86_64 || !f->jemalloc.variable)
		return false;
	read_data(&s);
	if (!find_root(&s) || !read_code(&s) || !read_functions(&s))
		return false;
	uint64_t super_root = find_super_root(&s);
	uint32_t mallctl = 0;
	find_edges(&s);
	if (!super_root || !find_mallctl(&s, super_root, &mallctl))
		return false;
	mark_reached(&s, mallctl);
	add_code(f, &s);
	add_between(f, &s, mallctl);
	f->jemalloc.mallctl = s.functions.p[mallctl].start;
	f->jemalloc.is_stripped = true;
	f->jemalloc.prefix = prefix_of(f->jemalloc.variable);
	return true;
}
