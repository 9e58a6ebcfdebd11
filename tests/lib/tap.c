/* Unit test harness; see tap.h. */
#include "base/base.h"
#include "tap.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

#define EXIT_SKIP 77

struct test {
	const char *file;
	const char *name;
	tap_fn fn;
};

static struct test *tests;
static size_t nr_tests;
static int nr_failed_checks;

void tap_register(const char *file, const char *name, tap_fn fn)
{
	tests = xreallocarray(tests, nr_tests + 1, sizeof(*tests));
	tests[nr_tests++] = (struct test){file, name, fn};
}

void tap_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	printf("# %s:%d: ", file, line);
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	fflush(stdout);
	nr_failed_checks++;
}

void tap_skip(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	printf("# SKIP ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	fflush(stdout);
	_exit(EXIT_SKIP);
}

/* A test that runs, or has run; its output is shown when those before it have ended. */
struct run {
	const struct test *t;
	pid_t pid;
	FILE *output;
	int status;
	bool has_ended;
};

static void start(struct run *r)
{
	fflush(stdout);
	r->output = fdopen(memfd_create("output", MFD_CLOEXEC), "w+");
	ASSERT(r->output);
	r->pid = fork();
	ASSERT(r->pid >= 0);
	if (r->pid)
		return;
	alarm(400); /* for hangs only: a virtual machine may run the sanitizers ten times slower */
	ASSERT(dup2(fileno(r->output), STDOUT_FILENO) >= 0);
	ASSERT(dup2(fileno(r->output), STDERR_FILENO) >= 0);
	r->t->fn();
	fflush(stdout);
	exit(nr_failed_checks ? 1 : 0); /* exit, not _exit: leak checkers run here */
}

/* Waits until one of the runs ends. */
static void reap(struct run *runs, size_t n)
{
	int status = 0;
	pid_t pid = waitpid(-1, &status, 0);
	for (size_t i = 0; i < n; i++)
		if (pid > 0 && runs[i].pid == pid && !runs[i].has_ended) {
			runs[i].status = status;
			runs[i].has_ended = true;
		}
}

static bool is_skip(const struct run *r)
{
	return WIFEXITED(r->status) && WEXITSTATUS(r->status) == EXIT_SKIP;
}

static void show(struct run *r, size_t nr)
{
	int c;
	rewind(r->output);
	while ((c = getc(r->output)) != EOF)
		putchar(c);
	fclose(r->output);
	if (WIFSIGNALED(r->status))
		printf("# killed by signal %d (%s)\n", WTERMSIG(r->status),
		       strsignal(WTERMSIG(r->status)));
	printf("%s %zu - %s%s\n", r->status == 0 || is_skip(r) ? "ok" : "not ok", nr, r->t->name,
	       is_skip(r) ? " # SKIP" : "");
	fflush(stdout);
}

/* Two at a time for each CPU, at most LANES_MAX: many of them wait. */
#define LANES_MAX 4

static void run_all(struct run *runs, size_t n)
{
	size_t lanes = (size_t)MIN(MAX(2 * sysconf(_SC_NPROCESSORS_ONLN), 1L), (long)LANES_MAX);
	size_t nr_started = 0;
	size_t nr_ended = 0;
	size_t nr_shown = 0;
	while (nr_shown < n) {
		while (nr_started < n && nr_started - nr_ended < lanes)
			start(&runs[nr_started++]);
		reap(runs, nr_started);
		nr_ended = 0;
		for (size_t i = 0; i < nr_started; i++)
			nr_ended += runs[i].has_ended;
		for (; nr_shown < n && runs[nr_shown].has_ended; nr_shown++)
			show(&runs[nr_shown], nr_shown + 1);
	}
}

static bool is_wanted(const struct test *t, const char *part)
{
	return !part || strstr(t->name, part) || strstr(t->file, part);
}

int main(int argc, char **argv)
{
	const char *part = argc > 1 ? argv[1] : NULL;
	struct run *runs = xcalloc(nr_tests, sizeof(*runs));
	size_t nr_run = 0;
	size_t nr_bad = 0;
	size_t nr_skipped = 0;
	for (size_t i = 0; i < nr_tests; i++)
		if (is_wanted(&tests[i], part))
			runs[nr_run++].t = &tests[i];
	if (!nr_run) {
		printf("no test's name or file has '%s' in it\n", part ? part : "");
		return 1;
	}
	run_all(runs, nr_run);
	for (size_t i = 0; i < nr_run; i++) {
		nr_skipped += is_skip(&runs[i]);
		nr_bad += runs[i].status && !is_skip(&runs[i]);
	}
	free(runs);
	printf("1..%zu\n", nr_run);
	printf("%zu passed, %zu failed, %zu skipped\n", nr_run - nr_bad - nr_skipped, nr_bad,
	       nr_skipped);
	return nr_bad ? 1 : 0;
}
