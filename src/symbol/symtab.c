/*
 * Function symbols, sorted; see symtab.h.
 *
 * Sealing sorts the entries by start and then sweeps them once with a stack of open symbols, so
 * that nested and overlapping symbols become a flat array of boundaries:
 *
 *	outer  [--------------------)          starts: a   b   c       d
 *	inner       [-----)              ->    entry:  o   i   o      none
 */
#include "base/base.h"
#include "symbol/symtab.h"

#include <elf.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/vec.h"

#define NAME_BYTES_MAX ((size_t)32 << 10)
#define TABLES_MAX     16
#define NONE           UINT32_MAX
#define OPEN_MAX       64 /* maximum nesting of symbols */
#define DYNAMIC_MAX    4096
#define DYNSYMS_MAX    ((uint64_t)1 << 22)

enum binding { BIND_GLOBAL, BIND_WEAK, BIND_LOCAL };

struct entry {
	uint64_t start;
	uint64_t end;     /* before sealing: equal to start if it has no size */
	uint64_t limit;   /* maximum end of an entry without size */
	uint32_t name_at; /* offset in its table of names */
	uint8_t table;
	uint8_t rank;
	uint8_t binding;
	uint8_t has_size;
};

struct table {
	struct sv names;
	unsigned tag;
	char *owned; /* names that were read only for this table */
};

struct border {
	uint64_t start;
	uint32_t entry; /* NONE: no symbol from here on */
};

struct symtab {
	VEC(struct entry) entries;
	VEC(struct border) borders;
	struct table tables[TABLES_MAX];
	size_t nr_tables;
	struct buf own_names; /* names passed to symtab_add; sealing sets the table's view */
	uint8_t own_table[SYMTAB_RANK_NR];
	bool is_sealed;
};

struct symtab *symtab_new(void)
{
	return xcalloc(1, sizeof(struct symtab));
}

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nr_tables; i++)
		free(t->tables[i].owned);
	buf_release(&t->own_names);
	vec_release(&t->entries);
	vec_release(&t->borders);
	free(t);
}

size_t symtab_count(const struct symtab *t)
{
	return t->entries.n;
}

/* ---- names ---- */

static struct sv name_from(struct sv names, uint32_t at)
{
	if (at >= names.n)
		return SV("");
	const char *p = names.p + at;
	struct sv s = sv_from(p, strnlen(p, MIN(names.n - at, NAME_BYTES_MAX)));
	const char *version = s.n ? memchr(p + 1, '@', s.n - 1) : NULL;
	if (version && !sv_eq(sv_from_idx(s, (size_t)(version - p)), SV("@plt")))
		s.n = (size_t)(version - p);
	return s;
}

static struct sv name_of(const struct symtab *t, const struct entry *e)
{
	return name_from(t->tables[e->table].names, e->name_at);
}

static size_t nr_underscores(struct sv s)
{
	size_t n = 0;
	while (n < s.n && s.p[n] == '_')
		n++;
	return n;
}

/* Returns whether @a is preferred to @b at one address; the rule is in symtab.h. */
static bool is_better(const struct symtab *t, const struct entry *a, const struct entry *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank;
	if (a->has_size != b->has_size)
		return a->has_size;
	if ((a->binding == BIND_LOCAL) != (b->binding == BIND_LOCAL))
		return b->binding == BIND_LOCAL;
	struct sv na = name_of(t, a);
	struct sv nb = name_of(t, b);
	size_t ua = nr_underscores(na);
	size_t ub = nr_underscores(nb);
	if (ua != ub)
		return ua < ub;
	if (a->binding != b->binding)
		return a->binding < b->binding;
	if (na.n != nb.n)
		return na.n < nb.n;
	int c = memcmp(na.p, nb.p, na.n);
	return c < 0 || (c == 0 && a->end > b->end);
}

/* ---- reading ---- */

struct file_view { /* one ELF symbol table */
	struct sv symbols;
	struct sv names;
	const struct elf_section *sections;
	size_t nr_sections;
};

/* Mapping symbols of arm64 ($x, $d) and local labels of compilers (.L) are not functions. */
static bool is_label(struct sv name)
{
	return !name.n || name.p[0] == '$' || (name.n > 1 && name.p[0] == '.' && name.p[1] == 'L');
}

static bool entry_from_symbol(struct entry *to, const Elf64_Sym *s, const struct file_view *v)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);
	unsigned bind = ELF64_ST_BIND(s->st_info);
	bool is_typed = type == STT_FUNC || type == STT_GNU_IFUNC;
	if ((!is_typed && type != STT_NOTYPE) || s->st_shndx == SHN_UNDEF || !s->st_name)
		return false;
	const struct elf_section *in = NULL;
	if (s->st_shndx < v->nr_sections)
		in = &v->sections[s->st_shndx];
	else if (s->st_shndx < SHN_LORESERVE || s->st_shndx == SHN_XINDEX)
		in = NULL; /* no section headers, or more than the field can hold */
	else
		return false;
	if (!is_typed &&
	    (!in || !(in->flags & SHF_EXECINSTR) || is_label(name_from(v->names, s->st_name))))
		return false;
	uint64_t limit = UINT64_MAX;
	if (in && s->st_value >= in->vaddr && s->st_value - in->vaddr < in->nr_mem_bytes)
		limit = in->vaddr + MIN(in->nr_mem_bytes, UINT64_MAX - in->vaddr);
	uint64_t nr_bytes = MIN(s->st_size, UINT64_MAX - s->st_value);
	*to = (struct entry){
		.start = s->st_value,
		.end = s->st_value + nr_bytes,
		.limit = limit,
		.name_at = s->st_name,
		.rank = is_typed ? SYMTAB_RANK_TYPED : SYMTAB_RANK_UNTYPED,
		.binding = bind == STB_LOCAL  ? BIND_LOCAL
			   : bind == STB_WEAK ? BIND_WEAK
					      : BIND_GLOBAL,
		.has_size = nr_bytes != 0,
	};
	return true;
}

static size_t add_view(struct symtab *t, const struct file_view *v, uint8_t table)
{
	size_t nr = v->symbols.n / sizeof(Elf64_Sym);
	size_t before = t->entries.n;
	vec_reserve(&t->entries, before + nr / 2);
	for (size_t i = 1; i < nr; i++) {
		Elf64_Sym s;
		memcpy(&s, v->symbols.p + i * sizeof(s), sizeof(s));
		struct entry e;
		if (!entry_from_symbol(&e, &s, v))
			continue;
		e.table = table;
		vec_push(&t->entries, e);
	}
	return t->entries.n - before;
}

/* Adds a table of names and returns its index. */
static uint8_t table_add(struct symtab *t, struct sv names, unsigned tag, char *owned)
{
	ASSERT(t->nr_tables < TABLES_MAX);
	t->tables[t->nr_tables] = (struct table){names, tag, owned};
	return (uint8_t)t->nr_tables++;
}

/* ---- without section headers ---- */

struct dynamic {
	uint64_t symbols;
	uint64_t names;
	uint64_t nr_name_bytes;
	uint64_t hash;
	uint64_t gnu_hash;
};

static bool read_at(const struct elf *e, void *to, size_t n, uint64_t vaddr)
{
	uint64_t offset;
	return elf_offset_from_vaddr(e, vaddr, &offset) && !elf_read(e, to, n, offset, NULL);
}

static bool read_dynamic(const struct elf *e, struct dynamic *ret_d)
{
	size_t nr;
	const struct elf_segment *seg = elf_segments(e, &nr);
	const struct elf_segment *dyn = NULL;
	for (size_t i = 0; i < nr && !dyn; i++)
		dyn = seg[i].type == PT_DYNAMIC ? &seg[i] : NULL;
	if (!dyn)
		return false;
	size_t nr_dyn = (size_t)MIN(dyn->nr_file_bytes / sizeof(Elf64_Dyn), DYNAMIC_MAX);
	for (size_t i = 0; i < nr_dyn; i++) {
		Elf64_Dyn d;
		if (elf_read(e, &d, sizeof(d), dyn->offset + i * sizeof(d), NULL))
			return false;
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_SYMTAB)
			ret_d->symbols = d.d_un.d_ptr;
		else if (d.d_tag == DT_STRTAB)
			ret_d->names = d.d_un.d_ptr;
		else if (d.d_tag == DT_STRSZ)
			ret_d->nr_name_bytes = d.d_un.d_val;
		else if (d.d_tag == DT_HASH)
			ret_d->hash = d.d_un.d_ptr;
		else if (d.d_tag == DT_GNU_HASH)
			ret_d->gnu_hash = d.d_un.d_ptr;
	}
	return ret_d->symbols && ret_d->names;
}

/* The dynamic section does not say how many symbols there are; the hash tables do. */
static uint64_t nr_dynamic_symbols(const struct elf *e, const struct dynamic *d)
{
	uint32_t h[4];
	if (d->hash && read_at(e, h, 8, d->hash))
		return MIN((uint64_t)h[1], DYNSYMS_MAX);
	if (!d->gnu_hash || !read_at(e, h, 16, d->gnu_hash))
		return 0;
	uint64_t nr_buckets = h[0];
	uint64_t buckets = d->gnu_hash + 16 + (uint64_t)h[2] * 8;
	uint64_t chains = buckets + nr_buckets * 4;
	if (nr_buckets > DYNSYMS_MAX)
		return 0;
	uint32_t *b CLEANUP(free_p) = xcalloc(nr_buckets + 1, sizeof(*b));
	if (!read_at(e, b, nr_buckets * 4, buckets))
		return 0;
	uint64_t last = 0;
	for (uint64_t i = 0; i < nr_buckets; i++)
		last = MAX(last, b[i]);
	if (last < h[1])
		return h[1];
	for (; last < DYNSYMS_MAX; last++) {
		uint32_t link;
		if (!read_at(e, &link, 4, chains + (last - h[1]) * 4))
			return 0;
		if (link & 1)
			break;
	}
	return last + 1;
}

static size_t add_dynamic(struct symtab *t, const struct elf *e, unsigned tag)
{
	struct dynamic d = {0};
	if (!read_dynamic(e, &d))
		return 0;
	uint64_t nr = nr_dynamic_symbols(e, &d);
	uint64_t nr_names = MIN(d.nr_name_bytes, elf_nr_bytes(e));
	if (!nr || !nr_names || nr > elf_nr_bytes(e) / sizeof(Elf64_Sym))
		return 0;
	char *symbols CLEANUP(free_p) = xcalloc(nr, sizeof(Elf64_Sym));
	char *names CLEANUP(free_p) = xcalloc(1, nr_names);
	if (!read_at(e, symbols, nr * sizeof(Elf64_Sym), d.symbols) ||
	    !read_at(e, names, nr_names, d.names))
		return 0;
	struct file_view v = {sv_from(symbols, nr * sizeof(Elf64_Sym)), sv_from(names, nr_names),
			      NULL, 0};
	uint8_t table = table_add(t, v.names, tag, TAKE(names));
	return add_view(t, &v, table);
}

int symtab_add_elf(struct symtab *t, struct elf *e, enum symtab_what what, unsigned tag,
		   size_t *ret_nr, struct err *err)
{
	ASSERT(!t->is_sealed);
	struct file_view v = {0};
	v.sections = elf_sections(e, &v.nr_sections);
	uint32_t type = what == SYMTAB_STATIC ? SHT_SYMTAB : SHT_DYNSYM;
	size_t nr = 0;
	const struct elf_section *s = NULL;
	for (size_t i = 0; i < v.nr_sections && !s; i++)
		s = v.sections[i].type == type && v.sections[i].nr_bytes ? &v.sections[i] : NULL;
	if (s && s->link < v.nr_sections) {
		CLEANUP(buf_release) struct buf symbols = {0}; /* not needed after this call */
		TRY(elf_section_read(e, s, &symbols, err));
		TRY(elf_section_bytes(e, &v.sections[s->link], &v.names, err));
		v.symbols = buf_sv(&symbols);
		nr = add_view(t, &v, table_add(t, v.names, tag, NULL));
	} else if (what == SYMTAB_DYNAMIC && !v.nr_sections) {
		nr = add_dynamic(t, e, tag);
	}
	if (ret_nr)
		*ret_nr = nr;
	return 0;
}

void symtab_add(struct symtab *t, uint64_t start, uint64_t nr_bytes, struct sv name, unsigned tag,
		enum symtab_rank rank)
{
	ASSERT(!t->is_sealed);
	uint8_t table = t->own_table[rank];
	if (!table) { /* stored as index + 1 */
		table = t->own_table[rank] = (uint8_t)(table_add(t, SV(""), tag, NULL) + 1);
		if (!t->own_names.n)
			buf_add_ch(&t->own_names, 0);
	}
	ASSERT(t->tables[table - 1].tag == tag);
	nr_bytes = MIN(nr_bytes, UINT64_MAX - start);
	struct entry e = {.start = start,
			  .end = start + nr_bytes,
			  .limit = UINT64_MAX,
			  .table = (uint8_t)(table - 1),
			  .rank = (uint8_t)rank,
			  .has_size = nr_bytes != 0};
	if (name.n && t->own_names.n < UINT32_MAX - NAME_BYTES_MAX) {
		e.name_at = (uint32_t)t->own_names.n;
		buf_add(&t->own_names, name.p, MIN(name.n, NAME_BYTES_MAX));
		buf_add_ch(&t->own_names, 0);
	}
	vec_push(&t->entries, e);
}

/* ---- sealing ---- */

/* Entries without size end where the next typed symbol starts, or at the end of their section. */
static void close_ends(struct symtab *t)
{
	uint64_t next_typed = UINT64_MAX;
	uint64_t next_any = UINT64_MAX;
	uint64_t here = UINT64_MAX; /* entries with the same start do not end each other */
	uint64_t pending_typed = UINT64_MAX;
	for (size_t i = t->entries.n; i-- > 0;) {
		struct entry *e = &t->entries.p[i];
		if (e->start != here) {
			if (here != UINT64_MAX)
				next_any = here;
			next_typed = MIN(next_typed, pending_typed);
			here = e->start;
		}
		if (e->rank == SYMTAB_RANK_TYPED)
			pending_typed = e->start;
		if (e->has_size)
			continue;
		e->end = MIN(e->rank == SYMTAB_RANK_TYPED ? next_typed : next_any, e->limit);
		if (e->end <= e->start || e->end == UINT64_MAX)
			e->end = e->start + 1; /* the last one: cover at least its first byte */
	}
}

struct sweep {
	uint32_t open[OPEN_MAX];
	size_t nr_open;
};

static void put_border(struct symtab *t, uint64_t start, uint32_t entry)
{
	if (t->borders.n && vec_last(&t->borders)->start == start)
		vec_last(&t->borders)->entry = entry;
	else
		vec_push(&t->borders, (struct border){start, entry});
}

/* Closes the symbols that end at or before @upto. */
static void sweep_to(struct symtab *t, struct sweep *s, uint64_t upto)
{
	while (s->nr_open) {
		const struct entry *top = &t->entries.p[s->open[s->nr_open - 1]];
		if (top->end > upto)
			return;
		uint64_t at = top->end;
		do /* outer symbols may have ended in the meantime */
			s->nr_open--;
		while (s->nr_open && t->entries.p[s->open[s->nr_open - 1]].end <= at);
		put_border(t, at, s->nr_open ? s->open[s->nr_open - 1] : NONE);
	}
}

static void sweep_open(struct symtab *t, struct sweep *s, uint32_t idx)
{
	const struct entry *e = &t->entries.p[idx];
	if (s->nr_open && t->entries.p[s->open[s->nr_open - 1]].rank < e->rank)
		return;
	if (s->nr_open == OPEN_MAX)
		s->nr_open--;
	s->open[s->nr_open++] = idx;
	put_border(t, e->start, idx);
}

void symtab_seal(struct symtab *t)
{
	ASSERT(!t->is_sealed);
	t->is_sealed = true;
	for (size_t i = 0; i < ARRAY_LEN(t->own_table); i++)
		if (t->own_table[i])
			t->tables[t->own_table[i] - 1].names = buf_sv(&t->own_names);
	sort_records(t->entries.p, t->entries.n, sizeof(*t->entries.p), UINT64_MAX);
	close_ends(t);
	struct sweep s = {.nr_open = 0};
	vec_reserve(&t->borders, t->entries.n + t->entries.n / 2);
	for (size_t i = 0; i < t->entries.n;) {
		size_t best = i;
		size_t j = i + 1;
		for (; j < t->entries.n && t->entries.p[j].start == t->entries.p[i].start; j++)
			if (is_better(t, &t->entries.p[j], &t->entries.p[best]))
				best = j;
		sweep_to(t, &s, t->entries.p[i].start);
		sweep_open(t, &s, (uint32_t)best);
		i = j;
	}
	sweep_to(t, &s, UINT64_MAX);
}

/* ---- lookup ---- */

bool symtab_find(const struct symtab *t, uint64_t vaddr, struct symtab_hit *ret_hit)
{
	ASSERT(t->is_sealed);
	size_t nr = upper_bound(t->borders.p, t->borders.n, start, vaddr);
	if (!nr || t->borders.p[nr - 1].entry == NONE)
		return false;
	const struct entry *e = &t->entries.p[t->borders.p[nr - 1].entry];
	*ret_hit = (struct symtab_hit){
		.start = e->start,
		.end = e->end,
		.name = name_of(t, e),
		.tag = t->tables[e->table].tag,
		.rank = (enum symtab_rank)e->rank,
		.has_size = e->has_size,
	};
	return true;
}

/* As sv_eq(name_of(t, e), name), but most names differ in the first bytes. */
static bool has_name(const struct symtab *t, const struct entry *e, struct sv name)
{
	struct sv names = t->tables[e->table].names;
	return e->name_at < names.n && names.n - e->name_at > name.n &&
	       !memcmp(names.p + e->name_at, name.p, name.n) && sv_eq(name_of(t, e), name);
}

bool symtab_find_name(const struct symtab *t, struct sv name, struct symtab_hit *ret_hit)
{
	ASSERT(t->is_sealed);
	const struct entry *found = NULL;
	vec_foreach(e, &t->entries) {
		if (!has_name(t, e, name))
			continue;
		if (found && found->start != e->start)
			return false;
		found = e;
	}
	return found && symtab_find(t, found->start, ret_hit);
}

bool symtab_has_alias(const struct symtab *t, uint64_t start, struct sv name)
{
	ASSERT(t->is_sealed);
	size_t i = lower_bound(t->entries.p, t->entries.n, start, start);
	for (; i < t->entries.n && t->entries.p[i].start == start; i++)
		if (sv_eq(name_of(t, &t->entries.p[i]), name))
			return true;
	return false;
}
