/*
 * A report: the result of an analysis, for any renderer. It has tables with typed columns, trees,
 * notes, facts and the losses of the input. Everything lives in the report's arena; strings are
 * borrowed from it. Analyses do not format: renderers turn values into text by the kind of the
 * column.
 */
#ifndef ASSAY_ANALYZE_REPORT_H
#define ASSAY_ANALYZE_REPORT_H

#include "base/arena.h"
#include "base/base.h"
#include "base/vec.h"
#include "model/loss.h"
#include "model/profile.h"

enum cell_kind {
	CELL_TEXT,
	CELL_COUNT,   /* u64; CELL_NO_COUNT: not counted */
	CELL_NS,      /* u64; CELL_NS_NONE: not known */
	CELL_BYTES,   /* u64; CELL_NO_BYTES: not known */
	CELL_PERCENT, /* double, 0..100 */
	CELL_FLOAT,   /* double */
	CELL_ID,      /* u64, an identifier (pid); CELL_NO_ID: not known */
	/* Estimates: a value and the half width of its 95 % confidence interval, 0: exact. */
	CELL_BYTES_ESTIMATE, /* estimate.value, u64; CELL_NO_ESTIMATE = not known */
	CELL_COUNT_ESTIMATE,
	CELL_NS_ESTIMATE,
	CELL_BYTES_CHANGE, /* estimate.change, signed; CELL_NO_CHANGE = not known */
	CELL_COUNT_CHANGE,
	CELL_NS_CHANGE,
};

#define CELL_NO_ID       UINT64_MAX
#define CELL_NS_NONE     UINT64_MAX
#define CELL_NO_COUNT    UINT64_MAX
#define CELL_NO_BYTES    UINT64_MAX
#define CELL_NO_ESTIMATE UINT64_MAX
#define CELL_NO_CHANGE   INT64_MIN

/* Which members of union cell a kind uses. */
enum cell_form { CELL_PLAIN, CELL_ESTIMATE, CELL_CHANGE };
enum cell_form cell_form(enum cell_kind kind);
/* Unit of estimates, changes, CELL_COUNT, CELL_NS and CELL_BYTES. */
enum unit cell_unit(enum cell_kind kind);
/* Name of the kind in JSON: "bytes", also for estimates and changes. */
const char *cell_name(enum cell_kind kind);

struct report_column {
	const char *key;   /* stable, for JSON: "self_pct" */
	const char *title; /* column head: "self %" */
	enum cell_kind kind;
	const char *help; /* one sentence, may be NULL */
	unsigned when;    /* shown if it has one of the @bits of report_add_table_of; 0: always */
	bool is_prose;    /* sentences, not names: texts wrap them */
	bool is_list;     /* as prose, but one line on pages, cut after an item: "a < b < .." */
	bool is_code;     /* source text, instructions: what is left of them has no gaps */
};

struct cell_estimate {
	union {
		uint64_t value;
		int64_t change;
	};
	uint64_t error; /* half width of the 95 % interval; if not symmetric, the larger half */
};

union cell {
	const char *text;
	uint64_t u;
	double d;
	struct cell_estimate estimate;
};

/* Whether texts cut the column's cells at their ends: not names, which have short forms. */
static inline bool column_is_cut_at_end(const struct report_column *c)
{
	return c->is_prose || c->is_list || c->is_code;
}
/* Whether the value is known: not one of the CELL_NO_* values, nor NAN. */
bool cell_is_known(const struct report_column *c, const union cell *v);

/* Which rows a page has that has no room for all. */
enum report_cut {
	CUT_LAST,  /* the first ones; the rows are in the order of their importance */
	CUT_EVERY, /* in order of time: the first, the last, the peak, and some evenly between */
	CUT_LEAST, /* in another order: those with the most of @cut_by */
};

struct report_table {
	const char *key;   /* "functions", "threads" */
	const char *title; /* "hottest functions (self time)" */
	const char *note;  /* may be NULL */
	/* Keys of columns to hide on narrow terminals, in this order; ends with NULL. */
	const char *const *hide_first; /* may be NULL */
	/* Columns that texts keep before those of hide_first are hidden; 0: the default. */
	size_t text_min;
	/* Percentages are of too few samples: only data formats have these columns. */
	bool has_counts;
	bool is_detail; /* only --details and data formats have it */
	bool has_zeros; /* rows of zeros say something: an empty bin of a distribution */
	bool is_ranked; /* rows are in the order of @rank_by, a percentage; pages leave out those of 0.00 */
	size_t rank_by;
	size_t nr_first; /* rows that a page has before other tables have more than a few; 0: a few */
	uint64_t kept; /* bits of rows that findings name: pages have them, CUT_LEAST keeps them */
	enum report_cut cut;
	size_t cut_by;  /* a column: of which CUT_EVERY keeps the peak, CUT_LEAST the largest */
	bool has_other; /* the last row, but for the total, is the sum of the rows that were cut */
	bool has_total; /* the last row is the total */
	struct report_column *columns;
	size_t nr_columns;
	uint64_t hidden;   /* bits of columns that are not shown, see report_add_table_of */
	union cell *cells; /* nr_rows x nr_columns */
	size_t nr_rows;
	size_t nr_rows_total; /* without the row limit */
};

/* Node of a call tree. Node 0 is the root ("all"). A node's children are a linked list. */
struct tree_node {
	str_id name;   /* in report->names */
	str_id module; /* in report->names, 0 = none */
	uint32_t parent;
	uint32_t first_child; /* 0 = none */
	uint32_t next;        /* next sibling, 0 = none; siblings sorted by name */
	uint32_t depth;
	uint32_t flags; /* enum tree_flags */
	uint64_t total; /* weight of the subtree */
	uint64_t
		self; /* of the node without its children; of inverted trees in text see calltext.c */
};

/* Differential trees: weight of a node in the baseline profile; exact, never normalised. */
struct tree_before {
	uint64_t total;
	uint64_t self;
	int64_t delta;      /* the node's total minus that of the baseline; see is_normalised */
	int64_t delta_self; /* as delta, of .self */
};

enum tree_flags {
	TREE_KERNEL = 1 << 0,
	TREE_INLINED = 1 << 1,
	TREE_JIT = 1 << 2,
	TREE_PSEUDO = 1 << 3,   /* [truncated], thread roots, separators */
	TREE_GUESSED = 1 << 4,  /* a function without symbol (FUNC_GUESSED) */
	TREE_INFERRED = 1 << 5, /* a tail call removed its frame (model/profile.h) */
	TREE_PYTHON = 1 << 6,
	TREE_CHANGED =
		1 << 7, /* differential: the function is marked in the comparison (diff/diff.h) */
};

struct report_tree {
	const char *key;
	const char *title;
	const char *count_name; /* "samples", "ns", "bytes" */
	const char *palette;    /* for flame graphs; NULL: the default */
	enum unit unit;
	struct tree_node *nodes; /* in preorder, so the nodes of a subtree are contiguous */
	size_t nr_nodes;
	struct tree_before *before; /* by node; NULL unless differential */
	bool is_differential;
	bool is_normalised;   /* deltas: the baseline is scaled to the total of the new profile */
	bool is_reversed;     /* leaf functions at the root */
	bool has_counts;      /* too few samples for percentages: texts show the weights */
	bool is_detail;       /* first pages do not have it */
	bool is_time_ordered; /* siblings are sorted by time, not by name */
};

/* Charts over time (render/chart.h writes them as SVG). */
#define CHART_SERIES_MAX 8

enum chart_kind {
	CHART_AREA, /* stacked on top of the areas before it in chart.series */
	CHART_LINE,
};

struct chart_series {
	const char *name;
	enum chart_kind kind;
	unsigned color;        /* 0 to CHART_SERIES_MAX - 1 */
	const uint64_t *bytes; /* nr_points; CELL_NO_BYTES: not known then, in lines only */
};

struct chart_mark {
	uint64_t ns;
	const char *text;
};

struct chart {
	const char *title;
	const char *subtitle; /* NULL = none */
	const char *note;     /* a second line: the verdict; NULL = none */
	const uint64_t *ns;   /* time of the points since the start, ascending */
	const char *x_unit;   /* what these count; NULL: ns */
	size_t nr_points;
	struct chart_series series[CHART_SERIES_MAX];
	size_t nr_series;
	const struct chart_mark *marks;
	size_t nr_marks;
};

/* A series of measured values, for its distribution and its course; texts have units. */
struct report_bin {
	const char *range; /* "1.20 s to 1.30 s" */
	uint64_t nr;
};

struct report_series {
	const char *name;
	const char *noun;     /* what the values are of: "runs" */
	const double *values; /* nr, in the order of measuring */
	const char *const *texts;
	size_t nr;
	double min, median, max;
	const char *min_text, *median_text, *max_text;
	const struct report_bin *bins; /* NULL: too few values */
	size_t nr_bins;
};

/*
 * A suggested next command, as data. text_style.add_hint converts it to a quoted command line
 * (cmd/hints.h).
 */
enum hint_command { HINT_FLAME, HINT_REPORT, HINT_HEAP, HINT_DIAGNOSE };
enum hint_option {
	HINT_END, /* no more options */
	HINT_EVENT,
	HINT_WEIGHT,
	HINT_TREE,    /* no value */
	HINT_CALLERS, /* a regex */
	HINT_BLAME,   /* no value */
	HINT_BY,
	HINT_PID,
	HINT_SAMPLE,
};
#define HINT_OPTIONS_MAX 2

struct report_hint {
	enum hint_command command;
	const char *input; /* a file's name, or NULL */
	struct {
		enum hint_option key;
		const char *value;
	} options[HINT_OPTIONS_MAX]; /* up to HINT_END */
};

struct report {
	struct arena arena;
	struct intern names;
	const char *title;
	VEC(struct report_table) tables;
	VEC(struct report_tree) trees;
	VEC(struct report_series) series; /* only HTML pages have them */
	VEC(const char *) notes;          /* sentences that every renderer shows */
	VEC(const char *) findings;       /* those of the notes that answer the view's question */
	VEC(double) ranks;                /* of the findings, see report_rank */
	VEC(const char *) details;        /* those that the first page does not have */
	VEC(struct report_hint) hints;    /* next commands */
	struct losses losses;
	bool is_incomplete;              /* the recording has no end */
	VEC(struct fact) facts;          /* ids in names: event, duration, target, ... */
	VEC(enum fact_id) further_facts; /* of those that first pages have: this one omits them */
	uint64_t total;                  /* weight of everything shown */
	uint64_t nr_samples;
	enum unit unit;
	bool is_estimated;      /* nr_samples and the counts of losses are estimates from samples */
	const char *noun;       /* what nr_samples counts: "waits"; NULL: samples */
	const char *count_name; /* what weights of UNIT_COUNT count: "pages"; NULL: samples */
	/*
	 * Frames of the stacks shown, by weight: all, those without a name, and of these most by
	 * module. The loss counters count samples with an unsymbolized leaf.
	 */
	struct report_frames {
		double all;
		double unnamed;
		const char *module; /* NULL: none */
	} frames;
	bool has_no_samples; /* about a host, or of readings only: no loss counters are shown */
};

struct report *report_new(void);
void report_free(struct report *r);
void report_free_p(struct report **r);
struct report_table *report_add_table(struct report *r, const char *key, const char *title,
				      const struct report_column *columns, size_t nr_columns);
/* As report_add_table, with only the columns whose `when` is 0 or has one of @bits. */
struct report_table *report_add_table_of(struct report *r, const char *key, const char *title,
					 const struct report_column *columns, size_t nr_columns,
					 unsigned bits);
/* Adds a row: one cell for each column passed, hidden ones included. Text is copied. */
void report_add_row(struct report *r, struct report_table *t, const union cell *cells);
/*
 * Adds a last column to a table that has all its rows. @texts: one for each row, in the report's arena.
 */
void report_add_text_column(struct report *r, struct report_table *t,
			    const struct report_column *column, const char *const *texts);
/* Adds a row to a table whose columns are all text: one string for each column. */
void report_add_texts(struct report *r, struct report_table *t, ...);
/* Returns "unsymbolized frames: 76 % of all frames, by weight, most in libfoo.so"; NULL: all have a name. */
const char *report_unnamed(struct arena *a, const struct report *r);
void report_note(struct report *r, const char *fmt, ...) PRINTF(2, 3);
/* Adds a note that answers the view's question: where the time or the memory goes. */
void report_finding(struct report *r, const char *fmt, ...) PRINTF(2, 3);
#define RANK_WHOLE 100
/*
 * Moves the last finding before those of a smaller rank: its share of the time in percent. Without this call it
 * stays the last, with RANK_WHOLE.
 */
void report_rank(struct report *r, double rank);
/* Adds a note on method or accuracy, which the first page does not have. */
void report_detail(struct report *r, const char *fmt, ...) PRINTF(2, 3);
void report_hint(struct report *r, const struct report_hint *h);        /* texts are copied */
void report_fact(struct report *r, enum fact_id id, const char *value); /* replaces */
void report_fact_text(struct report *r, const char *key, const char *value);
void report_fact_duration(struct report *r, uint64_t ns);             /* does nothing if @ns is 0 */
void report_facts(struct report *r, const struct profile *p);         /* copies all facts of @p */
const char *report_get_fact(const struct report *r, enum fact_id id); /* or NULL */

#endif
