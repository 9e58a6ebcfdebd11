/*
 * A CPU capture from start to end: sampler -> builder -> namer -> profile, flushed to a recording
 * every second. Runs on the calling thread until the time is up, the target or the launched
 * command ends, or stop.h says so. What to say to people is the caller's business.
 */
#ifndef ASSAY_SESSION_CPU_CAPTURE_H
#define ASSAY_SESSION_CPU_CAPTURE_H

#include "base/base.h"
#include "base/err.h"
#include "capture/sampler.h"
#include "host/target.h"
#include "model/profile.h"

struct cpu_status {
	uint64_t elapsed_ns;
	uint64_t left_ns; /* UINT64_MAX = no end set */
	const struct losses *losses;
	bool is_naming; /* sampling is over */
	uint64_t nr_named;
	uint64_t nr_to_name;
};

struct cpu_options {
	const struct target *target; /* NULL: only the command */
	char **command;              /* NULL-terminated, or NULL */
	uint64_t duration_ns;        /* 0 = until the command ends or somebody stops it */
	uint64_t delay_ns;
	const char *event; /* NULL = choose */
	uint32_t freq_hz;
	unsigned sampler_flags; /* enum perfopen_flags */
	unsigned symbolizer_flags;
	unsigned demangle_flags;
	const char *const *debug_dirs;
	size_t nr_debug_dirs;
	const char *cache_dir;
	int recording_fd; /* file to write, taken over; -1 = none */
	void (*status)(void *ctx, const struct cpu_status *s); /* may be NULL */
	void *ctx;
};

enum cpu_end {
	CPU_END_TIME,    /* the time is up */
	CPU_END_STOPPED, /* a signal */
	CPU_END_TARGET,  /* the target ended */
	CPU_END_COMMAND, /* the launched command ended */
};

struct cpu_result {
	struct profile *profile; /* sealed, owned by the caller */
	struct sampler_info info;
	enum cpu_end end;
	uint64_t duration_ns;
	uint64_t own_cpu_ns;    /* this process while sampling, naming apart */
	uint64_t naming_cpu_ns; /* the naming worker */
	uint64_t nr_bytes;      /* written to the recording */
	uint64_t nr_unsaved;    /* samples that are in the profile, but not in the recording */
	bool has_exit_code;
	int exit_code;   /* of the command */
	struct err disk; /* why the recording could not be written whole; code 0 = fine */
};

void cpu_result_release(struct cpu_result *r);
/*
 * *ret_r is to be released also after an error: the command's exit code may be in it (an exec
 * that failed gives 126 or 127 there).
 */
int cpu_capture(struct cpu_result *ret_r, const struct cpu_options *options, struct err *err);

#endif
