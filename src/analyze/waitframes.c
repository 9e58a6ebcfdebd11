/* Which function waits; see waitframes.h. */
#include "base/base.h"
#include "analyze/waitframes.h"

#include "analyze/groups.h"
#include "analyze/syncframes.h"

enum { NOT_YET = 0, IS_OWN, IS_RUNTIME };

struct waitframes {
	const struct profile *p;
	uint8_t *by_func;
	uint8_t *by_module;
};

/* Files of the C and C++ runtimes. */
static bool is_runtime_module(const char *name)
{
	static const char *const prefixes[] = {
		"libc.so",  "libc-",    "libc.musl", "libpthread", "ld-linux", "ld-musl",
		"ld-2.",    "libm.so",  "libstdc++", "libc++",     "libgcc_s", "libdl",
		"librt",    "[vdso]",   "libtbb",    "libgomp",    "libomp",   "libjemalloc",
		"libaio.s", "liburing", "libabsl_",
	};
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* Crates and namespaces that wait on behalf of others. */
static bool is_runtime_crate(struct sv crate)
{
	static const char *const crates[] = {
		"std",       "core",   "alloc", "parking_lot",       "parking_lot_core", "lock_api",
		"dashmap",   "libc",   "nix",   "crossbeam_channel", "crossbeam_utils",  "rustix",
		"once_cell", "mio",    "flume", "event_listener",    "__gnu_cxx",        "absl",
		"boost",     "__libc",
	};
	for (size_t i = 0; i < ARRAY_LEN(crates); i++)
		if (sv_eq_str(crate, crates[i]))
			return true;
	return false;
}

struct waitframes *waitframes_new(struct arena *a, const struct profile *p)
{
	struct waitframes *wf = arena_calloc(a, 1, sizeof(*wf));
	wf->p = p;
	wf->by_func = arena_calloc(a, p->functions.n + 1, 1);
	wf->by_module = arena_calloc(a, p->modules.n + 1, 1);
	return wf;
}

static bool is_module_runtime(struct waitframes *wf, module_id id)
{
	if (wf->by_module[id] == NOT_YET)
		wf->by_module[id] =
			is_runtime_module(profile_module_name(wf->p, id)) ? IS_RUNTIME : IS_OWN;
	return wf->by_module[id] == IS_RUNTIME;
}

static bool is_func_runtime(struct waitframes *wf, func_id id)
{
	if (wf->by_func[id] == NOT_YET) {
		struct sv name = profile_sv(wf->p, wf->p->functions.p[id].name);
		bool is_runtime = is_runtime_crate(crate_from_name(name)) ||
				  sync_kind_of(name) != SYNC_UNKNOWN;
		wf->by_func[id] = is_runtime ? IS_RUNTIME : IS_OWN;
	}
	return wf->by_func[id] == IS_RUNTIME;
}

struct waitframe waitframe_of(struct waitframes *wf, stack_id stack)
{
	const struct profile *p = wf->p;
	struct waitframe f = {.is_empty = !stack, .is_kernel = true};
	str_id outermost = 0;
	module_id outermost_module = 0;
	for (stack_id s = stack; s; s = p->stacks.p[s].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[s].loc];
		if (l->flags & LOCATION_KERNEL)
			continue;
		f.is_kernel = false;
		for (uint32_t i = 0; i < l->nr_frames; i++) {
			func_id func = p->frames.p[l->first_frame + i].func;
			str_id name = p->functions.p[func].name;
			if (!is_module_runtime(wf, l->module) && !is_func_runtime(wf, func)) {
				f.own = name;
				f.module = l->module;
				return f;
			}
			f.via = name;
			outermost = outermost ? outermost : name;
			outermost_module = l->module;
		}
		if (!l->nr_frames && !is_module_runtime(wf, l->module)) {
			f.module = l->module; /* without a name, but the program's */
			return f;
		}
	}
	/* Nothing but the runtime: its innermost function stands for it. */
	f.own = outermost;
	f.module = outermost_module;
	f.via = 0;
	return f;
}

const char *waitframe_name(const struct profile *p, const struct waitframe *f)
{
	if (f->own)
		return profile_text(p, f->own);
	return f->is_empty ? "[no stack]" : f->is_kernel ? "[kernel]" : "[unknown]";
}

void waitframes_add_stack(struct buf *to, const struct profile *p, stack_id stack)
{
	size_t n = 0;
	for (stack_id s = stack; s; s = p->stacks.p[s].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[s].loc];
		if (!l->nr_frames)
			buf_addf(to, "%s[unknown]", n++ ? " < " : "");
		for (uint32_t i = 0; i < l->nr_frames; i++)
			buf_addf(to, "%s%s", n++ ? " < " : "",
				 profile_frame_name(p, &p->frames.p[l->first_frame + i]));
	}
	if (!n)
		buf_add_str(to, "[no stack]");
}

stack_id waitframes_user_part(const struct profile *p, stack_id stack)
{
	while (stack && p->locations.p[p->stacks.p[stack].loc].flags & LOCATION_KERNEL)
		stack = p->stacks.p[stack].parent;
	return stack;
}
