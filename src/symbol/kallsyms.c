/*
 * Kernel symbols; see kallsyms.h. A line is "ffffffff81000000 T name\t[module]". Kept are the lines of
 * functions in the order of their addresses, as text: a look-up parses the few lines that bisection
 * meets. Parsing all 110,000 lines takes as long as reading 40,000 samples of perf.
 */
#include "base/base.h"
#include "symbol/kallsyms.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/vec.h"

#define TEXT_BYTES_MAX ((size_t)1 << 30)
#define NAME_BYTES_MAX 4096
#define PAGE_BYTES     ((uint64_t)4096)

struct ksym { /* of one line */
	uint64_t start;
	struct sv name;
	struct sv module; /* "": the kernel */
	char type;
};

struct kallsyms {
	struct buf text;
};

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	buf_release(&k->text);
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

/* Returns the "[module]" after a name, without its brackets. */
static struct sv module_name(struct sv rest)
{
	rest = sv_trim(rest);
	if (rest.n < 2 || rest.p[0] != '[' || rest.p[rest.n - 1] != ']')
		return SV("");
	return sv_from(rest.p + 1, rest.n - 2);
}

/* Parses one line; returns whether it is a function, even if its address is 0. */
static bool read_line(struct ksym *ret_s, const char *p, const char *end)
{
	uint64_t start = 0;
	const char *digits = p;
	for (; p < end && hex_value[(uint8_t)*p]; p++)
		start = start << 4 | (uint64_t)(hex_value[(uint8_t)*p] - 1);
	if (p == digits || p - digits > 16 || end - p < 4 || p[0] != ' ' || p[2] != ' ' ||
	    !is_function(p[1]))
		return false;
	const char *name = p + 3;
	const char *name_end = name;
	while (name_end < end && *name_end != '\t' && *name_end != ' ')
		name_end++;
	size_t n = (size_t)(name_end - name);
	if (!n || n > NAME_BYTES_MAX)
		return false;
	*ret_s = (struct ksym){.start = start, .name = sv_from(name, n), .type = p[1]};
	if (name_end < end)
		ret_s->module = module_name(sv_from(name_end, (size_t)(end - name_end)));
	return true;
}

struct line {
	uint64_t start;
	uint32_t at;
	uint32_t n;
};

static const char *line_end(const char *p, const char *end)
{
	const char *eol = memchr(p, '\n', (size_t)(end - p));
	return eol ? eol : end;
}

/* Modules follow the kernel in load order, so the lines are sorted. */
int kallsyms_parse(struct kallsyms **ret_k, struct sv text, struct err *err)
{
	VEC(struct line) lines = {0};
	size_t nr_functions = 0;
	if (text.n > TEXT_BYTES_MAX)
		return err_set(err, -EFBIG, "kernel symbols of %zu bytes", text.n);
	for (size_t at = 0; at < text.n;) {
		const char *p = text.p + at;
		size_t n = (size_t)(line_end(p, text.p + text.n) - p);
		struct ksym s;
		bool is_function = read_line(&s, p, p + n);
		nr_functions += is_function;
		if (is_function && s.start)
			vec_push(&lines, (struct line){s.start, (uint32_t)at, (uint32_t)n});
		at += n + 1;
	}
	if (lines.n)
		sort_records(lines.p, lines.n, sizeof(*lines.p), UINT64_MAX);
	CLEANUP(buf_release) struct buf sorted = {0};
	vec_foreach(l, &lines) {
		buf_add(&sorted, text.p + l->at, l->n);
		buf_add_ch(&sorted, '\n');
	}
	vec_release(&lines);
	if (!nr_functions)
		return err_set(err, -ENODATA, "no kernel symbols");
	if (!sorted.n)
		return err_set(err, -EACCES, "kernel symbols have no addresses (kptr_restrict)");
	*ret_k = kallsyms_from_sorted(&sorted);
	return 0;
}

struct kallsyms *kallsyms_from_sorted(struct buf *lines)
{
	struct kallsyms *k = xcalloc(1, sizeof(*k));
	k->text = *lines;
	*lines = (struct buf){0};
	return k;
}

/* ---- aliases ---- */

static unsigned binding(const struct ksym *s)
{
	return s->type == 'T' ? 0 : s->type == 't' ? 2 : 1;
}

static size_t nr_underscores(struct sv name)
{
	size_t i = 0;
	while (i < name.n && name.p[i] == '_')
		i++;
	return i;
}

/* Chooses between aliases by the rule of symtab.h. */
static bool is_better(const struct ksym *a, const struct ksym *b)
{
	unsigned ba = binding(a);
	unsigned bb = binding(b);
	if ((ba == 2) != (bb == 2))
		return bb == 2;
	size_t ua = nr_underscores(a->name);
	size_t ub = nr_underscores(b->name);
	if (ua != ub)
		return ua < ub;
	if (ba != bb)
		return ba < bb;
	if (a->name.n != b->name.n)
		return a->name.n < b->name.n;
	return memcmp(a->name.p, b->name.p, a->name.n) < 0;
}

/* ---- lookup ---- */

/* The line that starts at offset @at; false: it is the end, or damaged. */
static bool line_at(const struct kallsyms *k, size_t at, struct ksym *ret_s)
{
	const char *end = k->text.p + k->text.n;
	const char *p = k->text.p + at;
	return p < end && read_line(ret_s, p, line_end(p, end));
}

/* The start of the line that has the byte before offset @at. */
static size_t line_before(const struct kallsyms *k, size_t at)
{
	const char *eol = at > 1 ? memrchr(k->text.p, '\n', at - 1) : NULL;
	return eol ? (size_t)(eol + 1 - k->text.p) : 0;
}

static size_t line_after(const struct kallsyms *k, size_t at)
{
	const char *end = k->text.p + k->text.n;
	const char *eol = line_end(k->text.p + at, end);
	return eol < end ? (size_t)(eol + 1 - k->text.p) : k->text.n;
}

/* Offset of the first line of an address above @addr. */
static size_t first_above(const struct kallsyms *k, uint64_t addr)
{
	size_t low = 0; /* starts of lines */
	size_t high = k->text.n;
	while (low < high) {
		struct ksym s;
		size_t at = line_before(k, low + (high - low) / 2 + 1);
		if (line_at(k, at, &s) && s.start > addr)
			high = at;
		else
			low = line_after(k, at);
	}
	return low;
}

static uint64_t end_of(const struct kallsyms *k, const struct ksym *s, size_t next_at)
{
	struct ksym next;
	uint64_t page_end = (s->start | (PAGE_BYTES - 1)) + 1;
	page_end = page_end ? page_end : UINT64_MAX;
	if (!line_at(k, next_at, &next))
		return page_end;
	return sv_eq(next.module, s->module) ? next.start : MIN(next.start, page_end);
}

bool kallsyms_find(const struct kallsyms *k, uint64_t addr, struct sv *ret_name,
		   struct sv *ret_module, uint64_t *ret_start)
{
	struct ksym s;
	struct ksym alias;
	size_t above = first_above(k, addr);
	size_t at = line_before(k, above);
	if (!above || !line_at(k, at, &s) || s.start > addr)
		return false;
	while (at && line_at(k, at = line_before(k, at), &alias) && alias.start == s.start)
		if (is_better(&alias, &s))
			s = alias;
	if (addr >= end_of(k, &s, above))
		return false;
	*ret_name = s.name;
	*ret_module = s.module;
	*ret_start = s.start;
	return true;
}
