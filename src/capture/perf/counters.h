/*
 * Counts events of threads by the kernel's counters (perf_event_open), without samples. Events of a
 * family (cycles and instructions) are in one group, so that all of them count the same piece of time, if
 * the CPU has counters for all of them at once; otherwise the group is divided. Groups that do not fit
 * at the same time take turns (multiplexing): the kernel says how long each was on the hardware, and
 * values are scaled by that.
 *
 *	struct counter_set set = {.events = ...};
 *	counter_set_probe(&set, false, &err);              what this machine has, and groups
 *	counter_fds_open(&fds, &set, tid, -1, COUNTERS_INHERIT, &err);
 *	counter_fds_enable(&fds, &set);
 *	counter_fds_read(&fds, &set, values);              adds what was counted since the last read
 */
#ifndef ASSAY_CAPTURE_PERF_COUNTERS_H
#define ASSAY_CAPTURE_PERF_COUNTERS_H

#include "base/base.h"
#include "base/err.h"
#include "capture/perf/counterevents.h"
#include "model/counter.h"

struct counter_set {
	struct counter_events events;
	/* Set by counter_set_probe. */
	enum counter_state state[COUNTERS_MAX];
	uint8_t leader[COUNTERS_MAX];    /* index of the event that leads the group */
	bool is_user_only[COUNTERS_MAX]; /* kernel mode is not permitted, so it is left out */
};

/*
 * Tries each event on assay itself (@is_system: on the first CPU, all processes). -EMFILE: too few
 * descriptors.
 */
int counter_set_probe(struct counter_set *s, bool is_system, struct err *err);
bool counter_set_has_hardware(const struct counter_set *s); /* one that can be counted */
bool counter_set_wants_hardware(const struct counter_set *s);

enum counters_flags {
	COUNTERS_INHERIT = 1 << 0, /* and all threads and processes that it creates */
	COUNTERS_ON_EXEC = 1 << 1, /* enabled by the next exec */
};

/* What the kernel has counted of a group: the format of read(2), parsed. */
struct counter_raw {
	uint64_t value;
	uint64_t enabled_ns;
	uint64_t running_ns;
};

/* The events of one thread or CPU. Embedded; no pointers, so that it can be in shared memory. */
struct counter_fds {
	int fd[COUNTERS_MAX]; /* -1: not open */
	uint64_t id[COUNTERS_MAX];
	struct counter_raw last[COUNTERS_MAX];
};

void counter_fds_init(struct counter_fds *f);
void counter_fds_close(struct counter_fds *f);
/*
 * Opens the events of thread @tid (0: the calling one; -1: of all on @cpu). @flags: enum
 * counters_flags. -ESRCH: the thread has exited. -EACCES, -EPERM: not permitted, -EMFILE: the hint
 * says what to do. Does not allocate.
 */
int counter_fds_open(struct counter_fds *f, const struct counter_set *s, int32_t tid, int32_t cpu,
		     unsigned flags, struct err *err);
void counter_fds_enable(const struct counter_fds *f, const struct counter_set *s);
/* Adds to values[i] what event i counted since the last read. */
void counter_fds_read(struct counter_fds *f, const struct counter_set *s,
		      struct counter_value *values);

/*
 * Parses what read(2) returns with PERF_FORMAT_GROUP, TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING and ID
 * (perf_event_open(2)):
 *
 *	u64 nr; u64 time_enabled; u64 time_running; { u64 value; u64 id; } [nr]
 *
 * @ids: of @nr events; 0: not in this group, whose ret[i] is left unchanged. Returns how many events
 * were found, -EINVAL for a malformed text.
 */
int counter_parse_group(struct counter_raw *ret, const uint64_t *ids, size_t nr, const void *bytes,
			size_t nr_bytes);
/* Adds what was counted between two readings of an event, scaled by the time it was not counted. */
void counter_add(struct counter_value *to, const struct counter_raw *before,
		 const struct counter_raw *now);

#endif
