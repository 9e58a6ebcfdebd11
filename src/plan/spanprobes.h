/*
 * From the names of functions and static probes to the places in binaries where probes go: the
 * binaries are those that the target has mapped, or the command that is to be launched.
 */
#ifndef ASSAY_PLAN_SPANPROBES_H
#define ASSAY_PLAN_SPANPROBES_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "host/target.h"

/* A place in a binary. */
struct span_point {
	int fd;                    /* the binary, open; borrowed */
	uint64_t offset;           /* into the file */
	uint64_t semaphore_offset; /* of a counter of listeners that the kernel raises, 0 = none */
};

struct span_probe {
	const char *name;              /* "Database::commit", "parse..execute" */
	const struct span_point *from; /* each begins the span */
	size_t nr_from;
	const struct span_point *to; /* each ends it; none: until @from's function returns */
	size_t nr_to;
};

struct span_probes {
	VEC(struct span_probe) list; /* names and points owned */
	VEC(int32_t) pids;           /* whose memory gets them; none: a launched command's */
	VEC(int) fds;                /* of the binaries, owned */
	size_t nr_stepped;           /* probes whose instruction the kernel has to step over */
	size_t nr_more;              /* functions that matched beyond the limit */
};

void span_probes_release(struct span_probes *p);
/*
 * @t: NULL = the command's, which does not run yet. -ENOENT: no such function, the hint has near
 * names. -EINVAL: not a span.
 */
int span_probes_find(struct span_probes *p, const char *const *spans, size_t nr_spans,
		     const struct target *t, char **command, struct err *err);

#endif
