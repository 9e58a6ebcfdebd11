/* Sums of waits by reason; see countwaits.h. */
#include "base/base.h"
#include "session/bench/countwaits.h"

#include "base/clock.h"
#include "base/mem.h"
#include "session/sources.h"

void countwaits_release(struct countwaits *w)
{
	if (w->source)
		w->kind->free(w->source);
	engine_free(TAKE(w->env.engine));
	w->source = NULL;
}

_Static_assert(COUNTWAITS_ROWS_MS *NS_PER_MS == SOURCE_ROWS_NS, "rows of the source");

int countwaits_open(struct countwaits *w, const struct target *target, struct err *err)
{
	*w = (struct countwaits){.target = target, .nr_processes = target->pids.pids.n};
	w->env = (struct source_env){.target = target,
				     .tables = TABLE_SET(ON_CPU) | TABLE_SET(OFF_CPU),
				     .has_no_stacks = true};
	TRY(sources_open_waits(&w->kind, &w->env, err));
	TRY(w->kind->open(&w->source, &w->env, err));
	TRY(engine_load(w->env.engine, err));
	return w->kind->load(w->source, err);
}

static int add_forked(struct countwaits *w, struct err *err)
{
	const struct target *t = w->target;
	CLEANUP(pid_list_release) struct pid_list forked = {0};
	if (t->is_system || !t->pids.pids.n)
		return 0;
	for (size_t nr_before = SIZE_MAX; forked.pids.n != nr_before;) {
		nr_before = forked.pids.n;
		target_list_early_forks(t, &forked);
		vec_foreach(pid, &forked.pids)
			TRY(engine_add(w->env.engine, *pid, err));
	}
	return 0;
}

int countwaits_start(struct countwaits *w, struct err *err)
{
	TRY(add_forked(w, err));
	TRY(engine_start(w->env.engine, err));
	w->env.start_ns = clock_mono_ns();
	return w->kind->start(w->source, &w->env, NULL, err);
}

int countwaits_fd(const struct countwaits *w)
{
	return w->env.engine ? engine_wakeups_fd(w->env.engine) : -1;
}

void countwaits_rest(const struct countwaits *w, bool is_resting)
{
	if (w->env.engine)
		engine_rest(w->env.engine, is_resting);
}

static int add_row(void *ctx, const struct event *ev, struct err *err UNUSED)
{
	struct countwaits *w = ctx;
	if (ev->kind != EVENT_AGGREGATE || ev->aggregate.reason >= WAIT_NR)
		return 0;
	struct wait_sum *sum = &w->sums[ev->aggregate.reason];
	sum->count += (uint64_t)ev->aggregate.values[0];
	sum->ns += (uint64_t)ev->aggregate.values[1];
	return 0;
}

static int drain_engine(struct countwaits *w, const struct event_sink *sink, struct err *err)
{
	uint64_t time_ns;
	while ((time_ns = engine_peek_ns(w->env.engine)) && time_ns != UINT64_MAX)
		TRY(engine_deliver(w->env.engine, sink, err));
	return 0;
}

int countwaits_drain(struct countwaits *w, struct err *err)
{
	const struct event_sink sink = {add_row, w};
	const struct pid_list *pids = &w->target->pids;
	for (; w->nr_processes < pids->pids.n; w->nr_processes++)
		TRY(engine_add(w->env.engine, pids->pids.p[w->nr_processes], err));
	(void)engine_take_wakeups(w->env.engine);
	TRY(drain_engine(w, &sink, err));
	return w->kind->drain(w->source, &sink, err);
}

int countwaits_stop(struct countwaits *w, struct err *err)
{
	const struct event_sink sink = {add_row, w};
	TRY(w->kind->stop(w->source, &sink, err));
	engine_stop(w->env.engine);
	TRY(drain_engine(w, &sink, err));
	TRY(w->kind->finish(w->source, &sink, err));
	w->own_ns = engine_info(w->env.engine).own_ns;
	return 0;
}
