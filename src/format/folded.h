/*
 * Folded stacks: one line per stack, root first, frames separated by semicolons, then a count.
 *
 *	redis-server;main;aeMain;read_[k] 42
 *
 * The format of Brendan Gregg's FlameGraph tools, which many tools read and write. Frames may
 * contain blanks: the count is the text after the last blank. Suffixes of frames: _[k] kernel, _[i]
 * inlined into the frame before it, _[j] JIT code, _[t] inferred from a tail call. Reading keeps the suffix _[w] (waker) and the
 * separator frames "-" and "--" as names. Lines "# ..." are comments. The functions that read and
 * write are in the format's table entry (format/format.h). Full description:
 * docs/formats/folded.md.
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
	FOLDED_INLINE = 1 << 4,    /* _[i], _[t] */
	FOLDED_JIT = 1 << 5,       /* _[j] */
	FOLDED_ADDRS = 1 << 6,     /* [module <address>] for unsymbolized frames */
	FOLDED_NO_INLINE = 1 << 7, /* omit inlined frames */
	/* reading */
	FOLDED_FIND_THREADS = 1 << 8, /* see below; else the first frame is a frame like others */
};

struct folded_options {
	unsigned flags;
	/* Reading: name of the event; NULL is "samples". */
	const char *read_event;
};

/*
 * Reading produces one table of samples without times. A file in which all lines end with two
 * counts is a difference and produces two tables, "before" and "after". Fractional counts are
 * rounded. Lines that cannot be parsed, or are longer than 64 MiB, are counted as LOSS_UNPARSED;
 * -EINVAL if no line can.
 *
 * With FOLDED_FIND_THREADS the first frames are threads if the start of the file shows it: all are
 * comm-PID or comm-PID/TID; or below one of them is a function that no function calls (_start,
 * start_thread), and none is itself such a function. A function is never taken for a thread
 * because it is the outermost frame.
 *
 * Written lines are sorted by the bytes of the stack, each stack occurs once, and the counts add up
 * to the table's weights. In names, ';' becomes ':' and control characters are removed; blanks in
 * thread names become '_'.
 */

#endif
