/*
 * Sums runs and intervals off the CPU to rows: per second, thread, stack, reason and log2 of the
 * duration. An interval that crosses the end of a second is split there and counted in the second
 * in which it ended. Per thread the times of all rows add up to the elapsed time.
 *
 * The elapsed time of a run that is not CPU time is WAIT_STOLEN. It has a row without a count, since
 * it is no context switch.
 *
 * Rows are kept until waitsums_emit passes them on. Used by one thread.
 */
#ifndef ASSAY_CAPTURE_WAIT_WAITSUMS_H
#define ASSAY_CAPTURE_WAIT_WAITSUMS_H

#include "base/base.h"
#include "base/err.h"
#include "capture/wait/waitrings.h"

/* Identity of a row; hashed and compared as words, so it has no padding. */
struct waitsums_key {
	uint64_t user_ref;
	uint64_t
		other_ref; /* waker's stack, or (blame) the stack of the thread that caused the wait */
	uint64_t object;
	uint32_t second;
	int32_t tgid;
	int32_t tid;
	int32_t other_tid;
	int32_t fd;
	int16_t syscall;
	uint8_t reason;
	uint8_t evidence;
	uint8_t table; /* enum table_id */
	uint8_t log2_ns;
	uint8_t object_kind;
	uint8_t detail; /* enum waitsums_detail */
	uint32_t dev;
};

enum waitsums_detail {
	DETAIL_NONE,
	DETAIL_WOKEN,
	DETAIL_PREEMPTED,
	DETAIL_YIELDED,
	DETAIL_UNACCOUNTED
};
/* Returns the detail as a tag's text; NULL: none. */
const char *waitsums_detail_text(enum waitsums_detail detail);

struct waitsums_row {
	struct waitsums_key key;
	int32_t other_tgid;
	int32_t direct_tgid; /* of blame, see struct blamechain_row; else 0 */
	int32_t direct_tid;
	uint64_t direct_ref;
	uint64_t kernel_ref;
	int64_t count;
	int64_t ns;
	int64_t longest_ns;
};

struct waitsums;

/* @epoch_ns: start of second 0. */
struct waitsums *waitsums_new(uint64_t epoch_ns);
void waitsums_free(struct waitsums *s);

void waitsums_add(struct waitsums *s, const struct wait_run *run);
/* Adds sums of which only number and time are known (HOW_UNACCOUNTED). */
void waitsums_add_unaccounted(struct waitsums *s, const struct wait_single *r);

/* Passes the rows to @fn and removes them. Stops at and returns the first error of @fn. */
int waitsums_emit(struct waitsums *s,
		  int (*fn)(void *ctx, const struct waitsums_row *row, struct err *err), void *ctx,
		  struct err *err);

#endif
