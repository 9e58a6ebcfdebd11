/*
 * What part of a profile a view looks at: the first step of every analysis.
 *
 * A spec holds what the user asked for, as text. select_run compiles it once (each regex is tried
 * once per name, never per sample; each answer is spread over the prefix tree of stacks, so that a
 * sample costs two byte tests and one hash lookup) and aggregates what remains by (stack, task,
 * phase). Everything after it works on those rows.
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
	SELECT_USER,   /* samples that hit in user mode */
	SELECT_KERNEL, /* samples that hit in the kernel */
};

/* A phase: samples below a frame (the rule nearest to the root wins), or a window of time. */
struct phase_rule {
	const char *name;
	const char *rule; /* regex on function names, or "@FROM..TO" */
};

/*
 * What is looked at in a profile of memory (heapweights.h); other profiles have none of it. NULL =
 * as it comes.
 */
struct heap_spec {
	const char *weight;     /* "allocated", "live", "leaked", "peak" ... */
	const char *at;         /* a moment from the capture's start: "12s" */
	const char *older_than; /* age from which live blocks count as leaked: "30s" */
	const char *suppress;   /* text of suppressions (suppress.h), not the file's name */
};

/* All regexes are PCRE2, searched anywhere in the name. NULL = no such filter. */
struct select_spec {
	const char *event;  /* a table's name; NULL: the one with most samples */
	const char *time;   /* "2..5" s, "500ms..2s", "..3s", "10%-20%": from the capture's start */
	const char *thread; /* regex on the thread's name, or a tid */
	const char *pid;    /* process ids: "4242" or "4242,4243" */
	const char *comm;   /* regex on the process's name (its main thread's) */
	const char *module; /* regex: the sample's leaf is in this module */
	const char *function; /* regex: some frame of the stack matches */
	const char *exclude;  /* regex: no frame of the stack matches */
	const char *within;   /* regex: the view's root becomes the outermost match */
	const char *phase;    /* name of one of the rules, or "<other>" */
	/* Tables with tags; other tables have no such rows, so these leave nothing of them. */
	const char *reason; /* keys of model/wait.h, "idle", "active": "lock,fsync", "!run_queue" */
	const char *object; /* regex on what was waited for or worked on */
	const char *waker;  /* regex on the other thread's name or a function of its stack */
	const char *min_duration; /* "10ms": intervals that long, to the log2 class */
	const char *max_duration;
	struct heap_spec heap;
	enum select_mode mode;
	unsigned flags; /* enum select_flags */
	const struct phase_rule *rules;
	size_t nr_rules;
};

enum select_flags {
	/* Rows are runs of equal neighbours in order of time, nothing else is added up. */
	SELECT_TIME_ORDER = 1 << 0,
	/* Waits for something to do are in view too; else only where spec.reason asks for them. */
	SELECT_IDLE = 1 << 1,
	/* Of memory: stacks end at the allocating function, without allocators (heapframes.h). */
	SELECT_CUT_STACKS = 1 << 2,
};

/* Why samples are not in view; the first reason that applies is counted. */
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

/* What a row shows above its leaf, besides a reason (enum wait_reason, WAIT_NONE: nothing). */
enum select_leaf {
	SELECT_LEAF_IDLE = WAIT_NR, /* "[idle]": waits for something to do, folded */
	SELECT_LEAF_UNSAMPLED,      /* "[on CPU, no sample]" */
	SELECT_LEAF_SUPPRESSED,     /* "[suppressed]": leaks that the user knows of */
};

/* "[lock]", "[idle]"; NULL for 0 and for what ran. */
const char *select_leaf_name(unsigned synth_leaf);

struct select_row {
	stack_id stack; /* leaf node; its view ends at the selection's root for it */
	task_id task;
	uint32_t phase : 24; /* index into rules, or nr_rules for "<other>" */
	uint32_t
		synth_leaf : 8; /* enum wait_reason or enum select_leaf; 0: the leaf is a function */
	uint64_t nr_samples;
	uint64_t weight; /* in the selection's unit */
};

/* By what it is of: 0 where two rows are to be added up. */
static inline int select_row_compare(const void *x, const void *y)
{
	const struct select_row *a = x;
	const struct select_row *b = y;
	return COMPARE(a->stack, b->stack) ?: COMPARE(a->task, b->task)
	       ?: COMPARE(a->phase, b->phase) ?: COMPARE(a->synth_leaf, b->synth_leaf);
}

/* Rows of a table with tags, as fine as the filters see them: one a (stack, task, phase, tag). */
struct select_tagged {
	stack_id stack;
	task_id task;
	uint32_t phase;
	uint32_t tag;                      /* index into p->tags */
	enum wait_reason reason;           /* the tag's, futex waits told apart (reason.h) */
	int64_t values[TABLE_COLUMNS_MAX]; /* sums; of columns that are levels the largest */
};

struct selection {
	const struct profile *p;
	uint32_t table;   /* index into p->tables */
	enum table_id id; /* of the event, which may be none of the tables: thread time, leaks */
	struct select_row *rows;
	size_t nr_rows;               /* sorted by stack; with SELECT_TIME_ORDER by time */
	struct select_tagged *tagged; /* sorted by stack; NULL for tables without tags */
	size_t nr_tagged;
	struct reasons *reasons; /* tables with tags: answers of reason.h; else NULL */
	uint64_t nr_samples;
	uint64_t weight;
	enum unit unit;
	const char *event;
	const char *noun;       /* of rows, where not that of the table; or NULL */
	const char *count_name; /* what weights of UNIT_COUNT count, where not the table's */
	/* Why there are no rows, a sentence; NULL: nothing is known of it. */
	const char *why_empty;
	/*
	 * Per location: which of its frames rows that end there belong to, where stacks were cut to
	 * the function of interest (SELECT_CUT_STACKS). NULL: the innermost.
	 */
	const uint16_t *leaf_frames;
	/* By row: variance of its weight, in the unit's square; NULL: not estimated, or not known
	 */
	const double *variance;
	uint64_t first_ns; /* the window in force, on the profile's clock; both 0: timeless */
	uint64_t last_ns;
	uint64_t nr_out[SELECT_OUT_NR]; /* samples left out */
	uint64_t weight_out;
	uint64_t weight_idle; /* of it: left out because it is idle (no SELECT_IDLE) */
	/* Durations in view, [min, max), to which a filter came by its log2 classes; 0 = no limit.
	 */
	uint64_t min_ns;
	uint64_t max_ns;
	/* --within: per stack node the node of the outermost match, 0 = none. NULL: whole stacks.
	 */
	const stack_id *roots;
	const uint16_t *root_frames; /* per location: index of the outermost matching frame */
	const struct phase_rule *rules;
	size_t nr_rules;
};

/*
 * -EINVAL: the spec is wrong (bad regex, unknown event or phase, bad window). -ENOENT: it is right
 * but names nothing that is there; the hint has near names. An empty profile is no error.
 */
int select_run(struct arena *a, const struct profile *p, const struct select_spec *spec,
	       struct selection *ret_sel, struct err *err);

/*
 * The same filters asked sample by sample, for what streams samples instead of adding them up.
 * The spec's event is not looked at: the table is given. Lives in the arena, borrows the profile.
 *
 *	select_compile(&arena, p, t, &spec, &sieve, &err);
 *	for (size_t i = 0; i < p->tables.p[t].n; i++)
 *		if (select_has(sieve, i)) ...
 */
struct row_filter;
int select_compile(struct arena *a, const struct profile *p, uint32_t table,
		   const struct select_spec *spec, struct row_filter **ret_s, struct err *err);
bool select_has(const struct row_filter *s, size_t sample_idx);
/* 0: in view; else 1 + enum select_out. */
unsigned select_verdict(const struct row_filter *s, size_t sample_idx);
/*
 * select_compile, and a selection of that table without rows, for who makes rows by himself: its
 * window, its root of view, its rules; nothing is counted.
 */
int select_open(struct arena *a, const struct profile *p, uint32_t table,
		const struct select_spec *spec, struct selection *ret_sel,
		struct row_filter **ret_s, struct err *err);
/* Index of its rule, or nr_rules. */
uint32_t select_phase(const struct row_filter *s, size_t sample_idx);
/* The table that a spec's event names (NULL: the one with most samples); -ENOENT. */
int select_table(const struct profile *p, const char *event, uint32_t *ret_table, struct err *err);

/* What rows are: "samples", "waits", "calls". */
const char *select_noun(const struct selection *s);
/* Short phrase for a reason: "outside the time window". */
const char *select_out_text(enum select_out out);

/*
 * The frames of a stack as the view shows them, from the leaf to the view's root, inlined
 * functions included:
 *
 *	struct frame_ref f;
 *	for (struct frame_it it = select_frames(sel, row->stack); frame_next(&it, &f);)
 */
struct frame_it {
	const struct profile *p;
	stack_id node;
	stack_id stop;       /* last node to show */
	uint32_t stop_frame; /* last frame of it to show */
	uint32_t i;
};

struct frame_ref {
	loc_id loc;
	uint32_t frame_idx; /* into p->frames, or UINT32_MAX for a location without a name */
};

/* How many frames of a node are in view, innermost first; 0 above the view's root. */
static inline uint32_t select_nr_frames(const struct selection *s, stack_id node)
{
	loc_id loc = s->p->stacks.p[node].loc;
	if (s->roots && s->roots[node] == node)
		return s->root_frames[loc] + 1u;
	return s->roots && !s->roots[node] ? 0 : MAX(s->p->locations.p[loc].nr_frames, 1u);
}

struct frame_it select_frames(const struct selection *s, stack_id stack);

/* "[unknown]" for a location without a name. */
const char *frame_name(const struct profile *p, const struct frame_ref *f);
/* The names of the frames, " < " between them; @sep stands before the first. */
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
