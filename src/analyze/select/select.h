/*
 * Selects and aggregates rows of a profile: the first step of every analysis.
 *
 * A spec has the user's filters as text. select_run compiles it once: each regex is tried once per
 * name, not per sample, and its result is propagated over the prefix tree of stacks, so that a
 * sample costs two byte tests and one hash lookup. The remaining samples are aggregated by (stack,
 * task, phase). All later steps work on these rows.
 *
 * A selection lives in the caller's arena and borrows the profile.
 */
#ifndef ASSAY_ANALYZE_SELECT_SELECT_H
#define ASSAY_ANALYZE_SELECT_SELECT_H

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "model/profile.h"

enum select_mode {
	SELECT_ANY = 0,
	SELECT_USER,   /* samples taken in user mode */
	SELECT_KERNEL, /* samples taken in kernel mode */
};

/* A phase: samples below a frame (the rule nearest to the root wins), or a window of time. */
struct phase_rule {
	const char *name;
	const char *rule; /* regex on function names, or "@FROM..TO" */
};

/* Options for profiles of memory (heapweights.h); ignored for others. NULL: the default. */
struct heap_spec {
	const char *weight;     /* "allocated", "live", "leaked", "peak" ... */
	const char *at;         /* time since the start of the capture: "12s" */
	const char *older_than; /* age from which live blocks count as leaked: "30s" */
	const char *suppress;   /* text of suppressions (suppress.h), not the file's name */
};

/* What the user asked for. Regexes are PCRE2, searched anywhere in the name. NULL: no filter. */
struct select_spec {
	const char *event;  /* a table's name; NULL: the first one with samples */
	const char *time;   /* "2..5" s, "500ms..2s", "..3s", "10%-20%": from the capture's start */
	const char *thread; /* regex on the thread's name, or a tid */
	const char *pid;    /* process ids: "4242" or "4242,4243" */
	const char *comm;   /* regex on the process's name (its main thread's) */
	const char *module; /* regex: the sample's leaf is in this module */
	const char *function; /* regex: some frame of the stack matches */
	const char *exclude;  /* regex: no frame of the stack matches */
	const char *within;   /* regex: stacks start at the outermost match */
	const char *phase;    /* name of one of the rules, or "<other>" */
	/* For tables with tags; -EINVAL for others. */
	const char *reason; /* keys of model/wait.h, "idle", "active": "lock,fsync", "!run_queue" */
	const char *object; /* regex on the file, socket, lock or device */
	const char *waker;  /* regex on the other thread's name or a function of its stack */
	const char *min_duration; /* "10ms"; rounded down to a power of two */
	const char *max_duration;
	struct heap_spec heap;
	enum select_mode mode;
	unsigned flags; /* enum select_flags */
	const struct phase_rule *rules;
	size_t nr_rules;
};

/* What the filters of a spec leave: decides which numbers a page can still make. */
enum select_scope {
	SELECT_ALL,     /* everything; idle waits may be hidden */
	SELECT_THREADS, /* whole threads, in a time window: their total time is known */
	SELECT_ROWS,    /* some samples or waits of threads: shares of thread time are not */
};

enum select_scope select_scope(const struct select_spec *spec);

enum select_flags {
	/* Rows in time order; only equal neighbours are merged. */
	SELECT_TIME_ORDER = 1 << 0,
	/* Includes idle waits. Without it they are excluded unless spec.reason names them. */
	SELECT_IDLE = 1 << 1,
	/*
	 * Memory: stacks end at the allocating function, allocator frames removed (heapframes.h).
	 */
	SELECT_CUT_STACKS = 1 << 2,
	/* A row for each row of the table, in its order; select_row.source says which. */
	SELECT_SINGLE_ROWS = 1 << 3,
	/* The time window is widened to whole seconds, as it is for tables stored by second. */
	SELECT_WHOLE_SECONDS = 1 << 4,
};

/* Which filter excluded a sample; the first one that applies is counted. */
enum select_out {
	SELECT_OUT_TIME,
	SELECT_OUT_TASK, /* thread, pid, comm */
	SELECT_OUT_MODE,
	SELECT_OUT_MODULE,
	SELECT_OUT_FUNCTION,
	SELECT_OUT_EXCLUDE,
	SELECT_OUT_WITHIN,
	SELECT_OUT_PHASE,
	SELECT_OUT_REASON,
	SELECT_OUT_DURATION,
	SELECT_OUT_OBJECT,
	SELECT_OUT_WAKER,
	SELECT_OUT_IDLE,
	SELECT_OUT_NR,
};

/*
 * Synthetic leaf frames of rows, beside those of wait reasons (enum wait_reason; WAIT_NONE: none).
 */
enum select_leaf {
	SELECT_LEAF_IDLE = WAIT_NR, /* "[idle]": all idle waits of a thread */
	SELECT_LEAF_UNSAMPLED,      /* "[on CPU, no sample]" */
	SELECT_LEAF_SUPPRESSED,     /* "[suppressed]": known leaks */
};

/* Returns the name of a synthetic leaf: "[lock]", "[idle]"; NULL for 0 and for on-CPU rows. */
const char *select_leaf_name(unsigned synth_leaf);

struct select_row {
	stack_id stack; /* leaf node; frames beyond selection.roots are not shown */
	task_id task;
	uint32_t phase : 24; /* index into rules, or nr_rules for "<other>" */
	uint32_t
		synth_leaf : 8; /* enum wait_reason or enum select_leaf; 0: the leaf is a function */
	uint32_t source;        /* with SELECT_SINGLE_ROWS: index of the row in its table */
	uint64_t nr_samples;
	uint64_t weight; /* in the selection's unit */
};

/* Compares the keys of rows; 0: the rows are to be merged. */
static inline int select_row_compare(const void *x, const void *y)
{
	const struct select_row *a = x;
	const struct select_row *b = y;
	return COMPARE(a->stack, b->stack) ?: COMPARE(a->task, b->task)
	       ?: COMPARE(a->phase, b->phase) ?: COMPARE(a->synth_leaf, b->synth_leaf);
}

/* Row of a table with tags: aggregated by (stack, task, phase, tag). */
struct select_tagged {
	stack_id stack;
	task_id task;
	uint32_t phase;
	uint32_t tag;                      /* index into p->tags */
	enum wait_reason reason;           /* the tag's; futex waits classified (reason.h) */
	int64_t values[TABLE_COLUMNS_MAX]; /* sums; for columns that are levels the maximum */
};

struct selection {
	const struct profile *p;
	uint32_t table;   /* index into p->tables */
	enum table_id id; /* of the event; may be a derived one without a table: thread time */
	struct select_row *rows;
	size_t nr_rows;               /* sorted by stack; with SELECT_TIME_ORDER by time */
	struct select_tagged *tagged; /* sorted by stack; NULL for tables without tags */
	size_t nr_tagged;
	struct reasons *reasons; /* tables with tags: the classification of reason.h; else NULL */
	uint64_t nr_samples;
	uint64_t weight;
	/*
	 * Samples whose periods vary: as many of equal weight would be as exact, as a share of
	 * nr_samples (Kish's effective sample size, (sum w)^2 / sum w^2). 0: all weigh the same.
	 */
	double effective;
	bool is_counted; /* the table has every event (waits; perf record -c 1): nothing is sampled */
	enum unit unit;
	const char *event;
	const char *noun;       /* plural noun for rows ("waits"); NULL: that of the table */
	const char *count_name; /* noun for weights of UNIT_COUNT; NULL: that of the table */
	/* Why there are no rows, a sentence; NULL: not known. */
	const char *why_empty;
	/*
	 * Per location: index of the frame at which stacks that end there were cut
	 * (SELECT_CUT_STACKS). NULL: the innermost frame.
	 */
	const uint16_t *leaf_frames;
	/* By row: variance of its weight, in units squared; NULL: exact, or not known. */
	const double *variance;
	uint64_t first_ns; /* the time window, on the profile's clock; both 0: no timestamps */
	uint64_t last_ns;
	bool is_widened;                /* to the whole seconds that the given window touches */
	uint64_t nr_out[SELECT_OUT_NR]; /* samples excluded, by filter */
	uint64_t weight_out;            /* their weight */
	uint64_t weight_idle;           /* part of weight_out: idle waits (no SELECT_IDLE) */
	/* Durations selected, [min, max), after rounding to powers of two; 0: no limit. */
	uint64_t min_ns;
	uint64_t max_ns;
	/* --within: per stack node the node of the outermost match, 0: none. NULL: whole stacks. */
	const stack_id *roots;
	const uint16_t *root_frames; /* per location: index of the outermost matching frame */
	const struct phase_rule *rules;
	size_t nr_rules;
};

/*
 * Makes the selection. -EINVAL: the spec is invalid (regex, event, phase, time window). -ENOENT: a
 * filter matches nothing; the hint has similar names. An empty profile is not an error.
 */
int select_run(struct arena *a, const struct profile *p, const struct select_spec *spec,
	       struct selection *ret_sel, struct err *err);

/*
 * Compiled filters, to test samples one by one without aggregating them. select_compile takes the
 * table and ignores spec->event. A row_filter lives in the arena and borrows the profile.
 *
 *	select_compile(&arena, p, t, &spec, &filter, &err);
 *	for (size_t i = 0; i < p->tables.p[t].n; i++)
 *		if (select_has(filter, i)) ...
 */
struct row_filter;
int select_compile(struct arena *a, const struct profile *p, uint32_t table,
		   const struct select_spec *spec, struct row_filter **ret_s, struct err *err);
bool select_has(const struct row_filter *s, size_t sample_idx);
/* Returns 0 if the sample is selected, else 1 + enum select_out. */
unsigned select_verdict(const struct row_filter *s, size_t sample_idx);
/*
 * Compiles the filters as select_compile does, and makes a selection of that table with time
 * window, roots and rules, but without rows and counts: the caller adds the rows.
 */
int select_open(struct arena *a, const struct profile *p, uint32_t table,
		const struct select_spec *spec, struct selection *ret_sel,
		struct row_filter **ret_s, struct err *err);
/* Returns the index of the sample's phase rule, or nr_rules for "<other>". */
uint32_t select_phase(const struct row_filter *s, size_t sample_idx);
/* Finds the table of an event; NULL: CPU samples before waits before others, of these
 * the first that has samples. -ENOENT: there is none. */
int select_table(const struct profile *p, const char *event, uint32_t *ret_table, struct err *err);

/* Returns the plural noun for rows: "samples", "waits", "calls". */
const char *select_noun(const struct selection *s);
/* Returns a phrase for the user: "outside the time window". */
const char *select_out_text(enum select_out out);

/*
 * Iterates over the frames of a stack from the leaf to the selection's root, inlined functions
 * included:
 *
 *	struct frame_ref f;
 *	for (struct frame_it it = select_frames(sel, row->stack); frame_next(&it, &f);)
 */
struct frame_it {
	const struct profile *p;
	stack_id node;
	stack_id stop;       /* last node */
	uint32_t stop_frame; /* last frame of it */
	uint32_t i;
};

struct frame_ref {
	loc_id loc;
	uint32_t frame_idx; /* into p->frames, or UINT32_MAX for an unsymbolized location */
};

/* Number of frames of a node that the selection shows, innermost first; 0: beyond its root. */
static inline uint32_t select_nr_frames(const struct selection *s, stack_id node)
{
	loc_id loc = s->p->stacks.p[node].loc;
	if (s->roots && s->roots[node] == node)
		return s->root_frames[loc] + 1u;
	return s->roots && !s->roots[node] ? 0 : MAX(s->p->locations.p[loc].nr_frames, 1u);
}

struct frame_it select_frames(const struct selection *s, stack_id stack);

/* Returns the stack without the scheduler's own frames at its leaf, which every wait has. */
stack_id select_without_scheduler(const struct profile *p, stack_id stack);

/* Returns "[unknown]" for an unsymbolized location. */
const char *frame_name(const struct profile *p, const struct frame_ref *f);
/* Returns what texts add to the name of an inferred frame, else "". */
const char *frame_mark(const struct profile *p, const struct frame_ref *f);
/* Returns the frame's module (profile_frame_module). */
module_id frame_module(const struct profile *p, const struct frame_ref *f);
/* Appends the frame names, separated by " < ", the first one preceded by @sep. */
void frames_add(struct buf *to, struct frame_it it, const char *sep);

static inline bool frame_next(struct frame_it *it, struct frame_ref *ret_f)
{
	if (!it->node)
		return false;
	loc_id loc = it->p->stacks.p[it->node].loc;
	const struct location *l = &it->p->locations.p[loc];
	ret_f->loc = loc;
	ret_f->frame_idx = l->nr_frames ? l->first_frame + it->i : UINT32_MAX;
	bool is_last = it->node == it->stop && it->i >= it->stop_frame;
	if (is_last)
		it->node = 0;
	else if (++it->i >= l->nr_frames) {
		it->node = it->p->stacks.p[it->node].parent;
		it->i = 0;
	}
	return true;
}

#endif
