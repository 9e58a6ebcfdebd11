/* analyze/runtimes: what the page says of runtimes, by the files that they have mapped. */
#include "base/base.h"
#include "tap.h"

#include "analyze/runtimes.h"
#include "made.h"

#define PID 4711

enum made_flags {
	HAS_NAMES = 1 << 0,   /* JIT code has symbols */
	HAS_CALLERS = 1 << 1, /* stacks through JIT code are complete */
	HAS_NO_JIT = 1 << 2,
};

static loc_id jit_location(struct profile *p, unsigned flags)
{
	struct module shape = {.kind = MODULE_JIT, .path = profile_cstr(p, "//anon"), .pid = PID};
	module_id jit = profile_module(p, &shape);
	loc_id loc = profile_location(p, jit, 0x1000, 0);
	struct function f = {.name = profile_cstr(p, "burn"), .module = jit, .flags = FUNC_JIT};
	struct frame frame = {.func = flags & HAS_NAMES ? profile_function(p, &f) : 0};
	profile_set_frames(p, loc, &frame, flags & HAS_NAMES ? 1 : 0, LOSS_UNSYM_JIT);
	return loc;
}

/* 90 of 100 samples are in JIT code of a process that has mapped @path. */
static struct profile *made_runtime(const char *path, unsigned flags)
{
	struct profile *p = profile_new();
	uint32_t t = made_table(p, "cpu-clock", 2);
	made_sample(p, t, &(struct made){.stack = "main", .pid = PID, .nr = 10});
	stack_id root = flags & HAS_CALLERS
				? made_stack(p, "main")
				: profile_stack(p, 0, profile_pseudo_location(p, "[truncated]"));
	if (!(flags & HAS_NO_JIT)) {
		stack_id stack = profile_stack(p, root, jit_location(p, flags));
		task_id task = profile_task(p, PID, PID, profile_cstr(p, "comm"), 0);
		profile_sample(p, t, 1, stack, task, 0, (int64_t[]){90, 90});
	}
	struct module shape = {.kind = MODULE_ELF, .path = profile_cstr(p, path)};
	vec_push(&p->mappings, (struct mapping){.module = profile_module(p, &shape),
						.pid = PID,
						.start = 0x1000,
						.len = 0x1000,
						.to_ns = UINT64_MAX});
	profile_seal(p);
	return p;
}

typedef void (*note_fn)(struct report *r, const struct selection *sel);

/* Returns the notes, one a line; valid until the next call. */
static const char *notes_of(const char *path, unsigned flags, note_fn note)
{
	static struct buf text;
	CLEANUP(profile_free_p) struct profile *p = made_runtime(path, flags);
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	struct selection sel;
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &sel, NULL));
	note(r, &sel);
	buf_clear(&text);
	for (size_t i = 0; i < r->notes.n; i++)
		buf_addf(&text, "%s%s", i ? "\n" : "", r->notes.p[i]);
	return buf_str(&text);
}

TEST(jit_code_without_names_or_callers_is_noted_with_what_its_runtime_can_do)
{
	static const struct {
		const char *path;
		const char *names;
		const char *callers;
	} cases[] = {
		{"/usr/lib/jvm/lib/server/libjvm.so", "java: 90.0 % of the time is in or below JIT",
		 "-XX:+PreserveFramePointer"},
		{"/usr/bin/node", "node: 90.0 %", "keep frame pointers"},
		{"/usr/lib/libnode.so.108", "--perf-basic-prof", "keep frame pointers"},
		{"/usr/share/dotnet/libcoreclr.so", "DOTNET_PerfMapEnabled=1", "frame pointers"},
		{"/usr/lib/erlang/bin/beam.smp", "+JPperf true", "keep frame pointers"},
		{"/opt/other", "JIT code: 90.0 % of the time", "/tmp/perf-4711.map"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *text = notes_of(cases[i].path, 0, runtimes_note_stacks);
		CHECK(strstr(text, cases[i].names));
		CHECK(strstr(text, cases[i].callers));
		CHECK(!strchr(text, '@'));
		text = notes_of(cases[i].path, HAS_NAMES, runtimes_note_stacks);
		CHECK(!strstr(text, "without names"));
		CHECK(strstr(text, "90.0 % of the time has no callers above JIT code"));
		text = notes_of(cases[i].path, HAS_CALLERS, runtimes_note_stacks);
		CHECK(strstr(text, "without names"));
		CHECK(!strstr(text, "no callers"));
	}
}

/* 80 of 100 samples are in @function of a file; the stacks are cut, unless HAS_CALLERS. */
static const char *notes_of_function(const char *path, const char *function, unsigned flags,
				     note_fn note)
{
	static struct buf text;
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	uint32_t t = made_table(p, "cpu-clock", 2);
	struct module shape = {.kind = MODULE_ELF, .path = profile_cstr(p, path)};
	module_id module = profile_module(p, &shape);
	loc_id loc = profile_location(p, module, 0x1000, 0);
	struct function f = {.name = profile_cstr(p, function), .module = module};
	struct frame frame = {.func = profile_function(p, &f)};
	profile_set_frames(p, loc, &frame, 1, 0);
	stack_id root = flags & HAS_CALLERS
				? 0
				: profile_stack(p, 0, profile_pseudo_location(p, "[truncated]"));
	made_sample(p, t, &(struct made){.stack = "main", .pid = PID, .nr = 20});
	task_id task = profile_task(p, PID, PID, profile_cstr(p, "comm"), 0);
	profile_sample(p, t, 1, profile_stack(p, root, loc), task, 0, (int64_t[]){80, 80});
	vec_push(&p->mappings, (struct mapping){.module = module, .pid = PID, .to_ns = UINT64_MAX});
	profile_seal(p);
	struct selection sel;
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &sel, NULL));
	note(r, &sel);
	buf_clear(&text);
	for (size_t i = 0; i < r->notes.n; i++)
		buf_add_str(&text, r->notes.p[i]);
	return buf_str(&text);
}

TEST(interpreters_whose_functions_have_no_frames_are_noted)
{
	static const char *const cases[][2] = {
		{"/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1", "ruby: 80.0 %"},
		{"/usr/bin/ruby3.1", "rbspy"},
		{"/usr/bin/perl", "Devel::NYTProf"},
		{"/usr/lib/libperl.so.5.36", "perl: 80.0 %"},
		{"/usr/bin/lua5.4", "debug.sethook"},
		{"/usr/sbin/php-fpm8.2", "PHP: 80.0 %"},
		{"/usr/bin/php", "PHP: 80.0 %"}, /* as invoked */
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK(strstr(notes_of_function(cases[i][0], "f", HAS_CALLERS, runtimes_note_stacks),
			     cases[i][1]));
	CHECK_STR(notes_of_function("/usr/bin/rubyless/server", "f", HAS_CALLERS,
				    runtimes_note_stacks),
		  "");
}

TEST(stacks_of_go_that_begin_where_the_runtime_changes_stacks_are_noted)
{
	const char *text =
		notes_of_function("/opt/server", "runtime.mcall", 0, runtimes_note_stacks);
	CHECK(strstr(text, "Go: 80.0 % of the time has no callers above a change of stacks"));
	CHECK_STR(notes_of_function("/opt/server", "runtime.mcall", HAS_CALLERS,
				    runtimes_note_stacks),
		  "");
	CHECK_STR(notes_of_function("/opt/server", "runtime.mcallx", 0, runtimes_note_stacks), "");
}

TEST(nothing_is_noted_where_nothing_is_missing)
{
	CHECK_STR(notes_of("/lib/libjvm.so", HAS_NAMES | HAS_CALLERS, runtimes_note_stacks), "");
	CHECK_STR(notes_of("/lib/libjvm.so", HAS_NO_JIT, runtimes_note_stacks), "");
	CHECK_STR(notes_of("/usr/bin/redis-server", HAS_NO_JIT, runtimes_note_heap), "");
	CHECK_STR(notes_of("/usr/lib/libpython3.so.notes/x", HAS_NO_JIT, runtimes_note_heap), "");
}

TEST(the_heap_of_go_is_noted_although_no_file_name_shows_it)
{
	CHECK(strstr(notes_of_function("/opt/server", "runtime.goexit", 0, runtimes_note_heap),
		     "Go: Go objects are in a heap of the Go runtime's own"));
	CHECK_STR(notes_of_function("/opt/server", "goexit", 0, runtimes_note_heap), "");
	CHECK(strstr(notes_of_function("/opt/server", "runtime.goexit", 0, runtimes_note_waits),
		     "Go: goroutines that wait for a channel, a sync.Mutex or the network"));
	CHECK_STR(notes_of_function("/opt/server", "goexit", 0, runtimes_note_waits), "");
}

TEST(heaps_that_malloc_does_not_know_are_noted)
{
	static const char *const cases[][2] = {
		{"/usr/lib/jvm/lib/server/libjvm.so", "jcmd 4711 GC.class_histogram"},
		{"/usr/bin/node", "--heap-prof"},
		{"/usr/lib/libnode.so.108", "--heap-prof"},
		{"/usr/share/dotnet/libcoreclr.so", "dotnet-gcdump collect -p 4711"},
		{"/usr/lib/libpython3.11.so.1.0", "PYTHONMALLOC=malloc"},
		{"/usr/bin/python3.11", "PYTHONMALLOC=malloc"},
		{"/usr/bin/memcached", "stats slabs"},
		{"/usr/lib/postgresql/15/bin/postgres", "pg_log_backend_memory_contexts(4711)"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK(strstr(notes_of(cases[i][0], HAS_NO_JIT, runtimes_note_heap), cases[i][1]));
}
