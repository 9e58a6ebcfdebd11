/*
 * assay watch: what it knows of a target, and what it says of it at the end: growth, verdict, what
 * the RSS consists of; the recording and the chart.
 */
#ifndef ASSAY_CMD_WATCH_END_H
#define ASSAY_CMD_WATCH_END_H

#include "analyze/memexplain.h"
#include "analyze/memverdict.h"
#include "base/base.h"
#include "base/opt.h"
#include "cmd/targetopts.h"
#include "cmd/watch_allocator.h"
#include "cmd/watch_lines.h"
#include "cmd/watch_probe.h"
#include "cmd/watch_record.h"
#include "cmd/watch_run.h"

struct watch_state {
	const struct watch_opts *o;
	char *name;       /* of the target; owned */
	char *allocator;  /* its name, or NULL; owned */
	bool maps_itself; /* it takes its memory by mmap */
	struct watch_asker asker;
	bool is_asking;
	uint64_t next_ask_ns;
	struct err not_asked; /* why */
	struct watch_probe probe;
	bool has_probe;
	struct watch_lines lines;
	struct watch_record record;
	VEC(struct mempoint) points;
	struct watch_tick last;
	/* Read now and then as long as the target lives; what was read last stays. */
	struct watch_maps maps;
	struct memexplain *parts;
	uint64_t maps_ns;
	uint64_t next_maps_ns;
	uint64_t cpu_before_ns;
};

/* @child: a launched command, or 0. */
int watch_state_open(struct watch_state *s, const struct watch_opts *o,
		     const struct chosen_target *t, int32_t child, const struct opt_args *args,
		     struct err *err);
void watch_state_release(struct watch_state *s);
/* Nothing was read: the recording goes. */
void watch_state_abandon(struct watch_state *s);
/* -ESRCH: the target has ended. */
int watch_state_read(struct watch_state *s, struct watch_tick *ret_t, struct err *err);
void watch_state_add(struct watch_state *s, const struct watch_tick *t);
struct memverdict watch_state_verdict(const struct watch_state *s, struct arena *a);

/* The mappings with the largest RSS, as text. */
void watch_end_mappings(struct buf *to, struct watch_state *s, uint64_t max_rows, unsigned columns);
/* The last words; an exit status. */
int watch_end(struct watch_state *s, const struct watch_opts *o, bool has_command);

#endif
