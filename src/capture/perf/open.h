/*
 * Opens perf sampling events: chooses the best event that the machine and the user's rights allow
 * (cycles, else cpu-clock; kernel and user, else user only) once, then opens it on threads and
 * CPUs.
 */
#ifndef ASSAY_CAPTURE_PERF_OPEN_H
#define ASSAY_CAPTURE_PERF_OPEN_H

#include <linux/perf_event.h>

#include "base/base.h"
#include "base/err.h"

enum perfopen_flags {
	PERFOPEN_USER_ONLY = 1 << 0, /* exclude kernel frames */
	PERFOPEN_FP = 1 << 1,        /* the kernel walks user stacks by frame pointers */
	PERFOPEN_SYSTEM = 1 << 2,    /* all processes: one event per CPU */
	PERFOPEN_ON_EXEC = 1 << 3,   /* enabled by the launched command's exec */
	PERFOPEN_NO_STACKS = 1 << 4, /* instruction pointers only */
	PERFOPEN_PROG = 1 << 5,      /* a BPF program takes the samples */
	PERFOPEN_SIDEBAND = 1 << 6,  /* no samples: only mmap, comm, fork and exit records */
	PERFOPEN_SWITCHES = 1 << 7,  /* context switches: with SIDEBAND records, else samples */
	PERFOPEN_FAULTS = 1 << 8,    /* page faults instead of a clock */
};

/* The chosen event. */
struct perfopen {
	struct perf_event_attr attr;
	const char *event;      /* "cycles" or "cpu-clock"; "none" for SIDEBAND */
	bool is_software;       /* a software event: no hardware counters */
	bool is_user_only;      /* without kernel frames: not requested or not permitted */
	bool is_refused_kernel; /* kernel frames were requested but not permitted */
};

/* Bytes of user stack that are copied with a sample. */
#define PERFOPEN_STACK_MIN    (8u << 10)
#define PERFOPEN_STACK_SWITCH (2u << 10) /* for SWITCHES, of which there are many */
#define PERFOPEN_STACK_MAX    65528u     /* the kernel's limit for sample_stack_user */

/*
 * Chooses the event by opening candidates on @pid (-1 = whole system). @event: NULL or "" to choose
 * automatically, else "cycles", "cpu-clock", "task-clock" or "instructions". @freq_hz: samples per
 * second of CPU time. @flags: enum perfopen_flags.
 */
int perfopen_choose(struct perfopen *ret_p, int32_t pid, const char *event, uint32_t freq_hz,
		    unsigned flags, struct err *err);
/* Names of the events that can be chosen; NULL after the last. */
const char *perfopen_event_name(size_t i);
/*
 * Opens the event on one thread and CPU (-1 = any); @stack_bytes of user stack are copied if stacks
 * are copied at all. Returns the descriptor or -errno.
 */
int perfopen_event(const struct perfopen *p, int32_t tid, int32_t cpu, uint32_t stack_bytes,
		   struct err *err);
/* The value of an event, and the number of its records that the kernel dropped. */
struct perfopen_counts {
	uint64_t value;   /* ns for clocks */
	uint64_t nr_lost; /* PERF_FORMAT_LOST; 0 before kernel 6.0, which does not report it */
};
struct perfopen_counts perfopen_read(int fd);

#endif
