/* assay watch: prints the memory of a program over time, live. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <poll.h>
#include <unistd.h>

#include "analyze/memory/maptable.h"
#include "analyze/memory/watchpage.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/text/json.h"
#include "base/log.h"
#include "base/text/num.h"
#include "base/process/spawn.h"
#include "base/process/stop.h"
#include "cmd/capture/outputs.h"
#include "cmd/read/memchart.h"
#include "cmd/optgroups.h"
#include "cmd/capture/targetopts.h"
#include "render/jsonout.h"
#include "render/memlines.h"
#include "render/screen.h"
#include "render/text.h"
#include "render/text_table.h"
#include "host/limits.h"
#include "host/privileges.h"
#include "host/syscallfilter.h"
#include "host/watch.h"
#include "session/memrecord.h"

#define EVERY_MIN_NS (10 * NS_PER_MS)
/* A command may end before the second reading: after this, twice this and so on it is read, too. */
#define EARLY_NS    (10 * NS_PER_MS)
#define END_TRIES   100
#define END_WAIT_MS 2
/* Readings kept for redrawing the live page. */
#define SHOWN_MAX 500

struct watch_opts {
	struct target_opts target;
	uint64_t every_ns;
	uint64_t limit; /* rows of a table */
	bool is_csv;
	bool is_json;
	bool shows_mappings;
	bool asks_allocator;
	const char *chart;  /* file, or NULL */
	const char *output; /* recording, or NULL */
};

static const struct opt table[] = {
	OPT_DURATION(0, "every", struct watch_opts, every_ns, "TIME",
		     "time between readings, at least 10ms (default 1s)"),
	OPT_FLAG(0, "mappings", struct watch_opts, shows_mappings,
		 "print every mapping, as pmap -x does"),
	OPT_FLAG(0, "allocator", struct watch_opts, asks_allocator,
		 "read how much of its memory the allocator (jemalloc) uses, once a second; this "
		 "stops one thread for a moment"),
	OPT_END,
};
static const struct opt_group watch_group = {"Readings", table};

static const struct opt out_table[] = {
	OPT_STR('o', "output", struct watch_opts, output, "FILE",
		"write a recording, for assay report and assay flame"),
	OPT_STR(0, "chart", struct watch_opts, chart, "FILE",
		"at the end, draw memory over time (SVG) to FILE"),
	OPT_FLAG(0, "csv", struct watch_opts, is_csv, "print one CSV line per reading, in bytes"),
	OPT_FLAG(0, "json", struct watch_opts, is_json,
		 "print one JSON object per line and reading, the summary last"),
	OPT_U64(0, "limit", struct watch_opts, limit, "N",
		"rows of the tables at the end, 0 for all (default 15)"),
	OPT_END,
};
static const struct opt_group out_group = {"Output", out_table};

static const char details[] =
	"Prints a program's memory once a second: RSS and its parts (anonymous memory, file "
	"pages, shared memory), PSS, swap, page faults, growth; the usage of its memory cgroup, "
	"and how long threads were stalled for lack of memory (PSI). On a terminal it is a live "
	"page (q: quit, m: show mappings, space: read now), otherwise one line per reading.\n"
	"\n"
	"At the end it prints how fast each part grew, with the 95 % confidence interval; a "
	"verdict with its evidence (leak, fragmentation, first-use, page-cache, bloat, steady, "
	"inconclusive: see assay-watch(1)); and what the RSS consists of: heap, stacks, code, "
	"files by name, and the rest.\n"
	"\n"
	"The target is neither stopped nor changed. For several processes the numbers are added "
	"up: PSS is then correct, RSS counts shared pages once per process.";

static const char examples[] =
	"assay watch redis-server\tuntil q or Ctrl-C\n"
	"assay watch -p 4242 600 --csv > memory.csv\tten minutes, for a spreadsheet\n"
	"assay watch postgres --all-matching --every 10s -o day.assay 86400\tall postgres processes, one day\n"
	"assay watch --mappings -p 4242 1\tthe mappings, like pmap -x\n"
	"assay watch -- ./load\ta program, from start to end\n";

static const struct opt_exclusion excluded[] = {
	{"all", NULL,
	 "memory is read process by process; take several with --match and --all-matching"},
	{0},
};

struct run {
	const struct watch_opts *o;
	struct spawn *child; /* NULL: none */
	struct watch target; /* how it ends, if there is no child */
	struct memwatch memory;
	struct memrecord record;
	struct watchpage page;
	struct memlines lines;
	struct screen screen;
	bool has_screen; /* a live page; otherwise one line per reading */
	bool shows_mappings;
	bool has_lost_reader;
	bool has_early;
	struct memreading early;    /* the latest one within the first interval */
	uint64_t before_exec_bytes; /* peak RSS of the child before its execve */
	int lines_fd;
	VEC(struct memreading) shown;
	uint64_t deadline_ns;
	uint64_t cpu_before_ns;
};

static void run_release(struct run *r)
{
	watch_release(&r->target);
	memwatch_release(&r->memory);
	memrecord_release(&r->record);
	watchpage_release(&r->page);
	vec_release(&r->shown);
}

static int run_open(struct run *r, struct chosen_target *t, const struct opt_args *args,
		    struct err *err)
{
	const struct watch_opts *o = r->o;
	const char *name = t->has_target ? t->target.name : path_base(args->command[0]);
	TRY(host_need_files(err));
	r->target.target = t->has_target ? &t->target : NULL;
	(void)watch_has_ended(&r->target);
	r->cpu_before_ns = clock_process_cpu_ns();
	r->deadline_ns = t->duration_ns ? clock_mono_ns() + t->duration_ns : UINT64_MAX;
	r->shows_mappings = o->shows_mappings;
	r->lines_fd = args->command && !o->is_csv && !o->is_json ? STDERR_FILENO : STDOUT_FILENO;
	TRY(memwatch_open(&r->memory, t->has_target ? &t->target : NULL,
			  r->child ? r->child->pid : 0,
			  (o->asks_allocator ? MEMWATCH_ALLOCATOR_STATS : 0u) |
				  (o->target.takes_children ? MEMWATCH_CHILDREN : 0u),
			  err));
	TRY(memrecord_open(&r->record, o->output, name, err));
	r->page = (struct watchpage){.target = name,
				     .group = r->memory.group.path,
				     .profile = r->record.p,
				     .start_ns = r->record.p->start_ns,
				     .machine_bytes = memstat_machine_bytes(),
				     .every_ns = o->every_ns,
				     .max_rows = o->limit,
				     .shows_mappings = o->shows_mappings};
	r->lines = (struct memlines){
		.form = o->is_csv    ? MEMLINES_CSV
			: o->is_json ? MEMLINES_JSON
				     : MEMLINES_TABLE,
		.start_ns = r->page.start_ns,
		.machine_bytes = r->page.machine_bytes,
		.columns = output_style(&(struct renderer_choice){0}, r->lines_fd).width,
		.group = r->memory.group.path,
		.has_group = r->memory.has_group,
		.has_allocator = o->asks_allocator};
	return 0;
}

/* ---- the screen and the lines -------------------------------------------------------------- */

static void print_when_a_verdict_is_possible(const struct run *r, uint64_t duration_ns)
{
	CLEANUP(arena_release) struct arena a = {0};
	bool is_short = duration_ns && duration_ns < memverdict_min_ns(r->o->every_ns);
	log_note("%s %s",
		 is_short ? "too short for a verdict on growth: that needs"
			  : "a verdict on growth is possible after",
		 memverdict_needs(&a, r->o->every_ns, is_short ? duration_ns : 0));
}

static void add_trend(struct buf *to, const struct run *r)
{
	CLEANUP(arena_release) struct arena a = {0};
	uint64_t span_ns = vec_last(&r->page.points)->time_ns - r->page.points.p[0].time_ns;
	if (span_ns < memverdict_min_ns(r->o->every_ns)) {
		buf_addf(to, "so far: too short to tell, a verdict is possible in %s\n\n",
			 num_ns(memverdict_min_ns(r->o->every_ns) - span_ns).s);
		return;
	}
	struct memverdict v = watchpage_verdict(&r->page, &a);
	if (v.kept.is_known)
		buf_addf(to, "so far: kept memory %s; %s\n\n", memslope_text(&a, &v.kept),
			 memverdict_key(v.kind));
	else
		buf_addf(to, "so far: %s\n\n", memverdict_key(v.kind));
}

static void add_mappings(struct buf *to, struct run *r)
{
	CLEANUP(report_free_p) struct report *report = report_new();
	const struct text_style style = {.width = r->lines.columns};
	memwatch_read_maps(&r->memory);
	maptable_report(report, r->memory.maps.p, r->memory.maps.n,
			(uint64_t)MAX(r->screen.rows - 8, 3));
	text_add_tables(to, report, NULL, &style);
}

static void draw(struct run *r)
{
	CLEANUP(buf_release) struct buf page = {0};
	if (!r->shown.n)
		return;
	(void)screen_measure(&r->screen);
	r->lines.columns = (unsigned)r->screen.columns;
	r->lines.refused = r->memory.refused;
	memlines_head(&page, &r->lines, vec_last(&r->shown), r->page.target,
		      r->memory.processes.p[0].pid);
	add_trend(&page, r);
	size_t used = 0;
	for (size_t i = 0; i < page.n; i++)
		used += page.p[i] == '\n';
	if (r->shows_mappings) {
		add_mappings(&page, r);
	} else {
		size_t nr = (size_t)MAX(r->screen.rows - (int)used - 1, 0); /* below the titles */
		memlines_add(&page, &r->lines, NULL);
		for (size_t i = r->shown.n - MIN(nr, r->shown.n); i < r->shown.n; i++)
			memlines_add(&page, &r->lines, &r->shown.p[i]);
	}
	screen_draw(&r->screen, &page);
}

/* With -q only what --csv and --json ask for is printed. */
static bool is_printed(const struct run *r)
{
	return !cmd_is_quiet() || r->lines.form != MEMLINES_TABLE;
}

static void show(struct run *r, const struct memreading *t)
{
	if (r->has_screen) {
		if (r->shown.n >= SHOWN_MAX)
			memmove(r->shown.p, r->shown.p + 1, --r->shown.n * sizeof(*r->shown.p));
		vec_push(&r->shown, *t);
		draw(r);
		return;
	}
	if (!is_printed(r))
		return;
	CLEANUP(buf_release) struct buf b = {0};
	if (r->page.points.n == 1)
		memlines_add(&b, &r->lines, NULL);
	memlines_add(&b, &r->lines, t);
	/* A closed pipe (`assay watch | head`) ends the command. */
	r->has_lost_reader = file_write_all(r->lines_fd, b.p, b.n, NULL) != 0;
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* Returns true if the key asks for a reading now. */
static bool handle_key(struct run *r, int key)
{
	if (key == 'q' || key == 'Q')
		stop_request();
	if (key == 'm')
		r->shows_mappings = !r->shows_mappings;
	return key == ' ' || key == 'm';
}

static bool is_over(struct run *r)
{
	return stop_count() || r->has_lost_reader || (r->child && spawn_has_ended(r->child)) ||
	       clock_mono_ns() >= r->deadline_ns;
}

static void wait_until(struct run *r, uint64_t until_ns)
{
	for (;;) {
		uint64_t now = clock_mono_ns();
		if (now >= until_ns || is_over(r))
			return;
		struct pollfd fds[] = {
			{.fd = stop_fd(), .events = POLLIN},
			{.fd = r->has_screen ? screen_fd(&r->screen) : -1, .events = POLLIN},
		};
		uint64_t left_ms = (until_ns - now) / NS_PER_MS + 1;
		(void)poll(fds, ARRAY_LEN(fds), (int)MIN(left_ms, (uint64_t)250));
		if (r->has_screen && screen_measure(&r->screen))
			draw(r);
		stop_drain();
		int key = r->has_screen ? screen_key(&r->screen, 0) : SCREEN_NO_KEY;
		if (key && handle_key(r, key))
			return;
	}
}

static void add_reading(struct run *r, const struct memreading *t)
{
	watchpage_add(&r->page, t);
	memrecord_add(&r->record, &r->memory, t);
	show(r, t);
}

/* Reads a command ever more rarely; rates stay relative to the last reading that was shown. */
static void read_early(struct run *r, uint64_t until_ns)
{
	const struct memreading shown = r->memory.last;
	for (uint64_t gap_ns = EARLY_NS; clock_mono_ns() + gap_ns < until_ns; gap_ns *= 2) {
		struct memreading t;
		wait_until(r, clock_mono_ns() + gap_ns);
		if (is_over(r) || memwatch_read(&r->memory, &t, NULL))
			return;
		memwatch_read_maps(&r->memory);
		r->early = t;
		r->has_early = true;
		r->memory.last = shown;
	}
}

/* What is shown as the last reading is of the same moment as the mappings that finish() reads. */
static void read_last(struct run *r)
{
	struct memreading t;
	if (r->has_lost_reader || (r->child && spawn_has_ended(r->child)) ||
	    clock_mono_ns() - r->memory.last.time_ns < EVERY_MIN_NS)
		return;
	if (!memwatch_read(&r->memory, &t, NULL)) /* else it has just ended */
		add_reading(r, &t);
}

/* Takes readings until the time is over, the target or command ends, or a signal arrives. */
static int watch(struct run *r, struct err *err)
{
	uint64_t next_ns = clock_mono_ns();
	do {
		struct memreading t;
		if (memwatch_read(&r->memory, &t, err)) {
			/* If the target ended after the first reading, that is no failure. */
			if (!r->page.points.n && !r->child)
				return err->code;
			err_release(err);
			return 0;
		}
		add_reading(r, &t);
		/* If assay was stopped or slow, do not make up for missed readings. */
		next_ns = MAX(next_ns + r->o->every_ns, clock_mono_ns());
		if (r->child && r->page.points.n == 1)
			read_early(r, MIN(next_ns, r->deadline_ns));
		wait_until(r, MIN(next_ns, r->deadline_ns));
	} while (!is_over(r));
	if (r->has_early && r->page.points.n == 1)
		add_reading(r, &r->early);
	else
		read_last(r);
	return 0;
}

static int watch_shown(struct run *r, uint64_t duration_ns, struct err *err)
{
	bool wants_screen = is_printed(r) && r->lines.form == MEMLINES_TABLE &&
			    r->lines_fd == STDOUT_FILENO && isatty(STDOUT_FILENO) &&
			    isatty(STDIN_FILENO);
	r->has_screen = wants_screen && !screen_open(&r->screen, false, NULL);
	if (!r->has_screen)
		print_when_a_verdict_is_possible(r, duration_ns);
	int rc = watch(r, err);
	if (r->has_screen)
		screen_close(&r->screen);
	return rc;
}

/* ---- the summary --------------------------------------------------------------------------- */

static void add_slope(struct json *j, const char *key, const struct memslope *s)
{
	json_key(j, key);
	if (!s->is_known) {
		json_null(j);
		return;
	}
	json_obj(j);
	json_put_double(j, "bytes_per_s", s->per_s, 1);
	json_put_double(j, "low", s->low, 1);
	json_put_double(j, "high", s->high, 1);
	json_end(j);
}

static void add_summary(struct buf *to, const struct run *r, const struct memverdict *v,
			const struct report *report)
{
	CLEANUP(buf_release) struct buf inner = {0};
	struct json j = json_to(&inner);
	json_obj(&j);
	json_put_str(&j, "schema", "assay-watch/1");
	json_put_str(&j, "verdict", memverdict_key(v->kind));
	json_put_str(&j, "evidence", v->evidence);
	json_put_u64(&j, "readings", r->page.points.n);
	json_put_double(&j, "span_s", (double)v->span_ns / 1e9, 3);
	add_slope(&j, "rss", &v->rss);
	add_slope(&j, "kept", &v->kept);
	add_slope(&j, "file", &v->file);
	add_slope(&j, "in_use", &v->in_use);
	json_put_u64(&j, "walks", r->memory.nr_walks);
	json_put_double(&j, "walks_s", (double)r->memory.walks_ns / 1e9, 6);
	json_end(&j);
	/* The renderer makes the report as a JSON object of its own. */
	CLEANUP(buf_release) struct buf text = {0};
	jsonout_render(&text, report);
	buf_add_str(to, "{\"summary\":");
	buf_add_sv(to, sv_from(inner.p, inner.n - 1));
	buf_add_str(to, ",\"report\":");
	buf_add_sv(to, sv_trim(buf_sv(&text)));
	buf_add_str(to, "}}\n");
}

static int print_summary(struct run *r, bool to_stderr)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(buf_release) struct buf text = {0};
	struct memverdict v = watchpage_verdict(&r->page, &a);
	CLEANUP(report_free_p) struct report *report = report_new();
	watchpage_report(report, &r->page, &v);
	if (r->o->is_json) {
		add_summary(&text, r, &v, report);
		return cmd_print(&text);
	}
	if (cmd_is_quiet())
		return EXIT_OK;
	int fd = to_stderr || r->o->is_csv ? STDERR_FILENO : STDOUT_FILENO;
	struct text_style style = output_style(&(struct renderer_choice){0}, fd);
	if (fd == STDOUT_FILENO && !isatty(fd))
		buf_add_ch(&text, '\n');
	text_render(&text, report, &style);
	if (fd == STDOUT_FILENO)
		return cmd_print(&text);
	(void)file_write_all(STDERR_FILENO, text.p, text.n, NULL); /* stderr is closed */
	return EXIT_OK;
}

static void print_cost(const struct run *r)
{
	const struct memwatch *m = &r->memory;
	CLEANUP(buf_release) struct buf b = {0};
	buf_addf(&b, "%s of CPU time for %s", num_ns(clock_process_cpu_ns() - r->cpu_before_ns).s,
		 num_noun(m->nr_readings, "readings").s);
	if (m->nr_walks)
		buf_addf(&b,
			 "; %s of the target's smaps and smaps_rollup, %s in all, the longest %s",
			 num_noun(m->nr_walks, "reads").s, num_ns(m->walks_ns).s,
			 num_ns(m->longest_walk_ns).s);
	if (m->nr_stats_readings)
		buf_addf(&b, "; the allocator was read %s, which stopped a thread for %s at most",
			 num_noun(m->nr_stats_readings, "times").s,
			 num_ns(m->longest_stats_stop_ns).s);
	log_note("cost: %s", buf_str(&b));
	if (m->refused)
		log_warn(
			"cannot read PSS and single mappings: %s (needs root or CAP_SYS_PTRACE); RSS and its parts are complete",
			strerror(-m->refused));
	if (r->o->asks_allocator && !m->nr_stats_readings)
		log_warn("the allocator was not read: %s",
			 m->no_stats.code ? err_msg(&m->no_stats) : "the capture was too short");
	if (m->nr_joined)
		log_note("%s started during the capture and %s read from then on",
			 num_noun(m->nr_joined, "processes").s, m->nr_joined == 1 ? "was" : "were");
	if (m->nr_exited && m->nr_exited < m->processes.n)
		log_note("exited: %u of %zu processes", m->nr_exited, m->processes.n);
}

static bool has_ended(struct run *r)
{
	return r->child ? spawn_has_ended(r->child) : watch_has_ended(&r->target);
}

/* How it ended is known once it is a zombie, a moment after its memory is gone. */
static struct procend end_of(struct run *r)
{
	bool is_gone = r->memory.nr_exited == r->memory.processes.n;
	for (unsigned i = 0; is_gone && i < END_TRIES && !has_ended(r); i++)
		(void)poll(NULL, 0, END_WAIT_MS);
	if (!has_ended(r))
		return (struct procend){0};
	return r->child ? procend_from_status(r->child->wait_status) : watch_end(&r->target);
}

static int finish_recording(struct run *r)
{
	CLEANUP(err_release) struct err err = {0};
	struct procend end = end_of(r);
	if (r->child && r->child->is_reaped &&
	    (r->child->peak_is_own || r->o->target.takes_children))
		r->page.end_peak_bytes =
			memstat_command_peak(r->child->peak_rss_bytes, r->before_exec_bytes);
	if (r->page.end_peak_bytes)
		profile_fact_nr(r->record.p, FACT_MEMORY_PEAK_RSS, r->page.end_peak_bytes);
	bool is_whole = !memrecord_finish(&r->record, &r->memory, &end, &err);
	if (!r->record.writer)
		return EXIT_OK;
	if (!is_whole) {
		log_err(&err);
		log_hint("free disk space, or write to another disk with -o FILE");
		return EXIT_FAILED;
	}
	CLEANUP(free_p) char *path = store_path(&r->record.place, STORE_SUFFIX);
	log_note("recording:   %s (%s)", path, num_bytes(r->record.nr_bytes).s);
	return EXIT_OK;
}

static int write_chart(const struct run *r)
{
	CLEANUP(err_release) struct err err = {0};
	if (!r->o->chart)
		return EXIT_OK;
	if (memchart_file(r->o->chart, r->record.p, &err))
		return cmd_fail(&err);
	log_note("chart:       %s", r->o->chart);
	return EXIT_OK;
}

static int finish(struct run *r, bool has_command)
{
	struct memwatch *m = &r->memory;
	memwatch_read_maps(m);
	memwatch_read_stats(m);
	memwatch_name_allocator(m);
	r->page.allocator = m->allocator;
	r->page.maps_itself = m->maps_itself;
	r->page.heap = &m->heap;
	watchpage_set_allocator(&r->page, &m->stats);
	r->page.maps = m->maps.p;
	r->page.nr_maps = m->maps.n;
	r->page.maps_ns = m->maps_ns;
	r->page.nr_unseen = m->nr_unseen;
	CLEANUP(buf_release) struct buf parts = {0};
	watchpage_save(&parts, &r->page);
	if (parts.n)
		profile_fact(r->record.p, FACT_MEMORY_PARTS, buf_str(&parts));
	int recorded = finish_recording(r);
	int printed = print_summary(r, has_command);
	int drawn = write_chart(r);
	print_cost(r);
	return recorded != EXIT_OK ? recorded : drawn != EXIT_OK ? drawn : printed;
}

/* ---- the command --------------------------------------------------------------------------- */

static int watch_chosen(const struct watch_opts *o, struct chosen_target *t,
			const struct opt_args *args, struct spawn *child,
			uint64_t before_exec_bytes)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(run_release)
	struct run r = {.o = o,
			.child = child,
			.before_exec_bytes = before_exec_bytes,
			.target = WATCH_INIT(NULL),
			.memory = MEMWATCH_INIT};
	int rc = run_open(&r, t, args, &err);
	host_confine_tracer(target_has_filter(&t->target));
	if (!rc)
		rc = watch_shown(&r, t->duration_ns, &err);
	if (!rc && r.page.points.n)
		return finish(&r, args->command != NULL);
	memrecord_abandon(&r.record);
	if (rc)
		return cmd_fail(&err);
	log_warn("the target ended before its memory could be read");
	return EXIT_NOTHING;
}

static int watch_command(const struct watch_opts *o, struct chosen_target *t,
			 const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(spawn_release) struct spawn child = {.start_fd = -1, .status_fd = -1};
	int rc = spawn_open(&child, args->command, host_become_command_user, &err);
	uint64_t before_bytes = rc ? 0 : memstat_peak(child.pid);
	if (rc || spawn_exec(&child, args->command[0], &err)) {
		log_err(&err);
		return child.is_reaped ? spawn_exit_code(&child) : EXIT_ASSAY_FAILED;
	}
	int status = watch_chosen(o, t, args, &child, before_bytes);
	while (!child.is_reaped && stop_count() < 2)
		(void)spawn_wait(&child); /* a signal interrupts the wait: wait again */
	int code = child.is_reaped ? spawn_exit_code(&child) : status;
	return status == EXIT_FAILED && !code ? EXIT_ASSAY_FAILED : code;
}

static int start(const struct watch_opts *o, struct chosen_target *t, const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	if (host_become_invoker(&err) || stop_install(&err)) {
		log_err(&err);
		return args->command ? EXIT_ASSAY_FAILED : EXIT_FAILED;
	}
	return args->command ? watch_command(o, t, args) : watch_chosen(o, t, args, NULL, 0);
}

static int check_outputs(const struct watch_opts *o, struct err *err)
{
	if (o->output)
		TRY(outputs_check_name("-o", o->output, STORE_SUFFIX, "a recording", err));
	return o->chart ? outputs_check_name("--chart", o->chart, ".svg", "an SVG file", err) : 0;
}

int cmd_watch(int argc, char **argv)
{
	struct watch_opts o = {.every_ns = NS_PER_SEC, .limit = 15};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	const struct opt_cmd cmd = {
		.name = "watch",
		.usage = {"[OPTION...] TARGET [SECONDS]",
			  "[OPTION...] [TARGET] [SECONDS] -- CMD [ARG...]"},
		.details = details,
		.examples = examples,
		.excluded = excluded,
		.groups = {{&target_group, &o.target}, {&watch_group, &o}, {&out_group, &o}},
	};
	CLEANUP(err_release) struct err err = {0};
	int status;
	if (cmd_parse(&args, &cmd, argc, argv, &status)) {
		if (o.is_csv && o.is_json)
			status = cmd_usage("watch", "--csv and --json exclude each other");
		else if (o.every_ns < EVERY_MIN_NS)
			status = cmd_usage("watch", "option '--every': less than 10ms");
		else if (check_outputs(&o, &err))
			status = cmd_refuse(&err);
		else if (target_opts_choose(&target, &o.target, &args, &status))
			status = start(&o, &target, &args);
	}
	return status;
}
