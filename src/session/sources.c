/* The sources of a capture; see sources.h. */
#include "base/base.h"
#include "session/sources.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "capture/bpf/cputime.h"
#include "capture/events/counts.h"
#include "capture/bpf/engine.h"
#include "capture/heap/probes.h"
#include "capture/heap/heapsource.h"
#include "capture/io/io.h"
#include "capture/memorysource.h"
#include "capture/events/perfcounts.h"
#include "capture/wait/spans.h"
#include "capture/wait/switches.h"
#include "capture/events/taskswitches.h"
#include "capture/wait/waitsource.h"
#include "host/privileges.h"
#include "host/syscallfilter.h"
#include "session/event_tables.h"

/* A page fault maps at least one page; without BPF it is not known whether it mapped more. */
#define PAGE_BYTES 4096

static const struct source *const all[] = {
#ifndef ASSAY_NO_BPF
	&waits_source,    &counts_source,     &io_source,
	&spans_source,    &heapprobes_source,
#endif
	&switches_source, &perfcounts_source, &taskswitches_source,
	&memory_source,   &heap_source,
};

/* ---- what is wanted ----------------------------------------------------------------------- */

static bool is_wanted(const struct source *kind, const struct source_env *env)
{
	return env->tables & kind->fills && (!kind->is_wanted || kind->is_wanted(env));
}

static bool is_sampling(const struct sources *s)
{
	return s->options->tables & TABLE_SET(SAMPLES);
}

/* Returns whether a BPF program unwinds the stacks of samples; else the kernel (perf) does. */
static bool is_sampling_by_bpf(const struct sources *s)
{
	return is_sampling(s) && !(s->options->sampler_flags & (PERFOPEN_FP | PERFOPEN_NO_STACKS));
}

/*
 * Returns whether memory growth (capture/heap/growth.h) may have to be recorded for a process whose
 * allocations turn out not to be recordable during the capture: a launched command or a program
 * after execve with its own allocator. BPF programs are loaded only then, since that takes 0.2 s;
 * the capabilities for it are kept until the end of the capture.
 */
static bool may_need_growth(const struct sources *s)
{
	const struct capture_options *o = s->options;
	return o->tables & TABLE_SET(LIVE) && !o->heap->by_probes && !(o->flags & CAPTURE_NO_BPF);
}

/* Returns whether a wanted source has BPF programs, or a wanted table has no source without. */
static bool wants_engine(const struct sources *s)
{
	table_set missing = s->env.tables & ~TABLE_SET(SAMPLES);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (!is_wanted(all[i], &s->env) || all[i]->is_fallback)
			continue;
		if (all[i]->bpf_prefix)
			return true;
		missing &= ~all[i]->fills;
	}
	return missing || is_sampling_by_bpf(s);
}

/* ---- opening ------------------------------------------------------------------------------ */

static void free_list_from(struct sources *s, size_t nr_kept)
{
	while (s->list.n > nr_kept) {
		struct open_source *one = &s->list.p[--s->list.n];
		one->kind->free(one->self);
	}
}

static int open_list(struct sources *s, table_set tables, struct err *err)
{
	struct source_env env = s->env;
	env.tables = tables;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		bool is_possible = env.engine ? !all[i]->is_fallback : !all[i]->bpf_prefix;
		struct open_source one = {.kind = all[i]};
		if (!is_possible || !is_wanted(all[i], &env))
			continue;
		TRY(all[i]->open(&one.self, &s->env, err));
		vec_push(&s->list, one);
	}
	return 0;
}

static int open_engine(struct sources *s, const struct target *target, table_set tables,
		       struct err *err)
{
	const char *excluded[ARRAY_LEN(all) + 1];
	struct source_env env = s->env;
	env.tables = tables;
	struct engine_spec spec = {.target = target, .excluded = excluded};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i]->bpf_prefix && !is_wanted(all[i], &env))
			excluded[spec.nr_excluded++] = all[i]->bpf_prefix;
	if (!(tables & TABLE_SET(SAMPLES)))
		excluded[spec.nr_excluded++] = ENGINE_SAMPLES;
	TRY(engine_open(&s->env.engine, &spec, err));
	/* With table ON_CPU, CPU time is taken from it. */
	bool counts_cpu_time = tables & TABLE_SET(SAMPLES) && !(tables & TABLE_SET(ON_CPU)) &&
			       !target->is_system && !target->tids.pids.n;
	cputime_choose(s->env.engine, counts_cpu_time);
	return 0;
}

int sources_open_waits(const struct source **ret_kind, struct source_env *env, struct err *err)
{
	const char *excluded[ARRAY_LEN(all) + 1] = {ENGINE_SAMPLES};
	struct engine_spec spec = {.target = env->target, .excluded = excluded, .nr_excluded = 1};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (!all[i]->bpf_prefix)
			continue;
		if (all[i]->fills & TABLE_SET(OFF_CPU))
			*ret_kind = all[i];
		else
			excluded[spec.nr_excluded++] = all[i]->bpf_prefix;
	}
	TRY(engine_open(&env->engine, &spec, err));
	cputime_choose(env->engine, false);
	return 0;
}

static int load_list(struct sources *s, size_t first, struct err *err)
{
	TRY(engine_load(s->env.engine, err));
	for (size_t i = first; i < s->list.n; i++) {
		struct open_source *one = &s->list.p[i];
		TRY(one->kind->load ? one->kind->load(one->self, err) : 0);
	}
	return 0;
}

static int try_engine(struct sources *s, struct err *err)
{
	table_set tables = s->env.tables;
	if (is_sampling(s) && !is_sampling_by_bpf(s))
		tables &= ~TABLE_SET(SAMPLES);
	TRY(open_engine(s, s->target, tables, err));
	TRY(open_list(s, tables, err));
	return load_list(s, 0, err);
}

/* Without BPF nothing can be probed, and off-CPU accounting alone is not what was wanted. */
static bool is_unsupported(const struct sources *s)
{
	bool is_probing_heap = s->env.tables & TABLE_SET(LIVE) && s->env.heap->by_probes;
	return s->env.tables & SPAN_TABLES || is_probing_heap ||
	       (!is_sampling(s) && !s->list.n && !s->options->hooks);
}

/* Opens sources with BPF, or without if that fails; *no_engine is the reason, for the user. */
static int open_sources(struct sources *s, struct err *no_engine, struct err *err)
{
	if (!(s->options->flags & CAPTURE_NO_BPF) && wants_engine(s)) {
		int rc = try_engine(s, no_engine);
		if (!rc)
			return 0;
		if (!no_engine->code)
			err_set(no_engine, rc, "the kernel refused the BPF programs");
		log_debug(LOG_BPF, 1, "%s", err_msg(no_engine));
		free_list_from(s, 0);
		engine_free(TAKE(s->env.engine));
		/* The machine could: other sources would run out of files as well. */
		if (rc == -EMFILE || rc == -ENFILE)
			return err_move(err, no_engine);
	}
	s->env.has_sampler = is_sampling(s);
	TRY(open_list(s, s->env.tables, err));
	if (!is_unsupported(s))
		return 0;
	err_set(err, -ENOTSUP, "this capture needs BPF programs: %s",
		no_engine->code ? err_msg(no_engine) : "--no-bpf disables them");
	return no_engine->hint ? err_hint(err, "%s", no_engine->hint) : -ENOTSUP;
}

/* Of a capture of several parts: which ones no source records. Waits have a fact on their accuracy. */
static void note_missing(const struct sources *s, const struct err *why)
{
	static const struct {
		table_set of;
		const char *what;
	} parts[] = {
		{TABLE_SET(IO), "I/O calls"},
		{TABLE_SET(BLOCK), "block device requests"},
		{TABLE_SET(FAULTS), "page faults"},
		{TABLE_SET(RECLAIM), "memory reclaim"},
		{TABLE_SET(GROWTH), "growth of memory by call stack"},
	};
	CLEANUP(buf_release) struct buf text = {0};
	table_set missing = s->env.tables;
	vec_foreach(one, &s->list)
		missing &= ~one->kind->fills;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (missing & parts[i].of)
			buf_addf(&text, "%s%s", text.n ? ", " : "", parts[i].what);
	if (text.n)
		profile_factf(s->profile, FACT_NOT_RECORDED, "%s: %s", buf_str(&text),
			      why->code ? err_msg(why) : "--no-bpf disables BPF programs");
}

/* ---- the sampler -------------------------------------------------------------------------- */

static uint64_t side_peek_ns(void *ctx)
{
	const struct sources *s = ctx;
	return s->env.engine ? engine_peek_ns(s->env.engine) : UINT64_MAX;
}

static int side_deliver(void *ctx, const struct event_sink *sink, struct err *err)
{
	const struct sources *s = ctx;
	return engine_deliver(s->env.engine, sink, err);
}

static void side_applied(void *ctx, uint64_t time_ns)
{
	const struct sources *s = ctx;
	builder_emit_spaces(s->builder);
	if (s->env.engine)
		engine_applied(s->env.engine, time_ns);
}

static int open_sampler(struct sources *s, struct err *err)
{
	const struct capture_options *o = s->options;
	struct engine *e = s->env.engine;
	s->env.has_sampler = false;
	if (!e && !is_sampling(s) && !may_need_growth(s))
		return 0;
	struct sampler_spec spec = {.target = s->target,
				    .event = o->event,
				    .freq_hz = o->freq_hz,
				    .flags = o->sampler_flags,
				    .prog_fd = -1};
	if (e && is_sampling_by_bpf(s))
		spec.prog_fd = engine_sample_prog(e);
	spec.flags |= spec.prog_fd >= 0 ? PERFOPEN_PROG : is_sampling(s) ? 0 : PERFOPEN_SIDEBAND;
	if (e || may_need_growth(s))
		spec.side = (struct side){side_peek_ns, side_deliver, side_applied, s};
	int rc = sampler_open(&s->sampler, &spec, err);
	if (rc && (e || is_sampling(s)))
		return rc;
	s->env.has_sampler = !rc;
	if (!rc) {
		s->rows_sink = sampler_sink(s->sampler, &s->sink);
		return 0;
	}
	log_debug(LOG_SESSION, 1, "%s", err_msg(err)); /* the source reads mappings itself */
	err_release(err);
	return 0;
}

/* ---- tables ------------------------------------------------------------------------------- */

static void make_samples_table(struct sources *s)
{
	struct profile *p = s->profile;
	if (s->options->flags & CAPTURE_GROWTH) {
		uint32_t table = tables_add(p, TABLE_GROWTH, TABLES_ESTIMATE);
		builder_set_bytes_table(s->builder, TABLE_SAMPLES, table, PAGE_BYTES);
		return;
	}
	struct table shape =
		builder_table_shape(p, sampler_info(s->sampler).event, s->options->freq_hz);
	builder_set_table(s->builder, TABLE_SAMPLES, profile_table(p, &shape));
}

static void make_table(struct sources *s, enum table_id id)
{
	unsigned flags = 0;
	vec_foreach(one, &s->list)
		if (one->kind->fills >> id & 1 && one->kind->table_flags)
			flags |= one->kind->table_flags(one->self);
	builder_set_table(s->builder, id, tables_add(s->profile, id, flags));
}

/* Creates the tables in order of their ids: views prefer the first one that is present. */
static void make_tables(struct sources *s)
{
	for (enum table_id id = 0; id < TABLE_ID_NR; id++) {
		if (!(s->env.tables >> id & 1))
			continue;
		if (id == TABLE_SAMPLES)
			make_samples_table(s);
		else if (id == TABLE_EVENTS)
			event_tables_add(s->profile, s->builder, s->options->counts);
		else
			make_table(s, id);
	}
}

/* ---- memory growth, started during the capture -------------------------------------------- */

static int start_growth(struct sources *s, int32_t pid, struct err *err)
{
	size_t nr_before = s->list.n;
	vec_push(&s->growth_target.pids.pids, pid);
	TRY(open_engine(s, &s->growth_target, TABLE_SET(GROWTH), err));
	TRY(open_list(s, TABLE_SET(GROWTH), err));
	TRY(load_list(s, nr_before, err));
	TRY(engine_start(s->env.engine, err));
	for (size_t i = nr_before; i < s->list.n; i++)
		TRY(s->list.p[i].kind->start(s->list.p[i].self, &s->env, NULL, err));
	make_table(s, TABLE_GROWTH);
	return 0;
}

static int load_growth(struct sources *s, int32_t pid, struct err *err)
{
	size_t nr_before = s->list.n;
	table_set tables = s->env.tables;
	s->env.tables |= TABLE_SET(GROWTH);
	int rc = start_growth(s, pid, err);
	if (!rc)
		return 0;
	s->env.tables = tables;
	s->has_growth_failed = true; /* reported once; not tried again */
	free_list_from(s, nr_before);
	engine_free(TAKE(s->env.engine));
	return rc;
}

static int record_growth(void *ctx, int32_t pid, const struct space *sp, struct err *err)
{
	struct sources *s = ctx;
	if (s->has_growth_failed || !s->sampler) /* no other source delivers mappings */
		return err_set(err, -ENOTSUP, "BPF programs cannot be loaded for it");
	TRY(s->env.engine ? engine_add(s->env.engine, pid, err) : load_growth(s, pid, err));
	if (sp)
		engine_publish(s->env.engine, pid, sp);
	return 0;
}

/* ---- open, start, drain, stop ------------------------------------------------------------- */

int sources_open(struct sources *s, struct err *no_engine, struct err *err)
{
	const struct capture_options *o = s->options;
	s->rows_sink = s->sink;
	s->env = (struct source_env){.target = s->target,
				     .tables = o->tables,
				     .has_no_stacks = o->flags & CAPTURE_NO_WAIT_STACKS,
				     .has_syncs_only = o->flags & CAPTURE_SYNCS_ONLY,
				     .counts = o->counts,
				     .spans = o->spans,
				     .heap = o->heap,
				     .memory_spacing_ns = o->memory_spacing_ns,
				     .has_sampler = true,
				     .has_hooks = o->hooks,
				     .record_growth = may_need_growth(s) ? record_growth : NULL,
				     .record_growth_ctx = s};
	TRY(open_sources(s, no_engine, err));
	note_missing(s, no_engine);
	TRY(open_sampler(s, err));
	make_tables(s);
	return 0;
}

bool sources_suspend_filters(const struct sources *s)
{
	vec_foreach(one, &s->list)
		if (one->kind->suspends_filters && one->kind->suspends_filters(one->self))
			return true;
	return false;
}

uint64_t sources_late_caps(const struct sources *s)
{
	const uint64_t load = HOST_CAP_BIT(HOST_CAP_PERFMON) | HOST_CAP_BIT(HOST_CAP_BPF);
	uint64_t caps = may_need_growth(s) ? load : 0;
	if (s->sampler && !s->env.engine) /* events are reopened for larger stack copies */
		caps |= HOST_CAP_BIT(HOST_CAP_PERFMON);
	if (s->env.engine && !engine_works_without_caps(s->env.engine))
		caps |= load;
	if (sources_suspend_filters(s))
		caps |= HOST_CAP_BIT(CAP_SYS_ADMIN);
	vec_foreach(one, &s->list)
		caps |= one->kind->late_caps;
	if (caps & load && !(host_effective_caps() & load)) /* before Linux 5.8 */
		caps |= HOST_CAP_BIT(CAP_SYS_ADMIN);
	return caps;
}

unsigned sources_late_calls(const struct sources *s)
{
	uint64_t caps = sources_late_caps(s);
	unsigned calls = caps & HOST_CAP_BIT(CAP_SYS_PTRACE) ? HOST_CALLS_TRACE : 0;
	return caps & HOST_CAP_BIT(HOST_CAP_PERFMON) ? calls | HOST_CALLS_LOAD : calls;
}

/*
 * Adds the processes that the targets forked after they were listed and before the BPF programs followed
 * forks; until no new one is found, since those may fork as well. Only in a container are there more
 * (add_joined of capture.c).
 */
static int add_early_forks(struct sources *s, struct err *err)
{
	const struct target *t = s->target;
	CLEANUP(pid_list_release) struct pid_list forked = {0};
	if (!s->env.engine || t->is_system || !t->pids.pids.n)
		return 0;
	for (size_t nr_before = SIZE_MAX; forked.pids.n != nr_before;) {
		nr_before = forked.pids.n;
		target_list_early_forks(t, &forked);
		vec_foreach(pid, &forked.pids) {
			TRY(engine_add(s->env.engine, *pid, err));
			TRY(s->sampler ? sampler_add(s->sampler, *pid, &s->sink, err) : 0);
		}
	}
	return 0;
}

int sources_attach(struct sources *s, struct err *err)
{
	TRY(s->sampler ? sampler_start(s->sampler, &s->sink, err) : 0);
	TRY(add_early_forks(s, err));
	builder_emit_spaces(s->builder);
	TRY(s->env.engine ? engine_start(s->env.engine, err) : 0);
	if (s->env.engine)
		cputime_begin(s->env.engine);
	return 0;
}

int sources_start(struct sources *s, uint64_t start_ns, struct err *err)
{
	s->env.start_ns = start_ns;
	if (s->sampler && s->list.n) {
		sampler_begin(s->sampler);
		s->cpu_before_ns = cputime_ns(s->env.engine);
	}
	size_t nr = s->list.n; /* sources added meanwhile are started already */
	for (size_t i = 0; i < nr; i++) {
		struct open_source *one = &s->list.p[i];
		TRY(one->kind->start ? one->kind->start(one->self, &s->env, &s->rows_sink, err)
				     : 0);
	}
	return 0;
}

/* Milliseconds between drains; 0 = SOURCE_ROWS_NS. */
static unsigned poll_ms(const struct open_source *one)
{
	return one->kind->poll_timeout ? one->kind->poll_timeout(one->self) : one->kind->poll_ms;
}

int sources_drain(struct sources *s, uint64_t now_ns, struct err *err)
{
	bool is_woken = s->env.engine && engine_take_wakeups(s->env.engine);
	TRY(s->sampler ? sampler_drain(s->sampler, &s->sink, err) : 0);
	builder_emit_spaces(s->builder);
	for (size_t i = 0; i < s->list.n; i++) { /* a drain may add to the list */
		struct open_source *one = &s->list.p[i];
		unsigned ms = poll_ms(one);
		uint64_t due_ns = one->drained_ns + (ms ? ms * NS_PER_MS : SOURCE_ROWS_NS);
		if ((now_ns < due_ns && !is_woken) || !one->kind->drain)
			continue;
		one->drained_ns = now_ns;
		TRY(one->kind->drain(one->self, &s->rows_sink, err));
	}
	return 0;
}

int sources_add_process(struct sources *s, int32_t pid, bool *ret_is_missed, struct err *err)
{
	*ret_is_missed = false;
	TRY(s->env.engine ? engine_add(s->env.engine, pid, err) : 0);
	TRY(s->sampler ? sampler_add(s->sampler, pid, &s->sink, err) : 0);
	vec_foreach(one, &s->list) {
		if (one->kind->add_process)
			one->kind->add_process(one->self, pid);
		else if (!s->env.engine)
			*ret_is_missed = true;
	}
	return 0;
}

const char *sources_unprobed(const struct sources *s)
{
	vec_foreach(one, &s->list)
		if (one->kind->probed)
			return one->kind->probed;
	return NULL;
}

static int stop_list(struct sources *s, struct err *err)
{
	vec_foreach(one, &s->list)
		TRY(one->kind->stop ? one->kind->stop(one->self, &s->rows_sink, err) : 0);
	return 0;
}

int sources_losses(struct sources *s, struct err *err)
{
	return s->env.engine ? engine_emit_losses(s->env.engine, &s->sink, err) : 0;
}

int sources_stop(struct sources *s, struct err *err)
{
	int rc = stop_list(s, err);
	s->cpu_ns = cputime_ns(s->env.engine) - s->cpu_before_ns;
	if (s->env.engine)
		engine_stop(s->env.engine);
	if (!rc && s->sampler)
		rc = sampler_stop(s->sampler, &s->sink, err);
	builder_emit_spaces(s->builder);
	TRY(rc);
	vec_foreach(one, &s->list)
		TRY(one->kind->finish ? one->kind->finish(one->self, &s->rows_sink, err) : 0);
	return sources_losses(s, err);
}

void sources_release(struct sources *s)
{
	free_list_from(s, 0);
	vec_release(&s->list);
	target_release(&s->growth_target);
	sampler_free(TAKE(s->sampler));
	engine_free(TAKE(s->env.engine));
}

/* ---- facts and results -------------------------------------------------------------------- */

void sources_first_facts(const struct sources *s)
{
	const struct capture_options *o = s->options;
	struct profile *p = s->profile;
	if (!is_sampling(s))
		return;
	struct sampler_info info = sampler_info(s->sampler);
	profile_fact(p, FACT_EVENT, info.event);
	profile_factf(p, FACT_FREQUENCY, "%u", o->freq_hz);
	profile_fact(p, FACT_MODE, info.is_user_only ? "user only" : "user and kernel");
	profile_fact(p, FACT_STACKS,
		     s->env.engine                           ? "unwound in the kernel (BPF)"
		     : o->sampler_flags & PERFOPEN_FP        ? "frame pointers"
		     : o->sampler_flags & PERFOPEN_NO_STACKS ? "none"
							     : "copied");
	if (o->flags & CAPTURE_GROWTH) {
		profile_factf(p, FACT_HEAP_METHOD, "growth: %s", o->heap->why);
		profile_fact(p, FACT_GROWTH,
			     "sampled page faults, one page each: faults on files are included, "
			     "huge pages count as small ones");
	}
}

void sources_early_facts(const struct sources *s)
{
	vec_foreach(one, &s->list)
		if (one->kind->early_facts)
			one->kind->early_facts(one->self, s->profile);
}

static void add_sampler_result(const struct sources *s, struct capture_result *r)
{
	r->info = sampler_info(s->sampler);
	r->info.cpu_ns += s->cpu_ns;
	s->profile->losses.nr[LOSS_UNPARSED] += r->info.nr_bad;
	/*
	 * The sampling event also counts the time that BPF programs take at switches; off-CPU
	 * accounting does not. Where it is present, CPU time is taken from its tables.
	 */
	bool has_breakdown = s->env.engine && s->env.tables & TABLE_SET(ON_CPU);
	bool is_clock = !(s->options->flags & CAPTURE_GROWTH);
	/* The counter of a thread stops before the end of its exit; of a command there is more. */
	r->info.cpu_ns = r->info.cpu_ns ? MAX(r->info.cpu_ns, r->command_cpu_ns) : 0;
	if (!r->info.cpu_ns || has_breakdown || !is_clock)
		return;
	profile_fact_ns(s->profile, FACT_CPU_TIME, r->info.cpu_ns);
	if (r->info.is_user_only) /* samples of user code only do not stand for all of it */
		return;
	profile_fact_nr(s->profile, FACT_CPU_TIME_NS, r->info.cpu_ns);
}

void sources_result(struct sources *s, struct capture_result *r)
{
	if (s->sampler)
		add_sampler_result(s, r);
	r->has_engine = s->env.engine != NULL;
	if (s->env.engine) {
		r->engine = engine_info(s->env.engine);
		s->profile->losses.nr[LOSS_UNPARSED] += r->engine.nr_bad;
	}
	vec_foreach(one, &s->list)
		if (one->kind->facts)
			one->kind->facts(one->self, s->profile);
}

uint64_t sources_reach_ns(const struct sources *s, uint64_t drained_ns)
{
	uint64_t reach_ns = drained_ns;
	vec_foreach(one, &s->list)
		reach_ns = MIN(reach_ns, one->kind->reach_ns ? one->kind->reach_ns(one->self)
							     : one->drained_ns);
	return MAX(reach_ns, s->env.start_ns);
}

uint64_t sources_end_ns(const struct sources *s)
{
	uint64_t end_ns = 0;
	vec_foreach(one, &s->list)
		if (one->kind->end_ns)
			end_ns = MAX(end_ns, one->kind->end_ns(one->self));
	return end_ns;
}

unsigned sources_poll_ms(const struct sources *s, unsigned ms)
{
	vec_foreach(one, &s->list)
		ms = poll_ms(one) ? MIN(ms, poll_ms(one)) : ms;
	return ms;
}

void sources_rest(const struct sources *s, bool is_resting)
{
	if (s->env.engine)
		engine_rest(s->env.engine, is_resting);
}

void sources_fds(const struct sources *s, void (*fn)(void *ctx, int fd), void *ctx)
{
	size_t nr = 0;
	const int *fds = s->sampler ? sampler_fds(s->sampler, &nr) : NULL;
	for (size_t i = 0; i < nr; i++)
		fn(ctx, fds[i]);
	int wakeups_fd = s->env.engine ? engine_wakeups_fd(s->env.engine) : -1;
	if (wakeups_fd >= 0)
		fn(ctx, wakeups_fd);
	vec_foreach(one, &s->list) {
		fds = one->kind->fds ? one->kind->fds(one->self, &nr) : NULL;
		for (size_t i = 0; fds && i < nr; i++)
			fn(ctx, fds[i]);
	}
}

void sources_space_changed(const struct sources *s, int32_t pid, const struct space *sp)
{
	if (s->env.engine)
		engine_publish(s->env.engine, pid, sp);
	vec_foreach(one, &s->list)
		if (one->kind->space_changed)
			one->kind->space_changed(one->self, pid, sp);
}

int sources_on_task(const struct sources *s, const struct event *ev, const struct event_sink *sink,
		    struct err *err)
{
	if (ev->kind != EVENT_FORK && ev->kind != EVENT_EXIT && ev->kind != EVENT_COMM)
		return 0;
	vec_foreach(one, &s->list)
		TRY(one->kind->on_task ? one->kind->on_task(one->self, ev, sink, err) : 0);
	return 0;
}

void sources_grow_copy(const struct sources *s, int32_t tid, uint64_t nr_bytes)
{
	if (s->sampler)
		sampler_grow(s->sampler, tid, nr_bytes);
	vec_foreach(one, &s->list)
		if (one->kind->enlarge_copies)
			one->kind->enlarge_copies(one->self, tid, nr_bytes);
}
