/*
 * Names of threads for reports: threads whose names differ in numbers alone are shown under one name, with
 * '#' for the numbers that differ: "x86-worker-1" and "x86-worker-12" are "x86-worker-#". A name from
 * which no other one differs by numbers alone stays whole, "h2" or "backend-1".
 *
 * All names are added first.
 */
#ifndef ASSAY_MODEL_THREADNAMES_H
#define ASSAY_MODEL_THREADNAMES_H

#include "base/base.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/vec.h"

/* Names that are equal but for their numbers. */
struct threadnames_shape {
	uint32_t name;   /* of the first thread, in `texts` */
	uint32_t varies; /* bit n: number n of the name differs between threads */
};

struct threadnames {
	struct intern shapes; /* names with '#' for each number */
	struct intern texts;
	VEC(struct threadnames_shape) all; /* by id in `shapes` */
	struct buf scratch;
};

void threadnames_release(struct threadnames *t);
void threadnames_add(struct threadnames *t, const char *name);
/* Sets @to to the name under which a thread is shown; @name was added. */
void threadnames_get(struct threadnames *t, const char *name, struct buf *to);

#endif
