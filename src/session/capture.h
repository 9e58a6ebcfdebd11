/*
 * Runs a capture: sources -> builder -> symbol worker -> profile, which is written to a recording
 * every second. Runs on the calling thread until the time is up, the target or the launched command
 * exits, or a signal stops it (stop.h). Prints nothing: the caller reports.
 *
 * A capture has any set of sources: CPU samples, off-CPU accounting, event counts, I/O, spans,
 * heap. All share one sampler (mappings, thread names, forks and exits), one set of BPF programs
 * (engine.h), one builder and one recording; sources.c lists them. Where BPF programs cannot be
 * loaded, sources that do not need them are used.
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
	bool is_symbolizing; /* recording has ended */
	uint64_t nr_symbolized;
	uint64_t nr_to_symbolize;
};

enum capture_flags {
	CAPTURE_NO_BPF = 1 << 0,         /* load no BPF programs */
	CAPTURE_GROWTH = 1 << 1,         /* samples are page faults and go to TABLE_GROWTH */
	CAPTURE_NO_WAIT_STACKS = 1 << 2, /* waits by reason and thread only */
	CAPTURE_SYNCS_ONLY = 1 << 5,     /* of the I/O calls only those that sync */
	CAPTURE_JIT_MAP = 1 << 4,        /* ask runtimes for the names of JIT code (jitmaps.h) */
	CAPTURE_WITH_ARGS = 1 << 3,      /* the arguments of the command are recorded */
};

struct counts_spec;
struct heapsource_spec;

/* Callbacks for a launched command: `assay limit` moves it to a cgroup and reads that cgroup. */
struct capture_hooks {
	/* Called when the child is forked and blocked before execve; assay has all its rights. */
	int (*before_exec)(void *ctx, int32_t pid, struct err *err);
	void (*poll)(void *ctx); /* called many times a second, and when the command exits */
	void (*facts)(void *ctx, struct profile *p); /* adds facts at the end */
	int fd; /* `poll` is also called when this is readable; -1 = none */
	void *ctx;
};

/*
 * A capture that is shown while it runs (`assay top`): without a recording, and what was shown is dropped.
 * Names that are not known yet are addresses; nothing is symbolized at the end.
 */
struct capture_live {
	/* Shows what was recorded since the last call. Returns true to end the capture. */
	bool (*show)(void *ctx, const struct profile *p);
	/* Called many times a second, and when fd is readable. Returns true to show at once. May be NULL. */
	bool (*input)(void *ctx);
	int fd;            /* -1 = none */
	uint64_t every_ns; /* may be changed by the callbacks */
	void *ctx;
};

struct capture_options {
	const char *kind;                   /* of the recording: "cpu", "offcpu" ... */
	table_set tables;                   /* what is captured */
	unsigned flags;                     /* enum capture_flags */
	const struct counts_spec *counts;   /* with TABLE_EVENTS */
	const struct spans_spec *spans;     /* with TABLE_SPANS */
	const struct heapsource_spec *heap; /* with TABLE_LIVE */
	bool takes_children; /* of the command: its memory is read, too; of @target: see there */
	uint64_t memory_spacing_ns; /* with TABLE_MEMORY: between readings, 0 = 1 s */
	struct target *target;      /* NULL: only the command; processes that join it are added */
	char **command;             /* NULL-terminated, or NULL */
	const struct capture_hooks *hooks; /* with a command; may be NULL */
	struct capture_live *live;         /* may be NULL */
	uint64_t duration_ns;              /* 0 = until the command exits or a signal stops it */
	uint64_t delay_ns;
	const char *started_when; /* the condition that was waited for, as a fact; NULL = none */
	const char *event;        /* CPU samples: NULL = choose */
	uint32_t freq_hz;
	unsigned sampler_flags; /* enum perfopen_flags: of CPU samples */
	unsigned symbolizer_flags;
	unsigned demangle_flags;
	const char *const *debug_dirs;
	size_t nr_debug_dirs;
	const char *cache_dir;
	int recording_fd; /* file to write, owned by the capture; -1 = none */
	void (*status)(void *ctx, const struct capture_status *s); /* may be NULL */
	void *ctx;
};

enum capture_end {
	CAPTURE_END_TIME,    /* the time is up */
	CAPTURE_END_STOPPED, /* a signal */
	CAPTURE_END_TARGET,  /* the target exited */
	CAPTURE_END_COMMAND, /* the launched command exited */
};

struct capture_result {
	struct profile *profile; /* sealed, owned by the caller */
	struct sampler_info info;
	struct engine_info engine; /* valid if has_engine */
	bool has_engine;           /* BPF programs were used */
	struct err no_engine;      /* why they were not; code 0: not wanted */
	enum capture_end end;
	uint64_t duration_ns;
	uint64_t own_cpu_ns;       /* CPU time of assay while capturing, without symbolization */
	uint64_t symbolize_cpu_ns; /* CPU time of the symbol worker */
	uint64_t command_cpu_ns; /* of a command that has ended, with its children; 0: not known */
	uint64_t nr_bytes;       /* written to the recording */
	uint64_t nr_unsaved;     /* rows of the profile that could not be written */
	bool has_exit_code;
	int exit_code;    /* of the command */
	int32_t left_pid; /* of a command that a second stop request left running; 0: none */
	struct err disk;  /* why the recording is incomplete; code 0 = complete */
};

void capture_result_release(struct capture_result *r);
/* Returns the rows of all tables, of which nr_unsaved were not written. */
uint64_t capture_nr_rows(const struct capture_result *r);
/*
 * Runs the capture. The caller releases *ret_r, also after an error, when it may hold the command's
 * exit code (126 or 127 if execve failed).
 */
int capture_run(struct capture_result *ret_r, const struct capture_options *options,
		struct err *err);

#endif
