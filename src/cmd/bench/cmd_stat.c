/* assay stat: counters of a running target or of a command. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyze/bench/benchstat.h"
#include "analyze/bench/countermetrics.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process/spawn.h"
#include "base/process/stop.h"
#include "base/stat.h"
#include "base/text/num.h"
#include "cmd/capture/targetopts.h"
#include "cmd/optgroups.h"
#include "host/limits.h"
#include "host/privileges.h"
#include "host/watch.h"
#include "render/statlines.h"
#include "session/bench/countrun.h"
#include "session/bench/countwaits.h"

#define POLL_MS         50
#define INTERVAL_MIN_MS 10
#define RUNS_MAX        100000

struct stat_opts {
	struct target_opts target;
	struct opt_list events;
	bool is_detailed;
	uint64_t interval_ms; /* 0: a summary at the end */
	uint64_t nr_runs;
	bool has_threads;
	bool has_waits;
	const char *separator;
	bool is_json;
	const char *output;
};

static const struct opt stat_table[] = {
	OPT_LIST('e', "event", struct stat_opts, events, "EVENT,...",
		 "count these events, by the names of perf list (default: those of perf stat)"),
	OPT_FLAG('d', "detailed", struct stat_opts, is_detailed,
		 "also cache references and misses, L1 data cache and data TLB loads and misses"),
	OPT_U64_IN('I', "interval-print", struct stat_opts, interval_ms, INTERVAL_MIN_MS, 86400000,
		   "MS", "print a line every MS milliseconds instead of a summary"),
	OPT_FLAG(0, "per-thread", struct stat_opts, has_threads, "a line for each thread"),
	OPT_FLAG(
		0, "waits", struct stat_opts, has_waits,
		"what threads wait for, and how long; with -I the longest wait (needs BPF programs; not "
		"with -r, --per-thread)"),
	OPT_U64_IN('r', "repeat", struct stat_opts, nr_runs, 1, RUNS_MAX, "N",
		   "run CMD N times: means, and their standard errors"),
	OPT_END,
};
static const struct opt_group stat_group = {"Counters", stat_table};

static const struct opt form_table[] = {
	OPT_STR('x', "field-separator", struct stat_opts, separator, "SEP",
		"print CSV with this separator and the fields of perf stat"),
	OPT_FLAG('j', "json", struct stat_opts, is_json,
		 "print JSON: an object for each line (docs/formats/stat.md)"),
	OPT_STR('o', "output", struct stat_opts, output, "FILE", "write to FILE"),
	OPT_END,
};
static const struct opt_group form_group = {"Output", form_table};

static const char details[] =
	"Counts what perf stat counts: CPU time, context switches, page faults, and with hardware "
	"counters cycles, instructions, branches; all threads, also those that are created meanwhile, "
	"and child processes that are. Besides: time in the run queue (ready, but no CPU was free), and "
	"CPU time that the hypervisor took from this machine.\n"
	"\n"
	"A number is scaled if its event was on the hardware for a part of the time only; that share is "
	"in parentheses. What cannot be counted is said. Without -I the summary comes at the end: after "
	"SECONDS, when the target or CMD ends, or after Ctrl-C. With CMD everything goes to standard "
	"error, as of perf stat; -o FILE separates it from the messages of CMD.\n"
	"\n"
	"Exit status: with CMD its own (125: assay failed); else 0.";

static const char examples[] =
	"assay stat redis-server 10\tten seconds\n"
	"assay stat -I 1000 -p 4242\ta line each second\n"
	"assay stat --per-thread nginx 5\twhich thread does it\n"
	"assay stat -r 5 -- ./app in\ta command, five times\n"
	"assay stat -e L1-dcache-load-misses,instructions:u -- ./app\tother events\n";

struct job {
	const struct stat_opts *o;
	struct chosen_target *target;
	char **command;
	struct arena arena;
	struct counter_set set;
	struct statlines lines;
	int fd; /* of the output */
	struct countrun run;
	struct spawn child;
	bool has_child;
	struct target launched; /* the command, for waits */
	struct countwaits waits;
	bool has_waits; /* they are recorded */
	bool has_stopped_waits;
	struct wait_sum waits_before[WAIT_NR]; /* at the end of the last interval */
	struct err no_waits;
	struct watch watch;
	bool is_first_line;
	bool has_lost_reader;
	bool is_stopped;
	uint64_t start_ns;
	uint64_t deadline_ns;
	/* Of all intervals of this run. */
	struct countrun_part total;
	/* Of each run: values, run queue, stolen, time. */
	VEC(struct countrun_part) runs;
	double user_s;
	double system_s;
};

static void job_release(struct job *j)
{
	countrun_release(&j->run);
	countwaits_release(&j->waits);
	err_release(&j->no_waits);
	if (j->has_child)
		spawn_release(&j->child);
	watch_release(&j->watch);
	vec_release(&j->runs);
	arena_release(&j->arena);
	if (j->fd > STDERR_FILENO)
		close(j->fd);
}

static bool is_system(const struct job *j)
{
	return j->target->has_target && j->target->target.is_system;
}

/* ---- output ------------------------------------------------------------------------------------- */

static void put(struct job *j, const struct buf *text)
{
	/* A closed pipe (`assay stat -I 100 | head`) ends the command. */
	j->has_lost_reader |= file_write_all(j->fd, text->p, text->n, NULL) != 0;
}

static uint64_t queue_of(const struct countrun_part *p)
{
	return p->has_queue ? p->queue_ns : UINT64_MAX;
}

/* ---- waits ----------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct stat_wait *x = a;
	const struct stat_wait *y = b;
	return COMPARE(y->ns, x->ns) ?: strcmp(x->key, y->key);
}

/* The states that the threads were in, the longest first. @rows: WAIT_NR of them. */
static void wait_rows(struct stat_waits *ret, struct stat_wait *rows, const struct wait_sum *sums)
{
	uint64_t total_ns = 0;
	*ret = (struct stat_waits){.p = rows};
	for (size_t i = 0; i < WAIT_NR; i++)
		total_ns += sums[i].ns;
	for (size_t i = 0; i < WAIT_NR; i++)
		if (sums[i].ns)
			rows[ret->n++] = (struct stat_wait){
				.key = wait_key((enum wait_reason)i),
				.text = wait_text((enum wait_reason)i),
				.ns = sums[i].ns,
				.count = sums[i].count,
				.pct = 100 * (double)sums[i].ns / (double)total_ns,
				.is_idle = wait_is_idle((enum wait_reason)i),
				.is_wait = i != WAIT_ON_CPU && i != WAIT_STOLEN,
			};
	if (ret->n)
		qsort(rows, ret->n, sizeof(*rows), by_time);
	ret->thread_s = (double)total_ns / 1e9;
}

/* Without waits the counters go on; a note says why. */
static void drop_waits(struct job *j, const char *what)
{
	log_debug(LOG_BPF, 1, "%s: %s", what, err_msg(&j->no_waits));
	if (!j->no_waits.code)
		err_set(&j->no_waits, -ENOTSUP, "the kernel refused the BPF programs");
	countwaits_release(&j->waits);
	j->has_waits = false;
}

static void stop_waits(struct job *j)
{
	if (j->has_waits && !j->has_stopped_waits && countwaits_stop(&j->waits, &j->no_waits))
		drop_waits(j, "stopping");
	j->has_stopped_waits = true;
}

/* Those of an interval that ends now. */
static void interval_waits(struct job *j, struct stat_waits *ret, struct stat_wait *rows,
			   bool is_last)
{
	struct wait_sum sums[WAIT_NR];
	struct timespec ts = {.tv_nsec = COUNTWAITS_LATE_NS};
	*ret = (struct stat_waits){0};
	if (is_last)
		stop_waits(j);
	while (j->has_waits && !is_last && nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
	if (j->has_waits && !is_last && countwaits_drain(&j->waits, &j->no_waits))
		drop_waits(j, "reading");
	if (!j->has_waits)
		return;
	for (size_t i = 0; i < WAIT_NR; i++) {
		sums[i].ns = j->waits.sums[i].ns - j->waits_before[i].ns;
		sums[i].count = j->waits.sums[i].count - j->waits_before[i].count;
	}
	memcpy(j->waits_before, j->waits.sums, sizeof(j->waits_before));
	wait_rows(ret, rows, sums);
}

/* ---- lines ----------------------------------------------------------------------------------------- */

static void print_interval(struct job *j, const struct countrun_part *p, bool is_last)
{
	struct stat_wait waits[WAIT_NR];
	struct stat_waits all = {0};
	struct counter_row rows[COUNTRUN_ROWS_MAX];
	struct counter_reading reading = {.at_s = (double)(p->at_ns - j->start_ns) / 1e9,
					  .rows = rows};
	CLEANUP(buf_release) struct buf b = {0};
	reading.nr_rows =
		countrun_rows(rows, &j->set, p->values, queue_of(p), p->ran_ns, p->stolen_ns);
	counter_metrics(rows, reading.nr_rows, (double)p->elapsed_ns);
	if (j->has_waits)
		interval_waits(j, &all, waits, is_last);
	statlines_add_reading(&b, &j->lines, &reading, &all, j->is_first_line);
	j->is_first_line = false;
	put(j, &b);
}

static int by_cpu_time(const void *a, const void *b)
{
	const struct countrun_task *const *x = a;
	const struct countrun_task *const *y = b;
	double x_value = (*x)->values[0].value;
	double y_value = (*y)->values[0].value;
	return COMPARE(y_value, x_value) ?: COMPARE((*x)->tid, (*y)->tid);
}

static void print_threads(struct job *j, const struct countrun_part *p)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(free_p)
	struct countrun_task **tasks = xmalloc((j->run.tasks.n + 1) * sizeof(*tasks));
	size_t n = 0;
	for (size_t i = 0; i < j->run.tasks.n; i++)
		if (j->run.tasks.p[i]->has_counters)
			tasks[n++] = j->run.tasks.p[i];
	qsort(tasks, n, sizeof(struct countrun_task *), by_cpu_time);
	for (size_t i = 0; i < n; i++) {
		struct counter_row rows[COUNTRUN_ROWS_MAX];
		char subject[64];
		struct counter_reading reading = {.at_s = (double)(p->at_ns - j->start_ns) / 1e9,
						  .subject = subject,
						  .rows = rows};
		(void)snprintf(subject, sizeof(subject), "%s-%d", tasks[i]->name, tasks[i]->tid);
		reading.nr_rows =
			countrun_rows(rows, &j->set, tasks[i]->values, tasks[i]->part_queue_ns,
				      tasks[i]->part_ran_ns, UINT64_MAX);
		counter_metrics(rows, reading.nr_rows, (double)p->elapsed_ns);
		statlines_add_reading(&b, &j->lines, &reading, NULL, j->is_first_line);
		j->is_first_line = false;
	}
	put(j, &b);
}

/* ---- one run -------------------------------------------------------------------------------------- */

static void add_part(struct countrun_part *to, const struct countrun_part *p)
{
	for (size_t i = 0; i < COUNTERS_MAX; i++) {
		to->values[i].value += p->values[i].value;
		to->values[i].enabled_ns += p->values[i].enabled_ns;
		to->values[i].running_ns += p->values[i].running_ns;
	}
	to->at_ns = p->at_ns;
	to->elapsed_ns += p->elapsed_ns;
	to->queue_ns += p->queue_ns;
	to->ran_ns += p->ran_ns;
	to->has_queue |= p->has_queue;
	to->stolen_ns += p->stolen_ns;
}

static void take_reading(struct job *j, bool is_last)
{
	struct countrun_part p;
	countrun_read(&j->run, &p);
	add_part(&j->total, &p);
	if (j->o->has_threads)
		print_threads(j, &p);
	else if (j->o->interval_ms)
		print_interval(j, &p, is_last);
}

/* A child that has ended is a zombie until it is reaped: its run queue is read before. */
static bool has_child_ended(struct job *j)
{
	siginfo_t si = {0};
	if (!j->has_child || waitid(P_PID, (id_t)j->child.pid, &si, WEXITED | WNOWAIT | WNOHANG) ||
	    !si.si_pid)
		return false;
	j->run.part.at_ns = clock_mono_ns();
	countrun_poll(&j->run, true);
	return spawn_has_ended(&j->child);
}

/* As captures do: the first signal reaches the command, a second one leaves it running. */
static bool should_stop(struct job *j)
{
	unsigned nr = stop_count();
	if (nr && (!j->has_child || nr > 1))
		return true;
	if (nr && !j->is_stopped && stop_signal() != SIGINT)
		(void)kill(j->child.pid, stop_signal());
	j->is_stopped = nr > 0;
	return false;
}

static bool is_over(struct job *j)
{
	if (has_child_ended(j) || should_stop(j) || j->has_lost_reader)
		return true;
	return clock_mono_ns() >= j->deadline_ns ||
	       (j->target->has_target && watch_has_ended(&j->watch));
}

static void wait_a_little(struct job *j, uint64_t until_ns)
{
	uint64_t now = clock_mono_ns();
	uint64_t left_ms = until_ns > now ? (until_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
	struct pollfd fds[] = {{.fd = stop_fd(), .events = POLLIN},
			       {.fd = j->has_waits ? countwaits_fd(&j->waits) : -1,
				.events = POLLIN}};
	countwaits_rest(&j->waits, true);
	(void)poll(fds, ARRAY_LEN(fds), (int)MIN(left_ms, (uint64_t)POLL_MS));
	countwaits_rest(&j->waits, false);
	stop_drain();
}

static void open_waits(struct job *j)
{
	j->launched.child = j->child.pid;
	j->launched.takes_children = true;
	const struct target *t = j->target->has_target ? &j->target->target : &j->launched;
	j->has_waits = true;
	if (countwaits_open(&j->waits, t, &j->no_waits))
		drop_waits(j, "opening");
}

static void count(struct job *j)
{
	uint64_t every_ns = j->o->interval_ms * NS_PER_MS;
	uint64_t next_ns = every_ns ? j->start_ns + every_ns : UINT64_MAX;
	while (!is_over(j)) {
		wait_a_little(j, MIN(next_ns, j->deadline_ns));
		if (j->has_waits && countwaits_drain(&j->waits, &j->no_waits))
			drop_waits(j, "reading");
		countrun_poll(&j->run, false);
		if (clock_mono_ns() < next_ns)
			continue;
		countrun_poll(&j->run, true);
		take_reading(j, false);
		next_ns = MAX(next_ns + every_ns, clock_mono_ns());
	}
	if (every_ns && j->run.read_ns >= j->deadline_ns) /* the last interval ended with SECONDS */
		return;
	if (!j->has_child)
		countrun_poll(&j->run, true);
	take_reading(j, true);
}

static int run_once(struct job *j, struct err *err)
{
	struct target *target = j->target->has_target ? &j->target->target : NULL;
	unsigned flags = j->o->has_threads ? COUNTRUN_THREADS : 0;
	if (j->command) {
		TRY(spawn_open(&j->child, j->command, host_become_command_user, err));
		j->has_child = true;
	}
	if (j->o->has_waits)
		open_waits(j);
	TRY(countrun_open(&j->run, &j->set, target, target ? 0 : j->child.pid, flags, err));
	if (j->has_waits && countwaits_start(&j->waits, &j->no_waits))
		drop_waits(j, "starting");
	countrun_start(&j->run);
	j->start_ns = j->run.read_ns;
	if (j->command)
		TRY(spawn_exec(&j->child, j->command[0], err));
	j->deadline_ns = j->target->duration_ns ? j->start_ns + j->target->duration_ns : UINT64_MAX;
	count(j);
	stop_waits(j);
	return 0;
}

/* Runs once, or several times; each run's values are kept. */
static int run_all(struct job *j, struct err *err)
{
	for (uint64_t i = 0; i < j->o->nr_runs; i++) {
		j->total = (struct countrun_part){0};
		TRY(run_once(j, err));
		vec_push(&j->runs, j->total);
		if (j->o->nr_runs > 1 && j->child.is_reaped && spawn_exit_code(&j->child))
			log_warn("run %" PRIu64 " exited with status %d", i + 1,
				 spawn_exit_code(&j->child));
		if (j->has_child && !j->child.is_reaped)
			return 0;
		if (j->has_child) {
			j->user_s += (double)(j->child.cpu_ns - j->child.system_ns) / 1e9;
			j->system_s += (double)j->child.system_ns / 1e9;
		}
		if (i + 1 == j->o->nr_runs || stop_count())
			return 0;
		countrun_release(&j->run);
		spawn_release(&j->child);
		j->has_child = false;
	}
	return 0;
}

/* ---- the summary ----------------------------------------------------------------------------------- */

/* The mean, and the standard error of it in per cent of it. */
static double mean_of(const double *v, size_t n, double *ret_spread_pct)
{
	struct stat_run sum = {0};
	for (size_t i = 0; i < n; i++)
		stat_add(&sum, v[i]);
	double mean = stat_mean(v, n);
	*ret_spread_pct =
		n > 1 && mean > 0 ? 100 * stat_stddev(&sum) / sqrt((double)n) / mean : NAN;
	return mean;
}

static double mean_elapsed(const struct job *j, double *ret_spread_pct)
{
	CLEANUP(free_p) double *v = xmalloc(j->runs.n * sizeof(*v));
	for (size_t i = 0; i < j->runs.n; i++)
		v[i] = (double)j->runs.p[i].elapsed_ns;
	return mean_of(v, j->runs.n, ret_spread_pct);
}

/* Rows of the means of all runs. */
static size_t mean_rows(const struct job *j, struct counter_row *rows)
{
	CLEANUP(free_p) double *v = xmalloc(j->runs.n * sizeof(*v));
	struct countrun_part sum = {0};
	for (size_t i = 0; i < j->runs.n; i++)
		add_part(&sum, &j->runs.p[i]);
	/* The waits have the run queue of all threads, also of those that ended. */
	uint64_t queue_ns = j->has_waits ? UINT64_MAX : queue_of(&sum);
	size_t nr = countrun_rows(rows, &j->set, sum.values, queue_ns, sum.ran_ns, sum.stolen_ns);
	for (size_t k = 0; k < nr; k++) {
		for (size_t i = 0; i < j->runs.n; i++) {
			const struct countrun_part *p = &j->runs.p[i];
			v[i] = rows[k].role == COUNTER_RUN_QUEUE ? (double)p->queue_ns
			       : rows[k].role == COUNTER_STOLEN  ? (double)p->stolen_ns
								 : p->values[k].value;
		}
		rows[k].value = mean_of(v, j->runs.n, &rows[k].spread_pct);
		rows[k].running_ns /= j->runs.n;
	}
	return nr;
}

static void add_queue_note(struct job *j, const char **notes, size_t *nr)
{
	struct countrun_part sum = {0};
	for (size_t i = 0; i < j->runs.n; i++)
		add_part(&sum, &j->runs.p[i]);
	double clock_ns = 0;
	for (size_t i = 0; i < j->set.events.n; i++)
		if (j->set.events.p[i].role == COUNTER_CLOCK && !j->set.state[i])
			clock_ns = sum.values[i].value;
	double covered = clock_ns > 0 ? 100 * (double)sum.ran_ns / clock_ns : 100;
	if (is_system(j))
		notes[(*nr)++] = "run-queue is not known of the whole system";
	else if (!sum.has_queue)
		notes[(*nr)++] = "run-queue is not known: the kernel does not count it";
	else if (covered < COUNTER_QUEUE_COVERED_PCT && !j->has_waits)
		notes[(*nr)++] = arena_fmt(
			&j->arena,
			"run-queue is that of threads with %s %% of the CPU time: the others, and child "
			"processes that had been there, ended before they were read",
			num_pct(covered).s);
	if (j->run.nr_unopened)
		notes[(*nr)++] = arena_fmt(&j->arena, "%s could not be counted",
					   num_noun(j->run.nr_unopened, "threads").s);
	for (size_t i = 0; i < j->set.events.n; i++)
		if (j->set.is_user_only[i] && !j->set.state[i]) {
			notes[(*nr)++] = "in user mode only, since the kernel does not permit more "
					 "(kernel.perf_event_paranoid)";
			break;
		}
}

static void set_waits(struct job *j, struct stat_summary *s, struct stat_wait *rows)
{
	if (j->has_waits)
		wait_rows(&s->waits, rows, j->waits.sums);
}

static void add_waits_note(struct job *j, const char **notes, size_t *nr)
{
	if (j->no_waits.code)
		notes[(*nr)++] =
			arena_fmt(&j->arena, "what threads waited for is not known: %s%s%s",
				  err_msg(&j->no_waits), j->no_waits.hint ? "; " : "",
				  j->no_waits.hint ? j->no_waits.hint : "");
	else if (j->has_waits)
		notes[(*nr)++] =
			arena_fmt(&j->arena, "recording waits took %s of CPU time in BPF programs",
				  num_ns(j->waits.own_ns).s);
}

static const char *title_of(struct job *j)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (j->target->has_target)
		buf_add_str(&b, is_system(j) ? "the whole system" : j->target->target.name);
	for (char **word = j->command; word && *word && !j->target->has_target; word++)
		buf_addf(&b, "%s%s", b.n ? " " : "'", *word);
	if (j->command && !j->target->has_target)
		buf_add_str(&b, "'");
	if (j->runs.n > 1)
		buf_addf(&b, " (%s)", num_noun(j->runs.n, "runs").s);
	return arena_strndup(&j->arena, b.p, b.n);
}

static void print_summary(struct job *j)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct counter_row rows[COUNTRUN_ROWS_MAX];
	const char *notes[COUNTER_NOTES_MAX + 4];
	struct stat_wait waits[WAIT_NR];
	bool has_times = j->has_child && j->child.is_reaped && !j->target->has_target;
	struct stat_summary s = {.title = title_of(j),
				 .reading = {.rows = rows},
				 .notes = notes,
				 .user_s = NAN,
				 .system_s = NAN};
	s.elapsed_s = mean_elapsed(j, &s.elapsed_spread_pct) / 1e9;
	s.reading.at_s = s.elapsed_s;
	s.reading.nr_rows = mean_rows(j, rows);
	counter_metrics(rows, s.reading.nr_rows, s.elapsed_s * 1e9);
	s.nr_notes = counter_notes(notes, &j->arena, rows, s.reading.nr_rows,
				   counter_set_has_hardware(&j->set) ||
					   !counter_set_wants_hardware(&j->set));
	add_queue_note(j, notes, &s.nr_notes);
	add_waits_note(j, notes, &s.nr_notes);
	set_waits(j, &s, waits);
	if (has_times) {
		s.user_s = j->user_s / (double)j->runs.n;
		s.system_s = j->system_s / (double)j->runs.n;
	}
	statlines_add_summary(&b, &j->lines, &s);
	put(j, &b);
}

/* What intervals and threads cannot show in their lines. */
static void print_notes(struct job *j)
{
	struct counter_row rows[COUNTRUN_ROWS_MAX];
	const char *notes[COUNTER_NOTES_MAX];
	static const struct counter_value none[COUNTERS_MAX];
	size_t nr = countrun_rows(rows, &j->set, none, UINT64_MAX, 0, UINT64_MAX);
	nr = counter_notes(notes, &j->arena, rows, nr, counter_set_has_hardware(&j->set));
	for (size_t i = 0; i < nr; i++)
		log_note("%s", notes[i]);
	if (j->o->has_threads)
		log_note(
			"each thread is counted by itself: one that begins meanwhile from when it is "
			"seen, after 20 ms or more%s",
			j->target->has_target ? "; child processes of the target are not counted"
					      : "; processes that end before that are not counted");
}

/* ---- the command ------------------------------------------------------------------------------------- */

static int open_output(struct job *j, struct err *err)
{
	const struct stat_opts *o = j->o;
	j->fd = j->command ? STDERR_FILENO : STDOUT_FILENO;
	if (o->output && strcmp(o->output, "-") != 0) {
		j->fd = open(o->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (j->fd < 0)
			return err_sys(err, "cannot write '%s'", o->output);
	} else if (o->output) {
		j->fd = STDOUT_FILENO;
	}
	j->lines = (struct statlines){
		.form = o->is_json     ? STATLINES_JSON
			: o->separator ? STATLINES_CSV
				       : STATLINES_TEXT,
		.separator = o->separator,
		.columns = output_style(&(struct renderer_choice){0}, j->fd).width,
		.has_intervals = o->interval_ms > 0,
		.has_spread = o->nr_runs > 1,
		.has_waits = o->has_waits && o->interval_ms,
	};
	return 0;
}

static int choose_events(struct job *j, struct err *err)
{
	const struct stat_opts *o = j->o;
	struct counter_events *to = &j->set.events;
	for (size_t i = 0; i < o->events.n; i++)
		TRY(counter_events_add(to, &j->arena, o->events.p[i], err));
	if (!o->events.n)
		TRY(counter_events_add(to, &j->arena,
				       is_system(j) ? "cpu-clock," COUNTER_EVENTS_DEFAULT_REST
						    : COUNTER_EVENTS_DEFAULT,
				       err));
	if (o->is_detailed)
		TRY(counter_events_add(to, &j->arena, COUNTER_EVENTS_DETAILED, err));
	return counter_set_probe(&j->set, is_system(j), err);
}

static int check(const struct job *j, struct err *err)
{
	const struct stat_opts *o = j->o;
	if (o->nr_runs > 1 && !j->command)
		return err_set(err, -EINVAL, "-r needs a command: assay stat -r 5 -- CMD");
	if (o->nr_runs > 1 && (o->interval_ms || o->has_threads || j->target->has_target))
		return err_set(err, -EINVAL, "-r excludes -I, --per-thread and a target");
	if (o->has_waits && (o->nr_runs > 1 || o->has_threads))
		return err_set(err, -EINVAL, "--waits excludes -r and --per-thread");
	if (o->has_waits && o->interval_ms % COUNTWAITS_ROWS_MS)
		return err_set(err, -EINVAL,
			       "--waits needs intervals of %d ms or multiples of that",
			       COUNTWAITS_ROWS_MS);
	if (o->is_json && o->separator)
		return err_set(err, -EINVAL, "--json excludes -x");
	if (o->has_threads && is_system(j))
		return err_set(err, -EINVAL, "--per-thread needs a target, not the whole system");
	return 0;
}

static int run(const struct stat_opts *o, const struct opt_args *args, struct chosen_target *target)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(job_release)
	struct job j = {.o = o,
			.target = target,
			.command = args->command,
			.fd = -1,
			.child = {.start_fd = -1, .status_fd = -1},
			.watch = WATCH_INIT(target->has_target ? &target->target : NULL),
			.is_first_line = true};
	int failed = args->command ? EXIT_ASSAY_FAILED : EXIT_FAILED;
	if (check(&j, &err) || choose_events(&j, &err))
		return err.code == -EINVAL ? cmd_refuse(&err) : (log_err(&err), failed);
	if (host_become_invoker(&err) || stop_install(&err) || open_output(&j, &err)) {
		log_err(&err);
		return failed;
	}
	if (j.lines.has_intervals || o->has_threads)
		print_notes(&j);
	int rc = run_all(&j, &err);
	if (rc) {
		log_err(&err);
		return j.has_child && j.child.is_reaped ? spawn_exit_code(&j.child) : failed;
	}
	if (!o->interval_ms && !o->has_threads)
		print_summary(&j);
	if (!j.has_child)
		return EXIT_OK;
	if (!j.child.is_reaped) {
		log_warn("the command is left running, as process %d", j.child.pid);
		return EXIT_OK;
	}
	return spawn_exit_code(&j.child);
}

int cmd_stat(int argc, char **argv)
{
	struct stat_opts o = {.nr_runs = 1};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	const struct opt_cmd cmd = {
		.name = "stat",
		.usage = {"[OPTION...] TARGET [SECONDS]", "[OPTION...] -- CMD [ARG...]"},
		.details = details,
		.examples = examples,
		.groups = {{&stat_group, &o}, {&target_group, &o.target}, {&form_group, &o}},
	};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (!target_opts_choose(&target, &o.target, &args, &status))
		return status;
	return run(&o, &args, &target);
}
