/*
 * Windows of time as a user writes them, relative to the capture: "2..5" (seconds), "500ms..2s",
 * "..3s", "2s..", "10%-20%", "10%..20%". perf's "2,5" is understood too.
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

/* First and last moment of the capture, last one included: of its header, else of its samples. */
struct window window_of_profile(const struct profile *p);
/* -EINVAL with what was expected; -ENOENT when the profile has no times. */
int window_parse(const struct profile *p, const char *text, struct window *ret_w, struct err *err);

#endif
