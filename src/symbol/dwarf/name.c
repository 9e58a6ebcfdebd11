/* Names of function DIEs; see name.h. */
#include "base/base.h"
#include "symbol/dwarf/name.h"

#define CHAIN_MAX       16 /* origins and specifications; compilers write at most three */
#define SCOPE_DEPTH_MAX 64 /* levels of a qualified name */
#define NAME_BYTES_MAX  65536

void dw_names_release(struct dw_names *n)
{
	map_release(&n->memo);
	vec_release(&n->names);
	for (size_t i = 0; i < DW_SCOPE_MAPS; i++)
		vec_release(&n->maps[i].scopes);
}

void dw_names_drop_file(struct dw_names *n, const struct dw_file *f)
{
	for (size_t i = 0; i < DW_SCOPE_MAPS; i++) {
		if (n->maps[i].unit && n->maps[i].unit->file == f)
			n->maps[i].unit = NULL;
	}
}

struct die {
	const struct dw_unit *unit;
	uint64_t offset;
	uint16_t tag;
	struct dw_attrs attrs;
};

static bool read_die(struct dw_names *n, const struct dw_file *f, uint64_t offset,
		     struct die *ret_d)
{
	const struct dw_unit *u = dw_unit_at(f, offset);
	if (!u)
		return false;
	CLEANUP(dw_abbrevs_put_p) struct dw_abbrevs *t = dw_abbrevs_get(n->abbrevs, u);
	if (!t)
		return false;
	struct rd r = dw_unit_rd(u, offset);
	uint64_t code = rd_uleb(&r);
	const struct dw_abbrev *a = code ? dw_abbrev_find(t, code) : NULL;
	if (!a || !dw_attrs_read(t, a, &r, u, &ret_d->attrs))
		return false;
	ret_d->unit = u;
	ret_d->offset = offset;
	ret_d->tag = a->tag;
	return true;
}

/* Goes to the DIE that this one is an instance (abstract origin) or the definition of. */
static bool read_origin(struct dw_names *n, struct die *d)
{
	const struct dw_value *v = &d->attrs.v[DW_SLOT_ORIGIN];
	if (!v->cls)
		v = &d->attrs.v[DW_SLOT_SPECIFICATION];
	const struct dw_file *f = d->unit->file;
	if (v->cls == DW_CLASS_REF_ALT)
		f = f->alt;
	else if (v->cls != DW_CLASS_REF)
		return false;
	return f && read_die(n, f, v->u, d);
}

/* Lists the DIEs that qualify the names inside them, with their ends, in one pass. */
static void list_scopes(struct dw_scope_map *m, const struct dw_unit *u, const struct dw_abbrevs *t)
{
	struct rd r = dw_unit_rd(u, u->die_offset);
	const uint8_t *info = (const uint8_t *)u->file->sec[DW_SEC_INFO].p;
	VEC(uint32_t) open = {0}; /* by depth: scope idx, or UINT32_MAX if the DIE is no scope */
	uint32_t inner = UINT32_MAX;

	vec_clear(&m->scopes);
	while (r.p < r.end && m->scopes.n < UINT32_MAX) {
		uint64_t offset = (uint64_t)(r.p - info);
		uint64_t code = rd_uleb(&r);
		if (!code) {
			if (!open.n)
				break;
			uint32_t closed = open.p[--open.n];
			if (closed != UINT32_MAX) {
				m->scopes.p[closed].end = (uint64_t)(r.p - info);
				inner = m->scopes.p[closed].parent;
			}
			continue;
		}
		const struct dw_abbrev *a = dw_abbrev_find(t, code);
		if (!a || !dw_abbrev_skip(t, a, &r, u))
			break;
		if (!a->has_children)
			continue;
		uint32_t scope = UINT32_MAX;
		if (a->is_scope) {
			scope = (uint32_t)m->scopes.n;
			vec_push(&m->scopes, (struct dw_scope){offset, u->end, inner});
			inner = scope;
		}
		vec_push(&open, scope);
	}
	vec_release(&open);
}

static const struct dw_scope_map *scope_map(struct dw_names *n, const struct dw_unit *u)
{
	for (size_t i = 0; i < DW_SCOPE_MAPS; i++) {
		if (n->maps[i].unit == u)
			return &n->maps[i];
	}
	struct dw_scope_map *m = &n->maps[n->next_map++ % DW_SCOPE_MAPS];
	m->unit = u;
	vec_clear(&m->scopes);
	CLEANUP(dw_abbrevs_put_p) struct dw_abbrevs *t = dw_abbrevs_get(n->abbrevs, u);
	if (t && n->budget_bytes)
		list_scopes(m, u, t);
	n->budget_bytes -= MIN(n->budget_bytes, u->end - u->offset);
	return m;
}

/* Returns the innermost scope that encloses the DIE at @offset, not the DIE itself. */
static uint32_t enclosing(const struct dw_scope_map *m, uint64_t offset)
{
	size_t nr = lower_bound(m->scopes.p, m->scopes.n, offset, offset);
	uint32_t i = nr ? (uint32_t)(nr - 1) : UINT32_MAX;
	while (i != UINT32_MAX && m->scopes.p[i].end <= offset)
		i = m->scopes.p[i].parent;
	return i;
}

/* Returns a name for an unnamed scope; @inside: the name that it qualifies. */
static struct sv unnamed(const struct die *d, struct sv inside)
{
	if (d->tag == DW_TAG_namespace)
		return SV("(anonymous namespace)");
	return sv_eq_str(inside, "operator()") ? SV("{lambda}") : SV("(anonymous)");
}

static bool has_scopes(const struct dw_unit *u)
{
	switch (u->language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler:
		return false;
	default:
		return true;
	}
}

/*
 * Qualifies a name by its scopes, from the innermost outwards. If a scope is an instance or a
 * definition (a function that contains a local class), the search continues at its declaration.
 */
static struct sv qualify(struct dw_names *n, const struct die *named, struct sv name)
{
	if (!has_scopes(named->unit))
		return name;
	struct sv parts[SCOPE_DEPTH_MAX];
	unsigned nr = 0;
	size_t nr_bytes = name.n;
	struct die d = *named;
	struct sv inside = name;
	while (nr < SCOPE_DEPTH_MAX) {
		const struct dw_scope_map *m = scope_map(n, d.unit);
		uint32_t i = enclosing(m, d.offset);
		if (i == UINT32_MAX || !read_die(n, d.unit->file, m->scopes.p[i].offset, &d))
			break;
		for (int k = 0; k < CHAIN_MAX && read_origin(n, &d); k++)
			;
		struct sv part = dw_text(d.unit, &d.attrs.v[DW_SLOT_NAME]);
		parts[nr] = part.n ? part : unnamed(&d, inside);
		inside = parts[nr];
		nr_bytes += parts[nr].n + 2;
		nr++;
		if (nr_bytes > NAME_BYTES_MAX)
			return name;
	}
	if (!nr)
		return name;
	char *to = arena_alloc(n->text, nr_bytes);
	char *p = to;
	while (nr--) {
		memcpy(p, parts[nr].p, parts[nr].n);
		p += parts[nr].n;
		*p++ = ':';
		*p++ = ':';
	}
	memcpy(p, name.p, name.n);
	return sv_from(to, nr_bytes);
}

/*
 * True for the body of an async function or block, which Rust's mangled name calls a closure and only
 * its plain name tells apart: "{async_fn#0}".
 */
static bool is_async_body(const struct die *d)
{
	return sv_has_prefix(dw_text(d->unit, &d->attrs.v[DW_SLOT_NAME]), SV("{async_"));
}

static struct dw_known_name find_name(struct dw_names *n, const struct dw_file *f, uint64_t offset)
{
	struct die d;
	struct sv plain = sv_from("", 0);
	if (!read_die(n, f, offset, &d))
		return (struct dw_known_name){plain, true};
	for (int i = 0; i < CHAIN_MAX; i++) {
		struct sv s = dw_text(d.unit, &d.attrs.v[DW_SLOT_LINKAGE_NAME]);
		if (s.n && !is_async_body(&d))
			return (struct dw_known_name){s, false};
		/* The first name in the chain, qualified at the last declaration in the chain. */
		s = dw_text(d.unit, &d.attrs.v[DW_SLOT_NAME]);
		if (s.n && !plain.n)
			plain = s;
		if (!read_origin(n, &d))
			break;
	}
	if (plain.n)
		plain = qualify(n, &d, plain);
	return (struct dw_known_name){plain, true};
}

struct sv dw_name_at(struct dw_names *n, const struct dw_file *f, uint64_t die_offset,
		     bool *ret_is_plain)
{
	bool is_new;
	uint32_t *idx = map_put(&n->memo, die_offset ^ (uint64_t)f->number << 40, &is_new);
	if (is_new) {
		*idx = (uint32_t)n->names.n;
		struct dw_known_name name = find_name(n, f, die_offset);
		name.text.n = MIN(name.text.n, NAME_BYTES_MAX);
		if (f->is_dwo && name.text.n) /* copied: its sections are released after the unit */
			name.text.p = arena_strndup(n->text, name.text.p, name.text.n);
		vec_push(&n->names, name);
	}
	*ret_is_plain = n->names.p[*idx].is_plain;
	return n->names.p[*idx].text;
}
