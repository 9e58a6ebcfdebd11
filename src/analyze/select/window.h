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

/* Returns start and end of the capture: of its header, else of its samples (the last included). */
struct window window_of_profile(const struct profile *p);
/* -EINVAL: syntax, the hint has the forms. -ENOENT: the profile has no timestamps. */
int window_parse(const struct profile *p, const char *text, struct window *ret_w, struct err *err);

#endif
