/*
 * The sources of a capture besides CPU samples, behind one interface, so that the pump knows none
 * of them. To add one: its functions, a row in the table of kinds, the shapes of its tables, all
 * in source_kinds.c.
 *
 *	sources_open    with the engine open, before its programs are loaded
 *	sources_load    the programs are loaded, nothing runs
 *	sources_start   what was before the capture has been told, the programs are attached
 *	sources_drain   each second, and whenever one of them wants it sooner
 *	sources_stop    what is still open is booked; the programs are still attached
 *	sources_finish  everything that the engine had to tell has been delivered
 *	sources_facts   what the recording says about them
 */
#ifndef ASSAY_SESSION_SOURCES_H
#define ASSAY_SESSION_SOURCES_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "capture/engine.h"
#include "ingest/builder.h"
#include "model/event.h"
#include "session/capture.h"

struct source_env {
	const struct capture_options *options;
	struct engine *engine; /* NULL: no programs in the kernel */
	int32_t child;         /* a launched command at its gate, or 0 */
	bool has_sampler;      /* mappings, names, births and ends come from the sampler */
	/* To record a process's growth from now on; NULL: not in this capture. */
	int (*grow)(void *ctx, int32_t pid, const struct space *sp, struct err *err);
	void *grow_ctx;
	uint64_t start_ns; /* from sources_start on: where the capture's first second begins */
};

/* One kind of source; functions that have nothing to do are NULL. */
struct source_kind {
	const char *name;
	unsigned program; /* enum engine_programs: wanted by which bit */
	bool needs_engine;
	bool is_fallback; /* only without an engine */
	int (*open)(void **ret_s, const struct source_env *env, struct err *err);
	int (*load)(void *s, const struct source_env *env, struct err *err);
	int (*start)(void *s, const struct source_env *env, const struct event_sink *sink,
		     struct err *err);
	int (*drain)(void *s, const struct event_sink *sink, struct err *err);
	int (*stop)(void *s, const struct event_sink *sink, struct err *err);
	int (*finish)(void *s, const struct event_sink *sink, struct err *err);
	/* Once stopped: when its time ended, exactly. */
	uint64_t (*end_ns)(const void *s);
	void (*facts)(void *s, struct profile *p);
	const int *(*fds)(const void *s, size_t *ret_nr);
	int (*patience_ms)(const void *s); /* 0 = a second will do */
	void (*grow)(void *s, int32_t tid, uint64_t nr_bytes);
	void (*space)(void *s, int32_t pid, const struct space *sp); /* builder.h, space_changed */
	/* Births, execs and ends, before they are applied. */
	int (*saw)(void *s, const struct event *ev, const struct event_sink *sink, struct err *err);
	void (*free)(void *s);
};

struct source {
	const struct source_kind *kind;
	void *self;
	uint64_t next_ns; /* when it is drained again */
};

struct sources {
	struct source_env env;
	VEC(struct source) list;
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
void sources_make_tables(const struct sources *s, struct profile *p, struct builder *b);
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
int sources_patience_ms(const struct sources *s, int ms);
void sources_space(const struct sources *s, int32_t pid, const struct space *sp);
int sources_saw(const struct sources *s, const struct event *ev, const struct event_sink *sink,
		struct err *err);
void sources_grow(const struct sources *s, int32_t tid, uint64_t nr_bytes);

#endif
