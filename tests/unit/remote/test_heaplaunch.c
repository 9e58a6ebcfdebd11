/* Launched commands held before their own first instruction. */
#include "base/base.h"
#include "heapchild.h"
#include "tap.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/spawn.h"
#include "remote/patch/follow.h"
#include "remote/patch/launch.h"
#include "remote/ptrace/remote.h"

#if defined(__x86_64__)

static bool is_mapped(int32_t pid, const char *what)
{
	char path[64];
	char line[512];
	bool found = false;
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, what) != NULL;
	if (f)
		fclose(f);
	return found;
}

/* Polls until it is held, or has ended: false. */
static bool wait_held(struct heaplaunch *l)
{
	for (int i = 0; i < 5000; i++) {
		bool is_held = false;
		if (heaplaunch_poll(l, 1, &is_held, NULL))
			return false;
		if (is_held)
			return true;
	}
	return false;
}

static void launch(struct spawn *s, struct heaplaunch **l, const char *script)
{
	char text[256];
	(void)snprintf(text, sizeof(text), "%s", script);
	char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, text, NULL};
	MUST(spawn_open(s, argv, NULL, &must_err));
	MUST(heaplaunch_open(l, s->pid, 0, &must_err));
	MUST(spawn_exec(s, "sh", &must_err));
}

/* Its exit code; it is held no more. */
static int end_of(struct spawn *s, struct heaplaunch *l)
{
	bool is_held = false;
	for (int i = 0; i < 5000 && !spawn_has_ended(s); i++)
		if (heaplaunch_poll(l, 1, &is_held, NULL))
			usleep(1000);
	return s->is_reaped ? spawn_exit_code(s) : -1;
}

TEST(heaplaunch_holds_a_command_with_its_libraries_and_before_its_code)
{
	CLEANUP(spawn_release) struct spawn s;
	CLEANUP(heaplaunch_free_p) struct heaplaunch *l = NULL;
	char path[] = "/tmp/assay-launch-XXXXXX";
	char script[128];
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	(void)snprintf(script, sizeof(script), "rm %s; exit 7", path);
	launch(&s, &l, script);
	CHECK(wait_held(l));
	CHECK(is_mapped(s.pid, "libc.so") || is_mapped(s.pid, "libc-"));
	usleep(20000);
	CHECK(!access(path, F_OK));

	/* It may be borrowed there, and goes on as if nothing had been. */
	struct remote *r = NULL;
	int64_t got = 0;
	MUST(remote_open_stopped(&r, s.pid, s.pid, NULL, &must_err));
	MUST(remote_syscall(r, 39 /* getpid */, (uint64_t[REMOTE_ARGS_MAX]){0}, &got, &must_err));
	CHECK_U64(got, s.pid);
	remote_close(r);
	MUST(heaplaunch_continue(l, &must_err));
	CHECK_U64(end_of(&s, l), 7);
	CHECK(access(path, F_OK));
	(void)unlink(path);
}

TEST(heaplaunch_holds_again_at_each_exec)
{
	CLEANUP(spawn_release) struct spawn s;
	CLEANUP(heaplaunch_free_p) struct heaplaunch *l = NULL;
	launch(&s, &l, "exec /bin/sh -c 'exec /bin/true'");
	int nr = 0;
	while (wait_held(l)) {
		nr++;
		CHECK(is_mapped(s.pid, nr < 3 ? "sh" : "true"));
		MUST(heaplaunch_continue(l, &must_err));
	}
	CHECK_U64(nr, 3);
	CHECK_U64(end_of(&s, l), 0);
}

TEST(heaplaunch_passes_signals_on)
{
	CLEANUP(spawn_release) struct spawn s;
	CLEANUP(heaplaunch_free_p) struct heaplaunch *l = NULL;
	launch(&s, &l, "trap 'exit 42' USR1; kill -USR1 $$; exit 1");
	CHECK(wait_held(l));
	MUST(heaplaunch_continue(l, &must_err));
	CHECK_U64(end_of(&s, l), 42);
}

TEST(heaplaunch_lets_go_of_what_gets_many_signals)
{
	CLEANUP(spawn_release) struct spawn s;
	CLEANUP(heaplaunch_free_p) struct heaplaunch *l = NULL;
	launch(&s, &l,
	       "n=0; trap 'n=$((n+1))' USR1; for i in $(seq 60); do kill -USR1 $$; done; "
	       "exit $n");
	CHECK(wait_held(l));
	MUST(heaplaunch_continue(l, &must_err));
	CHECK_U64(end_of(&s, l), 60);
}

TEST(heaplaunch_leaves_a_held_command_running_when_it_dies)
{
	char path[] = "/tmp/assay-launch-XXXXXX";
	char script[128];
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	(void)snprintf(script, sizeof(script), "rm %s", path);
	pid_t tracer = fork();
	if (!tracer) {
		struct spawn s;
		struct heaplaunch *l = NULL;
		launch(&s, &l, script);
		_exit(wait_held(l) ? 0 : 1); /* and nothing is let go */
	}
	int status = -1;
	CHECK(waitpid(tracer, &status, 0) == tracer && status == 0);
	for (int i = 0; i < 5000 && !access(path, F_OK); i++)
		usleep(1000);
	CHECK(access(path, F_OK));
	(void)unlink(path);
}

TEST(heaplaunch_lets_a_running_command_go)
{
	CLEANUP(spawn_release) struct spawn s;
	struct heaplaunch *l = NULL;
	launch(&s, &l, "sleep 0.2; exit 3");
	CHECK(wait_held(l));
	MUST(heaplaunch_continue(l, &must_err));
	heaplaunch_free(l);
	while (!spawn_has_ended(&s))
		usleep(1000);
	CHECK_U64(spawn_exit_code(&s), 3);
}

TEST(heapfollow_holds_each_child_at_its_fork_and_each_program)
{
	CLEANUP(spawn_release) struct spawn s;
	CLEANUP(heapfollow_free_p) struct heapfollow *f = NULL;
	char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"},
			(char[]){"(exit 3); a=$?; (:); /bin/true & wait; exit $a"}, NULL};
	int nr_forked = 0;
	int nr_programs = 0;
	MUST(spawn_open(&s, argv, NULL, &must_err));
	MUST(heapfollow_open(&f, s.pid, HEAPFOLLOW_CHILDREN, &must_err));
	MUST(spawn_exec(&s, "sh", &must_err));
	for (int i = 0; i < 5000 && !spawn_has_ended(&s); i++) {
		struct heapfollow_held held;
		(void)heapfollow_poll(f); /* -ESRCH: all have ended */
		while (heapfollow_held(f, 0, &held)) {
			nr_forked += held.is_forked;
			nr_programs += !held.is_forked;
			CHECK(heapfollow_has(f, held.pid));
			heapfollow_continue(f, held.pid);
		}
		usleep(1000);
	}
	CHECK(s.is_reaped);
	CHECK_U64(spawn_exit_code(&s), 3);
	CHECK_U64(nr_forked, 3);
	CHECK_U64(nr_programs, 2);
}

/* Polled all the time, each stop comes at any point of a poll. */
TEST(heapfollow_resumes_each_stop)
{
	CLEANUP(spawn_release) struct spawn s;
	CLEANUP(heapfollow_free_p) struct heapfollow *f = NULL;
	char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"},
			(char[]){"for i in $(seq 100); do /bin/true; done; exit 3"}, NULL};
	uint64_t deadline_ns = clock_mono_ns() + 20 * NS_PER_SEC;
	int nr_programs = 0;
	MUST(spawn_open(&s, argv, NULL, &must_err));
	MUST(heapfollow_open(&f, s.pid, HEAPFOLLOW_CHILDREN, &must_err));
	MUST(spawn_exec(&s, "sh", &must_err));
	while (!spawn_has_ended(&s) && clock_mono_ns() < deadline_ns) {
		struct heapfollow_held held;
		(void)heapfollow_poll(f); /* -ESRCH: all have ended */
		while (heapfollow_held(f, 0, &held)) {
			nr_programs += !held.is_forked;
			heapfollow_continue(f, held.pid);
		}
	}
	CHECK(s.is_reaped);
	if (!s.is_reaped)
		return;
	CHECK_U64(spawn_exit_code(&s), 3);
	CHECK_U64(nr_programs, 102); /* with sh and seq */
}

TEST(heapfollow_detaches_from_all)
{
	CLEANUP(spawn_release) struct spawn s;
	struct heapfollow *f = NULL;
	char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"},
			(char[]){"(exit 3) & wait $!; (exit 4) & wait $!; exit 5"}, NULL};
	MUST(spawn_open(&s, argv, NULL, &must_err));
	MUST(heapfollow_open(&f, s.pid, HEAPFOLLOW_CHILDREN, &must_err));
	MUST(spawn_exec(&s, "sh", &must_err));
	struct heapfollow_held held;
	for (int i = 0; i < 5000 && !heapfollow_held(f, 0, &held); i++) {
		(void)heapfollow_poll(f);
		usleep(1000);
	}
	heapfollow_continue(f, s.pid); /* its first child is held when it is freed */
	for (int i = 0; i < 5000 && !heapfollow_held(f, 0, &held); i++) {
		(void)heapfollow_poll(f);
		usleep(1000);
	}
	CHECK(held.is_forked && held.pid != s.pid);
	heapfollow_free(f);
	for (int i = 0; i < 5000 && !spawn_has_ended(&s); i++)
		usleep(1000);
	CHECK(s.is_reaped);
	CHECK_U64(spawn_exit_code(&s), 5);
}

#endif
