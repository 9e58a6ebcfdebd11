/*
 * Opens and drains all sources of a capture's events: the sampler (CPU samples, mappings, thread
 * names, forks and exits), the BPF programs (the engine), and the sources (capture/source.h) that
 * fill the tables that the options request. capture.c does not depend on any particular source.
 *
 * Where BPF programs cannot be loaded, sources that do not need them are used.
 *
 *	sources_open    opens events, loads BPF programs, creates tables; nothing runs yet
 *	sources_attach  delivers existing processes and mappings, attaches the BPF programs
 *	sources_start   starts the sources whose rows are sums by second
 *	sources_drain   delivers events; called often
 *	sources_stop    stops all and delivers what is left
 *	sources_result  adds facts and losses to the profile and the result
 *	sources_release closes everything; the target is not touched after that
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
	uint64_t drained_ns; /* time of the last drain, 0 = none yet */
};

struct sources {
	/* Set by the caller, borrowed: */
	const struct capture_options *options;
	const struct target *target; /* with the launched command, if any */
	struct profile *profile;
	struct builder *builder;
	struct event_sink sink; /* of the sampler and the engine */

	struct event_sink
		rows_sink; /* of the sources: emits the name of an unknown process first */
	struct source_env env;
	uint64_t cpu_before_ns,
		cpu_ns;          /* CPU time (capture/bpf/cputime.h) at the start, of the capture */
	struct sampler *sampler; /* NULL: a source emits mappings and names itself */
	VEC(struct open_source) list;
	/* Target of the engine that is loaded during the capture for TABLE_GROWTH. */
	struct target growth_target;
	bool has_growth_failed; /* that engine could not be loaded: not tried again */
};

/* @no_engine: why BPF programs are not used although they were wanted. */
int sources_open(struct sources *s, struct err *no_engine, struct err *err);
/* After sources_open: the capabilities that are used until the end (source.late_caps). */
uint64_t sources_late_caps(const struct sources *s);
/* Whether a source suspends seccomp filters of targets, which a process with a filter cannot. */
bool sources_suspend_filters(const struct sources *s);
/* The same of system calls: enum host_calls. */
unsigned sources_late_calls(const struct sources *s);
int sources_attach(struct sources *s, struct err *err);
int sources_start(struct sources *s, uint64_t start_ns, struct err *err);
/* Drains the sampler and the engine, and the sources that are due at @now_ns. */
int sources_drain(struct sources *s, uint64_t now_ns, struct err *err);
int sources_stop(struct sources *s, struct err *err);
void sources_result(struct sources *s, struct capture_result *r);
void sources_release(struct sources *s);

/*
 * Opens an engine (env->engine) for env->target with the programs of the source of waits alone, which the
 * caller opens, drains and frees itself. -EPERM, -ENOTSUP: as engine_open.
 */
int sources_open_waits(const struct source **ret_kind, struct source_env *env, struct err *err);

/* Returns the time up to which the profile has everything, after a drain at @drained_ns. */
uint64_t sources_reach_ns(const struct sources *s, uint64_t drained_ns);
/* Adds facts and losses for a recording that may stay incomplete (source.early_facts). */
void sources_early_facts(const struct sources *s);
/* Adds to the profile the facts that are known at the start. */
void sources_first_facts(const struct sources *s);
/* Delivers the losses since the last call as EVENT_LOST. */
int sources_losses(struct sources *s, struct err *err);
/* Returns the end of the time that rows cover; 0: unknown. */
uint64_t sources_end_ns(const struct sources *s);
/* Returns the poll timeout of the most frequently drained source, at most @ms. */
unsigned sources_poll_ms(const struct sources *s, unsigned ms);
/*
 * The caller waits for the descriptors of sources_fds, or has been woken: threads that empty rings
 * while it is busy with something else are not needed meanwhile.
 */
void sources_rest(const struct sources *s, bool is_resting);
/* Calls @fn for each descriptor to poll for readability. */
void sources_fds(const struct sources *s, void (*fn)(void *ctx, int fd), void *ctx);
/* The process's mappings have changed (builder_options.space_changed). */
void sources_space_changed(const struct sources *s, int32_t pid, const struct space *sp);
/* Passes forks, execs and exits to the sources, before the builder gets them. */
int sources_on_task(const struct sources *s, const struct event *ev, const struct event_sink *sink,
		    struct err *err);
/* What is recorded only in the processes of the start, by probes ("calls"); NULL: nothing. */
const char *sources_unprobed(const struct sources *s);
/*
 * A process has joined the target. *ret_is_missed: a source without BPF programs cannot record it.
 */
int sources_add_process(struct sources *s, int32_t pid, bool *ret_is_missed, struct err *err);
/* The stack copy of this thread was too short (builder_options.wants_more_stack). */
void sources_grow_copy(const struct sources *s, int32_t tid, uint64_t nr_bytes);

#endif
