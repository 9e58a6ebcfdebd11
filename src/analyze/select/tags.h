/*
 * Filters on the tags of rows: wait reason, duration, object, waker. select.c compiles them with
 * selecttags_compile, tests each row with selecttags_test and aggregates the rows that remain with
 * selecttags_aggregate.
 */
#ifndef ASSAY_ANALYZE_SELECT_TAGS_H
#define ASSAY_ANALYZE_SELECT_TAGS_H

#include "analyze/wait/reason.h"
#include "analyze/select/select.h"

struct tagplan {
	const struct profile *p;
	const struct table *t; /* NULL: a table without tags, all rows pass */
	struct reasons *reasons;
	uint8_t *rejected;      /* by tag: 0: passes, else 1 + enum select_out; NULL: all pass */
	uint32_t reasons_shown; /* bits by enum wait_reason */
	bool is_blame;          /* table "blame" */
	bool is_of_waits;       /* table "off-cpu" or "blame" */
	bool hides_idle;
};

/* Stores why a tag is rejected; of several reasons, the first one in the order of the enum. */
static inline void selecttags_reject(uint8_t *rejected, enum select_out out)
{
	if (!*rejected || *rejected > 1 + (uint8_t)out)
		*rejected = 1 + (uint8_t)out;
}

/* True if the spec has a filter that needs tags. */
bool selecttags_is_needed(const struct select_spec *spec);
/* Compiles the filters; sets reasons, min_ns and max_ns of @sel. Errors as select_run. */
int selecttags_compile(struct arena *a, const struct select_spec *spec, struct tagplan *plan,
		       struct selection *sel, struct err *err);
/* Parses --min-duration and --max-duration; without them 0 and UINT64_MAX. */
int selecttags_durations(const struct select_spec *spec, uint64_t *ret_min_ns, uint64_t *ret_max_ns,
			 struct err *err);
/* Tests row @i. Returns 0 if it passes, else 1 + enum select_out; sets *ret_reason. */
unsigned selecttags_test(const struct tagplan *plan, size_t i, enum wait_reason *ret_reason);
/* Removes the scheduler's frames from the leaf of stacks, where the table's rows have them. */
struct selecttags_stacks {
	const struct profile *p;
	bool has_scheduler; /* else stacks stay as they are */
	uint8_t *memo;      /* by function: 0: not checked yet, else 1 + is it of the scheduler */
};
struct selecttags_stacks selecttags_stacks(const struct tagplan *plan);
stack_id selecttags_stack(struct selecttags_stacks *s, stack_id stack);
void selecttags_stacks_release(struct selecttags_stacks *s);
/* Aggregates @samples (row numbers) into sel->rows and sel->tagged, sorted by stack. */
void selecttags_aggregate(struct arena *a, const struct tagplan *plan, struct selection *sel,
			  const uint32_t *samples, size_t n, const struct row_filter *row_filter);

#endif
