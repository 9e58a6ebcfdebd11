/* Filters on tags, and rows that keep them; see tags.h. */
#include "base/base.h"
#include "analyze/select/tags.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/select/match.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text/regex.h"
#include "base/vec.h"

#define ALL_REASONS (~(uint32_t)0)

_Static_assert(WAIT_NR <= 32, "a bit a reason");

const char *select_leaf_name(unsigned synth_leaf)
{
	if (synth_leaf == SELECT_LEAF_IDLE)
		return "[idle]";
	if (synth_leaf == SELECT_LEAF_UNSAMPLED)
		return "[on CPU, no sample]";
	if (synth_leaf == SELECT_LEAF_SUPPRESSED)
		return "[suppressed]";
	return synth_leaf ? wait_frame((enum wait_reason)synth_leaf) : NULL;
}

bool selecttags_is_needed(const struct select_spec *spec)
{
	return spec->reason || spec->object || spec->waker || spec->min_duration ||
	       spec->max_duration;
}

/* ---- reasons ---------------------------------------------------------------------------- */

static uint32_t idle_bits(void)
{
	uint32_t bits = 0;
	for (enum wait_reason r = WAIT_NONE; r < WAIT_NR; r++)
		if (wait_is_idle(r))
			bits |= 1u << r;
	return bits;
}

static uint32_t futex_bits(void)
{
	uint32_t bits = 0;
	for (enum wait_reason r = WAIT_NONE; r < WAIT_NR; r++)
		if (wait_is_of_futex(r))
			bits |= 1u << r;
	return bits;
}

static uint32_t bits_of(struct sv key)
{
	if (sv_eq_str(key, "idle"))
		return idle_bits();
	if (sv_eq_str(key, "active"))
		return ALL_REASONS & ~idle_bits();
	if (sv_eq_str(key, "futex"))
		return futex_bits();
	enum wait_reason r = wait_from_key(key);
	return r == WAIT_NONE ? 0 : 1u << r;
}

static int no_reason(struct sv item, struct err *err)
{
	CLEANUP(buf_release) struct buf keys = {0};
	for (enum wait_reason r = WAIT_ON_CPU; r < WAIT_NR; r++)
		buf_addf(&keys, "%s, ", wait_key(r));
	err_set(err, -EINVAL, "--reason: '%.*s' is not a wait reason", SV_ARGS(item));
	return err_hint(err, "reasons: %sand the groups idle, active, futex; !REASON excludes it",
			buf_str(&keys));
}

/* Parses a list: "lock,fsync" adds to an empty set, "!run_queue" removes from all reasons. */
static int parse_reasons(const char *text, uint32_t *ret_bits, struct err *err)
{
	uint32_t bits = text[0] == '!' ? ALL_REASONS : 0;
	for (struct sv rest = sv_from_str(text); rest.n;) {
		struct sv item = sv_trim(sv_split(&rest, ','));
		bool is_out = item.n && item.p[0] == '!';
		uint32_t some = bits_of(is_out ? sv_from_idx(item, 1) : item);
		if (!some)
			return no_reason(item, err);
		bits = is_out ? bits & ~some : bits | some;
	}
	*ret_bits = bits;
	return 0;
}

/* ---- durations, objects, wakers ---------------------------------------------------------- */

static int parse_duration(const char *option, const char *text, uint64_t *ret_ns, struct err *err)
{
	bool has_unit = text[strcspn(text, "dhmnsu")];
	if (clock_parse_duration(sv_from_str(text), ret_ns) && (has_unit || !*ret_ns))
		return 0;
	err_set(err, -EINVAL, "%s: '%s' is not a duration", option, text);
	return err_hint(err, "write a number with its unit: 500us, 10ms, 2s");
}

static unsigned class_of(uint64_t ns)
{
	return ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;
}

int selecttags_durations(const struct select_spec *spec, uint64_t *ret_min_ns, uint64_t *ret_max_ns,
			 struct err *err)
{
	uint64_t min_ns = 0;
	uint64_t max_ns = UINT64_MAX;
	if (spec->min_duration)
		TRY(parse_duration("--min-duration", spec->min_duration, &min_ns, err));
	if (spec->max_duration)
		TRY(parse_duration("--max-duration", spec->max_duration, &max_ns, err));
	if (min_ns > max_ns)
		return err_set(err, -EINVAL, "--min-duration is longer than --max-duration");
	*ret_min_ns = min_ns;
	*ret_max_ns = max_ns;
	return 0;
}

/* Selects the buckets that contain the limits as a whole. */
static int keep_durations(const struct select_spec *spec, struct tagplan *plan,
			  struct selection *sel, struct err *err)
{
	uint64_t min_ns;
	uint64_t max_ns;
	TRY(selecttags_durations(spec, &min_ns, &max_ns, err));
	unsigned first = class_of(min_ns);
	unsigned last = class_of(max_ns);
	sel->min_ns = spec->min_duration && min_ns ? 1ull << first : 0;
	sel->max_ns = spec->max_duration && last < 63 ? 2ull << last : 0;
	for (uint32_t i = 0; i < plan->p->tags.n; i++) {
		uint8_t k = plan->p->tags.p[i].log2_ns;
		if (k == LOG2_NONE || k < first || k > last)
			selecttags_reject(&plan->rejected[i], SELECT_OUT_DURATION);
	}
	return 0;
}

static int keep_objects(const char *wanted, struct tagplan *plan, struct err *err)
{
	CLEANUP(regex_free_p) struct regex *re = NULL;
	if (regex_new(&re, wanted, 0, err))
		return err_wrap(err, "--object");
	struct near near = {.wanted = wanted};
	size_t nr = 0;
	for (uint32_t i = 0; i < plan->p->tags.n; i++) {
		struct sv object = profile_sv(plan->p, plan->p->tags.p[i].object);
		bool is_in = object.n && regex_match(re, object);
		if (!is_in)
			selecttags_reject(&plan->rejected[i], SELECT_OUT_OBJECT);
		if (object.n)
			near_add(&near, profile_text(plan->p, plan->p->tags.p[i].object));
		nr += is_in;
	}
	if (nr)
		return 0;
	err_set(err, -ENOENT, "--object: no file, socket or lock matches '%s'", wanted);
	return near_hint(&near, err);
}

static int keep_wakers(struct arena *a, const char *wanted, struct tagplan *plan, struct err *err)
{
	const struct profile *p = plan->p;
	CLEANUP(regex_free_p) struct regex *re = NULL;
	struct match m;
	if (regex_new(&re, wanted, 0, err))
		return err_wrap(err, "--waker");
	TRY(match_functions_if_any(a, p, "--waker", wanted, &m, err));
	const uint8_t *has = match_stacks(a, p, &m);
	struct near near = {.wanted = wanted};
	size_t nr = 0;
	for (uint32_t i = 0; i < p->tags.n; i++) {
		const struct tag *tag = &p->tags.p[i];
		str_id comm = p->tasks.p[tag->other].comm;
		bool is_in = (tag->other && regex_match(re, profile_sv(p, comm))) ||
			     has[tag->other_stack];
		if (!is_in)
			selecttags_reject(&plan->rejected[i], SELECT_OUT_WAKER);
		if (tag->other)
			near_add(&near, profile_text(p, comm));
		nr += is_in;
	}
	if (nr)
		return 0;
	err_set(err, -ENOENT, "--waker: no waking thread or function matches '%s'", wanted);
	return near_hint(&near, err);
}

static bool has_reason(const struct tag *tag)
{
	return tag->reason != WAIT_NONE;
}

static bool has_duration(const struct tag *tag)
{
	return tag->log2_ns != LOG2_NONE;
}

/* Rows of blame are sums of parts of waits; only those of long waits have their duration. */
static bool has_no_duration(const struct tag *tag)
{
	(void)tag;
	return false;
}

/* Refuses a filter on what no row of the table has; an empty table passes. */
static int need(const struct selection *sel, const char *option, const char *what,
		bool (*has)(const struct tag *tag), struct err *err)
{
	const struct table *t = &sel->p->tables.p[sel->table];
	for (size_t i = 0; i < t->n; i++)
		if (has(&sel->p->tags.p[t->tag[i]]))
			return 0;
	if (!t->n)
		return 0;
	err_set(err, -ENODATA, "%s: event '%s' has no %s", option, sel->event, what);
	return err_hint(err, "waits have them: assay offcpu, assay cpu --offcpu");
}

int selecttags_compile(struct arena *a, const struct select_spec *spec, struct tagplan *plan,
		       struct selection *sel, struct err *err)
{
	const struct table *t = &sel->p->tables.p[sel->table];
	*plan = (struct tagplan){.p = sel->p, .reasons_shown = ALL_REASONS};
	if (!t->has_tags) {
		if (!selecttags_is_needed(spec))
			return 0;
		err_set(err, -EINVAL,
			"event '%s' has no wait reasons, durations, objects or wakers", sel->event);
		return err_hint(err, "waits have them: assay offcpu, assay cpu --offcpu");
	}
	plan->t = t;
	plan->is_blame = t->id == TABLE_BLAME;
	plan->is_of_waits = plan->is_blame || t->id == TABLE_OFF_CPU;
	plan->hides_idle = plan->is_of_waits && !spec->reason && !(spec->flags & SELECT_IDLE);
	sel->reasons = plan->reasons = reasons_new(a, sel->p);
	if (spec->reason) {
		TRY(parse_reasons(spec->reason, &plan->reasons_shown, err));
		TRY(need(sel, "--reason", "wait reasons", has_reason, err));
	}
	plan->rejected = arena_calloc(a, sel->p->tags.n, 1);
	if (spec->min_duration || spec->max_duration) {
		TRY(keep_durations(spec, plan, sel, err));
		TRY(need(sel, spec->min_duration ? "--min-duration" : "--max-duration", "durations",
			 plan->is_blame ? has_no_duration : has_duration, err));
	}
	if (spec->object)
		TRY(keep_objects(spec->object, plan, err));
	return spec->waker ? keep_wakers(a, spec->waker, plan, err) : 0;
}

/* Returns the reason of the wait; for blame, that of the waiter. */
static enum wait_reason reason_at(const struct tagplan *plan, stack_id stack, uint32_t tag_idx)
{
	struct tag tag = plan->p->tags.p[tag_idx];
	if (plan->is_blame && !tag.detail) /* of an earlier version: see model/blametag.h */
		tag.reason = WAIT_SYNC;
	return reason_of(plan->reasons, stack, &tag);
}

unsigned selecttags_test(const struct tagplan *plan, size_t i, enum wait_reason *ret_reason)
{
	*ret_reason = WAIT_NONE;
	if (!plan->t)
		return 0;
	uint32_t tag = plan->t->tag[i];
	enum wait_reason r = reason_at(plan, plan->t->stack[i], tag);
	*ret_reason = r;
	if (!(plan->reasons_shown >> r & 1))
		return 1 + SELECT_OUT_REASON;
	if (plan->rejected[tag])
		return plan->rejected[tag];
	return plan->hides_idle && wait_is_idle(r) ? 1 + SELECT_OUT_IDLE : 0;
}

/* ---- rows ------------------------------------------------------------------------------- */

enum { KEY_TAG, KEY_PHASE, KEY_TASK, KEY_STACK, KEY_NR };

struct keyed {
	uint32_t key[KEY_NR]; /* the last one is the most significant */
	uint32_t sample;
};

struct keyed_list {
	struct keyed *p;
	struct keyed *spare;
	size_t n;
};

#define DIGIT_BITS 11u
#define DIGITS     (1u << DIGIT_BITS)

static void sort_by_digit(struct keyed_list *l, unsigned field, unsigned shift)
{
	size_t next[DIGITS] = {0};
	for (size_t i = 0; i < l->n; i++)
		next[l->p[i].key[field] >> shift & (DIGITS - 1)]++;
	size_t at = 0;
	for (unsigned d = 0; d < DIGITS; d++) {
		size_t nr = next[d];
		next[d] = at;
		at += nr;
	}
	for (size_t i = 0; i < l->n; i++)
		l->spare[next[l->p[i].key[field] >> shift & (DIGITS - 1)]++] = l->p[i];
	struct keyed *sorted = l->spare;
	l->spare = l->p;
	l->p = sorted;
}

/*
 * By stack, task, phase, tag; equal ones keep their order. Digit by digit: a first page sorts its waits
 * seven times, and comparisons took a third of the time of `assay view`.
 */
static void sort_keys(struct keyed_list *l)
{
	for (unsigned field = 0; field < KEY_NR; field++) {
		uint32_t max = 0;
		for (size_t i = 0; i < l->n; i++)
			max = MAX(max, l->p[i].key[field]);
		for (unsigned shift = 0; shift < 32 && max >> shift; shift += DIGIT_BITS)
			sort_by_digit(l, field, shift);
	}
}

static void add_values(struct select_tagged *row, const struct table *t, size_t i)
{
	for (uint32_t c = 0; c < t->nr_columns; c++) {
		int64_t v = t->values[i * t->nr_columns + c];
		if (t->columns[c].is_level)
			row->values[c] = MAX(row->values[c], v);
		else if (__builtin_add_overflow(row->values[c], v, &row->values[c]))
			row->values[c] = INT64_MAX;
	}
}

/*
 * Adds to the row of the reason. Rows of one stack, task and phase are adjacent, one per reason, in
 * order of first occurrence.
 */
static void add_row(struct select_row *rows, size_t *nr, size_t *first,
		    const struct select_tagged *tagged, uint32_t weight_column)
{
	const struct select_row *last = *nr ? &rows[*nr - 1] : NULL;
	if (!last || last->stack != tagged->stack || last->task != tagged->task ||
	    last->phase != tagged->phase)
		*first = *nr;
	size_t at = *first;
	while (at < *nr && rows[at].synth_leaf != tagged->reason)
		at++;
	if (at == *nr)
		rows[(*nr)++] = (struct select_row){.stack = tagged->stack,
						    .task = tagged->task,
						    .phase = tagged->phase & 0xffffff,
						    .synth_leaf = tagged->reason};
	rows[at].nr_samples += (uint64_t)MAX(tagged->values[0], 0);
	rows[at].weight += (uint64_t)MAX(tagged->values[weight_column], 0);
}

/* True for functions of the scheduler, which are on top of every wait and carry no information. */
static bool is_scheduler(struct sv name)
{
	static const char *const names[] = {
		"__traceiter_sched_switch",
		"__schedule",
		"schedule",
		"preempt_schedule_common",
		"schedule_preempt_disabled",
		"__bpf_trace_sched_switch",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (sv_eq_str(name, names[i]))
			return true;
	return false;
}

/* @memo by function: 0: not checked yet, else 1 + result; NULL: none. */
static stack_id without_scheduler(const struct profile *p, uint8_t *memo, stack_id stack)
{
	for (; stack; stack = p->stacks.p[stack].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[stack].loc];
		if (!(l->flags & LOCATION_KERNEL) || l->nr_frames != 1)
			break;
		func_id func = p->frames.p[l->first_frame].func;
		bool is_known = memo && memo[func];
		bool is_skipped = is_known ? memo[func] > 1
					   : is_scheduler(profile_sv(p, p->functions.p[func].name));
		if (memo)
			memo[func] = 1 + is_skipped;
		if (!is_skipped)
			break;
	}
	return stack;
}

stack_id select_without_scheduler(const struct profile *p, stack_id stack)
{
	return without_scheduler(p, NULL, stack);
}

struct selecttags_stacks selecttags_stacks(const struct tagplan *plan)
{
	struct selecttags_stacks s = {.p = plan->p,
				      .has_scheduler = plan->is_of_waits ||
						       (plan->t && plan->t->id == TABLE_SPAN_TIME)};
	if (s.has_scheduler)
		s.memo = xcalloc(s.p->functions.n + 1, 1);
	return s;
}

stack_id selecttags_stack(struct selecttags_stacks *s, stack_id stack)
{
	return s->has_scheduler ? without_scheduler(s->p, s->memo, stack) : stack;
}

void selecttags_stacks_release(struct selecttags_stacks *s)
{
	free(s->memo);
}

void selecttags_aggregate(struct arena *a, const struct tagplan *plan, struct selection *sel,
			  const uint32_t *samples, size_t n, const struct row_filter *row_filter)
{
	const struct table *t = plan->t;
	struct selecttags_stacks stacks = selecttags_stacks(plan);
	CLEANUP(free_p) struct keyed *keys = xreallocarray(NULL, 2 * n + 1, sizeof(*keys));
	struct keyed_list list = {.p = keys, .spare = keys + n, .n = n};
	for (size_t k = 0; k < n; k++) {
		uint32_t i = samples[k];
		stack_id stack = selecttags_stack(&stacks, t->stack[i]);
		keys[k] = (struct keyed){.key = {[KEY_STACK] = stack,
						 [KEY_TASK] = t->task[i],
						 [KEY_PHASE] = select_phase(row_filter, i),
						 [KEY_TAG] = t->tag[i]},
					 .sample = i};
	}
	selecttags_stacks_release(&stacks);
	sort_keys(&list);
	VEC(struct select_tagged) tagged = {0};
	for (size_t k = 0; k < n; k++) {
		const struct keyed *at = &list.p[k];
		const uint32_t *key = at->key;
		struct select_tagged *row = tagged.n ? vec_last(&tagged) : NULL;
		if (!row || row->stack != key[KEY_STACK] || row->task != key[KEY_TASK] ||
		    row->phase != key[KEY_PHASE] || row->tag != key[KEY_TAG]) {
			row = vec_add(&tagged);
			row->stack = key[KEY_STACK];
			row->task = key[KEY_TASK];
			row->phase = key[KEY_PHASE];
			row->tag = key[KEY_TAG];
			row->reason = reason_at(plan, row->stack, row->tag);
		}
		add_values(row, t, at->sample);
	}
	sel->nr_tagged = tagged.n;
	sel->tagged = arena_dup(a, tagged.p, tagged.n * sizeof(*tagged.p));
	sel->rows = arena_alloc(a, (tagged.n + 1) * sizeof(*sel->rows));
	size_t first = 0;
	for (size_t k = 0; k < tagged.n; k++)
		add_row(sel->rows, &sel->nr_rows, &first, &tagged.p[k], t->weight_column);
	vec_release(&tagged);
}
