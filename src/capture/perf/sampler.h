/*
 * The sampler: perf events on threads, processes, a launched command or the whole system. It
 * delivers their samples and the mmap, comm, fork and exit records, in order of time, to a sink.
 *
 * There is one ring buffer per CPU, owned by a dummy event; the events of all threads on that CPU
 * write to it. Threads and processes that targets create inherit the events. Records are delivered
 * directly from the rings, merged by time. They stay in the rings for about two milliseconds, so
 * that a record of another CPU that is written late is still delivered in order.
 *
 * The copy of the user stack in a sample starts at 8 KiB and grows by group. A group is a thread
 * that existed at the start (or the launched command) and all threads that it created; with events
 * on CPUs there is one group. sampler_grow() is called
 * when the stack of a thread did not fit.
 *
 * With BPF programs (engine.h) the samples come through the BPF ring, and the perf rings only have
 * the other records: with PERFOPEN_PROG the event runs the BPF program spec.prog_fd instead of
 * copying a stack, with PERFOPEN_SIDEBAND there are no samples at all. The BPF ring is passed as
 * `side`. Its records are merged by time with those of perf, so that an address is always resolved
 * with the mappings of its moment.
 *
 * Used by one thread.
 */
#ifndef ASSAY_CAPTURE_PERF_SAMPLER_H
#define ASSAY_CAPTURE_PERF_SAMPLER_H

#include "base/base.h"
#include "base/err.h"
#include "capture/perf/open.h"
#include "host/target.h"
#include "model/event.h"

/* Another stream of records to merge: sorted by time, apart from a few microseconds. */
struct side {
	/* Time of the oldest record; UINT64_MAX = none, 0 = still being written: try again. */
	uint64_t (*peek_ns)(void *ctx);
	/* Delivers the oldest record and consumes it. */
	int (*deliver)(void *ctx, const struct event_sink *sink, struct err *err);
	/* All records up to this time have been delivered, of both streams. May be NULL. */
	void (*applied)(void *ctx, uint64_t time_ns);
	void *ctx;
};

struct sampler_spec {
	const struct target *target; /* borrowed until sampler_free */
	const char *event;           /* see perfopen_choose */
	uint32_t freq_hz;
	unsigned flags;      /* enum perfopen_flags except SYSTEM and ON_EXEC */
	uint32_t ring_bytes; /* per CPU; 0 = by the number of CPUs */
	int prog_fd;         /* with PERFOPEN_PROG: the BPF program, which selects the targets */
	struct side side;    /* peek_ns NULL: none */
};

struct sampler_info {
	const char *event;
	bool is_software;
	bool is_user_only;
	bool is_refused_kernel; /* kernel frames were requested but not permitted */
	bool is_filtering;      /* too many threads: samples all CPUs, keeps the target's samples */
	uint32_t nr_threads;    /* with events at the start */
	uint32_t nr_rings;
	uint64_t ring_bytes;      /* per CPU */
	uint32_t max_stack_bytes; /* largest stack copy so far */
	uint64_t nr_grown;        /* groups whose copies were enlarged */
	uint64_t nr_filtered;     /* samples of other threads, dropped */
	uint64_t nr_bad;          /* invalid records */
	/*
	 * CPU time of the target while it was sampled, counted by the kernel; 0 = unknown. A thread
	 * that runs for less than one sampling period may have no sample at all, since the first
	 * period of a thread starts when the thread does.
	 */
	uint64_t cpu_ns;
};

struct sampler;

/* Chooses the event and opens it on all target threads. */
int sampler_open(struct sampler **ret_s, const struct sampler_spec *spec, struct err *err);
/* Starts the events, and delivers names and mappings of processes that exist already. */
int sampler_start(struct sampler *s, const struct event_sink *sink, struct err *err);
/* Marks the beginning of the capture, after sampler_start: cpu_ns counts from this call on. */
void sampler_begin(struct sampler *s);
/* Descriptors to poll for readability; borrowed. */
const int *sampler_fds(const struct sampler *s, size_t *ret_nr);
/* Delivers the records that are old enough to be in order. */
int sampler_drain(struct sampler *s, const struct event_sink *sink, struct err *err);
/*
 * Adds a process that was not created by a target thread, and delivers its names and mappings; does
 * nothing if it is known.
 */
int sampler_add(struct sampler *s, int32_t pid, const struct event_sink *sink, struct err *err);
/* Stops the events and delivers all remaining records. */
int sampler_stop(struct sampler *s, const struct event_sink *sink, struct err *err);
/*
 * A stack copy of @nr_bytes of this thread was too short: enlarges those of its group if possible.
 */
void sampler_grow(struct sampler *s, int32_t tid, uint64_t nr_bytes);
struct sampler_info sampler_info(const struct sampler *s);
/*
 * A sink for the events of sources, which passes them on to @sink (borrowed until the next call).
 * In system mode it first delivers name and mappings of a process that is not known yet, and it
 * drops events of assay itself.
 */
struct event_sink sampler_sink(struct sampler *s, const struct event_sink *sink);
void sampler_free(struct sampler *s);
void sampler_free_p(struct sampler **s);

#endif
