/*
 * Folded stacks: one line a stack, root first, frames separated by semicolons, then a count.
 *
 *	redis-server;main;aeMain;read_[k] 42
 *
 * The format of Brendan Gregg's FlameGraph tools, which many others read and write. Frames may
 * hold blanks: the count is what follows the last one. Marks at a frame's end: _[k] kernel, _[i]
 * inlined into the frame before it, _[j] JIT code; _[w] (waker) stays part of the name, as do the
 * separators "-" and "--". Lines "# ..." are comments. docs/formats/folded.md says it all.
 */
#ifndef ASSAY_FORMAT_FOLDED_H
#define ASSAY_FORMAT_FOLDED_H

#include "base/base.h"
#include "base/err.h"
#include "model/profile.h"

enum folded_flags {
	/* writing */
	FOLDED_PID = 1 << 0,       /* comm-PID at the root */
	FOLDED_TID = 1 << 1,       /* comm-PID/TID at the root */
	FOLDED_NO_COMM = 1 << 2,   /* no root frame for the thread */
	FOLDED_KERNEL = 1 << 3,    /* _[k] */
	FOLDED_INLINE = 1 << 4,    /* _[i] */
	FOLDED_JIT = 1 << 5,       /* _[j] */
	FOLDED_ADDRS = 1 << 6,     /* [module <address>] for frames without a name */
	FOLDED_WEIGHT = 1 << 7,    /* the table's weight column instead of the count of samples */
	FOLDED_NO_INLINE = 1 << 8, /* leave inlined frames out */
	/* reading */
	FOLDED_ROOT_IS_COMM = 1 << 9, /* the first frame, comm[-pid[/tid]], names the thread */
};

struct folded_options {
	unsigned flags;
	/*
	 * Writing: a frame to put on top of a row's stack, as the reason of a wait, or NULL. Of
	 * tables with tags only.
	 */
	const char *(*synth_leaf_of)(void *ctx, const struct table *t, size_t row);
	void *synth_leaf_ctx;
	/* Reading: the event's name; NULL is "samples". */
	const char *read_event;
};

/*
 * Reading gives one table of samples without times. A file whose every line ends with two counts is
 * a difference and gives two tables, "before" and "after". Fractional counts are rounded. Lines
 * that make no sense are LOSS_UNPARSED; -EINVAL when there is no other.
 *
 * Written lines are sorted by the bytes of the stack, each stack occurs once, and the counts add up
 * to the table's samples. In names, ';' becomes ':' and control bytes vanish; blanks in a thread's
 * name become '_'.
 */

#endif
