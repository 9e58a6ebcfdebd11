/* host/target and host/proc: processes that exist, vanish, and have names that are no names. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/target.h"

/* A child that has the name and waits to be killed. */
static pid_t child_named(const char *name)
{
	int ready[2];
	CHECK(!pipe(ready));
	pid_t pid = fork();
	if (!pid) {
		alarm(60);
		(void)prctl(PR_SET_NAME, name);
		(void)!write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	char c;
	CHECK(read(ready[0], &c, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

struct resolved {
	struct target target;
	struct target_candidates candidates;
	struct err err;
	int rc;
};

static void resolve(struct resolved *r, struct target_spec *spec)
{
	*r = (struct resolved){0};
	r->rc = target_resolve(&r->target, spec, &r->candidates, &r->err);
}

static void clear(struct resolved *r, struct target_spec *spec)
{
	target_release(&r->target);
	target_candidates_release(&r->candidates);
	target_spec_release(spec);
	err_release(&r->err);
}

TEST(target_name_of_one_process_resolves)
{
	pid_t pid = child_named("assay-t-one");
	struct target_spec spec = {0};
	struct resolved r;
	vec_push(&spec.names, "assay-t-one");
	resolve(&r, &spec);
	CHECK(r.rc == 0 && r.target.pids.pids.n == 1 && r.target.pids.pids.p[0] == pid);
	CHECK_STR(r.target.name, "assay-t-one");
	clear(&r, &spec);
	end_child(pid);
}

TEST(target_ambiguous_name_lists_the_candidates)
{
	pid_t a = child_named("assay-t-pair");
	pid_t b = child_named("assay-t-pair");
	struct target_spec spec = {0};
	struct resolved r;
	vec_push(&spec.names, "assay-t-pair");
	resolve(&r, &spec);
	CHECK(r.rc == -ENOTUNIQ && r.candidates.list.n == 2 && !r.target.pids.pids.n);
	target_candidates_release(&r.candidates);
	err_release(&r.err);
	spec.takes_all = true;
	vec_push(&spec.pids, b); /* asked for twice, there once */
	resolve(&r, &spec);
	CHECK(r.rc == 0 && r.target.pids.pids.n == 2);
	clear(&r, &spec);
	end_child(a);
	end_child(b);
}

TEST(target_similar_names_share_half_of_the_name)
{
	pid_t part = child_named("assay-t-sim");
	pid_t as = child_named("as");
	struct target_spec spec = {0};
	struct resolved r;
	vec_push(&spec.names, "assay-t-similar");
	resolve(&r, &spec);
	CHECK(r.rc == -ESRCH && strstr(r.err.hint, "assay-t-sim (pid"));
	CHECK(!strstr(r.err.hint, " as (pid"));
	clear(&r, &spec);
	end_child(part);
	end_child(as);
}

/* Forks a child that forks another one; returns the pid of the first. */
static pid_t child_with_child(pid_t *ret_grandchild)
{
	int numbers[2];
	CHECK(!pipe(numbers));
	pid_t pid = fork();
	if (!pid) {
		alarm(60);
		pid_t grandchild = fork();
		if (!grandchild)
			alarm(60);
		else
			(void)!write(numbers[1], &grandchild, sizeof(grandchild));
		for (;;)
			pause();
	}
	CHECK(read(numbers[0], ret_grandchild, sizeof(*ret_grandchild)) == sizeof(*ret_grandchild));
	close(numbers[0]);
	close(numbers[1]);
	return pid;
}

TEST(target_children_are_counted_or_taken)
{
	pid_t grandchild = 0;
	pid_t pid = child_with_child(&grandchild);
	struct target_spec spec = {0};
	struct resolved r;
	vec_push(&spec.pids, pid);
	resolve(&r, &spec);
	CHECK(r.rc == 0 && r.target.pids.pids.n == 1 && r.target.nr_children == 1);
	target_release(&r.target);
	spec.takes_children = true;
	resolve(&r, &spec);
	CHECK(r.rc == 0 && r.target.pids.pids.n == 2 && r.target.nr_children == 0);
	CHECK((r.target.pids.pids.p[0] == pid && r.target.pids.pids.p[1] == grandchild) ||
	      (r.target.pids.pids.p[0] == grandchild && r.target.pids.pids.p[1] == pid));
	clear(&r, &spec);
	kill(grandchild, SIGKILL);
	end_child(pid);
}

TEST(proc_reads_are_of_a_process_with_any_name)
{
	pid_t pid = child_named("a) S 9 9 (b");
	struct proc_reads r = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
	CHECK(!proc_reads(pid, &r, NULL));
	CHECK(r.nr_major < 1000000 && r.disk_bytes < UINT64_MAX && r.call_bytes < UINT64_MAX);
	end_child(pid);
	CHECK(proc_reads(pid, &r, NULL) < 0);
	CHECK(!proc_reads(getpid(), &r, NULL) && !proc_is_32bit(getpid()));
	uint64_t nr_calls = r.nr_calls;
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	char byte;
	CHECK(read(fd, &byte, 1) == 1);
	close(fd);
	CHECK(!proc_reads(getpid(), &r, NULL) && r.nr_calls > nr_calls);
}

TEST(proc_cpu_ns_has_threads_that_ended_and_children_that_were_waited_for)
{
	uint64_t before_ns = proc_cpu_ns(getpid());
	CHECK(before_ns > 0);
	pid_t pid = fork();
	if (!pid) {
		struct timespec t = {0};
		while (!t.tv_sec && t.tv_nsec < 50000000)
			(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(proc_cpu_ns(getpid()) >= before_ns + 30000000); /* in ticks of 10 ms */
	CHECK_U64(proc_cpu_ns(pid), 0);
}

TEST(target_names_with_blanks_and_brackets_are_names)
{
	pid_t pid = child_named("a) S 1 (b");
	struct target_spec spec = {0};
	struct resolved r;
	vec_push(&spec.names, "a) S 1 (b");
	resolve(&r, &spec);
	CHECK(r.rc == 0 && r.target.pids.pids.n == 1 && r.target.pids.pids.p[0] == pid);
	clear(&r, &spec);
	int32_t tgid = 0;
	CHECK(!proc_tgid(pid, &tgid, NULL) && tgid == pid);
	uint32_t uid = UINT32_MAX;
	CHECK(!proc_uid(pid, &uid, NULL) && uid == getuid());
	int32_t nspid = 0;
	CHECK(!proc_nspid(pid, &nspid, NULL) && nspid > 0);
	end_child(pid);
}

TEST(target_that_does_not_exist_is_an_error)
{
	pid_t pid = child_named("assay-t-gone");
	end_child(pid);
	const int32_t nobody[] = {pid, 0, -1, INT32_MIN, INT32_MAX};
	for (size_t i = 0; i < ARRAY_LEN(nobody); i++) {
		struct target_spec spec = {0};
		struct resolved r;
		vec_push(&spec.pids, nobody[i]);
		resolve(&r, &spec);
		CHECK(r.rc == -ESRCH && r.err.code == -ESRCH);
		clear(&r, &spec);
		spec = (struct target_spec){0};
		vec_push(&spec.tids, nobody[i]);
		resolve(&r, &spec);
		CHECK(r.rc == -ESRCH);
		clear(&r, &spec);
	}
	struct target_spec spec = {0};
	struct resolved r;
	vec_push(&spec.names, "assay-t-gone");
	resolve(&r, &spec);
	CHECK(r.rc == -ESRCH);
	clear(&r, &spec);
	spec = (struct target_spec){.match = "assay-t-(unclosed"};
	resolve(&r, &spec);
	CHECK(r.rc == -EINVAL);
	clear(&r, &spec);
}

TEST(target_that_is_a_zombie_is_an_error_with_its_parent)
{
	char parent[64];
	struct target_spec spec = {0};
	struct resolved r;
	siginfo_t end;
	pid_t pid = fork();
	if (!pid)
		_exit(0);
	CHECK(!waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT));
	(void)snprintf(parent, sizeof(parent), "process %d (", getpid());
	vec_push(&spec.pids, pid);
	resolve(&r, &spec);
	CHECK(r.rc == -ESRCH);
	CHECK(strstr(r.err.msg, "has ended: it is a zombie"));
	CHECK(r.err.hint && strstr(r.err.hint, parent));
	clear(&r, &spec);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static atomic_int thread_id;

static void *say_id(void *arg)
{
	(void)arg;
	thread_id = (int)syscall(SYS_gettid);
	for (;;)
		pause();
	return NULL;
}

TEST(target_thread_is_no_process)
{
	pthread_t t;
	CHECK(!pthread_create(&t, NULL, say_id, NULL));
	while (!thread_id)
		sched_yield();
	struct target_spec spec = {0};
	struct resolved r;
	vec_push(&spec.pids, thread_id);
	resolve(&r, &spec);
	CHECK(r.rc == -EINVAL);
	clear(&r, &spec);
	spec = (struct target_spec){0};
	vec_push(&spec.tids, thread_id);
	resolve(&r, &spec);
	CHECK(r.rc == 0 && r.target.tids.pids.n == 1 && !r.target.pids.pids.n);
	clear(&r, &spec);
	CLEANUP(pid_list_release) struct pid_list l = {0};
	CHECK(!proc_threads(&l, getpid(), NULL) && l.pids.n >= 2);
	_exit(0);
}

struct seen {
	const char *want;
	size_t nr;
	uint64_t last_end;
};

static int see_map(void *ctx, const struct proc_map *m, struct err *err)
{
	(void)err;
	struct seen *s = ctx;
	CHECK(m->start < m->end && m->start >= s->last_end);
	s->last_end = m->end;
	s->nr += !strcmp(m->path, s->want);
	return 0;
}

TEST(proc_maps_keeps_blanks_and_newlines_in_paths)
{
	static const char *const names[] = {"two words", "line\nbreak", " leading", "x (deleted)"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int fd = (int)syscall(SYS_memfd_create, names[i], 0);
		CHECK(fd >= 0 && !ftruncate(fd, 4096));
		CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
		char want[64];
		(void)snprintf(want, sizeof(want), "/memfd:%s (deleted)", names[i]);
		struct seen s = {.want = want};
		CHECK(!proc_maps(getpid(), see_map, &s, NULL));
		CHECK_U64(s.nr, 1);
		close(fd);
	}
	struct seen s = {.want = ""};
	struct err err = {0};
	CHECK(proc_maps(INT32_MAX, see_map, &s, &err) < 0 && err.code < 0);
	err_release(&err);
}

static int32_t fork_sleeper(void)
{
	int32_t pid = fork();
	if (!pid)
		for (;;)
			pause();
	return pid;
}

TEST(target_family_has_children_forked_later_and_not_those_that_ended)
{
	struct target_family f = {0};
	int fds[2];
	CHECK(!pipe(fds));
	int32_t root = fork();
	if (!root) {
		char go;
		int32_t child = read(fds[0], &go, 1) == 1 ? fork_sleeper() : 0;
		for (; child;)
			pause();
		_exit(1);
	}
	int32_t other = fork_sleeper(); /* no descendant of root */
	vec_push(&f.pids.pids, root);
	CHECK_U64(target_family_grow(&f), 1);
	CHECK_U64(f.pids.pids.n, 1);
	CHECK(!pid_list_has(&f.pids, other));
	vec_push(&f.pids.pids, other);
	(void)kill(other, SIGKILL);
	(void)waitpid(other, NULL, 0);
	CHECK_U64(target_family_grow(&f), 2); /* too early to read /proc again */
	f.next_ns = 0;
	CHECK_U64(target_family_grow(&f), 1);
	CHECK(f.pids.pids.n == 1 && f.pids.pids.p[0] == root);
	CHECK(write(fds[1], "", 1) == 1);
	for (int i = 0; i < 1000 && f.pids.pids.n < 2; i++) {
		usleep(5000);
		f.next_ns = 0;
		(void)target_family_grow(&f);
	}
	CHECK_U64(f.pids.pids.n, 2);
	if (f.pids.pids.n == 2)
		(void)kill(f.pids.pids.p[1], SIGKILL);
	(void)kill(root, SIGKILL);
	(void)waitpid(root, NULL, 0);
	pid_list_release(&f.pids);
	close(fds[0]);
	close(fds[1]);
}
