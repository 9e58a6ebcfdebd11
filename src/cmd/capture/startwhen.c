/* Waits for a condition before a capture; see startwhen.h. */
#include "base/base.h"
#include "cmd/capture/startwhen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyze/io/taggroups.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/process/progress.h"
#include "base/process/stop.h"
#include "base/text/num.h"
#include "base/text/suggest.h"
#include "capture/wait/spans.h"
#include "cmd/cmd.h"
#include "host/memory/memstat.h"
#include "host/privileges.h"
#include "host/proc.h"
#include "host/watch.h"
#include "plan/spanprobes.h"
#include "session/capture.h"

#define EVERY_NS NS_PER_SEC

/* What the child process sends each second. */
struct span_values {
	double ns[4]; /* p50, p90, p99, max */
	double nr_per_s;
};

struct cpu_of_process {
	int32_t pid;
	uint64_t ns;
};

struct wait_state {
	struct startwhen *w;
	struct target *target;
	struct watch watch;
	struct progress bar;
	uint64_t start_ns;
	uint64_t read_ns;
	struct memstat memory;
	VEC(struct cpu_of_process) cpus;
	double cpu_pct;
	bool has_cpu;
	pid_t child; /* 0 = none */
	int from_child;
	bool has_spans;
	struct span_values spans;
};

/* ---- names ---------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	bool is_span;
	enum formula_unit unit;
} names[] = {
	{"rss", false, FORMULA_BYTES},       {"anon", false, FORMULA_BYTES},
	{"swap", false, FORMULA_BYTES},      {"threads", false, FORMULA_COUNT},
	{"processes", false, FORMULA_COUNT}, {"cpu", false, FORMULA_PERCENT},
	{"p50", true, FORMULA_NS},           {"p90", true, FORMULA_NS},
	{"p99", true, FORMULA_NS},           {"max", true, FORMULA_NS},
	{"calls", true, FORMULA_COUNT},
};

#define KNOWN "rss, anon, swap, threads, processes, cpu, p50(F), p90(F), p99(F), max(F), calls(F)"

static int keep_span(struct startwhen *w, struct sv function, struct err *err)
{
	if (w->span && !sv_eq_str(function, w->span))
		return err_set(err, -EINVAL,
			       "calls of one function are measured, not of '%s' and '%.*s'",
			       w->span, SV_ARGS(function));
	w->span = arena_strndup(&w->arena, function.p, function.n);
	return 0;
}

static int unit_of(void *context, struct sv name, struct sv argument, enum formula_unit *ret_unit,
		   struct err *err)
{
	struct suggest near = suggest_for(name);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		suggest_offer(&near, sv_from_str(names[i].name));
		if (!sv_eq_str(name, names[i].name))
			continue;
		if (names[i].is_span && !argument.n) {
			(void)err_set(err, -EINVAL, "'%s' needs a function", names[i].name);
			return err_hint(err, "for example %s(Database::commit)", names[i].name);
		}
		if (!names[i].is_span && argument.n)
			return err_set(err, -EINVAL, "'%s' is of the whole target", names[i].name);
		*ret_unit = names[i].unit;
		return names[i].is_span ? keep_span(context, argument, err) : 0;
	}
	(void)err_set(err, -EINVAL, "there is no value '%.*s'", SV_ARGS(name));
	if (near.best.n)
		return err_hint(err, "did you mean '%.*s'?", SV_ARGS(near.best));
	return err_hint(err, "values: " KNOWN);
}

static struct formula_value value_of(void *context, struct sv name, struct sv argument)
{
	const struct wait_state *s = context;
	static const char *const quantiles[] = {"p50", "p90", "p99", "max"};
	(void)argument;
	if (sv_eq_str(name, "rss"))
		return formula_number((double)s->memory.rss_bytes, FORMULA_BYTES);
	if (sv_eq_str(name, "anon"))
		return formula_number((double)s->memory.anon_bytes, FORMULA_BYTES);
	if (sv_eq_str(name, "swap"))
		return formula_number((double)s->memory.swap_bytes, FORMULA_BYTES);
	if (sv_eq_str(name, "threads"))
		return formula_number(s->memory.nr_threads, FORMULA_COUNT);
	if (sv_eq_str(name, "processes"))
		return formula_number(s->memory.nr_processes, FORMULA_COUNT);
	struct formula_value v = {.is_known = s->has_spans, .unit = FORMULA_NS};
	if (sv_eq_str(name, "cpu"))
		return (struct formula_value){
			.is_known = s->has_cpu, .unit = FORMULA_PERCENT, .number = s->cpu_pct};
	if (sv_eq_str(name, "calls"))
		return (struct formula_value){.is_known = s->has_spans,
					      .unit = FORMULA_COUNT,
					      .number = s->spans.nr_per_s};
	for (size_t i = 0; i < ARRAY_LEN(quantiles); i++)
		if (sv_eq_str(name, quantiles[i]))
			v.number = s->spans.ns[i];
	v.is_known &= s->spans.nr_per_s > 0;
	return v;
}

void startwhen_release(struct startwhen *w)
{
	arena_release(&w->arena);
}

int startwhen_parse(struct startwhen *w, const char *text, struct err *err)
{
	const struct formula_names in = {unit_of, value_of, w};
	w->text = text;
	if (formula_parse(&w->condition, &w->arena, sv_from_str(text), &in, err))
		return err_wrap(err, "--when");
	return 0;
}

const char *startwhen_text(const struct startwhen *w)
{
	return w->result;
}

/* ---- the spans, in a child process ---------------------------------------------------------- */

static bool send_spans(void *ctx, const struct profile *p)
{
	const int *to = ctx;
	CLEANUP(arena_release) struct arena a = {0};
	struct tag_rows rows;
	struct tag_row row;
	struct amount sum = {0};
	const struct select_spec spec = {0};
	if (!tag_rows_open(&rows, &a, p, TABLE_SPANS, &spec, NULL))
		while (tag_rows_next(&rows, &row))
			amount_add(&sum, &row);
	const struct quantile *q = &sum.q;
	double seconds = (double)MAX(p->end_ns - p->start_ns, (uint64_t)1) / 1e9;
	const struct span_values v = {.ns = {(double)quantile_at(q, 0.5),
					     (double)quantile_at(q, 0.9),
					     (double)quantile_at(q, 0.99), (double)q->longest_ns},
				      .nr_per_s = (double)q->nr_all / seconds};
	return file_write_all(*to, &v, sizeof(v), NULL) != 0;
}

/* Returns an exit status. */
static int measure_spans(const struct wait_state *s, const struct span_probes *probes, int to)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(capture_result_release) struct capture_result r = {0};
	const struct spans_spec spec = {.probes = probes->list.p,
					.nr_probes = probes->list.n,
					.pids = probes->pids.p,
					.nr_pids = probes->pids.n,
					.nr_slowest = 1};
	struct capture_live live = {.show = send_spans, .fd = -1, .every_ns = EVERY_NS, .ctx = &to};
	const struct capture_options c = {.kind = "latency",
					  .tables = TABLE_SET(SPANS),
					  .spans = &spec,
					  .target = s->target,
					  .recording_fd = -1,
					  .live = &live};
	int rc = stop_install(&err);
	rc = rc ? rc : host_become_invoker(&err);
	rc = rc ? rc : capture_run(&r, &c, &err);
	return rc ? cmd_fail(&err) : EXIT_OK;
}

static int start_child(struct wait_state *s, struct err *err)
{
	CLEANUP(span_probes_release) struct span_probes probes = {0};
	int ends[2];
	if (!s->w->span)
		return 0;
	TRY(span_probes_find(&probes, &s->w->span, 1, s->target, NULL, err));
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return err_sys(err, "cannot create a pipe");
	s->from_child = ends[0];
	s->child = fork();
	if (!s->child) {
		stop_uninstall(); /* the capture installs its own */
		_exit(measure_spans(s, &probes, ends[1]));
	}
	(void)close(ends[1]);
	return s->child < 0 ? err_sys(err, "cannot start a process") : 0;
}

static void stop_child(struct wait_state *s)
{
	close_p(&s->from_child);
	if (s->child <= 0)
		return;
	(void)kill(s->child, SIGTERM);
	while (waitpid(s->child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Takes the newest values. False: the child process has ended. */
static bool read_child(struct wait_state *s)
{
	ssize_t n;
	struct span_values v;
	while (s->from_child >= 0 && (n = read(s->from_child, &v, sizeof(v))) != -1) {
		if (n != sizeof(v))
			return false;
		s->spans = v;
		s->has_spans = true;
	}
	return true;
}

/* ---- the other values ----------------------------------------------------------------------- */

static uint64_t *cpu_before(struct wait_state *s, int32_t pid)
{
	vec_foreach(c, &s->cpus)
		if (c->pid == pid)
			return &c->ns;
	vec_push(&s->cpus, (struct cpu_of_process){.pid = pid});
	return &vec_last(&s->cpus)->ns;
}

static void read_values(struct wait_state *s, uint64_t now)
{
	uint64_t used_ns = 0;
	struct memstat sum = {0};
	(void)target_list_joined(s->target);
	vec_foreach(pid, &s->target->pids.pids) {
		struct memstat one;
		if (!target_is_same(s->target, *pid) ||
		    memstat_read(&one, *pid, MEMSTAT_COUNTERS, NULL, NULL))
			continue;
		memstat_add(&sum, &one);
		uint64_t *before = cpu_before(s, *pid);
		uint64_t ns = proc_cpu_ns(*pid);
		if (*before && ns > *before)
			used_ns += ns - *before;
		*before = ns;
	}
	s->memory = sum;
	s->has_cpu = s->read_ns != 0;
	if (s->has_cpu)
		s->cpu_pct = 100.0 * (double)used_ns / (double)(now - s->read_ns);
	s->read_ns = now;
}

/* Of formula_each_name, which has one context for values and visits. */
struct values_text {
	struct wait_state *s;
	struct buf *to;
};

static struct formula_value value_for_text(void *context, struct sv name, struct sv argument)
{
	const struct values_text *t = context;
	return value_of(t->s, name, argument);
}

static void add_value(void *context, struct sv name, struct sv argument, struct formula_value v)
{
	struct buf *to = ((struct values_text *)context)->to;
	buf_addf(to, "%s%.*s", to->n ? ", " : "", SV_ARGS(name));
	if (argument.n)
		buf_addf(to, "(%.*s)", SV_ARGS(argument));
	buf_add_ch(to, ' ');
	formula_add_value(to, v);
}

/* Appends "rss 3.20 GiB, cpu 12 %". */
static void add_values(struct buf *to, struct wait_state *s)
{
	struct values_text t = {s, to};
	const struct formula_names in = {unit_of, value_for_text, &t};
	formula_each_name(s->w->condition, &in, add_value, &t);
}

/* ---- waiting -------------------------------------------------------------------------------- */

static void sleep_until(struct wait_state *s, uint64_t until_ns)
{
	uint64_t now;
	while (!stop_count() && (now = clock_mono_ns()) < until_ns) {
		struct pollfd fd = {.fd = stop_fd(), .events = POLLIN};
		(void)poll(&fd, 1, (int)MIN((until_ns - now) / NS_PER_MS + 1, (uint64_t)200));
		stop_drain();
		if (watch_has_ended(&s->watch))
			return;
	}
}

/* Returns true when the condition holds; else nothing is to be recorded, with *ret_status. */
static bool wait_for(struct wait_state *s, int *ret_status)
{
	const struct formula_names in = {unit_of, value_of, s};
	for (uint64_t next_ns = s->start_ns;; next_ns += EVERY_NS) {
		CLEANUP(buf_release) struct buf values = {0};
		sleep_until(s, next_ns);
		bool has_ended = watch_has_ended(&s->watch);
		if (!has_ended) /* else what was read last is said */
			read_values(s, clock_mono_ns());
		bool is_measured = read_child(s);
		add_values(&values, s);
		const struct num_text waited = num_ns(clock_mono_ns() - s->start_ns);
		if (!has_ended && formula_truth(formula_eval(s->w->condition, &in)) == 1) {
			s->w->result = arena_fmt(&s->w->arena, "%s: %s, after %s", s->w->text,
						 buf_str(&values), waited.s);
			return true;
		}
		*ret_status = EXIT_NOTHING;
		if (stop_count() || has_ended) {
			progress_release(&s->bar);
			log_warn("nothing was recorded: %s after %s, before %s (%s)",
				 has_ended ? "the target ended" : "stopped", waited.s, s->w->text,
				 buf_str(&values));
			return false;
		}
		if (!is_measured) {
			log_error("the calls of '%s' can no longer be measured", s->w->span);
			*ret_status = EXIT_FAILED;
			return false;
		}
		if (progress_due(&s->bar))
			progress_text(&s->bar, "waiting for %s: %s, %s", s->w->text,
				      buf_str(&values), waited.s);
	}
}

static int check_target(const struct chosen_target *t, struct err *err)
{
	if (!t->has_target) {
		(void)err_set(err, -EINVAL, "--when needs a running target");
		return err_hint(err,
				"start the command, then name it: assay cpu --when CONDITION NAME");
	}
	if (t->target.is_system || t->target.tids.pids.n)
		return err_set(err, -EINVAL, "--when reads the values of processes, not of %s",
			       t->target.is_system ? "the whole system" : "threads");
	return 0;
}

bool startwhen_wait(struct startwhen *w, struct chosen_target *t, const char *command,
		    int *ret_status)
{
	CLEANUP(err_release) struct err err = {0};
	struct wait_state s = {.w = w,
			       .target = &t->target,
			       .watch = WATCH_INIT(&t->target),
			       .from_child = -1,
			       .start_ns = clock_mono_ns()};
	int rc = check_target(t, &err);
	rc = rc ? rc : stop_install(&err);
	rc = rc ? rc : start_child(&s, &err);
	bool holds = false;
	if (rc) {
		*ret_status = cmd_refuse(&err);
	} else {
		log_note("waiting for %s", w->text);
		progress_init(&s.bar, command);
		holds = wait_for(&s, ret_status);
		progress_release(&s.bar);
	}
	stop_child(&s);
	stop_uninstall();
	watch_release(&s.watch);
	vec_release(&s.cpus);
	if (holds)
		log_note("recording: %s", w->result);
	return holds;
}
