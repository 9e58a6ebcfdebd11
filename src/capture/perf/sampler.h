/*
 * The sampling source: perf events on threads, processes, a launched command or the whole
 * system, delivering time-ordered events to a sink.
 *
 * One ring per CPU, owned by a dummy event of ours; the events of all threads on that CPU write
 * into it. Threads and processes born later are inherited. Events are handed out as they lie in
 * the rings, merged by time; they stay there for about two milliseconds so that CPUs cannot
 * overtake each other.
 *
 * The stack copy starts at 8 KiB a sample and grows by group: a group is the threads that were
 * given to us together with what they gave birth to. sampler_grow() is called when a stack of
 * that thread did not fit.
 *
 * With BPF programs (engine.h) samples come through their ring, and of perf's records
 * only mappings, names, births and ends are left: PERFOPEN_PROG in the flags runs spec.prog_fd
 * instead of copying stacks, PERFOPEN_SIDEBAND takes no samples at all. The other ring is the
 * side: its records are merged with ours by time, so that an address always meets the mappings
 * of its moment.
 */
#ifndef ASSAY_CAPTURE_PERF_SAMPLER_H
#define ASSAY_CAPTURE_PERF_SAMPLER_H

#include "base/base.h"
#include "base/err.h"
#include "capture/perf/open.h"
#include "host/target.h"
#include "model/event.h"

/* Another source of records, each with its time, in order but for a few microseconds. */
struct side {
	/* The oldest record's time; UINT64_MAX = none, 0 = not written yet: come back. */
	uint64_t (*peek_ns)(void *ctx);
	/* Hands out the oldest record and consumes it. */
	int (*deliver)(void *ctx, const struct event_sink *sink, struct err *err);
	/* Everything up to this time has been handed out, ours and theirs. May be NULL. */
	void (*applied)(void *ctx, uint64_t time_ns);
	void *ctx;
};

struct sampler_spec {
	const struct target *target; /* borrowed until the end */
	const char *event;           /* NULL = choose */
	uint32_t freq_hz;
	unsigned flags;      /* enum perfopen_flags but SYSTEM and ON_EXEC */
	uint32_t ring_bytes; /* per CPU, 0 = by the number of CPUs */
	int prog_fd;         /* with PERFOPEN_PROG: it takes the samples and knows whose */
	struct side side;    /* no peek_ns: none */
};

struct sampler_info {
	const char *event;
	bool is_software;
	bool is_user_only;
	bool is_refused_kernel; /* the kernel side was wanted but refused */
	bool is_filtering;      /* too many threads: sampling all CPUs, keeping the target's */
	uint32_t nr_threads;    /* opened at the start */
	uint32_t nr_rings;
	uint64_t ring_bytes;      /* per CPU */
	uint32_t max_stack_bytes; /* largest copy asked for so far */
	uint64_t nr_grown;
	uint64_t nr_filtered; /* samples of others, left out */
	uint64_t nr_bad;      /* records that made no sense */
	/*
	 * CPU time of the target while it was sampled, counted by the kernel; 0 = unknown. A thread
	 * that runs for less than a sample's period may leave no sample at all, since each thread's
	 * first period starts with it.
	 */
	uint64_t cpu_ns;
};

struct sampler;

int sampler_open(struct sampler **ret_s, const struct sampler_spec *spec, struct err *err);
/* Feeds what was there before (names, mappings), then starts the events. */
int sampler_start(struct sampler *s, const struct event_sink *sink, struct err *err);
/* The capture begins now, some time after the start: cpu_ns is from here on. */
void sampler_begin(struct sampler *s);
/* Descriptors to poll for readability, with others of the caller; borrowed. */
const int *sampler_fds(const struct sampler *s, size_t *ret_nr);
/* Delivers what is there and old enough. */
int sampler_drain(struct sampler *s, const struct event_sink *sink, struct err *err);
/* Stops the events and delivers everything that is left. */
int sampler_stop(struct sampler *s, const struct event_sink *sink, struct err *err);
/* A stack of @nr_bytes of this thread was cut: its group gets larger copies. May do nothing. */
void sampler_grow(struct sampler *s, int32_t tid, uint64_t nr_bytes);
struct sampler_info sampler_info(const struct sampler *s);
/*
 * What other sources see goes through this to @sink, which is borrowed until the next call: a
 * process of which nothing is known yet is told first (system mode), our own is left out.
 */
struct event_sink sampler_sink(struct sampler *s, const struct event_sink *sink);
void sampler_free(struct sampler *s);
void sampler_free_p(struct sampler **s);

#endif
