/*
 * Rows of blame: sums by wait (thread, stacks, object, reason: a "site"), cause, lock and second,
 * until they are taken.
 */
#ifndef ASSAY_CAPTURE_WAIT_BLAMEROWS_H
#define ASSAY_CAPTURE_WAIT_BLAMEROWS_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/wait/blamechain.h"
#include "capture/wait/blamelocks.h"
#include "capture/wait/blameparts.h"
#include "capture/wait/interval.h"

/* Identity of a wait in the rows; hashed and compared as bytes: no padding. */
struct blamerows_site {
	uint64_t user_ref;
	uint64_t object;
	uint32_t dev;
	int32_t tgid;
	int32_t tid;
	int32_t fd;
	int16_t syscall;
	uint8_t reason;
	uint8_t evidence;
	uint8_t object_kind;
	uint8_t log2_ns; /* duration bucket of a long wait, LOG2_NONE of others */
	uint8_t pad[2];
};

/* Of which wait and when. */
struct blamerows_at {
	uint32_t site;
	uint32_t lock; /* index in blamelocks, 0 = none */
	uint32_t second;
};

struct blamerows {
	VEC(struct blamerows_site) sites;
	VEC(uint64_t) kernel_refs; /* by site */
	struct map site_of;        /* hash -> index */
	VEC(struct blamerows_row {
		struct blamerows_at at;
		uint32_t cause;
		uint8_t nr_steps; /* the fewest */
		int64_t count;
		int64_t ns;
		int64_t longest_ns;
	})
	rows;
	struct map row_of; /* hash -> index */
};

void blamerows_release(struct blamerows *b);
/* Number of the wait's site, until the rows are taken. */
uint32_t blamerows_site(struct blamerows *b, const struct wait_interval *v);
void blamerows_add(struct blamerows *b, const struct blamerows_at *at, const struct blame_part *p,
		   unsigned nr_waits);
/* As blamechain_take_rows. */
int blamerows_take(struct blamerows *b, const struct blamecauses *causes,
		   const struct blamelocks *locks, blamechain_row_fn *fn, void *ctx);

#endif
