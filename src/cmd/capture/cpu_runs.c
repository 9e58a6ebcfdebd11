/* Repeats a capture; see cpu_runs.h. */
#include "base/base.h"
#include "cmd/capture/cpu_runs.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text/escape.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process/stop.h"
#include "base/sv.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/read/inputs.h"
#include "cmd/read/runs_view.h"

struct recordings {
	VEC(char *) paths;
};

static void recordings_release(struct recordings *r)
{
	vec_foreach(p, &r->paths)
		free(*p);
	vec_release(&r->paths);
}

/* "dir/x.assay" -> "dir/x-2.assay" */
static char *numbered(const char *output, size_t run)
{
	struct sv stem = sv_from_str(output);
	bool has_suffix = sv_has_suffix(stem, SV(STORE_SUFFIX));
	if (has_suffix)
		stem.n -= strlen(STORE_SUFFIX);
	return xasprintf("%.*s-%zu%s", SV_ARGS(stem), run, has_suffix ? STORE_SUFFIX : "");
}

/*
 * Waits for a run to end. SIGINT of the terminal reaches the run directly; other stop signals are
 * forwarded.
 */
static int wait_for(pid_t pid)
{
	int status = 0;
	unsigned nr_passed_on = 0;
	while (!waitpid(pid, &status, WNOHANG)) {
		struct pollfd p = {.fd = stop_fd(), .events = POLLIN};
		(void)poll(&p, 1, 1000);
		stop_drain();
		unsigned nr = stop_count();
		if (nr > nr_passed_on && stop_signal() != SIGINT)
			(void)kill(pid, stop_signal());
		nr_passed_on = nr;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_once(struct capture_job *job, struct outputs *out, struct err *err)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(err, "cannot start a run");
	if (pid)
		return wait_for(pid);
	stop_uninstall(); /* the run installs its own */
	int status = capture_job_record(job, out);
	fflush(stdout);
	_exit(status);
}

/* Returns an exit status, or negative if the run could not start: later runs would fail, too. */
static int record(struct capture_job *job, size_t run, struct recordings *to, struct err *err)
{
	CLEANUP(outputs_release) struct outputs out = {.recording_fd = -1};
	const char *output = job->common.output;
	CLEANUP(free_p) char *name = output ? numbered(output, run) : NULL;
	TRY(capture_job_open(job, &out, name, err));
	out.flags |= OUTPUTS_ONE_OF_RUNS;
	log_note("run %zu of %" PRIu64, run, job->nr_runs);
	int status = run_once(job, &out, err);
	CLEANUP(free_p) char *path = store_path(&out.place, STORE_SUFFIX);
	if (status >= 0 && !access(path, R_OK))
		vec_push(&to->paths, TAKE(path));
	return status;
}

static int summarize(const struct capture_job *job, const struct recordings *files)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(report_free_p) struct report *report = report_new();
	CLEANUP(buf_release) struct buf words = {0};
	struct view_limits limits = capture_job_limits(job);
	const char *const *paths = (const char *const *)files->paths.p;
	if (inputs_confine(paths, files->paths.n, NULL, &err) ||
	    runs_view(report, paths, files->paths.n, &job->spec, &limits, &err)) {
		log_err(&err);
		return EXIT_FAILED;
	}
	struct outputs out = capture_job_outputs(job);
	int status = outputs_print(&out, report);
	vec_foreach(p, &files->paths) {
		buf_add_ch(&words, ' ');
		escape_shell(&words, sv_from_str(*p));
	}
	log_note("next: assay report --runs%s", buf_str(&words));
	return status;
}

int cpu_runs(struct capture_job *job)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(recordings_release) struct recordings files = {0};
	int failed = capture_job_failed(job);
	if (stop_install(&err)) {
		log_err(&err);
		return failed;
	}
	int first_bad = EXIT_OK;
	for (size_t run = 1; run <= job->nr_runs && !stop_count(); run++) {
		size_t nr_before = files.paths.n;
		int status = record(job, run, &files, &err);
		if (status < 0) {
			log_err(&err);
			status = failed;
		}
		first_bad = first_bad ? first_bad : status;
		if (files.paths.n == nr_before)
			break;
	}
	if (!files.paths.n)
		return first_bad ? first_bad : failed;
	int status = summarize(job, &files);
	return first_bad || !status ? first_bad : failed;
}
