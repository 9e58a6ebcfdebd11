/* Finds functions by name; see funcfind.h. */
#include "base/base.h"

#include "symbol/funcfind.h"

#include <elf.h>
#include <fnmatch.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/suggest.h"
#include "object/gopclntab.h"
#include "symbol/demangle.h"

bool func_matches(const char *pattern, const char *name)
{
	if (strpbrk(pattern, "*?"))
		return !fnmatch(pattern, name, FNM_NOESCAPE);
	return !strcmp(pattern, name);
}

/* "f(int, char)" is compared as "f", unless the pattern contains parameters. */
static void cut_parameters(struct buf *name, const char *pattern)
{
	if (strchr(pattern, '('))
		return;
	int depth = 0;
	for (size_t i = name->n; i-- > 0;) {
		char c = name->p[i];
		depth += c == ')' ? 1 : c == '(' ? -1 : 0;
		if (c == '(' && !depth) {
			name->n = i;
			name->p[i] = 0;
			return;
		}
	}
}

/* Sets @shown to the name as displayed, without parameters unless the pattern has some. */
static bool is_match(const char *pattern, const char *linkage, struct buf *shown)
{
	/* the default version of a symbol has its plain name */
	const char *version = strstr(linkage, "@@");
	size_t n = version ? (size_t)(version - linkage) : strlen(linkage);
	buf_clear(shown);
	if (linkage[0] != '_') {
		buf_add(shown, linkage, n);
		return func_matches(pattern, buf_str(shown)) ||
		       (version && func_matches(pattern, linkage));
	}
	demangle(shown, sv_from(linkage, n), 0);
	if (func_matches(pattern, linkage) || func_matches(pattern, buf_str(shown)))
		return true;
	cut_parameters(shown, pattern);
	return func_matches(pattern, buf_str(shown));
}

/*
 * x86-64: the kernel single-steps an `endbr64`, but emulates a `push` or `nop`. If a push follows
 * the endbr64, the probe goes there: nothing else jumps to it, since that would push twice.
 */
#define ENDBR_BYTES 4

static bool is_cheap(const uint8_t *at)
{
	bool is_push = at[0] >= 0x50 && at[0] <= 0x57;
	bool is_push_rex = at[0] == 0x41 && at[1] >= 0x50 && at[1] <= 0x57;
	bool is_nop = at[0] == 0x90 || (at[0] == 0x0f && at[1] == 0x1f);
	return is_push || is_push_rex || is_nop;
}

static void choose_instruction(const struct elf *e, struct func_found *f)
{
	static const uint8_t endbr[ENDBR_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t code[ENDBR_BYTES + 2];
	if (elf_machine(e) != ELF_MACHINE_X86_64 ||
	    elf_read(e, code, sizeof(code), f->offset, NULL))
		return;
	if (is_cheap(code)) {
		f->is_emulated = true;
	} else if (!memcmp(code, endbr, sizeof(endbr)) && is_cheap(code + ENDBR_BYTES)) {
		f->is_emulated = true;
		f->offset += ENDBR_BYTES;
	}
}

/* Called with the linkage name and the address of each function, or each alias of one. */
typedef void symbol_fn(void *ctx, const char *linkage, uint64_t vaddr);

static int look_through(struct elf *e, const struct elf_section *table, symbol_fn *on_symbol,
			void *ctx, struct err *err)
{
	size_t nr_sections;
	const struct elf_section *sections = elf_sections(e, &nr_sections);
	struct sv symbols, names;
	if (table->link >= nr_sections)
		return 0;
	int rc = elf_section_bytes(e, table, &symbols, err);
	rc = rc ? rc : elf_section_bytes(e, &sections[table->link], &names, err);
	if (rc || !names.n || names.p[names.n - 1])
		return rc;
	for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.n; at += sizeof(Elf64_Sym)) {
		Elf64_Sym sym;
		memcpy(&sym, symbols.p + at, sizeof(sym));
		unsigned type = ELF64_ST_TYPE(sym.st_info);
		bool is_function = type == STT_FUNC || type == STT_NOTYPE;
		if (is_function && sym.st_shndx != SHN_UNDEF && sym.st_value &&
		    sym.st_name < names.n)
			on_symbol(ctx, names.p + sym.st_name, sym.st_value);
	}
	return 0;
}

/* The functions of a Go program, by the table that stripping leaves; names end with a NUL there. */
static void look_through_go(const struct gopclntab *go, symbol_fn *on_symbol, void *ctx)
{
	struct gopclntab_function f;
	for (size_t i = 0; i < gopclntab_count(go); i++)
		if (gopclntab_function(go, i, &f))
			on_symbol(ctx, f.name.p, f.start);
}

/* @go: NULL if it is not a Go program. */
static int look_through_all(struct elf *e, const struct gopclntab *go, symbol_fn *on_symbol,
			    void *ctx, struct err *err)
{
	size_t nr_sections;
	const struct elf_section *sections = elf_sections(e, &nr_sections);
	bool has_all = false;
	for (size_t i = 0; i < nr_sections; i++) {
		if (sections[i].type != SHT_SYMTAB && sections[i].type != SHT_DYNSYM)
			continue;
		has_all |= sections[i].type == SHT_SYMTAB;
		TRY(look_through(e, &sections[i], on_symbol, ctx, err));
	}
	if (go && !has_all)
		look_through_go(go, on_symbol, ctx);
	return 0;
}

/* ---- names that match --------------------------------------------------------------------- */

struct search {
	struct funcs_found *found;
	const struct elf *code;
	const char *pattern;
	size_t max;
	size_t nr_more;
	struct buf shown;
};

static void take(struct search *s, uint64_t vaddr)
{
	struct func_found f = {.vaddr = vaddr};
	if (!elf_is_code(s->code, vaddr) || !elf_offset_from_vaddr(s->code, vaddr, &f.offset))
		return;
	vec_foreach(one, &s->found->list)
		if (one->vaddr == vaddr)
			return;
	if (s->found->list.n >= s->max) {
		s->nr_more++;
		return;
	}
	choose_instruction(s->code, &f);
	f.name = xstrdup(buf_str(&s->shown));
	vec_push(&s->found->list, f);
}

static void match_symbol(void *ctx, const char *linkage, uint64_t vaddr)
{
	struct search *s = ctx;
	if (is_match(s->pattern, linkage, &s->shown))
		take(s, vaddr);
}

static int by_address(const void *a, const void *b)
{
	const struct func_found *x = a;
	const struct func_found *y = b;
	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static void mark_go(struct funcs_found *f, const struct gopclntab *go)
{
	struct gopclntab_function g;
	if (!go || !f->list.n)
		return;
	for (size_t i = 0; i < gopclntab_count(go); i++) {
		if (!gopclntab_function(go, i, &g))
			continue;
		vec_foreach(one, &f->list)
			one->is_go |= one->vaddr >= g.start && one->vaddr < g.end;
	}
}

int func_find(struct funcs_found *f, struct elf *e, struct elf *symbols, const char *pattern,
	      size_t max, size_t *ret_nr_more, struct err *err)
{
	struct search s = {.found = f, .code = e, .pattern = pattern, .max = max};
	CLEANUP(gopclntab_free_p) struct gopclntab *go = gopclntab_open(e);
	int rc = look_through_all(symbols ? symbols : e, go, match_symbol, &s, err);
	buf_release(&s.shown);
	mark_go(f, go);
	if (f->list.n)
		qsort(f->list.p, f->list.n, sizeof(*f->list.p), by_address);
	if (ret_nr_more)
		*ret_nr_more += s.nr_more;
	return rc;
}

/* ---- names that are similar --------------------------------------------------------------- */

struct funcs_near funcs_near_of(const char *pattern)
{
	size_t skip = strspn(pattern, "*?");
	return (struct funcs_near){.word = {pattern + skip, strcspn(pattern + skip, "*?")}};
}

void funcs_near_release(struct funcs_near *n)
{
	for (size_t i = 0; i < n->n; i++)
		free_p(&n->best[i].name);
	n->n = 0;
}

/* As many last components of a name as the word has. */
static struct sv last_components(const char *name, struct sv word)
{
	size_t nr = 1;
	for (size_t i = 0; i + 1 < word.n; i++)
		nr += word.p[i] == ':' && word.p[i + 1] == ':';
	struct sv tail = sv_from_str(name);
	for (size_t i = tail.n; i-- > 1;)
		if (name[i] == ':' && name[i - 1] == ':' && !--nr)
			return (struct sv){name + i + 1, tail.n - i - 1};
	return tail;
}

static size_t distance_of(struct sv word, const char *name)
{
	struct sv tail = last_components(name, word);
	size_t max = word.n / 3;
	if (word.n >= 3 && memmem(name, strlen(name), word.p, word.n))
		return 1;
	if (MAX(tail.n, word.n) - MIN(tail.n, word.n) > max)
		return SIZE_MAX;
	size_t d = suggest_distance(word, tail);
	return d <= max ? d : SIZE_MAX;
}

void funcs_near_offer(struct funcs_near *n, const char *name)
{
	size_t d = n->word.n && !sv_eq_str(n->word, name) ? distance_of(n->word, name) : SIZE_MAX;
	if (d == SIZE_MAX)
		return;
	size_t at = n->n;
	for (size_t i = n->n; i-- > 0;) {
		const struct func_near *b = &n->best[i];
		if (!strcmp(b->name, name))
			return;
		if (d < b->distance || (d == b->distance && strlen(name) < strlen(b->name)))
			at = i;
	}
	if (at == FUNCS_NEAR_MAX)
		return;
	if (n->n == FUNCS_NEAR_MAX)
		free_p(&n->best[--n->n].name);
	memmove(&n->best[at + 1], &n->best[at], (n->n - at) * sizeof(*n->best));
	n->best[at] = (struct func_near){xstrdup(name), d};
	n->n++;
}

struct near_search {
	struct funcs_near *near;
	const struct elf *code;
	struct buf shown;
};

static void offer_symbol(void *ctx, const char *linkage, uint64_t vaddr)
{
	struct near_search *s = ctx;
	if (!elf_is_code(s->code, vaddr))
		return;
	(void)is_match("", linkage, &s->shown);
	funcs_near_offer(s->near, buf_str(&s->shown));
}

int func_find_near(struct funcs_near *n, struct elf *e, struct elf *symbols, struct err *err)
{
	struct near_search s = {.near = n, .code = e};
	CLEANUP(gopclntab_free_p) struct gopclntab *go = gopclntab_open(e);
	int rc = look_through_all(symbols ? symbols : e, go, offer_symbol, &s, err);
	buf_release(&s.shown);
	return rc;
}
