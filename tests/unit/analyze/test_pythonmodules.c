/* The functions shown for waits and allocations of Python code, between frames of the interpreter. */
#include "base/base.h"
#include "tap.h"

#include "analyze/memory/heapframes.h"
#include "analyze/stacks/pythonmodules.h"
#include "analyze/wait/frames.h"

/* Pushes a function in @module (kind ELF), or Python's if @module is "[python]". */
static stack_id push(struct profile *p, stack_id parent, const char *module, const char *name)
{
	bool is_python = !strcmp(module, "[python]");
	module_id m =
		profile_module(p, &(struct module){.kind = is_python ? MODULE_NAMED : MODULE_ELF,
						   .path = profile_cstr(p, module)});
	func_id func =
		profile_function(p, &(struct function){.name = profile_cstr(p, name),
						       .module = m,
						       .flags = is_python ? FUNC_PYTHON : 0});
	loc_id loc = profile_location(p, m, func, 0);
	profile_set_frames(p, loc, &(struct frame){.func = func}, 1, 0);
	return profile_stack(p, parent, loc);
}

#define PYTHON "/usr/bin/python3.11"

TEST(pythonmodules_wait_for_the_python_function_that_called_them)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id s = push(p, 0, PYTHON, "Py_RunMain");
	s = push(p, s, "[python]", "web.py:16 client");
	s = push(p, s, "[python]", "queue.py:122 Queue.put");
	s = push(p, s, "[python]", "threading.py:288 Condition.wait");
	s = push(p, s, PYTHON, "PyObject_Vectorcall");
	stack_id wait = push(p, s, PYTHON, "PyThread_acquire_lock_timed");
	stack_id native = push(p, push(p, 0, "/usr/bin/app", "work"), "/usr/lib/libc.so.6", "read");
	profile_seal(p);
	struct waitframes *wf = waitframes_new(&a, p);
	struct waitframe f = waitframe_of(wf, wait);
	CHECK_STR(waitframe_name(p, &f), "web.py:16 client");
	CHECK_STR(profile_text(p, f.via), "queue.py:122 Queue.put");
	f = waitframe_of(wf, native);
	CHECK_STR(waitframe_name(p, &f), "work");
}

#define JVM "/usr/lib/jvm/java-17/lib/server/libjvm.so"

TEST(the_jvm_waits_for_the_java_method_that_called_it)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id method = push(p, push(p, 0, JVM, "JavaCalls::call_helper(JavaValue*)"), "[jit]",
			       "boolean shop.Orders.put(int, long)");
	stack_id s = push(p, method, "[jit]", "_complete_monitor_locking_Java");
	s = push(p, s, JVM, "ObjectMonitor::enter(JavaThread*)");
	stack_id lock = push(p, s, "/usr/lib/libc.so.6", "pthread_cond_wait");
	stack_id taken = push(p, method, "[jit]",
			      "java.lang.Object java.util.concurrent.LinkedBlockingQueue.take()");
	stack_id native = push(p, method, "/opt/libshop.so", "flush");
	stack_id own = push(p, push(p, 0, JVM, "GangWorker::loop()"), JVM, "Monitor::wait(long)");
	own = push(p, own, "/usr/lib/libc.so.6", "pthread_cond_wait");
	profile_seal(p);
	const struct {
		stack_id stack;
		const char *name;
	} cases[] = {
		{lock, "boolean shop.Orders.put(int, long)"},
		{taken, "boolean shop.Orders.put(int, long)"},
		{native, "flush"},
		{own, "Monitor::wait(long)"}, /* a thread of the JVM */
	};
	struct waitframes *wf = waitframes_new(&a, p);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct waitframe f = waitframe_of(wf, cases[i].stack);
		CHECK_STR(waitframe_name(p, &f), cases[i].name);
	}
}

TEST(pythonmodules_without_python_frames_are_shown)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id s = push(p, push(p, 0, PYTHON, "Py_RunMain"), PYTHON, "os_stat");
	profile_seal(p);
	struct waitframe f = waitframe_of(waitframes_new(&a, p), s);
	CHECK_STR(waitframe_name(p, &f), "os_stat");
	CHECK(!python_is_seen(p));
}

TEST(pythonmodules_are_the_interpreter_and_its_library)
{
	CHECK(python_is_module("python3.11"));
	CHECK(python_is_module("libpython3.13.so.1.0"));
	CHECK(python_is_module("_json.cpython-311-x86_64-linux-gnu.so"));
	CHECK(!python_is_module("numpy.so"));
	CHECK(!python_is_module("redis-server"));
}
