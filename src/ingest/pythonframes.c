/* Python frames in native stacks; see pythonframes.h. */
#include "base/base.h"
#include "ingest/pythonframes.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "symbol/pylines.h"

#define LINES_MAX (PYTHON_LINES_BYTES * PYTHON_LINES_PARTS)

struct pycode {
	func_id func;
	str_id file;
	uint32_t first_line;
	uint32_t nr_lines; /* bytes of the whole line table */
	struct buf lines;
};

/* A frame of a Python stack: its location, and whether a call of the C function began there. */
struct pyframe {
	loc_id loc; /* 0: a call without a frame */
	bool is_entry;
};

struct pythonframes {
	struct profile *p;
	struct modules *modules;
	module_id module;
	struct map code_of; /* key -> index into codes */
	VEC(struct pycode) codes;
	struct map loc_of; /* index of a code << 32 | offset -> location */
	VEC(struct pyframe) frames;
	VEC(loc_id) merged; /* leaf first, as frames */
};

struct pythonframes *pythonframes_new(struct profile *p, struct modules *modules)
{
	struct pythonframes *f = xcalloc(1, sizeof(*f));
	f->p = p;
	f->modules = modules;
	f->module = profile_module(p, &(struct module){.kind = MODULE_NAMED,
						       .path = profile_cstr(p, "[python]")});
	return f;
}

void pythonframes_free(struct pythonframes *f)
{
	if (!f)
		return;
	vec_foreach(c, &f->codes)
		buf_release(&c->lines);
	vec_release(&f->codes);
	vec_release(&f->frames);
	vec_release(&f->merged);
	map_release(&f->code_of);
	map_release(&f->loc_of);
	free(f);
}

/* ---- code objects -------------------------------------------------------------------------- */

static void add_utf8(struct buf *to, uint32_t c)
{
	static const uint8_t head[] = {0, 0, 0xc0, 0xe0, 0xf0};
	unsigned n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	if (n == 1) {
		buf_add_ch(to, (char)c);
		return;
	}
	buf_add_ch(to, (char)(head[n] | c >> 6 * (n - 1)));
	for (unsigned i = n - 1; i-- > 0;)
		buf_add_ch(to, (char)(0x80 | (c >> 6 * i & 63)));
}

/* Appends the characters as UTF-8; halves of surrogate pairs, which have none, as U+FFFD. */
static void add_text(struct buf *to, const struct python_text *t, const uint8_t *chars)
{
	for (uint32_t at = 0; t->kind && at + t->kind <= t->nr_bytes; at += t->kind) {
		uint32_t c = 0;
		memcpy(&c, chars + at, MIN(t->kind, sizeof(c)));
		bool is_valid = c && c < 0x110000 && (c < 0xd800 || c > 0xdfff);
		add_utf8(to, is_valid ? c : 0xfffd);
	}
}

/* The file without folders; of a package's __init__.py and __main__.py the package, too. */
static struct sv short_file(struct sv path)
{
	ssize_t slash = sv_rindex(path, '/');
	if (slash <= 0)
		return sv_from_idx(path, (size_t)(slash + 1));
	struct sv base = sv_from_idx(path, (size_t)slash + 1);
	if (!sv_has_prefix(base, SV("__")))
		return base;
	ssize_t parent = sv_rindex(sv_from(path.p, (size_t)slash), '/');
	return sv_from_idx(path, (size_t)(parent + 1));
}

static void name_code(struct pythonframes *f, struct pycode *code, const struct kernel_pycode *c)
{
	CLEANUP(buf_release) struct buf path = {0};
	CLEANUP(buf_release) struct buf name = {0};
	if (c->file.is_cut)
		buf_add_str(&path, "...");
	add_text(&path, &c->file, c->file_text);
	struct sv file = path.n ? short_file(sv_from(path.p, path.n)) : SV("?");
	buf_addf(&name, "%.*s:%u ", (int)file.n, file.p, c->first_line);
	add_text(&name, &c->name, c->name_text);
	if (!c->name.kind)
		buf_add_str(&name, "?");
	if (c->name.is_cut)
		buf_add_str(&name, "...");
	code->file = profile_str(f->p, path.p, path.n);
	code->first_line = c->first_line;
	code->nr_lines = c->nr_lines;
	code->func =
		profile_function(f->p, &(struct function){.name = profile_str(f->p, name.p, name.n),
							  .module = f->module,
							  .flags = FUNC_PYTHON});
}

void pythonframes_add_code(struct pythonframes *f, const struct kernel_pycode *c)
{
	bool is_new;
	uint32_t *idx = map_put(&f->code_of, c->key, &is_new);
	if (is_new) {
		*idx = (uint32_t)f->codes.n;
		vec_push(&f->codes, (struct pycode){0});
		name_code(f, &f->codes.p[*idx], c);
	}
	struct pycode *code = &f->codes.p[*idx];
	size_t nr = c->head.nr_bytes - sizeof(*c);
	if (c->lines_at == code->lines.n && code->lines.n + nr <= MIN(code->nr_lines, LINES_MAX))
		buf_add(&code->lines, c->lines, nr);
}

static uint32_t line_of(const struct pycode *code, int32_t instr)
{
	if (code->lines.n != code->nr_lines)
		return 0;
	return pylines_find(sv_from(code->lines.p, code->lines.n), code->first_line, instr);
}

static loc_id location_of(struct pythonframes *f, const struct python_frame *from)
{
	const uint32_t *idx = map_get(&f->code_of, from->code);
	if (!idx)
		return profile_pseudo_location(f->p, "[python]");
	bool is_new;
	uint32_t *known =
		map_put(&f->loc_of, (uint64_t)*idx << 32 | (uint32_t)from->instr, &is_new);
	if (!is_new)
		return *known;
	const struct pycode *code = &f->codes.p[*idx];
	struct frame frame = {
		.func = code->func, .file = code->file, .line = line_of(code, from->instr)};
	/* As the locations of text formats: made from the frame, since it has no address. */
	uint64_t offset = (uint64_t)3 << 62 | hash_mix((uint64_t)frame.func << 32 | frame.file,
						       (uint64_t)frame.line << 2);
	loc_id loc = profile_location(f->p, f->module, offset, 0);
	if (!(f->p->locations.p[loc].flags & LOCATION_SYMBOLIZED))
		profile_set_frames(f->p, loc, &frame, 1, 0);
	return *known = loc;
}

/* ---- stacks -------------------------------------------------------------------------------- */

static bool is_eval(const struct pythonframes *f, loc_id loc)
{
	const struct location *l = &f->p->locations.p[loc];
	const struct ingest_module *im = modules_by_id(f->modules, l->module);
	const struct pyruntime *r = im ? im->python : NULL;
	uint64_t offset = l->offset - !!(l->flags & LOCATION_CALL);
	return r && r->kind == PYRUNTIME_KNOWN && offset >= r->eval_from && offset < r->eval_to;
}

static void take_frames(struct pythonframes *f, const struct kernel_pystack *s)
{
	vec_clear(&f->frames);
	for (uint32_t i = 0; i < s->nr_frames; i++) {
		const struct python_frame *from = &s->frames[i];
		vec_push(&f->frames, ((struct pyframe){.loc = from->code ? location_of(f, from) : 0,
						       .is_entry = from->flags & PYTHON_IS_ENTRY}));
	}
}

/* Appends the Python frames of one call to f->merged; returns the first frame of the next call. */
static size_t add_call(struct pythonframes *f, size_t at, loc_id eval)
{
	for (; at < f->frames.n; at++) {
		if (f->frames.p[at].loc)
			vec_push(&f->merged, f->frames.p[at].loc);
		else if (eval)
			vec_push(&f->merged, eval);
		if (f->frames.p[at].is_entry)
			return at + 1;
	}
	return at;
}

static bool is_pseudo(const struct pythonframes *f, loc_id loc)
{
	return f->p->modules.p[f->p->locations.p[loc].module].kind == MODULE_PSEUDO;
}

stack_id pythonframes_merge(struct pythonframes *f, const struct kernel_pystack *s, stack_id native,
			    bool *ret_has_leaf)
{
	bool is_in_leaf = s->head.flags & PYSTACK_IN_LEAF;
	bool lacks_leaf = s->head.flags & PYSTACK_NO_LEAF;
	size_t at = 0;
	bool is_leaf = !lacks_leaf;
	take_frames(f, s);
	vec_clear(&f->merged);
	*ret_has_leaf = lacks_leaf && is_in_leaf;
	if (*ret_has_leaf)
		at = add_call(f, at, 0);
	for (; native; native = f->p->stacks.p[native].parent, is_leaf = false) {
		loc_id loc = f->p->stacks.p[native].loc;
		if (is_pseudo(f, loc)) /* [truncated]: callers that the native stack lacks */
			while (at < f->frames.n)
				at = add_call(f, at, 0);
		bool is_call = is_leaf ? is_in_leaf : is_eval(f, loc);
		if (is_call && at < f->frames.n)
			at = add_call(f, at, loc);
		else
			vec_push(&f->merged, loc);
	}
	while (at < f->frames.n)
		at = add_call(f, at, 0);
	stack_id stack = 0;
	for (size_t i = f->merged.n; i-- > 0;)
		stack = profile_stack(f->p, stack, f->merged.p[i]);
	return stack;
}
