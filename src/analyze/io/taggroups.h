/*
 * Aggregates rows of tables with tags by texts: shared by the reports on I/O, faults and spans. A
 * group has several amounts side by side (reads and writes of one file).
 *
 *	struct tag_rows rows;
 *	struct tag_row row;
 *	if (tag_rows_open(&rows, &a, p, TABLE_IO, spec, err)) ...
 *	while (tag_rows_next(&rows, &row))
 *		amount_add(&tag_groups_at(&groups, texts, n)->amounts[k], &row);
 *	tag_report(&groups, r, &table, max_rows, seconds);
 */
#ifndef ASSAY_ANALYZE_IO_TAGGROUPS_H
#define ASSAY_ANALYZE_IO_TAGGROUPS_H

#include "analyze/wait/quantile.h"
#include "analyze/report.h"
#include "analyze/select/select.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/vec.h"
#include "model/profile.h"

/* A row that passes the filters; columns that the table does not have are 0. */
struct tag_row {
	size_t i; /* in the table */
	const struct tag *tag;
	const char *detail; /* never NULL */
	stack_id stack;
	task_id task;
	uint64_t nr;
	uint64_t bytes;
	uint64_t ns;
	uint64_t longest_ns;
	uint64_t pages;
};

struct tag_rows {
	const struct profile *p;
	const struct table *t;
	struct row_filter *row_filter;
	size_t next;
	int nr_col, bytes_col, ns_col, longest_col, pages_col; /* -1: none */
};

/* -ENOENT, without setting @err: no such table, or it is empty. Else errors of select_compile. */
int tag_rows_open(struct tag_rows *ret_r, struct arena *a, const struct profile *p,
		  enum table_id id, const struct select_spec *spec, struct err *err);
bool tag_rows_next(struct tag_rows *r, struct tag_row *ret_row);

struct amount {
	struct quantile q; /* durations of successful calls */
	uint64_t nr;
	uint64_t bytes;
	uint64_t ns;
	uint64_t pages;
	uint64_t nr_failed; /* of nr */
};

#define TAG_TEXTS   5
#define TAG_AMOUNTS 3

struct tag_group {
	const char *texts[TAG_TEXTS];
	struct amount *amounts; /* nr_amounts of tag_groups */
	uint64_t nr_threads;    /* distinct threads; only for waits (waitgroups.h) */
};

struct tag_groups {
	struct arena *arena; /* of groups and texts */
	struct intern keys;
	VEC(struct tag_group) groups;
	struct buf key;
	size_t nr_amounts; /* per group; 0: TAG_AMOUNTS */
};

void tag_groups_release(struct tag_groups *g);
/* Finds or adds the group of these texts, which are copied. Valid until the next call. */
struct tag_group *tag_groups_at(struct tag_groups *g, const char *const *texts, size_t n);
void amount_add(struct amount *a, const struct tag_row *row);
void amount_merge(struct amount *to, const struct amount *from);
/* Sorts by @weight, largest first; ties by text. */
void tag_groups_sort(struct tag_groups *g, uint64_t (*weight)(const struct tag_group *g));

/* What a cell shows of a group. */
enum tag_measure {
	TAG_TEXT, /* "-" if empty */
	TAG_NR,
	TAG_NR_PER_S,
	TAG_FAILED,
	TAG_BYTES,
	TAG_BYTES_PER_S,
	TAG_MEAN_BYTES, /* of successful calls */
	TAG_NS,
	TAG_MEAN_NS,
	TAG_P50_NS,
	TAG_P90_NS,
	TAG_P99_NS,
	TAG_LONGEST_NS,
	TAG_PAGES,
};

struct tag_column {
	struct report_column column;
	enum tag_measure measure;
	unsigned of; /* index of the text or amount; TAG_AMOUNTS: the sum of all amounts */
};

enum tag_table_flags {
	TAG_WHOLE = 1 << 0,    /* limits do not apply */
	TAG_NO_OTHER = 1 << 1, /* without a row "<other>" */
};

struct tag_table {
	const char *key;
	const char *title;
	const char *note; /* may be NULL */
	const struct tag_column *columns;
	size_t nr_columns;
	uint64_t (*weight)(const struct tag_group *g); /* sort key, see tag_groups_sort */
	unsigned flags;                                /* enum tag_table_flags */
};
#define TAG_COLUMNS_MAX 16
#define TAG_TABLE(the_key, the_title, the_columns)                        \
	.key = (the_key), .title = (the_title), .columns = (the_columns), \
	.nr_columns = ARRAY_LEN(the_columns)
/* Columns for durations of the first amount. */
#define TAG_QUANTILES                                                       \
	{{"p50_ns", "p50", CELL_NS, NULL}, TAG_P50_NS, 0},                  \
		{{"p99_ns", "p99", CELL_NS, NULL}, TAG_P99_NS, 0},          \
	{                                                                   \
		{"longest_ns", "longest", CELL_NS, NULL}, TAG_LONGEST_NS, 0 \
	}

/* Note of tables with quantiles. */
#define TAG_QUANTILE_NOTE "p50 and p99 are interpolated within power-of-two buckets"

/* Sorts the groups and adds the table. @max_rows: 0: all; @seconds: divisor of rates. */
void tag_report(struct tag_groups *g, struct report *r, const struct tag_table *table,
		uint64_t max_rows, double seconds);

#endif
