/*
 * What a capture can record, one kind a source: each exports one `const struct source`, and
 * session/sources.c lists them. To add one: its file and its row there.
 *
 * A capture is asked for tables (model/tables.h); sources that fill one of them are opened.
 *
 *	open    with the engine open, before its programs are loaded
 *	load    the programs are loaded, nothing runs
 *	start   what was before the capture has been told, the programs are attached
 *	drain   each second, or as often as its poll timeout says
 *	stop    what is still open is booked; the programs are still attached
 *	finish  everything that the engine had to tell has been delivered
 *	facts   what the recording says about it
 *	free    at any time after open, also if that failed and left something
 *
 * Events go to the sink of the call; functions that have nothing to do are NULL. All calls come
 * from one thread.
 */
#ifndef ASSAY_CAPTURE_SOURCE_H
#define ASSAY_CAPTURE_SOURCE_H

#include "base/base.h"
#include "base/err.h"
#include "capture/bpf/engine.h"
#include "host/target.h"
#include "model/event.h"
#include "model/facts.h"
#include "model/tables.h"

struct counts_spec;
struct heapsource_spec;
struct spans_spec;

/* What sources are opened for; everything is borrowed. */
struct source_env {
	const struct target *target; /* a launched command among it, while it waits at its gate */
	struct engine *engine;       /* NULL: no BPF programs */
	table_set tables;            /* what is captured */
	bool has_no_stacks;          /* of waits */
	const struct counts_spec *counts;
	const struct spans_spec *spans;
	const struct heapsource_spec *heap;
	uint64_t memory_spacing_ns;
	bool has_sampler; /* mappings, names, births and ends come from the sampler */
	bool has_hooks;   /* whoever put the command into a cgroup tells of that */
	/* To record a process's growth from now on; NULL: not in this capture. */
	int (*grow)(void *ctx, int32_t pid, const struct space *sp, struct err *err);
	void *grow_ctx;
	uint64_t start_ns; /* from start on: where the capture's first second begins */
};

struct source {
	const char *name;
	/*
	 * Opened if one of these is wanted. Rows of several sources in one table are added up: where
	 * several can fill it, what follows decides which one of them is opened.
	 */
	table_set fills;
	/*
	 * Of the names of its programs and maps in the kernel ("wait_"), which are left out where
	 * it is not opened; NULL: it needs no engine.
	 */
	const char *prefix;
	bool is_fallback; /* opened where there is no engine, for a source with a prefix */
	/* Whether it is the one to fill them, of several that can; NULL: yes. */
	bool (*is_wanted)(const struct source_env *env);
	unsigned poll_ms; /* 0 = a second will do, unless poll_timeout says otherwise */
	unsigned (*table_flags)(const void *s); /* of its tables: enum tables_add_flags */
	int (*open)(void **ret_s, const struct source_env *env, struct err *err);
	int (*load)(void *s, struct err *err);
	int (*start)(void *s, const struct source_env *env, const struct event_sink *sink,
		     struct err *err);
	int (*drain)(void *s, const struct event_sink *sink, struct err *err);
	int (*stop)(void *s, const struct event_sink *sink, struct err *err);
	int (*finish)(void *s, const struct event_sink *sink, struct err *err);
	/* Once stopped: when its time ended, exactly. */
	uint64_t (*end_ns)(const void *s);
	void (*facts)(const void *s, struct profile *p);
	/* To poll for readability. */
	const int *(*fds)(const void *s, size_t *ret_nr);
	unsigned (*poll_timeout)(const void *s); /* milliseconds, as it is now */
	/* A copied stack of this thread was too short (builder_options.wants_more_stack). */
	void (*grow)(void *s, int32_t tid, uint64_t nr_bytes);
	/* The process's mappings are these now; borrowed until told otherwise. NULL: it is gone. */
	void (*space)(void *s, int32_t pid, const struct space *sp);
	/* Births, execs and ends, before they are applied. */
	int (*on_task)(void *s, const struct event *ev, const struct event_sink *sink,
		       struct err *err);
	void (*free)(void *s);
};

#endif
