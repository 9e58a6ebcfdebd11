/* The helper that asks virtual machines for perf maps; see jitmaps.h. */
#include "base/base.h"
#include "session/jitmaps.h"

#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "host/privileges.h"
#include "host/proc.h"
#include "model/facts.h"
#include "remote/jvmattach.h"

#define DEADLINE_NS (10 * NS_PER_SEC)
/* /proc/PID of other users, and to become one of them. */
#define HELPER_CAPS                                                         \
	(HOST_CAP_BIT(CAP_SYS_PTRACE) | HOST_CAP_BIT(CAP_DAC_READ_SEARCH) | \
	 HOST_CAP_BIT(CAP_SETUID) | HOST_CAP_BIT(CAP_SETGID))
#define TEXT_MAX ((size_t)4096)

struct jitmaps {
	VEC(struct jvm) machines;
	pid_t helper;
	int fd; /* a byte to the helper starts it; its text comes back */
};

void jitmaps_set_environment(void)
{
	static const struct {
		const char *name;
		const char *options;
	} all[] = {
		{"JAVA_TOOL_OPTIONS",
		 "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions "
		 "-XX:+DumpPerfMapAtExit -XX:+PreserveFramePointer"},
		{"NODE_OPTIONS", "--perf-basic-prof --interpreted-frames-native-stack"},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		const char *own = getenv(all[i].name);
		CLEANUP(free_p)
		char *value =
			own ? xasprintf("%s %s", own, all[i].options) : xstrdup(all[i].options);
		(void)setenv(all[i].name, value, 1);
	}
}

/* ---- the helper ---------------------------------------------------------------------------- */

/* Asks one machine, in a process of its own, since that becomes the target's user. */
static void ask_one(const struct jvm *vm, int fd, uint64_t deadline_ns)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(buf_release) struct buf text = {0};
	int rc = jvm_write_perfmap(vm, deadline_ns, &err);
	buf_addf(&text, "java %d %s%s", vm->pid, rc ? "wrote none: " : "wrote one at the end",
		 rc ? err_msg(&err) : "");
	(void)send(fd, text.p, text.n, MSG_NOSIGNAL);
	_exit(0);
}

/*
 * One answer a machine. It keeps no other descriptor of assay's: the lock of the recording would stay
 * with a helper that hangs.
 */
static void help(const struct jitmaps *j, int fd)
{
	char go;
	(void)prctl(PR_SET_NAME, "assay-jitmap");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	host_drop(HELPER_CAPS);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	if (recv(fd, &go, 1, 0) != 1)
		_exit(0);
	uint64_t deadline_ns = clock_mono_ns() + DEADLINE_NS - NS_PER_SEC / 2;
	for (size_t i = 0; i < j->machines.n; i++) {
		pid_t pid = fork();
		if (!pid)
			ask_one(&j->machines.p[i], fd, deadline_ns);
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
	}
	_exit(0);
}

/* Closes all descriptors from 3 on but those of the machines and @fd. */
static void close_others(const struct jitmaps *j, int fd)
{
	for (unsigned at = 3; at < 1u << 20; at++) {
		unsigned next = UINT32_MAX; /* the lowest descriptor to keep, from @at on */
		if ((unsigned)fd >= at)
			next = (unsigned)fd;
		vec_foreach(vm, &j->machines)
			if ((unsigned)vm->pid_fd >= at)
				next = MIN(next, (unsigned)vm->pid_fd);
		if (next > at)
			(void)syscall(SYS_close_range, at, next - 1, 0);
		if (next == UINT32_MAX)
			return;
		at = next;
	}
}

/* ---- in assay ------------------------------------------------------------------------------ */

static void add_machine(struct jitmaps *j, const struct target *t, int32_t pid)
{
	struct jvm vm;
	vec_foreach(known, &j->machines)
		if (known->pid == pid)
			return;
	if (!jvm_find(&vm, pid))
		return;
	if (target_is_same(t, pid)) /* and with its descriptor it stays the same */
		vec_push(&j->machines, vm);
	else
		close(vm.pid_fd);
}

struct jitmaps *jitmaps_new(const struct target *t)
{
	struct jitmaps *j = xcalloc(1, sizeof(*j));
	j->fd = -1;
	for (size_t i = 0; i < t->pids.pids.n; i++)
		add_machine(j, t, t->pids.pids.p[i]);
	for (size_t i = 0; i < t->tids.pids.n; i++) {
		int32_t pid;
		if (!proc_tgid(t->tids.pids.p[i], &pid, NULL))
			add_machine(j, t, pid);
	}
	int pair[2];
	if (!j->machines.n || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		jitmaps_free(j);
		return NULL;
	}
	j->helper = fork();
	if (!j->helper) {
		close_others(j, pair[1]);
		help(j, pair[1]);
	}
	close(pair[1]);
	j->fd = pair[0];
	return j;
}

void jitmaps_write(struct jitmaps *j, struct profile *p)
{
	CLEANUP(buf_release) struct buf text = {0};
	uint64_t deadline_ns = clock_mono_ns() + DEADLINE_NS;
	size_t nr = 0;
	bool has_ended = j->helper < 0 || write(j->fd, "g", 1) != 1;
	while (!has_ended && nr < j->machines.n && clock_mono_ns() < deadline_ns) {
		char part[TEXT_MAX];
		struct pollfd fd = {.fd = j->fd, .events = POLLIN};
		uint64_t left_ns = deadline_ns - MIN(deadline_ns, clock_mono_ns());
		if (poll(&fd, 1, (int)(left_ns / NS_PER_MS)) <= 0)
			continue;
		ssize_t n = read(j->fd, part, sizeof(part));
		has_ended = n <= 0;
		if (has_ended)
			break;
		buf_addf(&text, "%s%.*s", nr++ ? "; " : "", (int)n, part);
	}
	if (nr < j->machines.n)
		buf_addf(&text, "%sno answer in 10 s", nr ? "; others: " : "");
	profile_fact(p, FACT_JIT_MAP, buf_str(&text));
}

void jitmaps_free(struct jitmaps *j)
{
	if (!j)
		return;
	if (j->fd >= 0)
		close(j->fd);
	if (j->helper > 0) {
		(void)kill(j->helper, SIGKILL);
		(void)waitpid(j->helper, NULL, 0);
	}
	vec_foreach(vm, &j->machines)
		close(vm->pid_fd);
	vec_release(&j->machines);
	free(j);
}
