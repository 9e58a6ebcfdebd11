/* The sources of a capture; see sources.h. */
#include "base/base.h"
#include "session/sources.h"

#include "base/clock.h"
#include "capture/counts.h"
#include "capture/heapprobes.h"
#include "capture/heapsource.h"
#include "capture/io.h"
#include "capture/memorysource.h"
#include "capture/perfcounts.h"
#include "capture/spans.h"
#include "capture/switches.h"
#include "capture/waitsource.h"

static const struct source *const all[] = {
#ifndef ASSAY_NO_BPF
	&waits_source,    &counts_source,     &io_source,     &spans_source, &heapprobes_source,
#endif
	&switches_source, &perfcounts_source, &memory_source, &heap_source,
};

void sources_release(struct sources *s)
{
	vec_foreach(one, &s->list)
		one->kind->free(one->self);
	vec_release(&s->list);
}

static int open_one(struct sources *s, const struct source *kind, struct err *err)
{
	struct open_source one = {.kind = kind, .next_ns = s->env.start_ns};
	TRY(kind->open(&one.self, &s->env, err));
	vec_push(&s->list, one);
	return 0;
}

int sources_open(struct sources *s, const struct source_env *env, struct err *err)
{
	s->env = *env;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		bool is_possible = env->engine ? !all[i]->is_fallback : !all[i]->needs_engine;
		if (is_possible && env->programs & all[i]->program)
			TRY(open_one(s, all[i], err));
	}
	return 0;
}

static int add(struct sources *s, unsigned program, struct err *err)
{
	size_t nr_before = s->list.n;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i]->needs_engine && all[i]->program & program)
			TRY(open_one(s, all[i], err));
	TRY(engine_load(s->env.engine, err));
	for (size_t i = nr_before; i < s->list.n; i++)
		TRY(s->list.p[i].kind->load(s->list.p[i].self, err));
	TRY(engine_start(s->env.engine, err));
	for (size_t i = nr_before; i < s->list.n; i++)
		TRY(s->list.p[i].kind->start(s->list.p[i].self, &s->env, NULL, err));
	return 0;
}

int sources_add(struct sources *s, unsigned program, struct err *err)
{
	size_t nr_before = s->list.n;
	int rc = add(s, program, err);
	while (rc && s->list.n > nr_before) {
		struct open_source *one = &s->list.p[--s->list.n];
		one->kind->free(one->self);
	}
	return rc;
}

int sources_load(struct sources *s, struct err *err)
{
	vec_foreach(one, &s->list)
		TRY(one->kind->load ? one->kind->load(one->self, err) : 0);
	return 0;
}

int sources_start(struct sources *s, uint64_t start_ns, const struct event_sink *sink,
		  struct err *err)
{
	s->env.start_ns = start_ns;
	size_t nr = s->list.n; /* those that are added by then are started already */
	for (size_t i = 0; i < nr; i++) {
		struct open_source *one = &s->list.p[i];
		one->next_ns = start_ns;
		TRY(one->kind->start ? one->kind->start(one->self, &s->env, sink, err) : 0);
	}
	return 0;
}

/* 0 = a second will do. */
static unsigned patience_ms(const struct open_source *one)
{
	return one->kind->patience ? one->kind->patience(one->self) : one->kind->patience_ms;
}

int sources_drain(struct sources *s, uint64_t now_ns, const struct event_sink *sink,
		  struct err *err)
{
	for (size_t i = 0; i < s->list.n; i++) { /* a drain may add to the list */
		struct open_source *one = &s->list.p[i];
		unsigned ms = patience_ms(one);
		if (now_ns < one->next_ns || !one->kind->drain)
			continue;
		one->next_ns = now_ns + (ms ? ms * NS_PER_MS : NS_PER_SEC);
		TRY(one->kind->drain(one->self, sink, err));
	}
	return 0;
}

int sources_stop(struct sources *s, const struct event_sink *sink, struct err *err)
{
	vec_foreach(one, &s->list)
		TRY(one->kind->stop ? one->kind->stop(one->self, sink, err) : 0);
	return 0;
}

int sources_finish(struct sources *s, const struct event_sink *sink, struct err *err)
{
	vec_foreach(one, &s->list)
		TRY(one->kind->finish ? one->kind->finish(one->self, sink, err) : 0);
	return 0;
}

uint64_t sources_end_ns(const struct sources *s)
{
	uint64_t end_ns = 0;
	vec_foreach(one, &s->list)
		if (one->kind->end_ns)
			end_ns = MAX(end_ns, one->kind->end_ns(one->self));
	return end_ns;
}

void sources_facts(const struct sources *s, struct profile *p)
{
	vec_foreach(one, &s->list)
		if (one->kind->facts)
			one->kind->facts(one->self, p);
}

unsigned sources_patience_ms(const struct sources *s, unsigned ms)
{
	vec_foreach(one, &s->list)
		ms = patience_ms(one) ? MIN(ms, patience_ms(one)) : ms;
	return ms;
}

void sources_space(const struct sources *s, int32_t pid, const struct space *sp)
{
	vec_foreach(one, &s->list)
		if (one->kind->space)
			one->kind->space(one->self, pid, sp);
}

int sources_saw(const struct sources *s, const struct event *ev, const struct event_sink *sink,
		struct err *err)
{
	if (ev->kind != EVENT_FORK && ev->kind != EVENT_EXIT && ev->kind != EVENT_COMM)
		return 0;
	vec_foreach(one, &s->list)
		TRY(one->kind->saw ? one->kind->saw(one->self, ev, sink, err) : 0);
	return 0;
}

void sources_grow(const struct sources *s, int32_t tid, uint64_t nr_bytes)
{
	vec_foreach(one, &s->list)
		if (one->kind->grow)
			one->kind->grow(one->self, tid, nr_bytes);
}
