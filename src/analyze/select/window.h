/*
 * Parses time windows as a user writes them, relative to the start of the capture: "2..5"
 * (seconds), "500ms..2s", "..3s", "2s..", "10%-20%", "10%..20%". perf's "2,5" is accepted, too.
 */
#ifndef ASSAY_ANALYZE_SELECT_WINDOW_H
#define ASSAY_ANALYZE_SELECT_WINDOW_H

#include "base/base.h"
#include "base/err.h"
#include "model/profile.h"

/* [from, to) on the profile's clock. */
struct window {
	uint64_t from_ns;
	uint64_t to_ns;
};

/*
 * Returns the window of the whole capture: from_ns and to_ns are start and end of the capture in
 * the profile; where these are not known, the times of the first and of the last row. {0, 0}: the
 * profile has no times. To include a row at to_ns, add 1.
 */
struct window window_of_profile(const struct profile *p);
/* Length of a window without the time between merged recordings. */
uint64_t window_recorded_ns(const struct profile *p, struct window w);
/* The end of what was recorded without a break from @ns on; UINT64_MAX: not known. */
uint64_t window_piece_end(const struct profile *p, uint64_t ns);
/* -EINVAL: syntax error; the hint lists the valid forms. -ENOENT: the profile has no timestamps. */
int window_parse(const struct profile *p, const char *text, struct window *ret_w, struct err *err);
/*
 * Extends a window to the whole seconds of the capture that it touches, for tables that are stored by
 * second (TABLE_TIME_SLICE) and for what is shown with them. Returns whether that changed it.
 */
bool window_widen(const struct profile *p, struct window *w);

#endif
