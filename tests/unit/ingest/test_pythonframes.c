/* ingest/pythonframes: names of Python functions, and where their frames are among the native ones. */
#include "base/base.h"
#include "tap.h"

#include "base/mem.h"
#include "ingest/pythonframes.h"

#define EVAL_FROM 0x1000u
#define EVAL_TO   0x2000u

struct fixture {
	struct profile *p;
	struct modules modules;
	struct ingest_module im;
	struct ingest_module *list[1];
	struct pyruntime python;
	struct pythonframes *f;
	module_id module;
};

static void set_up(struct fixture *x)
{
	*x = (struct fixture){.p = profile_new()};
	x->module =
		profile_module(x->p, &(struct module){.kind = MODULE_ELF,
						      .path = profile_cstr(x->p, "/bin/python3")});
	x->python = (struct pyruntime){
		.kind = PYRUNTIME_KNOWN, .eval_from = EVAL_FROM, .eval_to = EVAL_TO};
	x->im.python = &x->python;
	vec_push(&x->modules.list, &x->im);
	*map_put(&x->modules.by_id, x->module, NULL) = 1;
	x->f = pythonframes_new(x->p, &x->modules);
}

static void tear_down(struct fixture *x)
{
	pythonframes_free(x->f);
	vec_release(&x->modules.list);
	map_release(&x->modules.by_id);
	profile_free(x->p);
}

static void add_code(struct fixture *x, uint64_t key, const char *file, const char *name,
		     uint32_t first_line, struct sv lines)
{
	struct kernel_pycode *c = xcalloc(1, sizeof(*c) + lines.n);
	c->head.nr_bytes = (uint32_t)(sizeof(*c) + lines.n);
	c->key = key;
	c->first_line = first_line;
	c->nr_lines = (uint32_t)lines.n;
	c->name = (struct python_text){.nr_bytes = (uint32_t)strlen(name), .kind = 1};
	c->file = (struct python_text){.nr_bytes = (uint32_t)strlen(file), .kind = 1};
	memcpy(c->name_text, name, c->name.nr_bytes);
	memcpy(c->file_text, file, c->file.nr_bytes);
	memcpy(c->lines, lines.p, lines.n);
	pythonframes_add_code(x->f, c);
	free(c);
}

/* @evals: of each native frame, root first, 'e' or the letter of another function. */
static stack_id native(struct fixture *x, const char *evals)
{
	stack_id s = 0;
	for (const char *c = evals; *c; c++) {
		loc_id loc = *c == 't' ? profile_pseudo_location(x->p, "[truncated]")
				       : profile_location(x->p, x->module,
							  *c == 'e' ? EVAL_FROM + 0x10
								    : 0x3000u + (uint64_t)*c,
							  0);
		s = profile_stack(x->p, s, loc);
	}
	return s;
}

/* Root first: letters of native frames, 'e' for a frame of the C function, digits for Python. */
static const char *describe(struct fixture *x, stack_id s)
{
	static char text[64];
	size_t at = sizeof(text) - 1;
	for (; s && at; s = x->p->stacks.p[s].parent) {
		const struct location *l = &x->p->locations.p[x->p->stacks.p[s].loc];
		const struct frame *fr = &x->p->frames.p[l->first_frame];
		bool is_eval = l->offset == EVAL_FROM + 0x10;
		const char *name = l->nr_frames ? profile_frame_name(x->p, fr) : "";
		text[--at] = !strcmp(name, "[truncated]") ? 't'
			     : l->nr_frames               ? name[strlen(name) - 1]
			     : is_eval                    ? 'e'
							  : (char)(l->offset - 0x3000);
	}
	return text + at;
}

static struct kernel_pystack *python(const char *frames)
{
	static struct {
		struct kernel_pystack s;
		struct python_frame room[16];
	} r;
	memset(&r, 0, sizeof(r));
	for (; *frames; frames++) {
		struct python_frame *f = &r.s.frames[r.s.nr_frames];
		if (*frames == '|') {
			f[-1].flags = PYTHON_IS_ENTRY;
			continue;
		}
		if (*frames == '!')
			f->flags = PYTHON_IS_ENTRY;
		else
			f->code = (uint64_t)*frames;
		r.s.nr_frames++;
	}
	return &r.s;
}

static void add_codes(struct fixture *x)
{
	for (char c = '1'; c <= '5'; c++) {
		const char name[] = {'f', c, 0};
		add_code(x, (uint64_t)c, "/a/b.py", name, 7, sv_from("", 0));
	}
}

TEST(pythonframes_replace_the_calls_that_ran_them)
{
	struct fixture x;
	set_up(&x);
	add_codes(&x);
	static const struct {
		const char *native; /* root first */
		const char *python; /* leaf first; | behind the first of a call, ! an empty call */
		unsigned flags;
		const char *stack;
	} cases[] = {
		{"aebec", "12|34|", 0, "a43b21c"},
		{"aebe", "12|34|", PYSTACK_IN_LEAF, "a43b21"},
		/* The leaf, which each sample has, is the innermost call. */
		{"aeb", "1|23|", PYSTACK_NO_LEAF | PYSTACK_IN_LEAF, "a32b1"},
		{"a", "12|", PYSTACK_NO_LEAF | PYSTACK_IN_LEAF, "a21"},
		{"aebe", "12|34|", PYSTACK_NO_LEAF, "a43b21"},
		/* The innermost call has not begun its frame, or has ended it. */
		{"aebe", "12|", 0, "a21be"},
		{"aebec", "!34|", 0, "a43bec"},
		/* A call of another interpreter further out. */
		{"aebeced", "12|34|", 0, "aeb43c21d"},
		{"aeb", "12|", PYSTACK_NO_LEAF | PYSTACK_IN_LEAF, "aeb21"},
		/* Callers that the native stack lacks. */
		{"tbec", "12|34|", 0, "t43b21c"},
		/* Frames whose border is missing: the chain was not readable. */
		{"aebec", "12", 0, "aeb21c"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct kernel_pystack *s = python(cases[i].python);
		s->head.flags = (uint16_t)cases[i].flags;
		bool has_leaf;
		stack_id stack = pythonframes_merge(x.f, s, native(&x, cases[i].native), &has_leaf);
		CHECK_STR(describe(&x, stack), cases[i].stack);
		CHECK(has_leaf == (cases[i].flags == (PYSTACK_NO_LEAF | PYSTACK_IN_LEAF)));
	}
	tear_down(&x);
}

TEST(pythonframes_are_named_by_file_line_and_function)
{
	struct fixture x;
	set_up(&x);
	add_code(&x, 1, "/srv/app/views.py", "Page.get", 12, sv_from("\x80\x00\xd8\x04\x05", 5));
	add_code(&x, 2, "/srv/app/__init__.py", "<module>", 1, sv_from("", 0));
	add_code(&x, 3, "<string>", "f", 3, sv_from("", 0));
	struct kernel_pystack *s = python("???|");
	s->frames[0] = (struct python_frame){.code = 1, .instr = 2};
	s->frames[1] = (struct python_frame){.code = 2, .instr = -2};
	s->frames[2] = (struct python_frame){.code = 3, .flags = PYTHON_IS_ENTRY};
	bool has_leaf;
	stack_id stack = pythonframes_merge(x.f, s, native(&x, "ea"), &has_leaf);
	stack = x.p->stacks.p[stack].parent;
	const char *const want[] = {"views.py:12 Page.get", "app/__init__.py:1 <module>",
				    "<string>:3 f"};
	for (size_t i = 0; i < ARRAY_LEN(want); i++, stack = x.p->stacks.p[stack].parent) {
		const struct location *l = &x.p->locations.p[x.p->stacks.p[stack].loc];
		const struct frame *fr = profile_physical_frame(x.p, l);
		CHECK_STR(profile_frame_name(x.p, fr), want[i]);
		CHECK(x.p->functions.p[fr->func].flags & FUNC_PYTHON);
		if (i == 0)
			CHECK_U64(fr->line, 13);
		if (i == 0)
			CHECK_STR(profile_text(x.p, fr->file), "/srv/app/views.py");
	}
	tear_down(&x);
}

TEST(pythonframes_names_of_any_characters_are_utf8)
{
	struct fixture x;
	set_up(&x);
	struct kernel_pycode *c = xcalloc(1, sizeof(*c));
	const uint32_t name[] = {0x4e2d, 0x1f600, 0xdc80, 0x110000, 'x'};
	c->head.nr_bytes = sizeof(*c);
	c->key = 9;
	c->first_line = 1;
	c->name = (struct python_text){.nr_bytes = sizeof(name), .kind = 4, .is_cut = 1};
	memcpy(c->name_text, name, sizeof(name));
	pythonframes_add_code(x.f, c); /* the path was not readable */
	free(c);
	struct kernel_pystack *s = python("?|");
	s->frames[0].code = 9;
	bool has_leaf;
	stack_id stack = pythonframes_merge(x.f, s, native(&x, "ea"), &has_leaf);
	stack = x.p->stacks.p[stack].parent;
	const struct location *l = &x.p->locations.p[x.p->stacks.p[stack].loc];
	CHECK_STR(profile_frame_name(x.p, profile_physical_frame(x.p, l)),
		  "?:1 \u4e2d\U0001f600\ufffd\ufffdx...");
	tear_down(&x);
}
