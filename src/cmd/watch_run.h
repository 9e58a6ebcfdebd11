/*
 * assay watch from the first reading to the words at the end: the loop, the recording, the summary.
 */
#ifndef ASSAY_CMD_WATCH_RUN_H
#define ASSAY_CMD_WATCH_RUN_H

#include "base/base.h"
#include "base/opt.h"
#include "cmd/targetopts.h"

struct watch_opts {
	struct target_opts target;
	uint64_t every_ns;
	uint64_t limit; /* rows of a table */
	bool is_csv;
	bool is_json;
	bool shows_mappings;
	bool asks_allocator;
	const char *chart;  /* file, or NULL */
	const char *output; /* recording, or NULL */
};

/* An exit status. */
int watch_run(const struct watch_opts *o, const struct chosen_target *t,
	      const struct opt_args *args);

#endif
