/*
 * A source records one kind of data during a capture: waits, I/O, counted events, heap
 * allocations... It delivers events (model/event.h) to a sink. Each source exports one `const
 * struct source` with its functions; session/sources.c lists all of them and calls them. To add a
 * source: write its file, and add a row to that list.
 *
 * A capture requests tables (model/tables.h). A source is opened if it fills at least one of them.
 * CPU samples are not a source: the sampler (capture/perf/sampler.h) takes them and merges its
 * events with those of the BPF programs by time.
 *
 * Life cycle, in this order. Each function is optional (NULL: nothing to do), except open and free:
 *
 *	open      Allocates. The BPF object is open but not loaded: the source sets constants and
 *	          map sizes, and disables programs that it does not need.
 *	load      The BPF programs are loaded but not attached: the source fills maps, and attaches
 *	          programs that libbpf cannot attach by their section name. Not called without BPF.
 *	start     The capture begins. The other programs are attached; names and mappings of
 *	          existing processes have been delivered. The sink is NULL for a source that is
 *	          opened during a capture (record_growth).
 *	drain     Delivers what was recorded since the last call: every SOURCE_ROWS_NS, or as often
 *	          as poll_ms or poll_timeout says.
 *	stop      The capture ends: closes what is still open, for example unfinished waits. BPF
 *	          programs are still attached.
 *	finish    BPF programs are detached, and all of their records have been delivered. Delivers
 *	          what depends on them.
 *	facts     Adds facts about this source to the profile.
 *	free      Releases everything. May be called at any time after open, also if open failed and
 *	          set *ret_s.
 *
 * All calls come from one thread, the capture's. Events and what they point to are borrowed until
 * the sink returns; the sink of a call is valid only during the call. Functions that return int
 * return 0 or a negative errno with @err filled; an error ends the capture.
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

/*
 * Rows are delivered and written this often, also those of a second that has not ended: so the file of
 * a capture that is killed lacks less than a second.
 */
#define SOURCE_ROWS_NS ((uint64_t)500000000)

/* What a source is opened for. All pointers are borrowed and valid until the source is freed. */
struct source_env {
	const struct target *target; /* includes a launched command, which waits before its exec */
	struct engine *engine;       /* BPF programs; NULL: none are used */
	table_set tables;            /* all tables that the capture requests */
	bool has_no_stacks;          /* waits are recorded without stacks */
	bool has_syncs_only; /* of the I/O calls only those that sync are recorded, which are few */
	const struct counts_spec *counts; /* options of single sources; NULL: not requested */
	const struct spans_spec *spans;
	const struct heapsource_spec *heap;
	uint64_t memory_spacing_ns; /* time between two readings of memory use */
	bool has_sampler; /* the sampler delivers mappings, thread names, creations and exits */
	bool has_hooks;   /* the caller put the command into a memory cgroup and reports on it */
	/*
	 * Records the memory growth of a process from now on (capture/heap/growth.h), for a process
	 * whose heap cannot be recorded otherwise. @sp: its mappings, or NULL. The function
	 * pointer is NULL if this capture cannot record growth.
	 */
	int (*record_growth)(void *ctx, int32_t pid, const struct space *sp, struct err *err);
	void *record_growth_ctx;
	uint64_t start_ns; /* start of the capture's first second; set before start is called */
};

struct source {
	const char *name;
	/*
	 * The tables that this source can fill. Rows of several sources in one table are added up.
	 * If several sources could fill a table and only one of them must, is_wanted and
	 * is_fallback decide which one is opened.
	 */
	table_set fills;
	/*
	 * Prefix of the names of its BPF programs and maps, such as "wait_". They are not loaded if
	 * the source is not opened. NULL: it has no BPF programs.
	 */
	const char *bpf_prefix;
	bool is_fallback; /* opened only if BPF programs are not used */
	/* Whether to open this source, which fills a requested table; NULL: always. */
	bool (*is_wanted)(const struct source_env *env);
	/*
	 * Capabilities (bit n = capability n) that it uses after the capture began; others are dropped
	 * before bytes of the targets are parsed (host/privileges.h).
	 */
	uint64_t late_caps;
	/* Whether it suspends seccomp filters of targets (target_has_filter); NULL: no. */
	bool (*suspends_filters)(const void *s);
	/* Milliseconds between two drains; 0: SOURCE_ROWS_NS. poll_timeout, if any, takes precedence. */
	unsigned poll_ms;
	unsigned (*poll_timeout)(const void *s);
	unsigned (*table_flags)(const void *s); /* enum tables_add_flags of its tables */

	int (*open)(void **ret_s, const struct source_env *env, struct err *err);
	int (*load)(void *s, struct err *err);
	int (*start)(void *s, const struct source_env *env, const struct event_sink *sink,
		     struct err *err);
	int (*drain)(void *s, const struct event_sink *sink, struct err *err);
	int (*stop)(void *s, const struct event_sink *sink, struct err *err);
	int (*finish)(void *s, const struct event_sink *sink, struct err *err);
	void (*facts)(const void *s, struct profile *p);
	/*
	 * Those facts and losses so far without which the rows are misread. Called before the
	 * recording is written, so that it has them if the capture is killed; the losses are set back
	 * afterwards. NULL: none.
	 */
	void (*early_facts)(const void *s, struct profile *p);
	/*
	 * All rows of what happened before this time were delivered (CLOCK_MONOTONIC). NULL: of all
	 * that happened before the last drain.
	 */
	uint64_t (*reach_ns)(const void *s);
	void (*free)(void *s);

	/* After stop: the exact end of the recorded time (CLOCK_MONOTONIC); 0: not known. */
	uint64_t (*end_ns)(const void *s);
	/* Descriptors that end the capture's poll when readable; borrowed until the next call. */
	const int *(*fds)(const void *s, size_t *ret_nr);
	/*
	 * A stack of this thread was truncated because only @nr_bytes were copied: the source may
	 * copy more from now on (builder_options.wants_more_stack).
	 */
	void (*enlarge_copies)(void *s, int32_t tid, uint64_t nr_bytes);
	/*
	 * The mappings of a process have changed to @sp, which is borrowed until the next call for
	 * this process. NULL: the process has ended.
	 */
	void (*space_changed)(void *s, int32_t pid, const struct space *sp);
	/*
	 * EVENT_FORK, EVENT_COMM or EVENT_EXIT of any thread, before the event is applied to the
	 * profile: the source can still deliver events that refer to the old mappings.
	 */
	int (*on_task)(void *s, const struct event *ev, const struct event_sink *sink,
		       struct err *err);
	/*
	 * A process has joined the target (target_list_joined): not necessarily a fork of one of its
	 * processes. The BPF programs know it already. NULL: nothing to do with BPF programs, and
	 * without them the process is missing, which the capture states.
	 */
	void (*add_process)(void *s, int32_t pid);
	/* What it records by probes in the processes of the start only: "calls"; NULL: nothing. */
	const char *probed;
};

#endif
