/* Counts of events by name; see eventsum.h. Functions and stacks: eventplaces.c. */
#include "base/base.h"
#include "analyze/io/eventsum.h"

#include <stdlib.h>

#include "analyze/io/eventplaces.h"
#include "analyze/select/window.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/text/num.h"

#define OUTCOMES_MAX 64
#define ABSENT_NAMES 24 /* named in a note */

struct outcome {
	str_id text; /* 0: outcomes are not recorded */
	uint64_t nr;
	uint64_t amount;
};

struct event_count {
	uint32_t table;
	const char *name;
	bool has_bytes;
	uint64_t nr;
	uint64_t nr_placed; /* hits with a stack */
	uint64_t nr_out;    /* excluded by filters */
	uint64_t amount;
	struct outcome outcomes[OUTCOMES_MAX];
	size_t nr_outcomes;
};

struct summary {
	const struct profile *p;
	struct event_count *events;
	size_t n;
	double seconds; /* 0 = unknown */
};

/* ---- counting ----------------------------------------------------------------------------- */

static void add_outcome(struct event_count *e, str_id text, uint64_t nr, uint64_t amount)
{
	size_t i = 0;
	while (i < e->nr_outcomes && e->outcomes[i].text != text)
		i++;
	if (i == OUTCOMES_MAX)
		i--; /* rare outcomes share the last row */
	else if (i == e->nr_outcomes)
		e->outcomes[e->nr_outcomes++] = (struct outcome){.text = text};
	e->outcomes[i].nr += nr;
	e->outcomes[i].amount += amount;
}

static void count_rows(const struct profile *p, struct event_count *e, const struct row_filter *s)
{
	const struct table *t = &p->tables.p[e->table];
	for (size_t i = 0; i < t->n; i++) {
		const int64_t *v = &t->values[i * t->nr_columns];
		uint64_t nr = (uint64_t)MAX(v[0], (int64_t)0);
		if (!select_has(s, i)) {
			e->nr_out += nr;
			continue;
		}
		uint64_t amount = t->nr_columns > 1 ? (uint64_t)MAX(v[1], (int64_t)0) : 0;
		e->nr += nr;
		e->nr_placed += t->stack[i] ? nr : 0;
		e->amount += amount;
		add_outcome(e, p->tags.p[t->tag[i]].detail, nr, amount);
	}
}

/* An event that could not be counted has an empty table; its count is not 0 but unknown. */
static bool is_refused(const struct profile *p, str_id event)
{
	const char *refused = profile_get_fact(p, FACT_EVENTS_REFUSED);
	struct sv rest = sv_from_str(refused ? refused : "");
	while (rest.n)
		if (sv_eq_str(sv_trim(sv_split(&rest, ',')), profile_text(p, event)))
			return true;
	return false;
}

static int count_all(struct summary *s, struct arena *a, const struct select_spec *spec,
		     struct err *err)
{
	const struct profile *p = s->p;
	uint32_t only = 0;
	if (spec->event)
		TRY(select_table(p, spec->event, &only, err));
	s->events = arena_calloc(a, p->tables.n + 1, sizeof(*s->events));
	for (uint32_t t = 0; t < p->tables.n; t++) {
		struct row_filter *row_filter;
		if (p->tables.p[t].id != TABLE_EVENTS || (spec->event && t != only) ||
		    is_refused(p, p->tables.p[t].event))
			continue;
		struct event_count *e = &s->events[s->n++];
		const struct table *table = &p->tables.p[t];
		e->table = t;
		e->name = profile_text(p, table->event);
		e->has_bytes = table->nr_columns > 1 && table->columns[1].unit == UNIT_BYTES;
		TRY(select_compile(a, p, t, spec, &row_filter, err));
		count_rows(p, e, row_filter);
	}
	return 0;
}

static const struct event_count *find(const struct summary *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->events[i].name, name))
			return &s->events[i];
	return NULL;
}

/* ---- in words ----------------------------------------------------------------------------- */

/*
 * @outcomes: "WAIT,WAIT_BITSET"; NULL: all; NOT_REPORTED: all, if outcomes were not recorded
 * (counted without BPF programs).
 */
#define NOT_REPORTED ""
struct source {
	const char *event;
	const char *outcomes;
};

#define SOURCES_MAX 4

static const struct {
	const char *what;
	const char *note;
	struct source from[SOURCES_MAX];
} lines[] = {
	{"futex waits",
	 "",
	 {{"syscalls:sys_enter_futex", "WAIT,WAIT_BITSET,WAIT_REQUEUE_PI,LOCK_PI,LOCK_PI2"},
	  {"syscalls:sys_enter_futex_wait", NULL},
	  {"syscalls:sys_enter_futex_waitv", NULL}}},
	{"futex wakes",
	 "wake-ups, not waits",
	 {{"syscalls:sys_enter_futex",
	   "WAKE,WAKE_BITSET,WAKE_OP,UNLOCK_PI,REQUEUE,CMP_REQUEUE,CMP_REQUEUE_PI"},
	  {"syscalls:sys_enter_futex_wake", NULL}}},
	{"futex returns, success",
	 "woken, or wake call done",
	 {{"syscalls:sys_exit_futex", "ok"},
	  {"syscalls:sys_exit_futex_wait", "ok"},
	  {"syscalls:sys_exit_futex_waitv", "ok"},
	  {"syscalls:sys_exit_futex_wake", "ok"}}},
	{"futex returns, EAGAIN",
	 "did not wait: the futex word had changed",
	 {{"syscalls:sys_exit_futex", "EAGAIN"},
	  {"syscalls:sys_exit_futex_wait", "EAGAIN"},
	  {"syscalls:sys_exit_futex_waitv", "EAGAIN"}}},
	{"futex returns, ETIMEDOUT",
	 "timed out",
	 {{"syscalls:sys_exit_futex", "ETIMEDOUT"},
	  {"syscalls:sys_exit_futex_wait", "ETIMEDOUT"},
	  {"syscalls:sys_exit_futex_waitv", "ETIMEDOUT"}}},
	{"futex returns, interrupted",
	 "by a signal",
	 {{"syscalls:sys_exit_futex", "EINTR,interrupted"},
	  {"syscalls:sys_exit_futex_wait", "EINTR,interrupted"},
	  {"syscalls:sys_exit_futex_waitv", "EINTR,interrupted"}}},
	{"futex calls", "waits and wakes together", {{"syscalls:sys_enter_futex", NOT_REPORTED}}},
	{"futex returns",
	 "return values were not recorded",
	 {{"syscalls:sys_exit_futex", NOT_REPORTED}}},
	{"context switches, blocked",
	 "voluntary: the thread blocked",
	 {{"sched:sched_switch", "blocked"}}},
	{"context switches, preempted",
	 "involuntary: the thread was still runnable",
	 {{"sched:sched_switch", "preempted"}}},
	{"context switches",
	 "",
	 {{"context-switches", NULL}, {"sched:sched_switch", NOT_REPORTED}}},
	{"CPU migrations", "", {{"cpu-migrations", NULL}}},
	{"block requests issued", "whole machine", {{"block:block_rq_issue", NULL}}},
	{"block requests completed",
	 "whole machine; includes flushes, which have no issue event",
	 {{"block:block_rq_complete", NULL}}},
	{"page faults, major", "page read from disk", {{"major-faults", NULL}}},
	{"page faults, minor", "page was in memory, or new", {{"minor-faults", NULL}}},
	{"page faults", "", {{"page-faults", NULL}}},
	{"direct reclaim",
	 "the thread had to reclaim memory; for cgroup limits: assay faults",
	 {{"vmscan:mm_vmscan_direct_reclaim_begin", NULL}}},
	{"cgroup reclaim",
	 "at its cgroup's memory limit",
	 {{"vmscan:mm_vmscan_memcg_reclaim_begin", NULL}}},
	{"NUMA node reclaim", "", {{"vmscan:mm_vmscan_node_reclaim_begin", NULL}}},
	{"kswapd wakes",
	 "whole machine, not necessarily because of this program",
	 {{"vmscan:mm_vmscan_kswapd_wake", NULL}}},
};

static const char *const io_calls[] = {
	"read",   "write",     "pread64", "pwrite64",        "readv",  "writev",
	"preadv", "pwritev",   "preadv2", "pwritev2",        "sendto", "recvfrom",
	"fsync",  "fdatasync", "msync",   "sync_file_range",
};

static bool is_among(struct sv word, const char *list)
{
	struct sv rest = sv_from_str(list);
	while (rest.n)
		if (sv_eq(sv_split(&rest, ','), word))
			return true;
	return false;
}

static bool is_distinct(const struct event_count *e)
{
	return !e->nr || e->nr_outcomes > 1 || e->outcomes[0].text;
}

/* True if the event was counted, with its outcomes if they are needed. */
static bool has_source(const struct summary *s, const struct source *from)
{
	const struct event_count *e = find(s, from->event);
	if (!e || !from->outcomes)
		return e != NULL;
	return is_distinct(e) == (from->outcomes[0] != 0);
}

/* True if the event was counted, but without the outcomes that are needed. */
static bool lacks_outcomes(const struct summary *s, const struct source *from)
{
	const struct event_count *e = find(s, from->event);
	return e && from->outcomes && from->outcomes[0] && !is_distinct(e);
}

static struct outcome sum_source(const struct summary *s, const struct source *from)
{
	struct outcome sum = {0};
	const struct event_count *e = find(s, from->event);
	for (size_t i = 0; e && has_source(s, from) && i < e->nr_outcomes; i++) {
		const struct outcome *o = &e->outcomes[i];
		if (from->outcomes && from->outcomes[0] &&
		    !is_among(profile_sv(s->p, o->text), from->outcomes))
			continue;
		sum.nr += o->nr;
		sum.amount += e->has_bytes ? o->amount : 0;
	}
	return sum;
}

static const struct report_column summary_columns[] = {
	{"what", "events", CELL_TEXT, NULL},
	{"count", "count", CELL_COUNT, "exact"},
	{"per_second", "per second", CELL_FLOAT, NULL},
	{"bytes", "bytes", CELL_BYTES, "0 if the event has no size"},
	{"mean_bytes", "mean size", CELL_BYTES, NULL},
	{"note", "note", CELL_TEXT, .is_prose = true},
};

static void add_line(struct report *r, struct report_table *t, const struct summary *s,
		     const char *what, struct outcome sum, const char *note)
{
	union cell cells[] = {{.text = what},
			      {.u = sum.nr},
			      {.d = s->seconds > 0 ? (double)sum.nr / s->seconds : 0},
			      {.u = sum.amount},
			      {.u = sum.nr ? sum.amount / sum.nr : 0},
			      {.text = note}};
	report_add_row(r, t, cells);
}

/* Calls are counted at entry, bytes at exit: requested bytes are not those transferred. */
static void add_calls(struct report *r, struct report_table *t, const struct summary *s)
{
	for (size_t i = 0; i < ARRAY_LEN(io_calls); i++) {
		char *enter = arena_fmt(&r->arena, "syscalls:sys_enter_%s", io_calls[i]);
		char *leave = arena_fmt(&r->arena, "syscalls:sys_exit_%s", io_calls[i]);
		bool has_enter = find(s, enter) != NULL;
		bool has_exit = find(s, leave) != NULL;
		if (!has_enter && !has_exit)
			continue;
		struct outcome begun = sum_source(s, &(struct source){enter, NULL});
		struct outcome ended = sum_source(s, &(struct source){leave, NULL});
		struct outcome failed = ended;
		failed.nr -= sum_source(s, &(struct source){leave, "ok,[no room]"}).nr;
		struct outcome sum = has_enter ? begun : ended;
		CLEANUP(buf_release) struct buf note = {0};
		if (has_exit)
			sum.amount = ended.amount;
		else if (sum.amount)
			buf_add_str(&note, "bytes requested");
		if (failed.nr && is_distinct(find(s, leave)))
			buf_addf(&note, "%s%s failed", note.n ? ", " : "", num_count(failed.nr).s);
		add_line(r, t, s, arena_fmt(&r->arena, "%s calls", io_calls[i]), sum,
			 buf_str(&note));
	}
}

/* Kernel counters of the target only see block requests that its own threads issue. */
static const char *note_of(const struct summary *s, const char *note)
{
	bool has_counters =
		profile_get_fact(s->p, FACT_ACCURACY) != NULL; /* counted by kernel counters */
	if (!has_counters || strncmp(note, "whole machine", 13) != 0)
		return note;
	return "in threads of the target only";
}

static void add_summary(struct report *r, const struct summary *s)
{
	struct report_table *t = report_add_table(r, "summary", "event counts", summary_columns,
						  ARRAY_LEN(summary_columns));
	bool has_calls = false;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct outcome sum = {0};
		bool is_counted = false;
		bool is_vague = false;
		if (!has_calls && !strncmp(lines[i].what, "context", 7)) {
			add_calls(r, t, s);
			has_calls = true;
		}
		for (size_t k = 0; k < SOURCES_MAX && lines[i].from[k].event; k++) {
			struct outcome one = sum_source(s, &lines[i].from[k]);
			is_counted |= has_source(s, &lines[i].from[k]);
			is_vague |= lacks_outcomes(s, &lines[i].from[k]);
			sum.nr += one.nr;
			sum.amount += one.amount;
		}
		if (is_counted && !is_vague)
			add_line(r, t, s, lines[i].what, sum, note_of(s, lines[i].note));
	}
	if (!t->nr_rows)
		r->tables.n--; /* events without a summary row; the next table has all events */
}

/* ---- by event ----------------------------------------------------------------------------- */

static const struct report_column event_columns[] = {
	{"event", "event", CELL_TEXT, NULL},
	{"outcome", "outcome", CELL_TEXT, "return value or class of the hits; empty: all hits"},
	{"count", "count", CELL_COUNT, "exact"},
	{"pct", "%", CELL_PERCENT, "of the event"},
	{"per_second", "per second", CELL_FLOAT, NULL},
	{"bytes", "bytes", CELL_BYTES, NULL},
};

static int by_count(const void *a, const void *b)
{
	const struct outcome *x = a;
	const struct outcome *y = b;
	return COMPARE(y->nr, x->nr) ?: COMPARE(x->text, y->text);
}

static void add_event_row(struct report *r, struct report_table *t, const struct summary *s,
			  const struct event_count *e, const char *text, uint64_t nr,
			  uint64_t amount)
{
	union cell cells[] = {{.text = e->name},
			      {.text = text},
			      {.u = nr},
			      {.d = view_pct(nr, e->nr)},
			      {.d = s->seconds > 0 ? (double)nr / s->seconds : 0},
			      {.u = e->has_bytes ? amount : 0}};
	report_add_row(r, t, cells);
}

static void add_events(struct report *r, const struct summary *s)
{
	struct report_table *t =
		report_add_table(r, "events", "events", event_columns, ARRAY_LEN(event_columns));
	t->is_detail = r->tables.n > 1; /* the summary has the same counts */
	for (size_t i = 0; i < s->n; i++) {
		struct event_count *e = &s->events[i];
		if (!e->nr)
			continue; /* named in a note */
		bool is_split = e->nr_outcomes > 1 || (e->nr_outcomes && e->outcomes[0].text);
		add_event_row(r, t, s, e, "", e->nr, e->amount);
		if (!is_split)
			continue;
		qsort(e->outcomes, e->nr_outcomes, sizeof(*e->outcomes), by_count);
		for (size_t k = 0; k < e->nr_outcomes; k++) {
			const struct outcome *o = &e->outcomes[k];
			const char *text = o->text ? profile_text(s->p, o->text) : "other";
			add_event_row(r, t, s, e, text, o->nr, o->amount);
		}
	}
}

/* ---- the page ----------------------------------------------------------------------------- */

static int find_seconds(struct summary *s, const struct select_spec *spec, struct err *err)
{
	struct window all = window_of_profile(s->p);
	struct window w = all;
	if (spec->time && window_parse(s->p, spec->time, &w, err))
		return err_wrap(err, "--time");
	(void)window_widen(s->p, &w);
	w = (struct window){MAX(w.from_ns, all.from_ns), MIN(w.to_ns, all.to_ns)};
	s->seconds = (double)window_recorded_ns(s->p, w) / NS_PER_SEC;
	return 0;
}

static uint64_t count_of(const struct summary *s, const char *event)
{
	const struct event_count *e = find(s, event);
	return e ? e->nr : 0;
}

static void note_absent(struct report *r, const struct summary *s)
{
	CLEANUP(buf_release) struct buf names = {0};
	size_t nr = 0;
	for (size_t i = 0; i < s->n; i++)
		if (!s->events[i].nr && nr++ < ABSENT_NAMES)
			buf_addf(&names, "%s%s", names.n ? ", " : "", s->events[i].name);
	if (nr > ABSENT_NAMES)
		buf_addf(&names, " and %zu more", nr - ABSENT_NAMES);
	if (names.n)
		report_detail(r, "events that did not occur: %s", buf_str(&names));
}

/* Notes on common misreadings of these counts. */
static void add_notes(struct report *r, const struct summary *s)
{
	if (count_of(s, "syscalls:sys_enter_futex") || count_of(s, "syscalls:sys_exit_futex"))
		report_detail(r, "futex calls are not lock contention: idle threads park on "
				 "futexes, too; `assay offcpu` separates lock waits from parking, "
				 "by time");
	if (count_of(s, "major-faults"))
		report_detail(r, "a major fault may read several pages, and minor/(minor+major) "
				 "is not a hit rate: mapped pages do not fault");
	if (count_of(s, "block:block_rq_complete"))
		report_detail(r, "block requests complete in interrupts, so they have no stack; "
				 "`assay io` shows their latency, process and file");
}

static void add_hints(struct report *r, const struct summary *s, const char *input)
{
	const struct event_count *most = NULL;
	for (size_t i = 0; i < s->n; i++)
		if (!most || s->events[i].nr_placed > most->nr_placed)
			most = &s->events[i];
	if (!input || !most || !most->nr_placed)
		return;
	report_hint(r, &(struct report_hint){HINT_FLAME, input, {{HINT_EVENT, most->name}}});
	report_hint(r, &(struct report_hint){
			       HINT_REPORT, input, {{HINT_EVENT, most->name}, {HINT_TREE, NULL}}});
}

static void begin(struct report *r, const struct summary *s)
{
	const struct profile *p = s->p;
	r->title = "assay events";
	r->noun = "events";
	r->losses = p->losses;
	report_facts(r, p);
	uint64_t nr_out = 0;
	for (size_t i = 0; i < s->n; i++) {
		r->nr_samples += s->events[i].nr;
		nr_out += s->events[i].nr_out;
	}
	r->total = r->nr_samples;
	if (nr_out)
		report_note(r,
			    "shown: %s of %s; those without a call stack or thread pass no "
			    "filter on it",
			    num_count(r->nr_samples).s,
			    num_noun(r->nr_samples + nr_out, "events").s);
	r->unit = UNIT_COUNT;
	view_note_incomplete(r, p);
}

static void add_answer(struct report *r, const struct summary *s)
{
	const struct event_count *most = NULL;
	for (size_t i = 0; i < s->n; i++)
		if (!most || s->events[i].nr > most->nr)
			most = &s->events[i];
	if (!most || !most->nr)
		return;
	const char *rate =
		s->seconds > 0
			? arena_fmt(&r->arena, ", %s a second",
				    num_count((uint64_t)((double)most->nr / s->seconds + 0.5)).s)
			: "";
	report_finding(r, "most frequent: %s, %s%s (%s %% of the events)", most->name,
		       num_noun(most->nr, "times").s, rate,
		       num_double(view_pct(most->nr, r->nr_samples), 0).s);
}

int eventsum_report(struct report *r, const struct profile *p, const struct select_spec *spec,
		    const char *input, const struct view_limits *limits, unsigned flags,
		    struct err *err)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	struct summary s = {.p = p};
	TRY(find_seconds(&s, spec, err));
	TRY(count_all(&s, &scratch, spec, err));
	const char **seen = arena_calloc(&scratch, s.n + 1, sizeof(const char *));
	struct event_places places = {
		.events = seen, .limits = limits, .has_stacks = flags & EVENTSUM_STACKS};
	for (size_t i = 0; i < s.n; i++)
		if (s.events[i].nr)
			seen[places.n++] = s.events[i].name;
	begin(r, &s);
	add_summary(r, &s);
	add_events(r, &s);
	add_answer(r, &s);
	TRY(event_places_report(r, p, spec, &places, err));
	add_notes(r, &s);
	note_absent(r, &s);
	add_hints(r, &s, input);
	return 0;
}
