/*
 * Kernel symbols; see kallsyms.h. A line is "ffffffff81000000 T name\t[module]". Modules follow the
 * kernel in load order, so all symbols are sorted here.
 */
#include "base/base.h"
#include "symbol/kallsyms.h"

#include <errno.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/vec.h"

#define TEXT_BYTES_MAX ((size_t)1 << 30)
#define NAME_BYTES_MAX 4096
#define MODULES_MAX    UINT16_MAX
#define PAGE_BYTES     ((uint64_t)4096)

struct ksym { /* 16 bytes: 200,000 of them are sorted and searched */
	uint64_t start;
	uint32_t name_at; /* offset in the text; the type is two bytes before it */
	uint16_t nr_name_bytes;
	uint16_t module;
};

struct kallsyms {
	char *text;
	VEC(struct ksym) syms;
	VEC(struct sv) modules; /* 0 is the kernel */
};

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->text);
	vec_release(&k->syms);
	vec_release(&k->modules);
	free(k);
}

/* ---- reading ---- */

static const uint8_t hex_value[256] = {
	['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

static bool is_function(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/* Symbols of one module are adjacent, so it is nearly always the last module. */
static uint16_t module_of(struct kallsyms *k, struct sv name)
{
	for (size_t i = k->modules.n; i-- > 1;)
		if (sv_eq(k->modules.p[i], name))
			return (uint16_t)i;
	if (k->modules.n >= MODULES_MAX)
		return 0;
	vec_push(&k->modules, name);
	return (uint16_t)(k->modules.n - 1);
}

/* Returns the "[module]" after a name, without its brackets. */
static struct sv module_name(struct sv rest)
{
	rest = sv_trim(rest);
	if (rest.n < 2 || rest.p[0] != '[' || rest.p[rest.n - 1] != ']')
		return SV("");
	return sv_from(rest.p + 1, rest.n - 2);
}

/* Parses one line; returns whether it is a function, even if its address is 0. */
static bool read_line(struct kallsyms *k, const char *p, const char *end)
{
	uint64_t start = 0;
	const char *digits = p;
	for (; p < end && hex_value[(uint8_t)*p]; p++)
		start = start << 4 | (uint64_t)(hex_value[(uint8_t)*p] - 1);
	if (p == digits || p - digits > 16 || end - p < 4 || p[0] != ' ' || p[2] != ' ' ||
	    !is_function(p[1]))
		return false;
	p += 3;
	const char *name_end = p;
	while (name_end < end && *name_end != '\t' && *name_end != ' ')
		name_end++;
	size_t n = (size_t)(name_end - p);
	if (!n || n > NAME_BYTES_MAX)
		return false;
	uint16_t module = 0;
	if (name_end < end) {
		struct sv name = module_name(sv_from(name_end, (size_t)(end - name_end)));
		if (name.n)
			module = module_of(k, name);
	}
	if (start)
		vec_push(&k->syms,
			 (struct ksym){start, (uint32_t)(p - k->text), (uint16_t)n, module});
	return true;
}

/* ---- sorting ---- */

static unsigned binding(const struct kallsyms *k, const struct ksym *s)
{
	char type = k->text[s->name_at - 2];
	return type == 'T' ? 0 : type == 't' ? 2 : 1;
}

static size_t nr_underscores(const char *p, size_t n)
{
	size_t i = 0;
	while (i < n && p[i] == '_')
		i++;
	return i;
}

/* Chooses between aliases by the rule of symtab.h. */
static bool is_better(const struct kallsyms *k, const struct ksym *a, const struct ksym *b)
{
	unsigned ba = binding(k, a);
	unsigned bb = binding(k, b);
	if ((ba == 2) != (bb == 2))
		return bb == 2;
	const char *na = k->text + a->name_at;
	const char *nb = k->text + b->name_at;
	size_t ua = nr_underscores(na, a->nr_name_bytes);
	size_t ub = nr_underscores(nb, b->nr_name_bytes);
	if (ua != ub)
		return ua < ub;
	if (ba != bb)
		return ba < bb;
	if (a->nr_name_bytes != b->nr_name_bytes)
		return a->nr_name_bytes < b->nr_name_bytes;
	return memcmp(na, nb, a->nr_name_bytes) < 0;
}

static void drop_aliases(struct kallsyms *k)
{
	size_t nr = 0;
	for (size_t i = 0; i < k->syms.n; i++) {
		struct ksym *s = &k->syms.p[i];
		if (nr && k->syms.p[nr - 1].start == s->start) {
			if (is_better(k, s, &k->syms.p[nr - 1]))
				k->syms.p[nr - 1] = *s;
		} else {
			k->syms.p[nr++] = *s;
		}
	}
	k->syms.n = nr;
}

int kallsyms_parse(struct kallsyms **ret_k, struct sv text, struct err *err)
{
	if (text.n > TEXT_BYTES_MAX)
		return err_set(err, -EFBIG, "kernel symbols of %zu bytes", text.n);
	struct kallsyms *k CLEANUP(kallsyms_free_p) = xcalloc(1, sizeof(*k));
	k->text = xmemdup(text.n ? text.p : "", text.n + !text.n);
	vec_push(&k->modules, SV(""));
	vec_reserve(&k->syms, text.n / 64);
	size_t nr_functions = 0;
	const char *end = k->text + text.n;
	for (const char *p = k->text; p < end;) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		eol = eol ? eol : end;
		nr_functions += read_line(k, p, eol);
		p = eol + 1;
	}
	if (!nr_functions)
		return err_set(err, -ENODATA, "no kernel symbols");
	if (!k->syms.n)
		return err_set(err, -EACCES, "kernel symbols have no addresses (kptr_restrict)");
	sort_records(k->syms.p, k->syms.n, sizeof(*k->syms.p), UINT64_MAX);
	drop_aliases(k);
	*ret_k = TAKE(k);
	return 0;
}

/* ---- lookup ---- */

static uint64_t end_of(const struct kallsyms *k, size_t i)
{
	const struct ksym *s = &k->syms.p[i];
	uint64_t page_end = (s->start | (PAGE_BYTES - 1)) + 1;
	page_end = page_end ? page_end : UINT64_MAX;
	if (i + 1 == k->syms.n)
		return page_end;
	const struct ksym *next = &k->syms.p[i + 1];
	return next->module == s->module ? next->start : MIN(next->start, page_end);
}

bool kallsyms_find(const struct kallsyms *k, uint64_t addr, struct sv *ret_name,
		   struct sv *ret_module, uint64_t *ret_start)
{
	size_t nr = upper_bound(k->syms.p, k->syms.n, start, addr);
	if (!nr || addr >= end_of(k, nr - 1))
		return false;
	const struct ksym *s = &k->syms.p[nr - 1];
	*ret_name = sv_from(k->text + s->name_at, s->nr_name_bytes);
	*ret_module = k->modules.p[s->module];
	*ret_start = s->start;
	return true;
}
