/* Strings, functions, frames and stacks of a Firefox profile; see firefox.h. */
#include "base/base.h"
#include "format/exchange/firefox.h"

#include "base/mem.h"
#include "format/textframes.h"

void firefox_tables_init(struct firefox_tables *t, const struct profile *p)
{
	*t = (struct firefox_tables){.p = p};
	t->stack_of = xcalloc(p->stacks.n, sizeof(*t->stack_of));
	t->first_of_loc = xcalloc(p->locations.n, sizeof(*t->first_of_loc));
}

void firefox_tables_release(struct firefox_tables *t)
{
	intern_release(&t->strings);
	vec_release(&t->funcs);
	vec_release(&t->frames);
	vec_release(&t->stacks);
	vec_release(&t->resources);
	vec_release(&t->sources);
	free_p(&t->stack_of);
	free_p(&t->first_of_loc);
	map_release(&t->func_index);
	map_release(&t->resource_index);
	map_release(&t->source_index);
	map_release(&t->leaf_index);
}

uint32_t firefox_string(struct firefox_tables *t, struct sv s)
{
	return intern_add(&t->strings, s.p, s.n);
}

static uint32_t resource_of(struct firefox_tables *t, module_id module)
{
	enum module_kind kind = t->p->modules.p[module].kind;
	if (kind == MODULE_NONE || kind == MODULE_PSEUDO || kind == MODULE_UNKNOWN ||
	    !profile_module_name(t->p, module)[0])
		return FIREFOX_NONE;
	bool is_new;
	uint32_t *idx = map_put(&t->resource_index, module, &is_new);
	if (is_new) {
		*idx = (uint32_t)t->resources.n;
		const char *name = profile_module_name(t->p, module);
		vec_push(&t->resources,
			 (struct firefox_resource){module, firefox_string(t, sv_from_str(name))});
	}
	return *idx;
}

static uint32_t source_of(struct firefox_tables *t, str_id file)
{
	if (!file)
		return FIREFOX_NONE;
	bool is_new;
	uint32_t *idx = map_put(&t->source_index, file, &is_new);
	if (is_new) {
		*idx = (uint32_t)t->sources.n;
		vec_push(&t->sources, firefox_string(t, profile_sv(t->p, file)));
	}
	return *idx;
}

/* @key: func_id << 32 | file, or below 2^32 the string of what is no function. */
static uint32_t func_of(struct firefox_tables *t, uint64_t key, const struct firefox_func *f)
{
	bool is_new;
	uint32_t *idx = map_put(&t->func_index, key, &is_new);
	if (is_new) {
		*idx = (uint32_t)t->funcs.n;
		vec_push(&t->funcs, *f);
	}
	return *idx;
}

static enum firefox_category category_of(const struct firefox_tables *t, const struct location *l,
					 const struct frame *f)
{
	enum module_kind kind = t->p->modules.p[l->module].kind;
	unsigned flags = f ? t->p->functions.p[f->func].flags : 0;
	if (l->flags & LOCATION_KERNEL || flags & FUNC_KERNEL)
		return FIREFOX_KERNEL;
	if (kind == MODULE_JIT || flags & FUNC_JIT)
		return FIREFOX_JIT;
	return kind == MODULE_PSEUDO ? FIREFOX_OTHER : FIREFOX_USER;
}

static uint32_t add_pseudo_frame(struct firefox_tables *t, struct sv name, uint32_t resource,
				 enum firefox_category category)
{
	uint32_t string = firefox_string(t, name);
	struct firefox_func fn = {string, resource, FIREFOX_NONE};
	uint32_t func = func_of(t, string, &fn);
	vec_push(&t->frames, (struct firefox_frame){.func = func, .category = (uint8_t)category});
	return (uint32_t)t->frames.n - 1;
}

/* Adds the frames of a location, outermost first. */
static uint32_t first_frame(struct firefox_tables *t, loc_id loc)
{
	if (t->first_of_loc[loc])
		return t->first_of_loc[loc] - 1;
	const struct location *l = &t->p->locations.p[loc];
	uint32_t first = (uint32_t)t->frames.n;
	for (size_t i = l->nr_frames; i--;) {
		const struct frame *f = &t->p->frames.p[l->first_frame + i];
		struct sv name = sv_from_str(profile_frame_name(t->p, f));
		struct firefox_func fn = {
			.name = firefox_string(t, name),
			.resource = resource_of(t, profile_frame_module(t->p, l, f)),
			.source = source_of(t, f->file),
		};
		uint32_t func = func_of(t, (uint64_t)f->func << 32 | f->file, &fn);
		vec_push(&t->frames, (struct firefox_frame){
					     .func = func,
					     .line = f->line,
					     .depth = (uint8_t)MIN(l->nr_frames - 1 - i, 255u),
					     .category = (uint8_t)category_of(t, l, f),
				     });
	}
	if (!l->nr_frames) {
		CLEANUP(buf_release) struct buf name = {0};
		text_add_unsymbolized(&name, t->p, loc, 0);
		(void)add_pseudo_frame(t, buf_sv(&name), resource_of(t, l->module),
				       category_of(t, l, NULL));
	}
	t->first_of_loc[loc] = first + 1;
	return first;
}

static uint32_t add_stack(struct firefox_tables *t, uint32_t prefix, uint32_t frame)
{
	vec_push(&t->stacks, (struct firefox_stack){prefix, frame});
	return (uint32_t)t->stacks.n - 1;
}

/* The stack without a leaf of its own. Parents come before children, as the viewer needs it. */
static uint32_t plain_stack(struct firefox_tables *t, stack_id stack)
{
	VEC(stack_id) chain = {0};
	stack_id at = stack;
	for (; at && !t->stack_of[at]; at = t->p->stacks.p[at].parent)
		vec_push(&chain, at);
	uint32_t idx = at ? t->stack_of[at] - 1 : FIREFOX_NONE;
	while (chain.n) {
		at = chain.p[--chain.n];
		loc_id loc = t->p->stacks.p[at].loc;
		uint32_t first = first_frame(t, loc);
		for (uint32_t i = 0; i < MAX(t->p->locations.p[loc].nr_frames, 1u); i++)
			idx = add_stack(t, idx, first + i);
		t->stack_of[at] = idx + 1;
	}
	vec_release(&chain);
	if (stack)
		return idx;
	if (!t->stack_of[0]) /* node 0 is the root, no stack */
		t->stack_of[0] = add_stack(t, FIREFOX_NONE,
					   add_pseudo_frame(t, SV("[no stack]"), FIREFOX_NONE,
							    FIREFOX_OTHER)) +
				 1;
	return t->stack_of[0] - 1;
}

uint32_t firefox_stack(struct firefox_tables *t, stack_id stack, const char *leaf)
{
	uint32_t idx = plain_stack(t, stack);
	if (!leaf)
		return idx;
	bool is_new;
	uint32_t string = firefox_string(t, sv_from_str(leaf));
	uint32_t *with_leaf = map_put(&t->leaf_index, (uint64_t)idx << 32 | string, &is_new);
	if (is_new)
		*with_leaf = add_stack(t, idx,
				       add_pseudo_frame(t, sv_from_str(leaf), FIREFOX_NONE,
							FIREFOX_WAITING));
	return *with_leaf;
}

/* ---- writing ------------------------------------------------------------------------------ */

static void put_index(struct json *j, uint32_t idx)
{
	if (idx == FIREFOX_NONE)
		json_null(j);
	else
		json_u64(j, idx);
}

/* Writes a column of which all values are the same. */
static void put_same(struct json *j, const char *key, size_t n, const char *value)
{
	json_put_arr(j, key);
	for (size_t i = 0; i < n; i++)
		json_raw(j, value);
	json_end(j);
}

/* Writes "name": [...] of one field of the elements of a table. */
#define PUT_COLUMN(j, key, table, put, field) \
	do {                                  \
		json_put_arr(j, key);         \
		vec_foreach(it_, table)       \
			put(j, it_->field);   \
		json_end(j);                  \
	} while (0)

static void put_line(struct json *j, uint32_t line)
{
	put_index(j, line ? line : FIREFOX_NONE);
}

static void put_resource(struct json *j, uint32_t idx)
{
	json_i64(j, idx == FIREFOX_NONE ? -1 : (int64_t)idx);
}

static void put_stack_table(struct json *j, const struct firefox_tables *t)
{
	json_put_obj(j, "stackTable");
	PUT_COLUMN(j, "frame", &t->stacks, json_u64, frame);
	PUT_COLUMN(j, "prefix", &t->stacks, put_index, prefix);
	json_put_u64(j, "length", t->stacks.n);
	json_end(j);
}

static void put_frame_table(struct json *j, const struct firefox_tables *t)
{
	size_t n = t->frames.n;
	json_put_obj(j, "frameTable");
	put_same(j, "address", n, "-1");
	PUT_COLUMN(j, "inlineDepth", &t->frames, json_u64, depth);
	PUT_COLUMN(j, "category", &t->frames, json_u64, category);
	put_same(j, "subcategory", n, "0");
	PUT_COLUMN(j, "func", &t->frames, json_u64, func);
	put_same(j, "nativeSymbol", n, "null");
	put_same(j, "innerWindowID", n, "0");
	PUT_COLUMN(j, "line", &t->frames, put_line, line);
	put_same(j, "column", n, "null");
	json_put_u64(j, "length", n);
	json_end(j);
}

static void put_func_table(struct json *j, const struct firefox_tables *t)
{
	size_t n = t->funcs.n;
	json_put_obj(j, "funcTable");
	PUT_COLUMN(j, "name", &t->funcs, json_u64, name);
	put_same(j, "isJS", n, "false");
	put_same(j, "relevantForJS", n, "false");
	PUT_COLUMN(j, "resource", &t->funcs, put_resource, resource);
	PUT_COLUMN(j, "source", &t->funcs, put_index, source);
	put_same(j, "lineNumber", n, "null");
	put_same(j, "columnNumber", n, "null");
	json_put_u64(j, "length", n);
	json_end(j);
}

/* Resource i is library i; both are modules. */
static void put_resource_table(struct json *j, const struct firefox_tables *t)
{
	size_t n = t->resources.n;
	json_put_obj(j, "resourceTable");
	json_put_arr(j, "lib");
	for (size_t i = 0; i < n; i++)
		json_u64(j, i);
	json_end(j);
	PUT_COLUMN(j, "name", &t->resources, json_u64, name);
	put_same(j, "host", n, "null");
	put_same(j, "type", n, "1");
	json_put_u64(j, "length", n);
	json_end(j);
}

static void put_libs(struct json *j, const struct firefox_tables *t)
{
	json_put_arr(j, "libs");
	vec_foreach(r, &t->resources) {
		const struct module *m = &t->p->modules.p[r->module];
		char hex[2 * MODULE_BUILD_ID_MAX + 1] = "";
		for (size_t i = 0; i < m->nr_build_id; i++)
			(void)snprintf(hex + 2 * i, 3, "%02x", m->build_id[i]);
		const char *name = profile_module_name(t->p, r->module);
		json_obj(j);
		json_put_str(j, "arch", "");
		json_put_str(j, "name", name);
		json_put_sv(j, "path", profile_sv(t->p, m->path));
		json_put_str(j, "debugName", name);
		json_put_sv(j, "debugPath", profile_sv(t->p, m->path));
		json_put_str(j, "breakpadId", "");
		json_put_str(j, "codeId", hex);
		json_end(j);
	}
	json_end(j);
}

static void put_empty_tables(struct json *j, const struct firefox_tables *t)
{
	static const char *const symbol_columns[] = {"libIndex", "address", "name", "functionSize"};
	json_put_obj(j, "nativeSymbols");
	for (size_t i = 0; i < ARRAY_LEN(symbol_columns); i++)
		put_same(j, symbol_columns[i], 0, "");
	json_put_u64(j, "length", 0);
	json_end(j);
	json_put_obj(j, "sources");
	json_put_arr(j, "filename");
	vec_foreach(s, &t->sources)
		json_u64(j, *s);
	json_end(j);
	put_same(j, "uuid", t->sources.n, "null");
	json_put_u64(j, "length", t->sources.n);
	json_end(j);
}

void firefox_put_tables(struct json *j, const struct firefox_tables *t)
{
	put_libs(j, t);
	json_put_obj(j, "shared");
	put_stack_table(j, t);
	put_frame_table(j, t);
	put_func_table(j, t);
	put_resource_table(j, t);
	put_empty_tables(j, t);
	json_put_arr(j, "stringArray");
	for (uint32_t i = 0; i < intern_count(&t->strings); i++)
		json_sv(j, intern_get(&t->strings, i));
	json_end(j);
	json_end(j);
}
