/* `assay heap --tier prof`: jemalloc's own profiling as a capture (session/prof_capture.h). */
#ifndef ASSAY_CMD_HEAP_PROF_H
#define ASSAY_CMD_HEAP_PROF_H

#include "base/base.h"
#include "cmd/heap_outputs.h"
#include "cmd/targetopts.h"

struct heap_prof_spec {
	const char *output; /* -o, or NULL */
	uint64_t interval_bytes;
	bool has_interval; /* the user asked for it: what was sampled before is forgotten */
	bool skips_pictures;
	struct heap_outputs_options outputs;
};

/* One process. Tells errors; an exit status. */
int heap_prof_run(const struct heap_prof_spec *spec, const struct chosen_target *t);

#endif
