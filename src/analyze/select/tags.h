/*
 * The part of a selection that looks at tags: reasons, durations, objects, other threads. Internal
 * to select.c.
 */
#ifndef ASSAY_ANALYZE_SELECT_TAGS_H
#define ASSAY_ANALYZE_SELECT_TAGS_H

#include "analyze/wait/reason.h"
#include "analyze/select/select.h"

struct tagplan {
	const struct profile *p;
	const struct table *t; /* NULL: a table without tags, everything is in view */
	struct reasons *reasons;
	uint8_t *verdict; /* by tag: 0, or 1 + enum select_out; NULL = all in view */
	uint32_t in_view; /* bit by enum wait_reason */
	bool is_of_other; /* reasons are those of the other thread (a table of blame) */
	bool is_of_waits; /* waits or blame */
	bool hides_idle;
};

/* Of several reasons why something is not in view the first in the order of the enum counts. */
static inline void selecttags_reject(uint8_t *verdict, enum select_out out)
{
	if (!*verdict || *verdict > 1 + (uint8_t)out)
		*verdict = 1 + (uint8_t)out;
}

/* Whether a spec asks for anything that only rows with tags can answer. */
bool selecttags_is_asked(const struct select_spec *spec);
/* Errors as select_run. Fills the selection's reasons and what became of durations. */
int selecttags_compile(struct arena *a, const struct select_spec *spec, struct tagplan *plan,
		       struct selection *sel, struct err *err);
/* 0 and *ret_reason, or 1 + enum select_out. */
unsigned selecttags_judge(const struct tagplan *plan, size_t i, enum wait_reason *ret_reason);
/* Fills rows and tagged of the selection from the samples in view, sorted by stack. */
void selecttags_aggregate(struct arena *a, const struct tagplan *plan, struct selection *sel,
			  const uint32_t *samples, size_t n, const struct row_filter *row_filter);

#endif
