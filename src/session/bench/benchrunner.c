/* Runs commands and measures them; see benchrunner.h. */
#include "base/base.h"
#include "session/bench/benchrunner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/process/fdpass.h"
#include "base/process/stop.h"
#include "base/sv.h"
#include "host/limits.h"
#include "host/privileges.h"
#include "host/proc.h"
#include "session/bench/markpipe.h"
#include "session/marksocket.h"

/* The main thread's time in the run queue is that of the command if it had this much of the CPU time. */
#define QUEUE_COVERED_PCT 90
#define QUEUE_SLACK_NS    (200 * NS_PER_US)
#define REGION_BYTES      (8u << 20) /* arguments and environment: above the kernel's usual limit */
#define PADDING_BYTES     4096
#define STACK_BYTES       (64u << 10)
#define KILL_AFTER_MS     2000
#define STOLEN_EVERY_NS   10000000
#define SENDERS_POLL_MS   5
#define PARENTS_MAX       64

/* Messages of the helper. */
static const char COUNTERS_OPEN = 'c';
static const char ENDED = 'd';

extern char **environ;

/* Shared with the helper, at the same address in both. */
struct region {
	char *const *argv;
	char *const *envp;
	const char *file;
	bool is_visible;
	_Atomic pid_t pid; /* of the running command; 0: none */
	pid_t last_pid;    /* of it, or of the one that has ended */
	int failure;       /* errno of the exec; 0: it was started */
	int status;
	uint64_t wall_ns;
	uint64_t end_ns;
	struct rusage used;
	char schedstat[64];
	uint64_t helper_bytes;
	struct counter_set set; /* probed by the helper, which may have fewer rights than assay */
	struct counter_fds counters; /* of the helper */
	uint64_t opening_ns;
	struct counter_value counted[COUNTERS_MAX];
	char text[REGION_BYTES - 16384];
};
_Static_assert(sizeof(struct region) <= REGION_BYTES, "room for the fields");

struct bench_runner {
	struct region *region;
	size_t used;
	pid_t helper;
	int control_fd;               /* to the helper */
	int output_fd;                /* the command's output; -1: not ours */
	struct markpipe mark_pipe;    /* that $ASSAY_MARKS names */
	struct marksocket *marks;     /* of assay mark; NULL: none */
	struct phasefuncs *functions; /* borrowed; NULL: none */
	/*
	 * The same events, disabled, on assay itself: the kernel patches its code when the first event of a
	 * kind is opened and when the last one is closed, which takes milliseconds.
	 */
	struct counter_fds held;
	struct counter_fds counters; /* of the command, with io.has_counts */
	struct counter_value counted[COUNTERS_MAX];
	uint64_t random;
	uint64_t stolen_ns; /* the kernel's account at the last reading */
	uint64_t stolen_at_ns;
};

/* ---- the helper ----------------------------------------------------------------------------- */

struct helper {
	struct region *region;
	int fds[3];
	int run_fds[3];
	const char *output_path; /* opened anew for each run; NULL: fds[1] */
	int control_fd;
	bool has_counts;
};

/* Its stack is not that of a thread which AddressSanitizer knows. */
#define ON_OTHER_STACK __attribute__((no_sanitize("address")))

/* Before the exec: assay has them when the first mark comes. */
static void pass_counters(const struct helper *h)
{
	const struct counter_fds *f = &h->region->counters;
	const struct iovec part = {(void *)(uintptr_t)&COUNTERS_OPEN, 1};
	int fds[COUNTERS_MAX];
	size_t n = 0;
	for (size_t i = 0; i < COUNTERS_MAX; i++)
		if (f->fd[i] >= 0)
			fds[n++] = f->fd[i];
	(void)fdpass_send(h->control_fd, &part, 1, fds, n); /* without: phases have no counts */
}

static void open_counters(const struct helper *h)
{
	struct region *g = h->region;
	uint64_t start = clock_mono_ns();
	if (counter_fds_open(&g->counters, &g->set, 0, -1, COUNTERS_INHERIT | COUNTERS_ON_EXEC,
			     NULL))
		counter_fds_init(&g->counters);
	if (h->has_counts)
		pass_counters(h);
	(void)unshare(CLONE_FILES); /* the command has descriptors of its own from here on */
	g->opening_ns = clock_mono_ns() - start;
}

/*
 * In the child, which shares the helper's memory but not its signal handlers, and at first its
 * descriptors.
 */
static int exec_command(void *ctx) ON_OTHER_STACK;
static int exec_command(void *ctx)
{
	const struct helper *h = ctx;
	const int *fds = h->run_fds;
	struct region *g = h->region;
	g->pid = g->last_pid = getpid();
	open_counters(h);
	for (int i = 0; i < 3 && !g->is_visible; i++)
		if (dup2(fds[i], i) < 0) {
			g->failure = errno;
			_exit(126);
		}
	if (g->is_visible)
		(void)dup2(fds[0], 0);
	(void)signal(SIGQUIT, SIG_DFL);
	stop_reset_in_child();
	execve(g->file, g->argv, g->envp);
	g->failure = errno;
	_exit(g->failure == ENOENT ? 127 : 126);
}

/* The time in the run queue is gone with the process: read while it is a zombie. */
static void read_schedstat(struct region *g, pid_t pid)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, g->schedstat, sizeof(g->schedstat) - 1);
	g->schedstat[MAX(n, 0)] = 0;
	if (fd >= 0)
		close(fd);
}

static void read_counters(struct region *g)
{
	memset(g->counted, 0, sizeof(g->counted));
	counter_fds_read(&g->counters, &g->set, g->counted);
	counter_fds_close(&g->counters);
}

static void run_once(struct helper *h)
{
	static char stack[STACK_BYTES] __attribute__((aligned(64)));
	struct region *g = h->region;
	int *fds = h->run_fds;
	memcpy(fds, h->fds, sizeof(h->fds));
	if (h->output_path && !g->is_visible) {
		fds[1] = open(h->output_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (fds[1] < 0) {
			g->failure = errno;
			return;
		}
	}
	if (lseek(fds[0], 0, SEEK_SET) < 0)
		errno = 0; /* a pipe or terminal has no start to go back to */
	siginfo_t si;
	g->opening_ns = 0;
	uint64_t start = clock_mono_ns();
	pid_t pid = clone(exec_command, stack + sizeof(stack),
			  CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, h);
	if (pid < 0) {
		g->failure = errno;
	} else {
		while (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT) && errno == EINTR)
			;
		g->end_ns = clock_mono_ns();
		g->wall_ns = g->end_ns - start - g->opening_ns;
		read_schedstat(g, pid);
		read_counters(g);
		while (wait4(pid, &g->status, 0, &g->used) < 0 && errno == EINTR)
			;
		g->pid = 0;
	}
	if (fds[1] != h->fds[1])
		close(fds[1]);
}

static void serve(struct helper *h) NORETURN;
static void serve(struct helper *h)
{
	int fd = h->control_fd;
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		(void)signal(ignored[i], SIG_IGN); /* assay decides when it ends */
	if (host_become_command_user())
		_exit(1);
	char c = 'p';
	(void)counter_set_probe(&h->region->set, false, NULL);
	if (write(fd, &c, 1) != 1)
		_exit(1);
	while (read(fd, &c, 1) == 1) {
		struct rusage own = {0};
		h->region->failure = 0;
		run_once(h);
		if (!getrusage(RUSAGE_SELF, &own))
			h->region->helper_bytes = (uint64_t)own.ru_maxrss * 1024;
		if (write(fd, &ENDED, 1) != 1)
			break;
	}
	_exit(0);
}

/* ---- assay's side --------------------------------------------------------------------------- */

static int open_stdio(struct helper *h, struct bench_runner *r, const struct bench_stdio *io,
		      struct err *err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int in = io->input ? open(io->input, O_RDONLY | O_CLOEXEC) : null;
	int pipe_fds[2] = {-1, -1};
	if (null < 0 || in < 0)
		return err_sys(err, "cannot open '%s'", io->input ? io->input : "/dev/null");
	int out = null;
	if (io->output == BENCH_OUTPUT_INHERIT)
		out = STDOUT_FILENO;
	if (io->output == BENCH_OUTPUT_PIPE) {
		if (pipe2(pipe_fds, O_CLOEXEC))
			return err_sys(err, "cannot make a pipe");
		(void)fcntl(pipe_fds[1], F_SETPIPE_SZ, 1 << 20); /* optional: fewer wake-ups */
		(void)fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
		r->output_fd = pipe_fds[0];
		out = pipe_fds[1];
	}
	h->output_path = io->output == BENCH_OUTPUT_FILE ? io->output_path : NULL;
	h->fds[0] = in;
	h->fds[1] = out;
	h->fds[2] = io->output == BENCH_OUTPUT_INHERIT || io->has_errors ? STDERR_FILENO : null;
	return 0;
}

/* The helper has its copies. */
static void close_stdio(const struct helper *h)
{
	for (int i = 0; i < 3; i++)
		if (h->fds[i] > STDERR_FILENO && (!i || h->fds[i] != h->fds[0]) &&
		    (i < 2 || h->fds[i] != h->fds[1]))
			close(h->fds[i]);
}

int bench_runner_new(struct bench_runner **ret, const struct bench_stdio *io,
		     const struct counter_events *events, struct err *err)
{
	CLEANUP(bench_runner_free_p) struct bench_runner *r = xcalloc(1, sizeof(*r));
	r->control_fd = r->output_fd = -1;
	r->mark_pipe = MARKPIPE_INIT;
	r->functions = io->functions;
	counter_fds_init(&r->held);
	counter_fds_init(&r->counters);
	r->random = clock_mono_ns() | 1;
	r->stolen_ns = host_steal_ns();
	r->stolen_at_ns = clock_mono_ns();
	void *p =
		mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return err_sys(err, "cannot map %u bytes", REGION_BYTES);
	r->region = p;
	counter_fds_init(&r->region->counters);
	if (events)
		r->region->set.events = *events;
	struct helper h = {.region = r->region, .fds = {-1, -1, -1}, .has_counts = io->has_counts};
	int ends[2];
	TRY(open_stdio(&h, r, io, err));
	if (io->has_marks) {
		TRY(markpipe_open(&r->mark_pipe, err));
		TRY(marksocket_open(&r->marks, err));
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_sys(err, "cannot make a socket");
	(void)fflush(NULL);
	r->helper = fork();
	if (r->helper == 0) {
		close(ends[0]);
		h.control_fd = ends[1];
		serve(&h);
	}
	close(ends[1]);
	close_stdio(&h);
	r->control_fd = ends[0];
	if (r->helper < 0)
		return err_sys(err, "cannot start a process");
	char c;
	if (read(r->control_fd, &c, 1) != 1) /* what can be counted is known */
		return err_set(err, -EPIPE, "the process that starts commands has ended");
	(void)counter_fds_open(&r->held, &r->region->set, 0, -1, 0, NULL); /* optional */
	*ret = TAKE(r);
	return 0;
}

void bench_runner_free(struct bench_runner *r)
{
	if (!r)
		return;
	close_p(&r->control_fd); /* the helper reads end of file and exits */
	close_p(&r->output_fd);
	markpipe_release(&r->mark_pipe);
	marksocket_free(r->marks);
	counter_fds_close(&r->held);
	counter_fds_close(&r->counters);
	if (r->helper > 0)
		while (waitpid(r->helper, NULL, 0) < 0 && errno == EINTR)
			;
	if (r->region)
		(void)munmap(r->region, REGION_BYTES);
	free(r);
}

/* Those of the last run are closed before the next one, so that this takes no time of it. */
static void close_counters(struct bench_runner *r)
{
	counter_fds_close(&r->counters);
	counter_fds_init(&r->counters);
	memset(r->counted, 0, sizeof(r->counted));
}

static void take_counters(struct bench_runner *r, const int *fds)
{
	const struct counter_fds *of_helper = &r->region->counters;
	size_t n = 0;
	close_counters(r);
	for (size_t i = 0; i < COUNTERS_MAX; i++)
		if (of_helper->fd[i] >= 0)
			r->counters.fd[i] = fds[n++];
	memcpy(r->counters.id, of_helper->id, sizeof(r->counters.id));
}

bool bench_runner_count(struct bench_runner *r, struct counter_value *ret)
{
	bool has_any = false;
	for (size_t i = 0; i < COUNTERS_MAX; i++)
		has_any |= r->counters.fd[i] >= 0;
	if (has_any)
		counter_fds_read(&r->counters, &r->region->set, r->counted);
	memcpy(ret, r->counted, r->region->set.events.n * sizeof(*ret));
	return has_any;
}

const struct counter_set *bench_runner_counters(const struct bench_runner *r)
{
	return &r->region->set;
}

uint64_t bench_runner_bound_bytes(const struct bench_runner *r)
{
	return r->region->helper_bytes;
}

static void *put(struct bench_runner *r, const void *p, size_t n)
{
	size_t at = (r->used + 15) & ~(size_t)15;
	if (at + n > sizeof(r->region->text))
		return NULL;
	char *to = r->region->text + at;
	memcpy(to, p, n);
	r->used = at + n;
	return to;
}

/* Copies the words and then their array, NULL-terminated. NULL: too long. */
static char *const *put_words(struct bench_runner *r, char *const *words, const char *const *more,
			      size_t nr_more)
{
	size_t nr = 0;
	while (words[nr])
		nr++;
	CLEANUP(free_p) char **copy = xcalloc(nr + nr_more + 1, sizeof(*copy));
	for (size_t i = 0; i < nr + nr_more; i++) {
		const char *word = i < nr ? words[i] : more[i - nr];
		copy[i] = put(r, word, strlen(word) + 1);
		if (!copy[i])
			return NULL;
	}
	return put(r, copy, (nr + nr_more + 1) * sizeof(*copy));
}

/* The file that execvp would run: the first one in PATH that is executable. */
static void find_file(struct buf *to, const char *name)
{
	const char *path = getenv("PATH");
	struct sv left = sv_from_str(path ? path : "/usr/local/bin:/bin:/usr/bin");
	while (!strchr(name, '/') && left.n) {
		struct sv folder = sv_split(&left, ':');
		buf_clear(to);
		buf_add_sv(to, folder.n ? folder : sv_from_str("."));
		buf_addf(to, "/%s", name);
		if (!access(buf_str(to), X_OK))
			return;
	}
	buf_clear(to);
	buf_add_str(to, name);
}

static int prepare(struct bench_runner *r, char *const argv[], unsigned flags,
		   const char *iteration, struct err *err)
{
	struct region *g = r->region;
	CLEANUP(buf_release) struct buf file = {0};
	CLEANUP(buf_release) struct buf padding = {0};
	CLEANUP(buf_release) struct buf number = {0};
	CLEANUP(buf_release) struct buf marks = {0};
	const char *more[3];
	size_t nr_more = 0;
	if (flags & BENCH_RUN_PADDED) {
		r->random ^= r->random << 13;
		r->random ^= r->random >> 7;
		r->random ^= r->random << 17;
		buf_add_str(&padding, "ASSAY_BENCH_PADDING=");
		buf_add_repeat(&padding, 'x', r->random % PADDING_BYTES);
		more[nr_more++] = buf_str(&padding);
	}
	if (iteration) {
		buf_addf(&number, "HYPERFINE_ITERATION=%s", iteration);
		more[nr_more++] = buf_str(&number);
	}
	if (*r->mark_pipe.path) {
		buf_addf(&marks, "ASSAY_MARKS=%s", r->mark_pipe.path);
		more[nr_more++] = buf_str(&marks);
	}
	r->used = 0;
	find_file(&file, argv[0]);
	g->file = put(r, buf_str(&file), file.n + 1);
	g->argv = put_words(r, argv, NULL, 0);
	g->envp = put_words(r, environ, more, nr_more);
	g->is_visible = flags & BENCH_RUN_VISIBLE;
	if (!g->file || !g->argv || !g->envp)
		return err_set(err, -E2BIG, "cannot run '%s': its arguments are too long", argv[0]);
	return 0;
}

struct reader {
	struct bench_runner *r;
	bench_sink_fn sink; /* NULL: nobody reads */
	void *ctx;
};

static void drain_fd(const struct reader *d, int fd, bool is_mark)
{
	static char chunk[65536];
	ssize_t n;
	while (fd >= 0 && (n = read(fd, chunk, sizeof(chunk))) > 0)
		if (d->sink)
			d->sink(d->ctx, &(struct bench_piece){.p = chunk,
							      .n = (size_t)n,
							      .at_ns = clock_mono_ns(),
							      .is_mark = is_mark});
}

/* Whether a process is the command, or descends from it. */
static bool has_pid(void *ctx, int32_t pid)
{
	const struct reader *d = ctx;
	int32_t command = d->r->region->pid;
	for (int i = 0; i < PARENTS_MAX && pid > 1 && pid != command; i++)
		if (proc_parent(pid, &pid, NULL))
			return false;
	return command > 0 && pid == command;
}

static int take_mark(void *ctx, const struct event *ev, struct err *err)
{
	(void)err;
	const struct reader *d = ctx;
	CLEANUP(buf_release) struct buf line = {0};
	buf_addf(&line, "%s\n", ev->mark.text);
	if (d->sink)
		d->sink(d->ctx, &(struct bench_piece){line.p, line.n, ev->time_ns, true});
	return 0;
}

/* Of a process that has ended, only its being the command is known: others are taken for its children. */
static bool is_of_run(void *ctx, int32_t pid)
{
	const struct reader *d = ctx;
	int32_t parent;
	return pid == d->r->region->last_pid || proc_parent(pid, &parent, NULL) ||
	       has_pid(ctx, pid);
}

static void take_function_mark(void *ctx, const char *line, uint64_t at_ns)
{
	const struct reader *d = ctx;
	if (d->sink)
		d->sink(d->ctx, &(struct bench_piece){line, strlen(line), at_ns, true});
}

static int drain(struct reader *d, struct err *err)
{
	if (d->r->functions)
		phasefuncs_drain(d->r->functions,
				 &(struct phasefuncs_sink){is_of_run, take_function_mark, d});
	struct event_sink marks = {take_mark, d};
	drain_fd(d, d->r->mark_pipe.read_fd, true);
	drain_fd(d, d->r->output_fd, false);
	return d->r->marks ? marksocket_drain(d->r->marks, 0, has_pid, d, &marks, err) : 0;
}

/* What the helper says; *ret: ENDED, COUNTERS_OPEN. */
static int take_message(struct bench_runner *r, char *ret, struct err *err)
{
	int fds[COUNTERS_MAX];
	if (fdpass_receive(r->control_fd, ret, 1, fds, COUNTERS_MAX) != 1)
		return err_set(err, -EPIPE, "the process that starts commands has ended");
	if (*ret == COUNTERS_OPEN)
		take_counters(r, fds);
	return 0;
}

/* Waits for the end of the run; -EINTR: after a stop request, and the command has ended. */
static int await(struct bench_runner *r, bench_sink_fn sink, void *ctx, struct err *err)
{
	struct reader d = {r, sink, ctx};
	uint64_t stopped_ns = 0;
	for (;;) {
		struct pollfd fds[] = {
			{.fd = r->control_fd, .events = POLLIN},
			{.fd = r->output_fd, .events = POLLIN},
			{.fd = stopped_ns ? -1 : stop_fd(), .events = POLLIN},
			{.fd = r->mark_pipe.read_fd, .events = POLLIN},
			{.fd = r->marks ? marksocket_fd(r->marks) : -1, .events = POLLIN},
			{.fd = r->functions ? phasefuncs_fd(r->functions) : -1, .events = POLLIN}};
		bool has_senders = r->marks && marksocket_has_senders(r->marks);
		int timeout_ms = has_senders ? SENDERS_POLL_MS : stopped_ns ? 100 : -1;
		if (poll(fds, ARRAY_LEN(fds), timeout_ms) < 0 && errno != EINTR)
			return err_sys(err, "cannot wait for the command");
		char message = 0;
		if (fds[0].revents)
			TRY(take_message(r, &message, err));
		TRY(drain(&d, err));
		if (fds[2].revents)
			stop_drain();
		pid_t pid = r->region->pid;
		if (stop_count() && pid > 0) {
			bool is_late = stopped_ns &&
				       clock_mono_ns() - stopped_ns > KILL_AFTER_MS * NS_PER_MS;
			if (!stopped_ns || is_late)
				(void)kill(pid, is_late ? SIGKILL : SIGTERM);
			stopped_ns = stopped_ns ? stopped_ns : clock_mono_ns();
		}
		if (message != ENDED)
			continue;
		return stop_count() ? err_set(err, -EINTR, "interrupted") : 0;
	}
}

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * NS_PER_SEC + (uint64_t)t->tv_usec * NS_PER_US;
}

/*
 * schedstat: "ON_CPU_NS RUN_QUEUE_NS SLICES", of the main thread alone. How long children, as of a shell,
 * and other threads waited is not known.
 */
static uint64_t run_queue_ns(const struct region *g)
{
	struct sv left = sv_from_str(g->schedstat);
	uint64_t used_ns = timeval_ns(&g->used.ru_utime) + timeval_ns(&g->used.ru_stime);
	uint64_t ran_ns;
	uint64_t ns;
	if (!sv_to_u64(sv_split(&left, ' '), &ran_ns) || !sv_to_u64(sv_split(&left, ' '), &ns))
		return UINT64_MAX;
	return ran_ns + QUEUE_SLACK_NS >= used_ns * QUEUE_COVERED_PCT / 100 ? ns : UINT64_MAX;
}

/* /proc/stat takes 50 us to read and counts in ticks: one reading covers runs of less than a tick. */
static uint64_t stolen_since(struct bench_runner *r)
{
	uint64_t now_ns = clock_mono_ns();
	if (now_ns - r->stolen_at_ns < STOLEN_EVERY_NS)
		return 0;
	uint64_t before_ns = r->stolen_ns;
	r->stolen_at_ns = now_ns;
	r->stolen_ns = host_steal_ns();
	return r->stolen_ns - before_ns;
}

/* UINT64_MAX: not counted. */
static uint64_t nr_migrations(const struct region *g)
{
	for (size_t i = 0; i < g->set.events.n; i++)
		if (!strcmp(g->set.events.p[i].name, "cpu-migrations") && !g->set.state[i])
			return (uint64_t)g->counted[i].value;
	return UINT64_MAX;
}

static void fill(struct bench_run *run, const struct region *g, uint64_t stolen_ns)
{
	const struct rusage *u = &g->used;
	uint64_t peak = (uint64_t)u->ru_maxrss * 1024;
	*run = (struct bench_run){
		.v = {[BENCH_WALL] = g->wall_ns,
		      [BENCH_USER] = timeval_ns(&u->ru_utime),
		      [BENCH_SYSTEM] = timeval_ns(&u->ru_stime),
		      [BENCH_RUN_QUEUE] = run_queue_ns(g),
		      [BENCH_STOLEN] = stolen_ns,
		      [BENCH_PEAK_RSS] = peak,
		      [BENCH_MINOR_FAULTS] = (uint64_t)u->ru_minflt,
		      [BENCH_MAJOR_FAULTS] = (uint64_t)u->ru_majflt,
		      [BENCH_VOLUNTARY_SWITCHES] = (uint64_t)u->ru_nvcsw,
		      [BENCH_INVOLUNTARY_SWITCHES] = (uint64_t)u->ru_nivcsw,
		      [BENCH_MIGRATIONS] = nr_migrations(g),
		      [BENCH_BLOCKS_IN] = (uint64_t)u->ru_inblock,
		      [BENCH_BLOCKS_OUT] = (uint64_t)u->ru_oublock},
		.end_ns = g->end_ns,
		.exit_code =
			WIFSIGNALED(g->status) ? 128 + WTERMSIG(g->status) : WEXITSTATUS(g->status),
		.peak_is_bound = peak <= g->helper_bytes,
	};
	memcpy(run->counters, g->counted, sizeof(run->counters));
}

int bench_runner_run(struct bench_runner *r, char *const argv[], unsigned flags,
		     const char *iteration, bench_sink_fn sink, void *ctx,
		     struct bench_run *ret_run, struct err *err)
{
	struct region *g = r->region;
	TRY(prepare(r, argv, flags, iteration, err));
	close_counters(r);
	if (r->functions)
		phasefuncs_reset(r->functions);
	if (write(r->control_fd, "g", 1) != 1)
		return err_sys(err, "cannot reach the process that starts commands");
	TRY(await(r, sink, ctx, err));
	if (g->failure) {
		err_set(err, -g->failure, "cannot run '%s': %s", argv[0], strerror(g->failure));
		if (g->failure == ENOENT && !strchr(argv[0], '/'))
			err_hint(err, "is it in PATH? check with: command -v %s", argv[0]);
		return -g->failure;
	}
	fill(ret_run, g, stolen_since(r));
	return 0;
}
