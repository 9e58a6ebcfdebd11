/*
 * assay watch: one reading of a target after the other. Several processes are added up; those that
 * end are left out from then on, with a count. PSS is read as seldom as memorysource.h says.
 */
#ifndef ASSAY_CMD_WATCH_PROBE_H
#define ASSAY_CMD_WATCH_PROBE_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "host/memgroup.h"
#include "host/memmaps.h"
#include "host/memstat.h"
#include "host/proc.h"

/* What an allocator says of itself. */
struct watch_allocator {
	bool is_known;
	uint64_t asked_ns;       /* when; CLOCK_MONOTONIC */
	uint64_t in_use_bytes;   /* handed out to the program and not freed */
	uint64_t active_bytes;   /* whole pages of that */
	uint64_t resident_bytes; /* in memory, with its own bookkeeping and pages to give back */
	uint64_t retained_bytes; /* addresses that it keeps without memory behind them */
};

struct watch_tick {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	struct memstat m; /* sum */
	/* Of the process that has most: what all share is in the sum many times. */
	uint64_t shmem_most_bytes;
	bool has_pss;
	bool has_rates;
	double minor_per_s;
	double major_per_s;
	double rss_per_s; /* since the tick before */
	struct memgroup_numbers group;
	bool has_group;
	double pressure_pct; /* of the time since the tick before, some threads waited for memory */
	struct watch_allocator allocator;
};

struct watch_process {
	int32_t pid;
	bool is_gone;
	uint64_t start_ticks; /* a number that is used again is another process */
	struct memstat last;
	struct memstacks stacks;
	uint64_t stack_bytes;
};

struct watch_probe {
	VEC(struct watch_process) processes;
	uint32_t nr_gone;
	uint64_t next_walk_ns;
	struct memgroup_tree tree;
	struct memgroup group;
	bool has_group;
	struct watch_tick last;
	bool has_last;
	int refused; /* errno of smaps_rollup, 0 = it may be read */
	/* What it cost. */
	uint64_t nr_ticks;
	uint64_t nr_walks;
	uint64_t walks_ns;
	uint64_t longest_walk_ns;
	uint64_t counters_ns;
};

/* Processes, and those of threads. The target must live. */
int watch_probe_open(struct watch_probe *w, const struct pid_list *pids,
		     const struct pid_list *tids, struct err *err);
void watch_probe_release(struct watch_probe *w);
/* -ESRCH: all have ended. @allocator: what the allocator said, or NULL. */
int watch_probe_read(struct watch_probe *w, const struct watch_allocator *allocator,
		     struct watch_tick *ret_t, struct err *err);
/* The mappings of all processes that live, one list each; the caller releases them. */
struct watch_maps {
	VEC(struct memmaps) list; /* by process */
	VEC(int32_t) pids;
	uint32_t nr_unseen; /* threads whose stacks were not found */
};
void watch_probe_maps(struct watch_probe *w, struct watch_maps *ret_m);
void watch_maps_release(struct watch_maps *m);

#endif
