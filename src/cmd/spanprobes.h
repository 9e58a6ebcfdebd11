/*
 * From the names of functions and static probes to the places in binaries where probes go: the
 * binaries are those that the target has mapped, or the command that is to be launched.
 */
#ifndef ASSAY_CMD_SPANPROBES_H
#define ASSAY_CMD_SPANPROBES_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "capture/spans.h"
#include "cmd/targetopts.h"

struct span_probes {
	VEC(struct span_probe) list; /* names and points owned */
	VEC(int32_t) pids;           /* whose memory gets them; none: a launched command's */
	VEC(int) fds;                /* of the binaries, owned */
	size_t nr_stepped;           /* probes whose instruction the kernel has to step over */
	size_t nr_more;              /* functions that matched beyond the limit */
};

void span_probes_release(struct span_probes *p);
/* -ENOENT: no such function, the hint has near names. -EINVAL: not a span. */
int span_probes_find(struct span_probes *p, const char *const *spans, size_t nr_spans,
		     const struct chosen_target *t, char **command, struct err *err);
/* What a hit costs, and what was left out. */
void span_probes_say(const struct span_probes *p);

#endif
