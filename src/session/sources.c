/* The sources of a capture; see sources.h. */
#include "base/base.h"
#include "session/sources.h"

#include <errno.h>

#include "session/source_kinds.h"
#include "model/tables.h"

#define SECOND_NS 1000000000u

void sources_release(struct sources *s)
{
	vec_foreach(one, &s->list)
		one->kind->free(one->self);
	vec_release(&s->list);
}

static bool is_wanted(const struct source_kind *kind, const struct source_env *env)
{
	if (!(env->options->programs & kind->program))
		return false;
	return !kind->is_fallback || !env->engine;
}

int sources_open(struct sources *s, const struct source_env *env, struct err *err)
{
	s->env = *env;
	const struct source_kind *kind;
	for (size_t i = 0; (kind = source_kind_at(i)); i++) {
		if (!is_wanted(kind, env) || (kind->needs_engine && !env->engine))
			continue;
		struct source one = {.kind = kind};
		TRY(kind->open(&one.self, &s->env, err));
		vec_push(&s->list, one);
	}
	return 0;
}

int sources_add(struct sources *s, unsigned program, struct err *err)
{
	size_t nr_before = s->list.n;
	const struct source_kind *kind;
	int rc = 0;
	for (size_t i = 0; !rc && (kind = source_kind_at(i)); i++) {
		if (!kind->needs_engine || !(kind->program & program))
			continue;
		struct source one = {.kind = kind, .next_ns = s->env.start_ns};
		rc = kind->open(&one.self, &s->env, err);
		if (!rc)
			vec_push(&s->list, one);
	}
	rc = rc ? rc : engine_load(s->env.engine, err);
	for (size_t i = nr_before; !rc && i < s->list.n; i++)
		rc = s->list.p[i].kind->load(s->list.p[i].self, &s->env, err);
	rc = rc ? rc : engine_start(s->env.engine, err);
	for (size_t i = nr_before; !rc && i < s->list.n; i++)
		rc = s->list.p[i].kind->start(s->list.p[i].self, &s->env, NULL, err);
	while (rc && s->list.n > nr_before) {
		struct source *one = &s->list.p[--s->list.n];
		one->kind->free(one->self);
	}
	return rc;
}

int sources_load(struct sources *s, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < s->list.n; i++) {
		struct source *one = &s->list.p[i];
		rc = one->kind->load ? one->kind->load(one->self, &s->env, err) : 0;
	}
	return rc;
}

int sources_start(struct sources *s, uint64_t start_ns, const struct event_sink *sink,
		  struct err *err)
{
	s->env.start_ns = start_ns;
	int rc = 0;
	size_t nr = s->list.n; /* those that are added by then are started already */
	for (size_t i = 0; !rc && i < nr; i++) {
		struct source *one = &s->list.p[i];
		one->next_ns = start_ns;
		rc = one->kind->start ? one->kind->start(one->self, &s->env, sink, err) : 0;
	}
	return rc;
}

static uint64_t patience_ns(const struct source *one)
{
	int ms = one->kind->patience_ms ? one->kind->patience_ms(one->self) : 0;
	return ms > 0 ? (uint64_t)ms * 1000000 : SECOND_NS;
}

int sources_drain(struct sources *s, uint64_t now_ns, const struct event_sink *sink,
		  struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < s->list.n; i++) {
		struct source *one = &s->list.p[i];
		if (now_ns < one->next_ns || !one->kind->drain)
			continue;
		one->next_ns = now_ns + patience_ns(one);
		rc = one->kind->drain(one->self, sink, err);
	}
	return rc;
}

int sources_stop(struct sources *s, const struct event_sink *sink, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < s->list.n; i++) {
		struct source *one = &s->list.p[i];
		rc = one->kind->stop ? one->kind->stop(one->self, sink, err) : 0;
	}
	return rc;
}

int sources_finish(struct sources *s, const struct event_sink *sink, struct err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < s->list.n; i++) {
		struct source *one = &s->list.p[i];
		rc = one->kind->finish ? one->kind->finish(one->self, sink, err) : 0;
	}
	return rc;
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

int sources_patience_ms(const struct sources *s, int ms)
{
	vec_foreach(one, &s->list) {
		int own = one->kind->patience_ms ? one->kind->patience_ms(one->self) : 0;
		ms = own > 0 ? MIN(ms, own) : ms;
	}
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
	int rc = 0;
	if (ev->kind != EVENT_FORK && ev->kind != EVENT_EXIT && ev->kind != EVENT_COMM)
		return 0;
	vec_foreach(one, &s->list)
		if (!rc && one->kind->saw)
			rc = one->kind->saw(one->self, ev, sink, err);
	return rc;
}

void sources_grow(const struct sources *s, int32_t tid, uint64_t nr_bytes)
{
	vec_foreach(one, &s->list)
		if (one->kind->grow)
			one->kind->grow(one->self, tid, nr_bytes);
}
