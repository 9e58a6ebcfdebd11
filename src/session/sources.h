/*
 * All that a capture's events come from: the sampler (CPU samples, mappings, names, births and
 * ends), our BPF programs (the engine), and the sources (capture/source.h) that fill the
 * tables which the options ask for. The pump knows none of them by name.
 *
 * Where programs may not be loaded, the sources that can do without go on without.
 *
 *	sources_open    the kernel has taken what it takes; tables are made, nothing runs
 *	sources_attach  what was there before is delivered, the programs are attached
 *	sources_start   what is added up by seconds begins
 *	sources_drain   often
 *	sources_stop    everything that is left has been delivered
 *	sources_result  what they found out, for the profile and the caller
 *	sources_release the target is left alone from here on
 */
#ifndef ASSAY_SESSION_SOURCES_H
#define ASSAY_SESSION_SOURCES_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "capture/perf/sampler.h"
#include "capture/source.h"
#include "ingest/builder.h"
#include "session/capture.h"

struct open_source {
	const struct source *kind;
	void *self;
	uint64_t next_ns; /* when it is drained again */
};

struct sources {
	/* Set by the caller, borrowed: */
	const struct capture_options *options;
	const struct target *target; /* what is captured, a launched command among it */
	struct profile *profile;
	struct builder *builder;
	struct event_sink sink; /* of the sampler and the engine */

	struct event_sink rows_sink; /* of the sources; names of unknown processes come first */
	struct source_env env;
	struct sampler *sampler; /* NULL: a source emits mappings and names itself */
	VEC(struct open_source) list;
	struct target grown; /* of an engine that was loaded later, for growth */
	bool cannot_grow;
};

/* @no_engine: why there are no BPF programs, where some were wanted. */
int sources_open(struct sources *s, struct err *no_engine, struct err *err);
int sources_attach(struct sources *s, struct err *err);
int sources_start(struct sources *s, uint64_t start_ns, struct err *err);
/* Everything of the sampler and the engine; sources that are due at @now_ns. */
int sources_drain(struct sources *s, uint64_t now_ns, struct err *err);
int sources_stop(struct sources *s, struct err *err);
void sources_result(struct sources *s, struct capture_result *r);
void sources_release(struct sources *s);

/* Facts that hold from the beginning. */
void sources_first_facts(const struct sources *s);
/* Losses that were not reported yet. */
int sources_losses(struct sources *s, struct err *err);
/* Where the time of the rows ends; 0: none of the sources says so. */
uint64_t sources_end_ns(const struct sources *s);
/* Milliseconds until one of them wants to be drained, at most @ms. */
unsigned sources_poll_ms(const struct sources *s, unsigned ms);
/* Calls @fn for each descriptor to poll for readability. */
void sources_fds(const struct sources *s, void (*fn)(void *ctx, int fd), void *ctx);
/* The process's mappings have changed (builder_options.space_changed). */
void sources_space(const struct sources *s, int32_t pid, const struct space *sp);
/* Births, execs and ends, before they are applied. */
int sources_on_task(const struct sources *s, const struct event *ev, const struct event_sink *sink,
		    struct err *err);
/* A copied stack of this thread was too short (builder_options.wants_more_stack). */
void sources_grow(const struct sources *s, int32_t tid, uint64_t nr_bytes);

#endif
