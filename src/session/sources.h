/*
 * The sources of a capture besides CPU samples (capture/source.h), so that the pump knows none of
 * them: those that the options ask for, called together.
 */
#ifndef ASSAY_SESSION_SOURCES_H
#define ASSAY_SESSION_SOURCES_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "capture/source.h"
#include "ingest/builder.h"
#include "session/capture.h"

struct open_source {
	const struct source *kind;
	void *self;
	uint64_t next_ns; /* when it is drained again */
};

struct sources {
	struct source_env env;
	VEC(struct open_source) list;
};

void sources_release(struct sources *s);
int sources_open(struct sources *s, const struct source_env *env, struct err *err);
int sources_load(struct sources *s, struct err *err);
/*
 * One more while they run: opens those that @program wants and that need the engine, loads it,
 * starts both. For an engine of the environment that is only open.
 */
int sources_add(struct sources *s, unsigned program, struct err *err);
/* Tables of the profile for what they tell, in the order in which views choose among them. */
void sources_make_tables(const struct capture_options *o, struct profile *p, struct builder *b);
int sources_start(struct sources *s, uint64_t start_ns, const struct event_sink *sink,
		  struct err *err);
/* Those that are due at @now_ns. */
int sources_drain(struct sources *s, uint64_t now_ns, const struct event_sink *sink,
		  struct err *err);
int sources_stop(struct sources *s, const struct event_sink *sink, struct err *err);
int sources_finish(struct sources *s, const struct event_sink *sink, struct err *err);
/* Where the time of the rows ends; 0: none of the sources says so. */
uint64_t sources_end_ns(const struct sources *s);
void sources_facts(const struct sources *s, struct profile *p);
/* Milliseconds until one of them wants to be drained, at most @ms. */
unsigned sources_patience_ms(const struct sources *s, unsigned ms);
void sources_space(const struct sources *s, int32_t pid, const struct space *sp);
int sources_saw(const struct sources *s, const struct event *ev, const struct event_sink *sink,
		struct err *err);
void sources_grow(const struct sources *s, int32_t tid, uint64_t nr_bytes);

#endif
