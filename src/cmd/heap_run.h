/* A capture of heaps from the options of `assay heap` to the last line. */
#ifndef ASSAY_CMD_HEAP_RUN_H
#define ASSAY_CMD_HEAP_RUN_H

#include "base/base.h"
#include "base/opt.h"
#include "cmd/targetopts.h"

#define HEAP_RUN_INTERVAL ((uint64_t)512 << 10)

struct heap_run_opts {
	struct target_opts target;
	bool is_every;
	uint64_t interval_bytes;
	int tier; /* enum heap_tier; NONE = choose */
	const char *older_than;
	const char *suppress; /* a file */
	uint64_t spacing_ns;
	uint64_t delay_ns;
	bool has_no_inlines;
	bool has_hashes;
	bool has_no_pictures;
	bool has_all_pictures;
	bool is_json;
	const char *output;
	struct opt_list debug_dirs;
};

/* An exit status; errors are told. */
int heap_run(const struct heap_run_opts *o, const struct chosen_target *t,
	     const struct opt_args *args);

#endif
