/*
 * The data of the HTML page (render/page/): every stack of a profile as one tree, and every row that
 * the page's views sum up, with its time and thread. So the page's script can sum over any range of
 * time and any threads, and gets the numbers that `assay report` prints for the same selection.
 *
 *	profile --views' pictures--> selections of single rows --calltree--> one tree + streams of rows
 *
 * A stream has the rows of one picture (analyze/views.h): thread time, CPU samples, I/O, a weight of
 * memory. Its weights are those of `assay report` for that picture: on-CPU time is scaled as in
 * stacks/hotcold.h. Rows of idle waits are included; the page hides them.
 *
 * A page owns its arena and borrows nothing from the profile once it is made.
 */
#ifndef ASSAY_ANALYZE_PAGE_PAGEDATA_H
#define ASSAY_ANALYZE_PAGE_PAGEDATA_H

#include "analyze/page/pagecode.h"
#include "analyze/page/pagelines.h"
#include "analyze/page/waitbins.h"
#include "analyze/report.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "base/process/work.h"
#include "base/vec.h"
#include "model/profile.h"

/* All strings are ids in page.tree_report->names; 0: none. */
struct page_thread {
	int32_t pid;
	int32_t tid;
	str_id name;  /* its last name */
	str_id group; /* profile_thread_group: "worker-#" */
};

/* What a thread does in a row of thread time: on a CPU, or a wait reason. */
struct page_state {
	const char *key;  /* "on_cpu", "fsync" */
	const char *text; /* "fsync" */
	bool is_idle;
	uint64_t longest_ns; /* longest wait of all rows; 0: not known */
};

enum page_stream_flags {
	PAGE_HAS_TIMES = 1 << 0,  /* else time_ms is NULL */
	PAGE_HAS_STATES = 1 << 1, /* thread time: state, and for waits object, waker, log2_ns */
	PAGE_HAS_PLACES = 1 << 3,
	PAGE_IS_LEVEL = 1 << 2, /* an amount at one moment (live bytes), not a flow */
};

struct page_stream {
	const char *key;        /* "thread-time", "live" */
	const char *title;      /* "thread time" */
	const char *noun;       /* what `count` counts: "samples" */
	const char *count_name; /* unit of weights of UNIT_COUNT: "faults" */
	const char *report;     /* options of `assay report` that select the same rows; "" = none */
	enum unit unit;
	unsigned flags;    /* enum page_stream_flags */
	uint32_t slice_ms; /* longest len_ms; 0: all rows are instants */
	size_t n;
	uint8_t *table;   /* of the row it was made from: its index in the profile + 1; 0: a sum */
	uint32_t *source; /* that row */
	/* By row. Times are since the start of the capture. */
	uint32_t *time_ms;
	uint32_t *len_ms; /* a row is the sum over this time from time_ms on; 0: an instant */
	uint32_t *shape;  /* of waits: how they were spread over it (waitbins.h); 0: not known */
	uint32_t *node;   /* in tree->nodes */
	uint32_t *thread;
	uint32_t *place; /* instruction at the leaf (pagecode.h); NULL: none is known */
	uint64_t *count;
	uint64_t *weight;
	uint8_t *state;   /* index into page.states */
	uint8_t *log2_ns; /* duration of the waits: floor(log2(ns)); LOG2_NONE: not known */
	str_id *object;   /* file, socket or lock */
	str_id *waker;    /* what ended the waits: thread, "[device or timer]"; 0: the scheduler */
};

#define PAGE_SERIES_MAX 4
#define PAGE_TABLE_ROWS 50 /* of each table of the first page */

struct page_series {
	const char *key;
	const char *title;
	enum unit unit;
	size_t n;
	uint32_t *time_ms;
	uint64_t *value;
};

struct page_mark {
	uint32_t time_ms;
	const char *text;
};

/* One of the slowest measured calls. */
struct page_span {
	uint32_t time_ms;
	uint32_t len_us;
	uint32_t thread;
	const char *text;
};

struct page {
	struct arena arena;
	struct report *first; /* first page of the default view: title, notes, losses, facts */
	const char *title;    /* of the target and the default view */
	VEC(const char *) sentences; /* findings of the first pages, the most important first */
	struct report *diagnosis;    /* diagnose/diagnosis.h */
	struct report *tree_report;  /* owns the tree and the names */
	const struct report_tree *tree;
	uint64_t start_ns;     /* time 0 of the page, on the profile's clock */
	uint64_t duration_ms;  /* 0: the profile has no times */
	int64_t wall_start_ns; /* CLOCK_REALTIME at time 0; 0: not known */
	bool is_incomplete;
	VEC(struct page_thread) threads; /* 0: no thread */
	VEC(struct page_state) states;   /* by enum select_leaf and wait reason */
	VEC(struct page_stream) streams; /* the default one first */
	struct waitbins *bins;           /* NULL: the profile has no single waits */
	VEC(struct page_series) series;
	VEC(struct page_mark) marks;
	VEC(struct page_span) spans;
	struct page_line *lines; /* of the default view, without idle time (pagelines.h) */
	size_t nr_lines;
	uint64_t lines_weight; /* of all rows of that view */
	struct page_code code; /* of the first stream */
};

/*
 * @input: file name for commands on the page. @code: opens binaries and source files; NULL: neither
 * is in the page. @pool: shares the work; NULL: none. Errors as those of views_page.
 */
int page_make(struct page *ret_page, const struct profile *p, const char *input,
	      const struct code_access *code, struct work_pool *pool, struct err *err);
void page_release(struct page *page);

#endif
