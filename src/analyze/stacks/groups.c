/* Maps frames to groups; see groups.h. */
#include "base/base.h"
#include "analyze/stacks/groups.h"

#include "analyze/diff/plainname.h"
#include "analyze/report.h"
#include "base/map.h"
#include "base/vec.h"

struct builder {
	struct arena *a;
	const struct profile *p;
	enum group_by by;
	bool is_plain;         /* names without additions of compilers and linkers */
	struct intern names;   /* names that are not in the profile: crates, "file:line" */
	const char **modules;  /* short name by module */
	uint32_t *module_keys; /* id of the short name in names, by module */
	uint32_t kernel_key;   /* of "[kernel]" */
	struct sv *crates;     /* by func_id; p NULL: not computed yet; BY_CRATE only */
	struct map index;
	VEC(struct group) rows;
};

static void builder_release(struct builder *b)
{
	intern_release(&b->names);
	map_release(&b->index);
	vec_release(&b->rows);
}

/* @name_key and @module_key: ids that identify the names. */
static uint32_t find_group(struct builder *b, uint32_t name_key, uint32_t module_key,
			   const char *name, const char *module, uint32_t flags)
{
	bool is_new;
	uint32_t *id = map_put(&b->index, (uint64_t)name_key << 32 | module_key, &is_new);
	if (is_new) {
		*id = (uint32_t)b->rows.n;
		vec_push(&b->rows, (struct group){name, module, flags});
	}
	b->rows.p[*id].flags &= flags;
	return *id;
}

/* Finds or adds a group by name only. */
static uint32_t find_named(struct builder *b, const char *name, size_t n, uint32_t flags)
{
	uint32_t key = intern_add(&b->names, name, n);
	bool is_new;
	uint32_t *id = map_put(&b->index, key, &is_new);
	if (is_new) {
		*id = (uint32_t)b->rows.n;
		vec_push(&b->rows, (struct group){arena_strndup(b->a, name, n), "", flags});
	}
	b->rows.p[*id].flags &= flags;
	return *id;
}

static uint32_t flags_of(const struct profile *p, const struct location *l, const struct frame *f)
{
	enum module_kind kind = p->modules.p[l->module].kind;
	uint32_t flags = l->flags & LOCATION_KERNEL ? TREE_KERNEL : 0;
	flags |= kind == MODULE_JIT ? TREE_JIT : 0;
	flags |= kind == MODULE_PSEUDO ? TREE_PSEUDO : 0;
	if (!f)
		return flags;
	if (f->is_inlined)
		flags |= TREE_INLINED;
	if (f->is_inferred)
		flags |= TREE_INFERRED;
	uint32_t ff = p->functions.p[f->func].flags;
	flags |= ff & FUNC_GUESSED ? TREE_GUESSED : 0;
	flags |= ff & FUNC_JIT ? TREE_JIT : 0;
	flags |= ff & FUNC_PYTHON ? TREE_PYTHON : 0;
	flags |= ff & FUNC_KERNEL ? TREE_KERNEL : 0;
	return flags;
}

/* In text formats a frame may be a kernel frame without a module. */
static bool is_kernel_by_flag(const struct builder *b, module_id mod, uint32_t flags)
{
	return !b->modules[mod][0] && flags & TREE_KERNEL;
}

static const char *module_name(const struct builder *b, module_id mod, uint32_t flags)
{
	return is_kernel_by_flag(b, mod, flags) ? "[kernel]" : b->modules[mod];
}

/* Module name of a frame as shown; frames without a module have a name of their own. */
static uint32_t module_group(struct builder *b, module_id mod, const char *fallback, uint32_t flags)
{
	const char *name = module_name(b, mod, flags);
	if (!name[0])
		name = fallback;
	return find_named(b, name, strlen(name), flags);
}

/* Computed once per function: it has many locations, and its name may be kilobytes long. */
static struct sv crate_of(struct builder *b, const struct frame *f, const char *name)
{
	if (!f)
		return crate_from_name(sv_from_str(name));
	struct sv *crate = &b->crates[f->func];
	if (!crate->p)
		*crate = crate_from_name(sv_from_str(name));
	return *crate;
}

static uint32_t crate_group(struct builder *b, module_id mod, const struct frame *f,
			    const char *name, uint32_t flags)
{
	struct sv crate = flags & TREE_KERNEL ? sv_from("", 0) : crate_of(b, f, name);
	if (crate.n)
		return find_named(b, crate.p, crate.n, flags);
	return module_group(b, mod, flags & TREE_PSEUDO ? name : "<no crate>", flags);
}

static uint32_t source_group(struct builder *b, const struct location *l, const struct frame *f,
			     uint32_t flags)
{
	const struct profile *p = b->p;
	if (!f || !f->file) {
		const char *mod = b->modules[l->module];
		const char *name = arena_fmt(b->a, "%s (no source line)", mod[0] ? mod : "?");
		return find_named(b, name, strlen(name), flags);
	}
	const char *file = profile_text(p, f->file);
	if (b->by == BY_FILE)
		return find_named(b, file, strlen(file), flags);
	/* A line in two functions (macros, inlining) is one row per function. */
	const char *name = arena_fmt(b->a, "%s:%u", file, f->line);
	uint32_t key = intern_add_str(&b->names, name);
	const char *func = profile_frame_name(p, f);
	return find_group(b, key, intern_add_str(&b->names, func), name, func, flags);
}

static uint32_t plain_function(struct builder *b, module_id mod, const char *name, uint32_t flags)
{
	struct sv plain = plainname_of_function(sv_from_str(name));
	if (plain.n < strlen(name))
		name = arena_strndup(b->a, plain.p, plain.n);
	return find_group(b, intern_add(&b->names, plain.p, plain.n),
			  is_kernel_by_flag(b, mod, flags) ? b->kernel_key : b->module_keys[mod],
			  name, module_name(b, mod, flags), flags);
}

static uint32_t group_of(struct builder *b, const struct location *l, const struct frame *f)
{
	const struct profile *p = b->p;
	uint32_t flags = flags_of(p, l, f);
	str_id func = f ? p->functions.p[f->func].name : 0;
	module_id mod = f ? profile_frame_module(p, l, f) : l->module;
	const char *name = f ? profile_frame_name(p, f) : "[unknown]";
	switch (b->by) {
	case BY_FUNCTION:
		if (b->is_plain)
			return plain_function(b, mod, name, flags);
		return find_group(b, func,
				  is_kernel_by_flag(b, mod, flags) ? b->kernel_key
								   : b->module_keys[mod],
				  name, module_name(b, mod, flags), flags);
	case BY_MODULE:
		return module_group(b, mod, flags & TREE_PSEUDO ? name : "<no module>", flags);
	case BY_CRATE:
		return crate_group(b, mod, f, name, flags);
	case BY_FILE:
	case BY_LINE:
		return source_group(b, l, f, flags);
	case BY_NR:
		break;
	}
	BUG("no such grouping: %d", (int)b->by);
}

static void name_modules(struct builder *b)
{
	const struct profile *p = b->p;
	b->modules = arena_calloc(b->a, p->modules.n, sizeof(*b->modules));
	b->module_keys = arena_calloc(b->a, p->modules.n, sizeof(*b->module_keys));
	b->kernel_key = intern_add_str(&b->names, "[kernel]");
	for (module_id m = 0; m < p->modules.n; m++) {
		struct sv name = sv_from_str(profile_module_name(p, m));
		struct sv plain = b->is_plain ? plainname_of_module(name) : name;
		b->modules[m] = plain.n < name.n ? arena_strndup(b->a, plain.p, plain.n) : name.p;
		b->module_keys[m] = intern_add_str(&b->names, b->modules[m]);
	}
}

static struct groups make(struct arena *a, const struct profile *p, enum group_by by, bool is_plain)
{
	CLEANUP(builder_release)
	struct builder b = {.a = a, .p = p, .by = by, .is_plain = is_plain};
	(void)intern_add(&b.names, "", 0);
	name_modules(&b);
	if (by == BY_CRATE)
		b.crates = arena_calloc(a, p->functions.n, sizeof(*b.crates));
	struct groups g = {
		.by_frame = arena_calloc(a, p->frames.n, sizeof(*g.by_frame)),
		.by_loc = arena_calloc(a, p->locations.n, sizeof(*g.by_loc)),
	};
	vec_push(&b.rows, (struct group){"", "", 0});
	for (loc_id loc = 1; loc < p->locations.n; loc++) {
		const struct location *l = &p->locations.p[loc];
		for (uint32_t i = 0; i < l->nr_frames; i++)
			g.by_frame[l->first_frame + i] =
				group_of(&b, l, &p->frames.p[l->first_frame + i]);
		if (!l->nr_frames)
			g.by_loc[loc] = group_of(&b, l, NULL);
	}
	g.by_loc[0] = (uint32_t)b.rows.n;
	vec_push(&b.rows, (struct group){"[no stack]", "", TREE_PSEUDO});
	g.n = b.rows.n;
	g.rows = arena_dup(a, b.rows.p, b.rows.n * sizeof(*b.rows.p));
	return g;
}

struct groups groups_by(struct arena *a, const struct profile *p, enum group_by by)
{
	return make(a, p, by, false);
}

struct groups groups_by_plain_name(struct arena *a, const struct profile *p, enum group_by by)
{
	return make(a, p, by, true);
}
