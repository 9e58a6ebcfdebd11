/*
 * A capture from start to end: sources -> builder -> namer -> profile, flushed to a recording
 * every second. Runs on the calling thread until the time is up, the target or the launched
 * command ends, or stop.h says so. What to say to people is the caller's business.
 *
 * What is captured is any set of sources: CPU samples, the ledger of waits, counts of events,
 * input and output, spans. All share one sampler (mappings, names, births and ends), one set of
 * BPF programs (engine.h), one builder, one recording; sources.c lists them.
 * Where programs may not be loaded, those that can do without go on without.
 */
#ifndef ASSAY_SESSION_CAPTURE_H
#define ASSAY_SESSION_CAPTURE_H

#include "base/base.h"
#include "base/err.h"
#include "capture/bpf/engine.h"
#include "capture/perf/sampler.h"
#include "host/target.h"
#include "model/profile.h"
#include "model/tables.h"

struct capture_status {
	uint64_t elapsed_ns;
	uint64_t left_ns; /* UINT64_MAX = no end set */
	const struct losses *losses;
	bool is_symbolizing; /* sampling is over */
	uint64_t nr_symbolized;
	uint64_t nr_to_symbolize;
};

enum capture_flags {
	CAPTURE_NO_BPF = 1 << 0,         /* load no programs into the kernel */
	CAPTURE_GROWTH = 1 << 1,         /* samples are of page faults, as TABLE_GROWTH */
	CAPTURE_NO_WAIT_STACKS = 1 << 2, /* waits by reason and thread only */
};

struct counts_spec;
struct heapsource_spec;

/* Who has to do with the launched command itself: puts it into a cgroup, and looks at that. */
struct capture_hooks {
	int (*before_exec)(void *ctx, int32_t pid, struct err *err); /* it waits at its gate */
	void (*poll)(void *ctx);                     /* many times a second, and at its end */
	void (*facts)(void *ctx, struct profile *p); /* for the recording, at the end */
	int fd;                                      /* to be woken by, -1 = none */
	void *ctx;
};

struct capture_options {
	const char *kind;                   /* of the recording: "cpu", "offcpu" ... */
	table_set tables;                   /* what is captured */
	unsigned flags;                     /* enum capture_flags */
	const struct counts_spec *counts;   /* with TABLE_EVENTS */
	const struct spans_spec *spans;     /* with TABLE_SPANS */
	const struct heapsource_spec *heap; /* with TABLE_LIVE; whom: from target or command */
	uint64_t memory_spacing_ns;         /* with TABLE_MEMORY: 0 = a second */
	const struct target *target;        /* NULL: only the command */
	char **command;                     /* NULL-terminated, or NULL */
	const struct capture_hooks *hooks;  /* with a command; may be NULL */
	uint64_t duration_ns;               /* 0 = until the command ends or somebody stops it */
	uint64_t delay_ns;
	const char *event; /* CPU samples: NULL = choose */
	uint32_t freq_hz;
	unsigned sampler_flags; /* enum perfopen_flags: of CPU samples */
	unsigned symbolizer_flags;
	unsigned demangle_flags;
	const char *const *debug_dirs;
	size_t nr_debug_dirs;
	const char *cache_dir;
	int recording_fd; /* file to write, taken over; -1 = none */
	void (*status)(void *ctx, const struct capture_status *s); /* may be NULL */
	void *ctx;
};

enum capture_end {
	CAPTURE_END_TIME,    /* the time is up */
	CAPTURE_END_STOPPED, /* a signal */
	CAPTURE_END_TARGET,  /* the target ended */
	CAPTURE_END_COMMAND, /* the launched command ended */
};

struct capture_result {
	struct profile *profile; /* sealed, owned by the caller */
	struct sampler_info info;
	struct engine_info engine; /* valid if has_engine */
	bool has_engine;           /* BPF programs did the work */
	struct err no_engine;      /* why they did not; code 0: nobody asked for them */
	enum capture_end end;
	uint64_t duration_ns;
	uint64_t own_cpu_ns;       /* this process while capturing, naming apart */
	uint64_t symbolize_cpu_ns; /* the naming worker */
	uint64_t nr_bytes;         /* written to the recording */
	uint64_t nr_unsaved;       /* rows that are in the profile, but not in the recording */
	bool has_exit_code;
	int exit_code;   /* of the command */
	struct err disk; /* why the recording could not be written whole; code 0 = fine */
};

void capture_result_release(struct capture_result *r);
/* Rows of all tables: what nr_unsaved is a part of. */
uint64_t capture_nr_rows(const struct capture_result *r);
/*
 * *ret_r is to be released also after an error: the command's exit code may be in it (an exec
 * that failed gives 126 or 127 there).
 */
int capture_run(struct capture_result *ret_r, const struct capture_options *options,
		struct err *err);

#endif
