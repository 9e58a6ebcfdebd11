/* assay watch: state and last words; see watch_end.h. */
#include "base/base.h"
#include "cmd/watch_end.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "analyze/memtime.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/memchart.h"
#include "cmd/optgroups.h"
#include "cmd/watch_explain.h"
#include "render/jsonout.h"
#include "render/text.h"
#include "render/text_table.h"

#define MAPS_NS    NS_PER_SEC
#define WALK_SHARE 100

static uint64_t cpu_ns(void)
{
	struct timespec ts;
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* ---- state -------------------------------------------------------------------------------- */

static int open_asker(struct watch_state *s, struct err *err)
{
	if (!s->o->asks_allocator)
		return 0;
	if (s->probe.processes.n != 1)
		return err_set(err, -EINVAL, "--allocator: one process is asked, and these are %zu",
			       s->probe.processes.n);
	s->is_asking = true;
	return watch_asker_open(&s->asker, s->probe.processes.p[0].pid, err);
}

/* Of a command: until it works, and the reason why it does not is told at the end. */
static void ask_again(struct watch_state *s, uint64_t now)
{
	if (!s->o->asks_allocator || s->is_asking || now < s->next_ask_ns)
		return;
	err_clear(&s->not_asked);
	if (!open_asker(s, &s->not_asked))
		return;
	watch_asker_release(&s->asker);
	s->asker = (struct watch_asker){0};
	s->is_asking = false;
	s->next_ask_ns = now + NS_PER_SEC;
}

int watch_state_open(struct watch_state *s, const struct watch_opts *o,
		     const struct chosen_target *t, int32_t child, const struct opt_args *args,
		     struct err *err)
{
	*s = (struct watch_state){.o = o, .cpu_before_ns = cpu_ns()};
	struct pid_list command = {0};
	if (!t->has_target)
		vec_push(&command.pids, child);
	s->name = xstrdup(t->has_target ? t->target.name : path_base(args->command[0]));
	int rc = watch_probe_open(&s->probe, t->has_target ? &t->target.pids : &command,
				  &t->target.tids, err);
	pid_list_release(&command);
	s->has_probe = true;
	rc = rc ? rc : watch_record_open(&s->record, o->output, s->name, err);
	s->lines = (struct watch_lines){.start_ns = s->record.p ? s->record.p->start_ns : 0,
					.machine_bytes = memstat_machine_bytes(),
					.has_group = s->probe.has_group};
	s->lines.has_allocator = o->asks_allocator;
	/* A command has to start first: before that its allocator is not there. */
	s->next_ask_ns = child ? clock_mono_ns() + NS_PER_SEC : 0;
	return rc || child ? rc : open_asker(s, err);
}

void watch_state_release(struct watch_state *s)
{
	free(s->name);
	free(s->allocator);
	watch_asker_release(&s->asker);
	err_release(&s->not_asked);
	if (s->has_probe)
		watch_probe_release(&s->probe);
	watch_maps_release(&s->maps);
	memexplain_free(s->parts);
	watch_record_release(&s->record);
	vec_release(&s->points);
}

void watch_state_abandon(struct watch_state *s)
{
	if (s->record.writer)
		store_abandon(&s->record.place);
}

/* Once, as it reads binaries. */
static void name_allocator(struct watch_state *s)
{
	const struct watch_process *one = s->probe.processes.p;
	if (s->allocator || s->probe.processes.n != 1 || one->is_gone)
		return;
	s->allocator = watch_allocator_name(one->pid, &s->maps_itself);
}

static void read_maps(struct watch_state *s)
{
	struct watch_maps fresh;
	uint64_t start_ns = clock_mono_ns();
	watch_probe_maps(&s->probe, &fresh);
	if (!fresh.list.n) { /* it has just ended */
		watch_maps_release(&fresh);
		return;
	}
	if (s->parts) /* not at the first reading: a command may have to execute another yet */
		name_allocator(s);
	watch_maps_release(&s->maps);
	memexplain_free(s->parts);
	s->maps = fresh;
	s->parts = watch_explain(&s->maps);
	s->maps_ns = start_ns;
	s->next_maps_ns = start_ns + MAX(MAPS_NS, (clock_mono_ns() - start_ns) * WALK_SHARE);
}

int watch_state_read(struct watch_state *s, struct watch_tick *ret_t, struct err *err)
{
	if (clock_mono_ns() >= s->next_maps_ns)
		read_maps(s);
	ask_again(s, clock_mono_ns());
	const struct watch_allocator *said = watch_asker_ask(&s->asker, clock_mono_ns());
	return watch_probe_read(&s->probe, said, ret_t, err);
}

void watch_state_add(struct watch_state *s, const struct watch_tick *t)
{
	const struct watch_allocator *a = &t->allocator;
	/* The last answer is shown until the next; what it proves, it proves once. */
	bool is_fresh = a->is_known && a->asked_ns != s->last.allocator.asked_ns;
	const struct mempoint p = {
		.time_ns = t->time_ns,
		.rss_bytes = t->m.rss_bytes,
		.anon_bytes = t->m.anon_bytes,
		.file_bytes = t->m.file_bytes,
		.shmem_bytes = t->shmem_most_bytes,
		.swap_bytes = t->m.swap_bytes,
		.in_use_bytes = is_fresh ? a->in_use_bytes : MEMPOINT_UNKNOWN,
		.resident_bytes = is_fresh ? a->resident_bytes : MEMPOINT_UNKNOWN,
	};
	vec_push(&s->points, p);
	watch_record_add(&s->record, &s->probe, t);
	s->last = *t;
}

struct memverdict watch_state_verdict(const struct watch_state *s, struct arena *a)
{
	struct memverdict_host host = {.machine_bytes = s->lines.machine_bytes};
	if (s->last.has_group) {
		const struct memgroup_numbers *g = &s->last.group;
		host.limit_bytes = g->limit_above_bytes ? MIN(g->limit_bytes, g->limit_above_bytes)
							: g->limit_bytes;
	}
	return memverdict_of(a, s->points.p, s->points.n, &host);
}

void watch_end_mappings(struct buf *to, struct watch_state *s, uint64_t max_rows, unsigned columns)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	const struct text_style style = {.width = columns};
	read_maps(s);
	watch_mappings_report(r, &s->maps, max_rows);
	vec_foreach(t, &r->tables)
		text_add_table(to, t, &style);
}

/* ---- the last words ----------------------------------------------------------------------- */

/* What an allocator holds, or may. */
static void explain_allocator(struct watch_state *s)
{
	name_allocator(s);
	if (!s->parts || !s->allocator)
		return;
	if (s->last.allocator.is_known)
		memexplain_allocator(s->parts, s->allocator, s->last.allocator.resident_bytes);
	else if (s->maps_itself)
		memexplain_presume(s->parts, s->allocator);
}

static void add_facts(struct report *r, const struct watch_state *s)
{
	CLEANUP(buf_release) struct buf b = {0};
	const struct memgroup_numbers *g = &s->last.group;
	report_fact(r, "target", s->name);
	if (s->lines.machine_bytes) {
		num_add_bytes(&b, s->lines.machine_bytes);
		report_fact(r, "machine", buf_str(&b));
	}
	if (s->allocator)
		report_fact(r, "allocator", s->allocator);
	if (!s->last.has_group)
		return;
	buf_clear(&b);
	buf_addf(&b, "%s, ", s->probe.group.path);
	num_add_bytes(&b, g->usage_bytes);
	if (g->limit_bytes != MEMGROUP_NO_LIMIT) {
		buf_add_str(&b, " of ");
		num_add_bytes(&b, g->limit_bytes);
	}
	report_fact(r, "cgroup", buf_str(&b));
}

static struct report *make_report(struct watch_state *s, const struct memverdict *v)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct report *r = report_new();
	struct memtime m;
	r->title = "assay watch";
	r->has_no_samples = true;
	r->unit = UNIT_BYTES;
	add_facts(r, s);
	report_fact(r, "verdict", memverdict_key(v->kind));
	report_note(r, "verdict: %s. %s", memverdict_key(v->kind), v->evidence);
	if (!memtime_make(&a, s->record.p, &m, NULL))
		memtime_growth_report(r, &m);
	bool is_fresh = s->maps_ns >= s->last.time_ns;
	bool has_rss = s->maps.list.n && s->maps.list.p[0].has_rss;
	if (has_rss)
		memexplain_report(r, s->parts, is_fresh ? s->last.m.rss_bytes : 0,
				  s->last.m.page_table_bytes, s->o->limit);
	else
		report_note(r, "what the RSS consists of cannot be said: the kernel does not let "
			       "us read it; root or CAP_SYS_PTRACE may");
	if (has_rss && !is_fresh)
		report_note(r,
			    "what the RSS consists of was read %.1f s after the start: the "
			    "target has ended",
			    (double)(s->maps_ns - MIN(s->lines.start_ns, s->maps_ns)) / 1e9);
	if (has_rss && s->maps.nr_unseen)
		report_note(r, "the stacks of %u threads were not found: they were running",
			    s->maps.nr_unseen);
	if (s->o->shows_mappings)
		watch_mappings_report(r, &s->maps, 0);
	return r;
}

static void add_slope(struct json *j, const char *key, const struct memslope *s)
{
	json_key(j, key);
	if (!s->is_known) {
		json_null(j);
		return;
	}
	json_obj(j);
	json_key(j, "bytes_per_s");
	json_double(j, s->per_s, 1);
	json_key(j, "low");
	json_double(j, s->low, 1);
	json_key(j, "high");
	json_double(j, s->high, 1);
	json_end(j);
}

static void add_summary(struct buf *to, struct watch_state *s, const struct memverdict *v,
			const struct report *r)
{
	CLEANUP(buf_release) struct buf inner = {0};
	struct json j = json_to(&inner);
	json_obj(&j);
	json_key(&j, "schema");
	json_str(&j, "assay-watch/1");
	json_key(&j, "verdict");
	json_str(&j, memverdict_key(v->kind));
	json_key(&j, "evidence");
	json_str(&j, v->evidence);
	json_key(&j, "readings");
	json_u64(&j, s->points.n);
	json_key(&j, "span_s");
	json_double(&j, (double)v->span_ns / 1e9, 3);
	add_slope(&j, "rss", &v->rss);
	add_slope(&j, "kept", &v->kept);
	add_slope(&j, "file", &v->file);
	add_slope(&j, "in_use", &v->in_use);
	json_key(&j, "walks");
	json_u64(&j, s->probe.nr_walks);
	json_key(&j, "walks_s");
	json_double(&j, (double)s->probe.walks_ns / 1e9, 6);
	json_end(&j);
	/* The report is an object of its own, made by its renderer. */
	CLEANUP(buf_release) struct buf report = {0};
	jsonout_render(&report, r);
	buf_add_str(to, "{\"summary\":");
	buf_add_sv(to, sv_from(inner.p, inner.n - 1));
	buf_add_str(to, ",\"report\":");
	buf_add_sv(to, sv_trim(buf_sv(&report)));
	buf_add_str(to, "}}\n");
}

static int print_summary(struct watch_state *s, bool to_stderr)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(buf_release) struct buf text = {0};
	struct memverdict v = watch_state_verdict(s, &a);
	CLEANUP(report_free_p) struct report *r = make_report(s, &v);
	if (s->o->is_json) {
		add_summary(&text, s, &v, r);
		return cmd_print(&text);
	}
	int fd = to_stderr || s->o->is_csv ? STDERR_FILENO : STDOUT_FILENO;
	struct text_style style = output_style(fd);
	if (fd == STDOUT_FILENO && !isatty(fd))
		buf_add_ch(&text, '\n');
	text_render(&text, r, &style);
	if (fd == STDOUT_FILENO)
		return cmd_print(&text);
	(void)file_write_all(STDERR_FILENO, text.p, text.n, NULL); /* nobody to tell */
	return EXIT_OK;
}

static void say_cost(const struct watch_state *s)
{
	CLEANUP(buf_release) struct buf b = {0};
	num_add_ns(&b, cpu_ns() - s->cpu_before_ns);
	buf_addf(&b, " of CPU time for %" PRIu64 " readings", s->probe.nr_ticks);
	if (s->probe.nr_walks) {
		buf_addf(&b, "; %" PRIu64 " walks of the target's page tables, ",
			 s->probe.nr_walks);
		num_add_ns(&b, s->probe.walks_ns);
		buf_add_str(&b, " in all, the longest ");
		num_add_ns(&b, s->probe.longest_walk_ns);
	}
	if (s->asker.nr_asked) {
		buf_addf(&b, "; the allocator was asked %u times, a thread borrowed for ",
			 s->asker.nr_asked);
		num_add_ns(&b, s->asker.longest_ns);
		buf_add_str(&b, " at most");
	}
	log_note("cost: %s", buf_str(&b));
	if (s->probe.refused)
		log_warn("PSS and single mappings cannot be read (%s): root or CAP_SYS_PTRACE "
			 "may; RSS and its parts are whole",
			 strerror(-s->probe.refused));
	if (s->o->asks_allocator && !s->asker.nr_asked)
		log_warn("the allocator was not asked: %s",
			 s->not_asked.code ? err_msg(&s->not_asked) : "there was no time to");
	if (s->probe.nr_gone && s->probe.nr_gone < s->probe.processes.n)
		log_note("%u of %zu processes ended meanwhile", s->probe.nr_gone,
			 s->probe.processes.n);
}

static int finish_recording(struct watch_state *s)
{
	CLEANUP(err_release) struct err err = {0};
	bool is_whole = !watch_record_finish(&s->record, &s->probe, &err);
	if (!s->record.writer)
		return EXIT_OK;
	CLEANUP(free_p) char *path = store_path(&s->record.place, STORE_SUFFIX);
	if (is_whole) {
		CLEANUP(buf_release) struct buf b = {0};
		num_add_bytes(&b, s->record.nr_bytes);
		log_note("recording:   %s (%s)", path, buf_str(&b));
		return EXIT_OK;
	}
	log_err(&err);
	log_hint("free some space, or name a file elsewhere with -o FILE");
	return EXIT_FAILED;
}

static int write_chart(const struct watch_state *s)
{
	CLEANUP(err_release) struct err err = {0};
	if (!s->o->chart)
		return EXIT_OK;
	if (memchart_file(s->o->chart, s->record.p, &err)) {
		log_err(&err);
		return EXIT_FAILED;
	}
	log_note("chart:       %s", s->o->chart);
	return EXIT_OK;
}

int watch_end(struct watch_state *s, const struct watch_opts *o, bool has_command)
{
	if (!s->points.n) {
		log_warn("the target ended before its memory could be read");
		watch_state_abandon(s);
		return EXIT_NOTHING;
	}
	s->o = o;
	read_maps(s);
	explain_allocator(s);
	int status = finish_recording(s);
	int printed = print_summary(s, has_command);
	int drawn = write_chart(s);
	say_cost(s);
	return status != EXIT_OK ? status : drawn != EXIT_OK ? drawn : printed;
}
