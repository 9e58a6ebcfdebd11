/*
 * Converts names of functions and static probes (USDT) to file offsets for uprobes, in the binaries
 * that the target has mapped or in the binary of the command to be launched.
 */
#ifndef ASSAY_PLAN_SPANPROBES_H
#define ASSAY_PLAN_SPANPROBES_H

#include "base/base.h"
#include "base/err.h"
#include "base/vec.h"
#include "host/target.h"

/* A place in a binary. */
struct span_point {
	int fd;                    /* the binary, O_PATH; borrowed */
	uint64_t offset;           /* into the file */
	uint64_t semaphore_offset; /* of the USDT semaphore, 0 = none */
};

struct span_probe {
	const char *name;              /* "Database::commit", "parse..execute" */
	const struct span_point *from; /* places where a span begins */
	size_t nr_from;
	const struct span_point *to; /* places where it ends; none: at the return of the function */
	size_t nr_to;
};

struct span_probes {
	VEC(struct span_probe) list; /* names and points owned */
	VEC(int32_t) pids;           /* processes to probe; empty: the launched command */
	VEC(int) fds;                /* of the binaries, owned */
	VEC(struct err) unknown;     /* spans that are not there, while others are */
	char *similar;     /* other functions with names like those of the spans, or NULL */
	size_t nr_points;  /* of all spans */
	size_t nr_stepped; /* those on instructions that the kernel single-steps */
	size_t nr_more;    /* matches beyond the limit, not probed */
};

void span_probes_release(struct span_probes *p);
/*
 * Finds all @spans in the target @t; if @t is NULL, in the binary of @command. -ENOENT: there is none
 * of them; the hint has names similar to the first. -EINVAL: a span has invalid syntax.
 */
int span_probes_find(struct span_probes *p, const char *const *spans, size_t nr_spans,
		     const struct target *t, char **command, struct err *err);

#endif
