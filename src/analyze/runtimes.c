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
	const char *module; /* pattern of the base name of a mapped file */
	const char *names;  /* how JIT code gets names; NULL: as without a row */
	const char *stacks; /* how stacks get callers above JIT code; NULL: as without a row */
	const char *heap;   /* objects that are no blocks of malloc, and how to see them, or NULL */
};

/* The first row is for what is not recognised. A '@' in a text stands for the process. */
static const struct runtime runtimes[] = {
	{"JIT code", NULL, "a runtime that can write /tmp/perf-@.map gives it names",
	 "a runtime that can keep frame pointers gives it callers", NULL},
	{"java", "libjvm.so",
	 "run 'jcmd @ Compiler.perfmap' during a capture (JDK 17 or later), or start java with "
	 "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
	 "start java with -XX:+PreserveFramePointer",
	 "Java objects are in a heap of the JVM's own: 'jcmd @ GC.class_histogram' lists them"},
	{"node", "node",
	 "start node with --perf-basic-prof, for functions that V8 interprets also with "
	 "--interpreted-frames-native-stack",
	 NULL, "JavaScript objects are in a heap of V8's own: start node with --heap-prof"},
	{"node", "libnode.so*",
	 "start node with --perf-basic-prof, for functions that V8 interprets also with "
	 "--interpreted-frames-native-stack",
	 NULL, "JavaScript objects are in a heap of V8's own: start node with --heap-prof"},
	{".NET", "libcoreclr.so", "start it with DOTNET_PerfMapEnabled=1 in the environment", NULL,
	 "objects are in a heap of the runtime's own: 'dotnet-gcdump collect -p @' lists them"},
	{"Erlang", "beam.smp", "start erl with +JPperf true", NULL, NULL},
	{"CPython", "libpython3*.so*", NULL, NULL,
	 "Python objects of up to 512 bytes are in arenas of CPython's own: start it with "
	 "PYTHONMALLOC=malloc in the environment, if it was not"},
	{"CPython", "python3*", NULL, NULL,
	 "Python objects of up to 512 bytes are in arenas of CPython's own: start it with "
	 "PYTHONMALLOC=malloc in the environment, if it was not"},
	{"memcached", "memcached", NULL, NULL,
	 "items are in slab pages of memcached's own, each a block here: 'stats slabs' lists them"},
	{"postgres", "postgres", NULL, NULL,
	 "shared buffers are shared memory, and a block here may be a part of a memory context: "
	 "'select pg_log_backend_memory_contexts(@)' lists the contexts"},
};
#define NR ARRAY_LEN(runtimes)

static unsigned runtime_of_module(const struct profile *p, module_id id)
{
	const char *name = profile_module_name(p, id);
	for (unsigned i = 1; i < NR; i++)
		if (p->modules.p[id].kind == MODULE_ELF && !fnmatch(runtimes[i].module, name, 0))
			return i;
	return 0;
}

/* Fills @ret: pid -> index into runtimes, by what the process has mapped. */
static void find_runtimes(struct map *ret, const struct profile *p)
{
	CLEANUP(free_p) uint8_t *of_module = xcalloc(p->modules.n + 1, 1); /* index + 1 */
	for (size_t i = 0; i < p->mappings.n; i++) {
		const struct mapping *m = &p->mappings.p[i];
		if (!of_module[m->module])
			of_module[m->module] = (uint8_t)(1 + runtime_of_module(p, m->module));
		if (of_module[m->module] > 1)
			*map_put(ret, (uint32_t)m->pid, NULL) = of_module[m->module] - 1u;
	}
}

static unsigned runtime_of_row(const struct profile *p, const struct map *by_pid,
			       const struct select_row *row)
{
	const uint32_t *at = map_get(by_pid, (uint32_t)p->tasks.p[row->task].pid);
	return at ? *at : 0;
}

enum stack_state {
	STACK_NAMELESS = 1 << 0, /* has JIT code without symbols */
	STACK_CUT = 1 << 1,      /* the outermost frame is JIT code, whose callers are missing */
	STACK_ROOT_CUT = 1 << 2, /* the node "[truncated]" itself */
};

/* Returns a state for each node of the tree of stacks; the caller frees it. */
static uint8_t *stack_states(const struct profile *p)
{
	uint8_t *states = xcalloc(p->stacks.n + 1, 1);
	for (size_t id = 1; id < p->stacks.n; id++) {
		const struct stack_node *node = &p->stacks.p[id];
		const struct location *l = &p->locations.p[node->loc];
		const struct frame *f = profile_physical_frame(p, l);
		uint8_t above = states[node->parent];
		states[id] = above & (STACK_NAMELESS | STACK_CUT);
		if (!node->parent && f && !strcmp(profile_frame_name(p, f), "[truncated]"))
			states[id] |= STACK_ROOT_CUT;
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

static void note_missing(struct report *r, const struct selection *sel, const struct runtime *rt,
			 const struct missing *m)
{
	double nameless = view_pct(m->nameless, sel->weight);
	double cut = view_pct(m->cut, sel->weight);
	const char *amount = view_amount(sel);
	CLEANUP(buf_release) struct buf text = {0};
	if (nameless >= NOTED_PCT) {
		buf_addf(&text, "%s %% of the %s is in or below JIT code without names: ",
			 num_pct(nameless).s, amount);
		add_text(&text, rt->names ? rt->names : runtimes->names, m->pid);
	}
	if (cut >= NOTED_PCT) {
		buf_addf(&text,
			 "%s%s %% of the %s has no callers above JIT code: ", text.n ? "; " : "",
			 num_pct(cut).s, amount);
		add_text(&text, rt->stacks ? rt->stacks : runtimes->stacks, m->pid);
	}
	if (text.n)
		report_note(r, "%s: %s", rt->name, buf_str(&text));
}

void runtimes_note_stacks(struct report *r, const struct selection *sel)
{
	const struct profile *p = sel->p;
	bool has_jit = false;
	for (size_t i = 0; i < p->modules.n && !has_jit; i++)
		has_jit = p->modules.p[i].kind == MODULE_JIT;
	if (!has_jit || !sel->weight)
		return;
	CLEANUP(map_release) struct map by_pid = {0};
	find_runtimes(&by_pid, p);
	CLEANUP(free_p) uint8_t *states = stack_states(p);
	struct missing missing[NR] = {0};
	for (size_t i = 0; i < sel->nr_rows; i++) {
		const struct select_row *row = &sel->rows[i];
		uint8_t state = states[row->stack];
		if (!(state & (STACK_NAMELESS | STACK_CUT)))
			continue;
		struct missing *m = &missing[runtime_of_row(p, &by_pid, row)];
		m->nameless += state & STACK_NAMELESS ? row->weight : 0;
		m->cut += state & STACK_CUT ? row->weight : 0;
		m->pid = p->tasks.p[row->task].pid;
	}
	for (size_t i = 0; i < NR; i++)
		note_missing(r, sel, &runtimes[i], &missing[i]);
}

void runtimes_note_heap(struct report *r, const struct selection *sel)
{
	const struct profile *p = sel->p;
	CLEANUP(map_release) struct map by_pid = {0};
	find_runtimes(&by_pid, p);
	int32_t pids[NR] = {0};
	for (size_t i = 0; i < sel->nr_rows; i++)
		pids[runtime_of_row(p, &by_pid, &sel->rows[i])] = p->tasks.p[sel->rows[i].task].pid;
	for (size_t i = 1; i < NR; i++) {
		CLEANUP(buf_release) struct buf text = {0};
		if (!pids[i] || !runtimes[i].heap)
			continue;
		add_text(&text, runtimes[i].heap, pids[i]);
		report_note(r, "%s: %s", runtimes[i].name, buf_str(&text));
	}
}
