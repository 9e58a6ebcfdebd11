/* What cannot be seen of runtimes; see runtimes.h. */
#include "base/base.h"
#include "analyze/runtimes.h"

#include <fnmatch.h>

#include "analyze/view.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/vec.h"

#define NOTED_PCT 1.0

struct runtime {
	const char *name;
	const char *module;   /* pattern of the base name of a mapped file */
	const char *function; /* or, if it is part of each program: a function of such a file */
	const char *names;    /* how JIT code gets names; NULL: as without a row */
	const char *stacks;   /* how stacks get callers above JIT code; NULL: as without a row */
	const char *code; /* of an interpreter whose functions have no frames: what shows them */
	const char *switches; /* functions that continue on another stack, in "|", or NULL */
	const char *switched; /* what is not known of stacks that begin there */
	const char *waits;    /* waits of tasks that are no threads, or NULL */
	const char *heap; /* objects that are no blocks of malloc, and how to see them, or NULL */
};

#define NODE_NAMES                                                                                                    \
	"launch node with --jit-map, or start it with --perf-basic-prof, for functions that V8 interprets also with " \
	"--interpreted-frames-native-stack"
#define NODE_HEAP "JavaScript objects are in a heap of V8's own: start node with --heap-prof"
#define PYTHON_HEAP                                                                        \
	"Python objects of up to 512 bytes are in arenas of CPython's own: start it with " \
	"PYTHONMALLOC=malloc in the environment, if it was not"
#define RUBY_CODE "functions of Ruby code have no frames here: rbspy or stackprof shows them"
#define PERL_CODE "functions of Perl code have no frames here: Devel::NYTProf shows them"
#define LUA_CODE  "functions of Lua code have no frames here: a hook of debug.sethook shows them"
#define PHP_CODE  "functions of PHP code have no frames here: phpspy or excimer shows them"

/* The first row is for what is not recognised. A '@' in a text is the process id. */
static const struct runtime runtimes[] = {
	{.name = "JIT code",
	 .names = "a runtime that can write /tmp/perf-@.map gives it names",
	 .stacks = "a runtime that can keep frame pointers gives it callers"},
	{.name = "java",
	 .module = "libjvm.so",
	 .names = "capture with --jit-map (JDK 17 or later), or start java with "
		  "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
	 .stacks = "start java with -XX:+PreserveFramePointer",
	 .heap = "Java objects are in a heap of the JVM's own: 'jcmd @ GC.class_histogram' lists "
		 "them"},
	{.name = "node", .module = "node", .names = NODE_NAMES, .heap = NODE_HEAP},
	{.name = "node", .module = "libnode.so*", .names = NODE_NAMES, .heap = NODE_HEAP},
	{.name = ".NET",
	 .module = "libcoreclr.so",
	 .names = "start it with DOTNET_PerfMapEnabled=1 in the environment",
	 .heap = "objects are in a heap of the runtime's own: 'dotnet-gcdump collect -p @' lists "
		 "them"},
	{.name = "Erlang", .module = "beam.smp", .names = "start erl with +JPperf true"},
	{.name = "Go",
	 .function = "runtime.goexit|runtime.mcall|runtime.systemstack|runtime.mstart1",
	 .switches = "runtime.mcall|runtime.systemstack|runtime.morestack|runtime.asmcgocall",
	 .switched =
		 "the runtime's own work on the stack of a thread: the goroutine that it is done "
		 "for is not shown",
	 .waits = "goroutines that wait for a channel, a sync.Mutex or the network have no thread, "
		  "so their waits are not seen: only the idle time (park) of the threads is; with "
		  "net/http/pprof, /debug/pprof/block and /mutex show them",
	 .heap = "Go objects are in a heap of the Go runtime's own: with net/http/pprof in the "
		 "program, 'go tool pprof http://HOST/debug/pprof/heap' shows who allocated them"},
	{.name = "CPython", .module = "libpython3*.so*", .heap = PYTHON_HEAP},
	{.name = "CPython", .module = "python3*", .heap = PYTHON_HEAP},
	{.name = "ruby", .module = "libruby*.so*", .code = RUBY_CODE},
	{.name = "ruby", .module = "ruby*", .code = RUBY_CODE},
	{.name = "perl", .module = "libperl.so*", .code = PERL_CODE},
	{.name = "perl", .module = "perl*", .code = PERL_CODE},
	{.name = "lua", .module = "liblua5*.so*", .code = LUA_CODE},
	{.name = "lua", .module = "lua5*", .code = LUA_CODE},
	{.name = "PHP", .module = "php", .code = PHP_CODE},
	{.name = "PHP", .module = "php[0-9-]*", .code = PHP_CODE},
	{.name = "PHP", .module = "libphp*.so*", .code = PHP_CODE},
	{.name = "memcached",
	 .module = "memcached",
	 .heap = "items are in slab pages of memcached's own, each a block here: 'stats slabs' "
		 "lists them"},
	{.name = "postgres",
	 .module = "postgres",
	 .heap = "shared buffers are shared memory, and a block here may be a part of a memory "
		 "context: 'select pg_log_backend_memory_contexts(@)' lists the contexts"},
};
#define NR ARRAY_LEN(runtimes)

/* Whether a name is in a list "a|b". */
static bool is_listed(const char *list, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = list; p && *p; p += strcspn(p, "|"), p += *p == '|')
		if (strcspn(p, "|") == n && !memcmp(p, name, n))
			return true;
	return false;
}

/* The runtimes of a profile, as indexes into the table; 0: none. */
struct known {
	uint8_t *of_module;
	struct map of_pid; /* by what a process has mapped */
};

static void known_release(struct known *k)
{
	free(k->of_module);
	map_release(&k->of_pid);
}

static uint8_t runtime_of_name(const char *name)
{
	for (unsigned i = 1; i < NR; i++)
		if (runtimes[i].module && !fnmatch(runtimes[i].module, name, 0))
			return (uint8_t)i;
	return 0;
}

static uint8_t runtime_of_function(const char *name)
{
	for (unsigned i = 1; i < NR; i++)
		if (is_listed(runtimes[i].function, name))
			return (uint8_t)i;
	return 0;
}

static void known_init(struct known *k, const struct profile *p)
{
	k->of_module = xcalloc(p->modules.n + 1, 1);
	for (size_t i = 0; i < p->modules.n; i++)
		if (p->modules.p[i].kind == MODULE_ELF)
			k->of_module[i] = runtime_of_name(profile_module_name(p, (module_id)i));
	for (size_t i = 0; i < p->functions.n; i++) {
		const struct function *f = &p->functions.p[i];
		if (f->module < p->modules.n && !k->of_module[f->module] &&
		    p->modules.p[f->module].kind == MODULE_ELF)
			k->of_module[f->module] = runtime_of_function(profile_text(p, f->name));
	}
	for (size_t i = 0; i < p->mappings.n; i++) {
		const struct mapping *m = &p->mappings.p[i];
		if (k->of_module[m->module])
			*map_put(&k->of_pid, (uint32_t)m->pid, NULL) = k->of_module[m->module];
	}
}

static unsigned runtime_of_row(const struct profile *p, const struct known *k,
			       const struct select_row *row)
{
	const uint32_t *at = map_get(&k->of_pid, (uint32_t)p->tasks.p[row->task].pid);
	return at ? *at : 0;
}

enum stack_state {
	STACK_NAMELESS = 1 << 0, /* has JIT code without symbols */
	STACK_CUT = 1 << 1,      /* the outermost frame is JIT code, whose callers are missing */
	STACK_ROOT_CUT = 1 << 2, /* the node "[truncated]" itself */
	STACK_SWITCHED = 1 << 3, /* the outermost frame is a function that switched stacks */
	STACK_CODE = 1 << 4,     /* has frames of an interpreter */
};

#define STACK_PASSED_ON (STACK_NAMELESS | STACK_CUT | STACK_SWITCHED | STACK_CODE)

/* Returns a state for each node of the tree of stacks; the caller frees it. */
static uint8_t *stack_states(const struct profile *p, const struct known *k)
{
	uint8_t *states = xcalloc(p->stacks.n + 1, 1);
	for (size_t id = 1; id < p->stacks.n; id++) {
		const struct stack_node *node = &p->stacks.p[id];
		const struct location *l = &p->locations.p[node->loc];
		const struct frame *f = profile_physical_frame(p, l);
		uint8_t above = states[node->parent];
		const struct runtime *rt = &runtimes[k->of_module[l->module]];
		states[id] = above & STACK_PASSED_ON;
		if (!node->parent && f && !strcmp(profile_frame_name(p, f), "[truncated]"))
			states[id] |= STACK_ROOT_CUT;
		if (rt->code)
			states[id] |= STACK_CODE;
		if (above & STACK_ROOT_CUT && f && rt->switches &&
		    is_listed(rt->switches, profile_frame_name(p, f)))
			states[id] |= STACK_SWITCHED;
		if (p->modules.p[l->module].kind != MODULE_JIT)
			continue;
		if (!f)
			states[id] |= STACK_NAMELESS;
		if (above & STACK_ROOT_CUT)
			states[id] |= STACK_CUT;
	}
	return states;
}

/* Of one runtime: weights of rows whose stacks have the state, and one of their processes. */
struct missing {
	uint64_t nameless;
	uint64_t cut;
	uint64_t switched;
	uint64_t code;
	int32_t pid;
};

/* Appends a text with the process in the place of '@'. */
static void add_text(struct buf *to, const char *text, int32_t pid)
{
	const char *at = strchr(text, '@');
	buf_add(to, text, at ? (size_t)(at - text) : strlen(text));
	if (at)
		buf_addf(to, "%d%s", pid, at + 1);
}

/* Appends "SHARE of the time TEXT: REMEDY" if the share is worth a note. */
static void add_missing(struct buf *to, const struct selection *sel, uint64_t weight,
			const char *text, const char *remedy, int32_t pid)
{
	double pct = view_pct(weight, sel->weight);
	if (pct < NOTED_PCT)
		return;
	if (view_has_shares(sel))
		buf_addf(to, "%s%s %%", to->n ? "; " : "", num_pct(pct).s);
	else
		buf_addf(to, "%sa part", to->n ? "; " : "");
	buf_addf(to, " of the %s %s: ", view_amount(sel), text);
	add_text(to, remedy, pid);
}

static void note_missing(struct report *r, const struct selection *sel, const struct runtime *rt,
			 const struct missing *m)
{
	CLEANUP(buf_release) struct buf text = {0};
	add_missing(&text, sel, m->nameless, "is in or below JIT code without names",
		    rt->names ? rt->names : runtimes->names, m->pid);
	add_missing(&text, sel, m->cut, "has no callers above JIT code",
		    rt->stacks ? rt->stacks : runtimes->stacks, m->pid);
	if (rt->switched)
		add_missing(&text, sel, m->switched, "has no callers above a change of stacks",
			    rt->switched, m->pid);
	if (rt->code)
		add_missing(&text, sel, m->code, "is in or below the interpreter", rt->code,
			    m->pid);
	if (text.n)
		report_note(r, "%s: %s", rt->name, buf_str(&text));
}

void runtimes_note_stacks(struct report *r, const struct selection *sel)
{
	const struct profile *p = sel->p;
	if (!sel->weight)
		return;
	CLEANUP(known_release) struct known known = {0};
	known_init(&known, p);
	CLEANUP(free_p) uint8_t *states = stack_states(p, &known);
	struct missing missing[NR] = {0};
	for (size_t i = 0; i < sel->nr_rows; i++) {
		const struct select_row *row = &sel->rows[i];
		uint8_t state = states[row->stack];
		if (!(state & STACK_PASSED_ON))
			continue;
		struct missing *m = &missing[runtime_of_row(p, &known, row)];
		m->nameless += state & STACK_NAMELESS ? row->weight : 0;
		m->cut += state & STACK_CUT ? row->weight : 0;
		m->switched += state & STACK_SWITCHED ? row->weight : 0;
		m->code += state & STACK_CODE ? row->weight : 0;
		m->pid = p->tasks.p[row->task].pid;
	}
	for (size_t i = 0; i < NR; i++)
		note_missing(r, sel, &runtimes[i], &missing[i]);
}

void runtimes_note_waits(struct report *r, const struct selection *sel)
{
	const struct profile *p = sel->p;
	CLEANUP(known_release) struct known known = {0};
	known_init(&known, p);
	bool is_noted[NR] = {false};
	for (size_t i = 0; i < p->tasks.n; i++) {
		const uint32_t *at = map_get(&known.of_pid, (uint32_t)p->tasks.p[i].pid);
		if (!at || is_noted[*at] || !runtimes[*at].waits)
			continue;
		is_noted[*at] = true;
		report_note(r, "%s: %s", runtimes[*at].name, runtimes[*at].waits);
	}
}

void runtimes_note_heap(struct report *r, const struct selection *sel)
{
	const struct profile *p = sel->p;
	CLEANUP(known_release) struct known known = {0};
	known_init(&known, p);
	int32_t pids[NR] = {0};
	for (size_t i = 0; i < sel->nr_rows; i++)
		pids[runtime_of_row(p, &known, &sel->rows[i])] = p->tasks.p[sel->rows[i].task].pid;
	for (size_t i = 1; i < NR; i++) {
		CLEANUP(buf_release) struct buf text = {0};
		if (!pids[i] || !runtimes[i].heap)
			continue;
		add_text(&text, runtimes[i].heap, pids[i]);
		report_note(r, "%s: %s", runtimes[i].name, buf_str(&text));
	}
}
