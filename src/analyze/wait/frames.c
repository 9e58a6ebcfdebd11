/* Finds the waiting function; see frames.h. */
#include "base/base.h"
#include "analyze/wait/frames.h"

#include <sys/syscall.h>

#include "analyze/select/funcglob.h"
#include "analyze/stacks/groups.h"
#include "analyze/stacks/pythonmodules.h"
#include "analyze/wait/syncframes.h"

enum { NOT_YET = 0, IS_OWN, IS_RUNTIME, IS_JVM };

/* Texts of functions of Python with a line, in the arena. */
struct line_text {
	str_id name;
	uint32_t line;
	const char *text;
	struct line_text *next;
};

struct waitframes {
	const struct profile *p;
	bool has_python;
	bool has_java;
	uint8_t *by_func;
	uint8_t *by_module;
	struct arena *arena;
	struct line_text *lines; /* few */
	uint8_t *sync;           /* by function: 1 + enum sync_kind, 0: not yet looked up */
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

/* Crates and namespaces whose functions wait for their callers. */
static bool is_runtime_crate(struct sv crate)
{
	static const char *const crates[] = {
		"std",
		"core",
		"alloc",
		"parking_lot",
		"parking_lot_core",
		"lock_api",
		"dashmap",
		"libc",
		"nix",
		"crossbeam_channel",
		"crossbeam_utils",
		"rustix",
		"once_cell",
		"mio",
		"flume",
		"event_listener",
		"__gnu_cxx",
		"absl",
		"boost",
		"__libc",
		"tokio",
		"rayon_core",
		"rayon",
		"kanal",
		"async_channel",
		"__rustc",
	};
	for (size_t i = 0; i < ARRAY_LEN(crates); i++)
		if (sv_eq_str(crate, crates[i]))
			return true;
	return false;
}

/* Packages of Go that wait for their callers. */
static bool is_runtime_package(struct sv name)
{
	static const char *const prefixes[] = {
		"runtime.", "runtime/", "internal/", "syscall.", "golang.org/x/sys/unix.",
		"sync.",    "os.",      "io.",       "bufio.",   "net.",
		"time.",
	};
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (sv_has_prefix(name, sv_from_str(prefixes[i])))
			return true;
	return false;
}

static bool is_jvm_module(const char *name)
{
	static const char *const names[] = {"libjvm.so", "libjava.so", "libnio.so", "libnet.so"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/*
 * Names of code that the JVM compiles: "void java.lang.Thread.sleep(long)", "Interpreter",
 * "_complete_monitor_locking_Java", "SafepointBlob".
 */
static bool is_java_runtime(struct sv name)
{
	struct sv method = sv_split(&name, '(');
	if (funcglob_is_like("Interpreter*|StubRoutines*|*_Java|*Blob", method))
		return true;
	return funcglob_is_like("java.*|jdk.*|sun.*",
				sv_from_idx(method, (size_t)(sv_rindex(method, ' ') + 1)));
}

struct waitframes *waitframes_new(struct arena *a, const struct profile *p)
{
	struct waitframes *wf = arena_calloc(a, 1, sizeof(*wf));
	wf->p = p;
	wf->arena = a;
	wf->has_python = python_is_seen(p);
	for (module_id id = 0; id < p->modules.n; id++)
		wf->has_java |= !strcmp(profile_module_name(p, id), "libjvm.so");
	wf->by_func = arena_calloc(a, p->functions.n + 1, 1);
	wf->by_module = arena_calloc(a, p->modules.n + 1, 1);
	wf->sync = arena_calloc(a, p->functions.n + 1, 1);
	return wf;
}

static int kind_of_module(struct waitframes *wf, module_id id)
{
	if (wf->by_module[id] == NOT_YET) {
		const char *name = profile_module_name(wf->p, id);
		bool is_runtime =
			is_runtime_module(name) || (wf->has_python && python_is_module(name));
		wf->by_module[id] = is_runtime ? IS_RUNTIME : is_jvm_module(name) ? IS_JVM : IS_OWN;
	}
	return wf->by_module[id];
}

static bool is_module_runtime(struct waitframes *wf, module_id id)
{
	return kind_of_module(wf, id) != IS_OWN;
}

/* Names are compared with some hundred patterns: once for each function. */
static bool is_sync(struct waitframes *wf, func_id id)
{
	if (!wf->sync[id])
		wf->sync[id] =
			1 + (uint8_t)sync_kind_of(profile_sv(wf->p, wf->p->functions.p[id].name));
	return wf->sync[id] != 1 + SYNC_UNKNOWN && wf->sync[id] != 1 + SYNC_CODE;
}

/* True for the functions of frames that are no code: "[truncated]". */
static bool is_pseudo(struct sv name)
{
	return name.n > 2 && name.p[0] == '[' && name.p[name.n - 1] == ']';
}

static bool is_func_runtime(struct waitframes *wf, func_id id)
{
	if (wf->by_func[id] == NOT_YET) {
		struct sv name = profile_sv(wf->p, wf->p->functions.p[id].name);
		bool is_runtime = is_runtime_crate(crate_from_name(name)) || is_sync(wf, id) ||
				  is_runtime_package(name) ||
				  (wf->has_java && is_java_runtime(name)) ||
				  sv_has_prefix(name, SV("__gthread_")) || /* libstdc++ */
				  sv_has_prefix(name, SV("__rust_")) ||
				  sv_has_prefix(name, SV("__rdl_")); /* Rust's allocator */
		wf->by_func[id] = is_runtime ? IS_RUNTIME : IS_OWN;
	}
	return wf->by_func[id] == IS_RUNTIME;
}

/*
 * True for names made from a start address (stripped code): the next symbolized caller is more
 * useful.
 */
static bool is_nameless(const struct profile *p, func_id id)
{
	return strstr(profile_text(p, p->functions.p[id].name), "!fn_") != NULL;
}

/* True for entry functions, which are on every stack. */
static bool is_entry(const struct profile *p, str_id name)
{
	struct sv s = profile_sv(p, name);
	return sv_eq_str(s, "main") || sv_eq_str(s, "_start");
}

/* Runtime functions met on the way from the leaf, used if no program function follows. */
struct met {
	struct waitframe nameless; /* innermost function of the program, if unsymbolized */
	struct waitframe jvm;      /* innermost function of the JVM */
	struct waitframe waiting;  /* outermost known wait function */
	struct waitframe named;    /* innermost function outside of the C library */
	struct waitframe any;      /* innermost function */
};

static void meet_runtime(struct waitframes *wf, struct met *m, const struct waitframe *f,
			 func_id func, module_id module)
{
	struct waitframe here = {
		.own = wf->p->functions.p[func].name, .via = f->via, .module = module};
	if (!m->any.own)
		m->any = here;
	if (!m->jvm.own && kind_of_module(wf, module) == IS_JVM)
		m->jvm = here;
	if (!m->named.own && !is_module_runtime(wf, module))
		m->named = here;
	if (is_sync(wf, func))
		m->waiting = here;
}

/* "app.py:3 update (line 5)": the line of a name is that of the definition. */
static const char *text_at_line(struct waitframes *wf, str_id name, uint32_t line)
{
	for (const struct line_text *t = wf->lines; t; t = t->next)
		if (t->name == name && t->line == line)
			return t->text;
	struct line_text *t = arena_alloc(wf->arena, sizeof(*t));
	*t = (struct line_text){name, line,
				arena_fmt(wf->arena, "%s (line %" PRIu32 ")",
					  profile_text(wf->p, name), line),
				wf->lines};
	wf->lines = t;
	return t->text;
}

/* Returns true if @f is the result. */
static bool meet_own(const struct profile *p, struct met *m, struct waitframe *f, func_id func,
		     module_id module)
{
	str_id name = p->functions.p[func].name;
	if (is_nameless(p, func)) {
		if (!m->nameless.own)
			m->nameless =
				(struct waitframe){.own = name, .via = f->via, .module = module};
		return false;
	}
	if (m->nameless.own && is_entry(p, name)) {
		*f = m->nameless;
		return true;
	}
	if (m->nameless.own)
		f->via = m->nameless.via ? m->nameless.via : m->nameless.own;
	f->own = name;
	f->module = module;
	return true;
}

struct waitframe waitframe_of(struct waitframes *wf, stack_id stack)
{
	const struct profile *p = wf->p;
	struct waitframe f = {.is_empty = !stack, .is_kernel = true};
	struct met met = {0};
	for (stack_id s = stack; s; s = p->stacks.p[s].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[s].loc];
		if (l->flags & LOCATION_KERNEL)
			continue;
		f.is_kernel = false;
		for (uint32_t i = 0; i < l->nr_frames; i++) {
			const struct frame *at = &p->frames.p[l->first_frame + i];
			module_id module = profile_frame_module(p, l, at);
			func_id func = at->func;
			if (!is_module_runtime(wf, module) && !is_func_runtime(wf, func)) {
				if (is_pseudo(profile_sv(p, p->functions.p[func].name)))
					continue;
				if (!meet_own(p, &met, &f, func, module))
					continue;
				if (p->functions.p[func].flags & FUNC_PYTHON && at->line)
					f.text = text_at_line(wf, f.own, at->line);
				return f;
			}
			meet_runtime(wf, &met, &f, func, module);
			f.via = p->functions.p[func].name;
		}
		if (!l->nr_frames && !is_module_runtime(wf, l->module)) {
			if (met.nameless.own)
				break;
			f.module = l->module; /* unsymbolized, but of the program */
			return f;
		}
	}
	/* Only runtime functions: returns the most informative one. */
	const struct waitframe *best = met.nameless.own  ? &met.nameless
				       : met.jvm.own     ? &met.jvm
				       : met.waiting.own ? &met.waiting
				       : met.named.own   ? &met.named
							 : &met.any;
	return (struct waitframe){.own = best->own,
				  .via = best->via,
				  .module = best->module,
				  .is_empty = f.is_empty,
				  .is_kernel = f.is_kernel};
}

str_id waitframes_innermost(struct waitframes *wf, stack_id stack)
{
	const struct profile *p = wf->p;
	for (stack_id s = stack; s; s = p->stacks.p[s].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[s].loc];
		for (uint32_t i = 0; i < l->nr_frames && !(l->flags & LOCATION_KERNEL); i++) {
			const struct frame *f = &p->frames.p[l->first_frame + i];
			if (!is_module_runtime(wf, profile_frame_module(p, l, f)) &&
			    !is_func_runtime(wf, f->func))
				return p->functions.p[f->func].name;
		}
	}
	return 0;
}

const char *waitframe_name(const struct profile *p, const struct waitframe *f)
{
	if (f->own)
		return f->text ? f->text : profile_text(p, f->own);
	return f->is_empty ? "[no stack]" : f->is_kernel ? "[kernel]" : "[unknown]";
}

void waitframes_add_stack(struct buf *to, const struct profile *p, stack_id stack)
{
	if (stack)
		frames_add(to, (struct frame_it){.p = p, .node = stack}, "");
	else
		buf_add_str(to, "[no stack]");
}

void waitframes_add_user_first(struct buf *to, const struct profile *p, stack_id stack)
{
	stack_id user = waitframes_user_part(p, stack);
	waitframes_add_stack(to, p, user ? user : stack);
	if (!user || user == stack)
		return;
	stack_id first = select_without_scheduler(p, stack);
	stack_id last = first;
	while (last != user && p->stacks.p[last].parent != user)
		last = p->stacks.p[last].parent;
	if (last == user)
		return;
	uint32_t nr = p->locations.p[p->stacks.p[last].loc].nr_frames;
	struct frame_it it = {.p = p, .node = first, .stop = last, .stop_frame = nr ? nr - 1 : 0};
	frames_add(to, it, " [kernel: ");
	buf_add_ch(to, ']');
}

bool wait_is_send(const struct tag *tag)
{
	static const int16_t sends[] = {SYS_write,  SYS_writev,  SYS_pwrite64, SYS_pwritev,
					SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_vmsplice};
	for (size_t i = 0; i < ARRAY_LEN(sends); i++)
		if (tag->syscall == sends[i])
			return true;
	return false;
}

const char *wait_ended_by(const struct tag *tag)
{
	if (tag->evidence & EVIDENCE_BY_IRQ)
		return "[device or timer]";
	if (tag->evidence & EVIDENCE_SELF)
		return tag->evidence & EVIDENCE_OPEN ? "[end of process]" : "[timeout or signal]";
	return tag->evidence & EVIDENCE_OPEN ? "[still waiting]" : "[not seen]";
}

stack_id waitframes_user_part(const struct profile *p, stack_id stack)
{
	while (stack && p->locations.p[p->stacks.p[stack].loc].flags & LOCATION_KERNEL)
		stack = p->stacks.p[stack].parent;
	return stack;
}
