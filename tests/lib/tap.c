/* Unit test harness; see tap.h. */
#include "base/base.h"
#include "tap.h"

#include <signal.h>
#include <stdarg.h>
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

static int run(const struct test *t)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(120);
		t->fn();
		fflush(stdout);
		exit(nr_failed_checks ? 1 : 0); /* exit, not _exit: leak checkers run here */
	}
	int status = 0;
	while (waitpid(pid, &status, 0) < 0)
		;
	if (WIFSIGNALED(status))
		printf("# killed by signal %d (%s)\n", WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
	return status;
}

int main(int argc, char **argv)
{
	size_t nr_run = 0;
	size_t nr_bad = 0;
	size_t nr_skipped = 0;
	for (size_t i = 0; i < nr_tests; i++) {
		if (argc > 1 && !strstr(tests[i].name, argv[1]) && !strstr(tests[i].file, argv[1]))
			continue;
		int status = run(&tests[i]);
		bool is_skip = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP;
		bool is_ok = status == 0 || is_skip;
		nr_run++;
		nr_bad += !is_ok;
		nr_skipped += is_skip;
		printf("%s %zu - %s%s\n", is_ok ? "ok" : "not ok", nr_run, tests[i].name,
		       is_skip ? " # SKIP" : "");
	}
	if (!nr_run) {
		printf("no test's name or file has '%s' in it\n", argc > 1 ? argv[1] : "");
		return 1;
	}
	printf("1..%zu\n", nr_run);
	printf("%zu passed, %zu failed, %zu skipped\n", nr_run - nr_bad - nr_skipped, nr_bad,
	       nr_skipped);
	return nr_bad ? 1 : 0;
}
