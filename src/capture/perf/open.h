/*
 * Opening sampling events: the best clock that this machine and these rights allow (cycles, else
 * cpu-clock; kernel and user, else user only), found once, then applied to threads and CPUs.
 */
#ifndef ASSAY_CAPTURE_PERF_OPEN_H
#define ASSAY_CAPTURE_PERF_OPEN_H

#include <linux/perf_event.h>

#include "base/base.h"
#include "base/err.h"

enum perfopen_flags {
	PERFOPEN_USER_ONLY = 1 << 0, /* no kernel frames asked for */
	PERFOPEN_FP = 1 << 1,        /* user stacks by frame pointers, in the kernel */
	PERFOPEN_SYSTEM = 1 << 2,    /* per CPU, all processes */
	PERFOPEN_ON_EXEC = 1 << 3,   /* starts at the launched command's exec */
	PERFOPEN_NO_STACKS = 1 << 4, /* instruction pointers only */
	PERFOPEN_PROG = 1 << 5,      /* a program in the kernel takes the samples */
	PERFOPEN_SIDEBAND = 1 << 6,  /* mappings, names, births and ends; no samples */
	PERFOPEN_SWITCHES = 1 << 7,  /* with SIDEBAND: switches as well; else samples of them */
	PERFOPEN_FAULTS = 1 << 8,    /* page faults instead of a clock */
};

struct perfopen {
	struct perf_event_attr attr;
	const char *event; /* "cycles" or "cpu-clock"; "none" for SIDEBAND */
	bool is_software;  /* no hardware counters here */
	bool is_user_only; /* the kernel side was refused or not wanted */
	bool is_refused_kernel;
};

#define PERFOPEN_STACK_MIN    (8u << 10)
#define PERFOPEN_STACK_SWITCH (2u << 10) /* the same of SWITCHES: there are many */
#define PERFOPEN_STACK_MAX    65528u     /* the kernel's limit for sample_stack_user */

/*
 * Decides by trying on @pid (-1 = whole system). @event: NULL or "" to choose, else "cycles" or
 * "cpu-clock" or "task-clock" or "instructions". @freq_hz: samples a second of CPU time.
 */
int perfopen_choose(struct perfopen *ret_p, int32_t pid, const char *event, uint32_t freq_hz,
		    unsigned flags, struct err *err);
/* The names of events, NULL after the last. */
const char *perfopen_event_name(size_t i);
/*
 * Opens on one thread and CPU with a stack copy of @stack_bytes, where stacks are copied. Returns
 * the descriptor or -errno.
 */
int perfopen_event(const struct perfopen *p, int32_t tid, int32_t cpu, uint32_t stack_bytes,
		   struct err *err);
/* What an event counted, and how many of its records the kernel dropped (PERF_FORMAT_LOST). */
struct perfopen_counts {
	uint64_t value;   /* ns for the clocks */
	uint64_t nr_lost; /* 0 where the kernel does not tell (before 6.0) */
};
struct perfopen_counts perfopen_read(int fd);

#endif
