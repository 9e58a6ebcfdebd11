/* Records and compares both commands; see benchprofile.h. */
#include "base/base.h"
#include "cmd/bench/benchprofile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process/spawn.h"
#include "base/process/stop.h"
#include "base/vec.h"

/* Repeats the command: $1 times what follows, without its output. */
#define REPEAT \
	"n=$1; shift; while [ \"$n\" -gt 0 ]; do \"$@\" > /dev/null || exit; n=$((n - 1)); done"

#define AWAIT_MS 100

/* High, so that what varies is the program and not the number of samples. */
#define RATE "2999"

typedef VEC(char *) words; /* owned */

static void words_release(words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->p[i]);
	vec_release(w);
}

static void add(words *w, const char *word)
{
	vec_push(w, xasprintf("%s", word));
}

/* Runs assay with these words, which are completed by NULL. */
static int run_assay(words *w)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(spawn_release) struct spawn s = {.start_fd = -1, .status_fd = -1};
	vec_push(w, NULL);
	if (spawn_open(&s, w->p, NULL, &err) || spawn_exec(&s, "assay", &err)) {
		log_err(&err);
		return 1;
	}
	while (!spawn_wait(&s))
		;
	return spawn_exit_code(&s);
}

static int record(const char *dir, char side, unsigned nr, char *const *argv, uint64_t nr_repeats)
{
	CLEANUP(words_release) words w = {0};
	CLEANUP(free_p) char *file = xasprintf("%s/%c%u.assay", dir, side, nr);
	CLEANUP(free_p) char *repeats = xasprintf("%" PRIu64, nr_repeats);
	const char *const start[] = {"/proc/self/exe",
				     "cpu",
				     "-q",
				     "--no-pictures",
				     "-F",
				     RATE,
				     "-o",
				     file,
				     "--",
				     "sh",
				     "-c",
				     REPEAT,
				     "sh",
				     repeats};
	(void)unlink(file);
	for (size_t i = 0; i < ARRAY_LEN(start); i++)
		add(&w, start[i]);
	for (char *const *word = argv; *word; word++)
		add(&w, *word);
	return run_assay(&w);
}

static int compare(const char *dir, const char *const *options, size_t nr_options)
{
	CLEANUP(words_release) words w = {0};
	const char *const start[] = {"/proc/self/exe", "diff", "--absolute"};
	for (size_t i = 0; i < ARRAY_LEN(start); i++)
		add(&w, start[i]);
	for (size_t i = 0; i < nr_options; i++)
		add(&w, options[i]);
	add(&w, "--runs");
	for (unsigned side = 0; side < 2; side++) {
		for (unsigned i = 1; i <= BENCH_PROFILE_RUNS; i++)
			vec_push(&w, xasprintf("%s/%c%u.assay", dir, "ab"[side], i));
		if (!side)
			add(&w, "--");
	}
	return run_assay(&w);
}

/* As text, page and Markdown: @by: options of all three. */
static int compare_forms(const char *dir, const char *name, const char *const *by, size_t nr_by)
{
	CLEANUP(free_p) char *html = xasprintf("%s/%s.html", dir, name);
	CLEANUP(free_p) char *md = xasprintf("%s/%s.md", dir, name);
	const char *const forms[][6] = {
		{"-n", "10"},
		{"-q", "-o", html},
		{"-q", "--md", "-n", "5", "-o", md},
	};
	CLEANUP(free_p)
	const char **options = xmalloc((nr_by + ARRAY_LEN(forms[0])) * sizeof(*options));
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		size_t n = 0;
		for (size_t k = 0; k < nr_by; k++)
			options[n++] = by[k];
		for (size_t k = 0; k < ARRAY_LEN(forms[i]) && forms[i][k]; k++)
			options[n++] = forms[i][k];
		int rc = compare(dir, options, n);
		if (rc)
			return rc;
	}
	log_note("profiles of both and their comparison: %s, %s", html, md);
	return 0;
}

static int compare_phases(const struct bench_profile_spec *spec)
{
	CLEANUP(free_p)
	const char **options = xmalloc((2 + 2 * spec->nr_phases) * sizeof(*options));
	size_t nr = 0;
	options[nr++] = "--by";
	options[nr++] = "phase";
	for (size_t i = 0; i < spec->nr_phases; i++) {
		options[nr++] = "--phase";
		options[nr++] = spec->phases[i];
	}
	return spec->nr_phases ? compare_forms(spec->dir, "phases", options, nr) : 0;
}

static int profile(const struct bench_profile_spec *spec, uint64_t nr_repeats)
{
	for (unsigned i = 0; i < 2 * BENCH_PROFILE_RUNS; i++) {
		bool is_b = (i & 3) == 1 || (i & 3) == 2; /* A B B A */
		int rc = record(spec->dir, is_b ? 'b' : 'a', i / 2 + 1, is_b ? spec->b : spec->a,
				nr_repeats);
		if (rc)
			return rc;
	}
	int rc = compare_forms(spec->dir, "diff", NULL, 0);
	return rc ? rc : compare_phases(spec);
}

int bench_profile_start(struct bench_profile *ret, const struct bench_profile_spec *spec,
			struct err *err)
{
	int ends[2];
	if (mkdir(spec->dir, 0700) && errno != EEXIST)
		return err_sys(err, "cannot create the folder '%s'", spec->dir);
	if (pipe2(ends, O_CLOEXEC))
		return err_sys(err, "cannot make a pipe");
	(void)fflush(NULL);
	pid_t pid = fork();
	if (pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return err_sys(err, "cannot start a process");
	}
	if (pid == 0) {
		uint64_t nr_repeats;
		close(ends[1]);
		if (read(ends[0], &nr_repeats, sizeof(nr_repeats)) != sizeof(nr_repeats))
			_exit(0);
		_exit(profile(spec, nr_repeats));
	}
	close(ends[0]);
	*ret = (struct bench_profile){.pid = pid, .fd = ends[1]};
	return 0;
}

static int await(struct bench_profile *p)
{
	int status = 0;
	bool has_stopped = false;
	close_p(&p->fd);
	while (waitpid(p->pid, &status, WNOHANG) == 0) {
		struct pollfd stop = {.fd = stop_fd(), .events = POLLIN};
		if (stop_count() && !has_stopped) /* it may have come to this process alone */
			(void)kill(p->pid, SIGTERM);
		has_stopped = stop_count() > 0;
		(void)poll(&stop, 1, AWAIT_MS); /* a child that ends makes it readable, too */
		stop_drain();
	}
	p->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int bench_profile_run(struct bench_profile *p, uint64_t cpu_ns)
{
	uint64_t nr = MAX(BENCH_PROFILE_NS / MAX(cpu_ns, (uint64_t)1), (uint64_t)1);
	if (write(p->fd, &nr, sizeof(nr)) != sizeof(nr))
		return 1;
	return await(p);
}

void bench_profile_release(struct bench_profile *p)
{
	if (p->pid)
		(void)await(p);
}
