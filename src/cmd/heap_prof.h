/*
 * `assay heap --tier prof`: jemalloc's own profiling, driven in the running process. Sampling is
 * switched on for the capture (and off again, if it was), its rate changed where --sample asks for
 * it; a dump at the end is the result, read back as any other dump.
 *
 * Stacks of samples are taken by assay's unwinder where jemalloc lets it (session/prof_walk.h).
 *
 * What lives is what jemalloc has sampled since it was told to, which may be longer than the
 * capture: the report says so.
 */
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
