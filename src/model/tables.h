/*
 * The registry of tables: what kinds of tables a profile may hold. A source fills tables of these
 * kinds, the recording stores them under their keys, views are chosen by them; no other file
 * compares a table's name. To add one: an id at the end of the enum (before TABLE_EVENTS), a row in
 * tables.c.
 *
 * A table of a profile has its kind in table.id: found by key and columns when it is made or read
 * (tables_identify), so that a table of another program's file which happens to have the name of
 * one of ours, but other columns, is not taken for it.
 *
 * Ids never reach a file: there it is the key.
 */
#ifndef ASSAY_MODEL_TABLES_H
#define ASSAY_MODEL_TABLES_H

#include "base/base.h"

struct profile;
struct table;

enum table_id {
	TABLE_SAMPLES, /* samples of CPU time or of another sampled event; its key is the event's */

	/* Waiting. */
	TABLE_OFF_CPU, /* intervals off the CPU, by stack and reason */
	TABLE_ON_CPU,  /* time on a CPU, by thread */
	TABLE_BLAME,   /* waits, by what the thread did meanwhile that was waited for */
	/* CPU samples and waits together: an event that options accept, no profile holds it. */
	TABLE_THREAD_TIME,

	/* Input and output, memory pressure. */
	TABLE_IO,
	TABLE_BLOCK,
	TABLE_FAULTS,
	TABLE_RECLAIM,

	/* Latency of operations. */
	TABLE_SPANS,
	TABLE_SPAN_TIME, /* where the time of spans went, by reason */
	TABLE_SLOWEST_SPANS,

	/* Memory; what the columns mean: model/heap.h. */
	TABLE_ALLOCATED,
	TABLE_LIVE,
	TABLE_PEAK,
	TABLE_FREED,
	TABLE_FREED_PREEXISTING,
	TABLE_GROWTH,
	TABLE_MAPPED,
	TABLE_MEMORY,
	TABLE_SNAPSHOTS,

	TABLE_UNKNOWN, /* with tags, of a kind that is not known here: a later version's */
	TABLE_EVENTS,  /* counts of an event by name, one table for each; its key is the event's */
	TABLE_ID_NR
};

/* Tables of a capture: bits, TABLE_SET(IO) | TABLE_SET(BLOCK). */
typedef uint32_t table_set;
#define TABLE_SET(name) ((table_set)1 << TABLE_##name)
_Static_assert(TABLE_ID_NR <= 32, "a table_set has a bit for each");

/* What a column's numbers are, in every table alike. */
enum column_role {
	COLUMN_OTHER,
	COLUMN_COUNT, /* of what the rows are: waits, calls, faults */
	COLUMN_BYTES,
	COLUMN_TIME,    /* ns */
	COLUMN_LONGEST, /* ns, a level */
	COLUMN_PAGES,
};

enum table_column_flags {
	COLUMN_IS_LEVEL = 1 << 0,     /* rows are not added up: the greatest counts */
	COLUMN_IS_ESTIMATED = 1 << 1, /* scaled up where the source samples */
};

struct table_column {
	const char *name;
	uint8_t role;  /* enum column_role */
	uint8_t unit;  /* enum unit */
	uint8_t flags; /* enum table_column_flags */
};

/* Which table a view takes that was told none: the first of these that is there. */
enum table_rank {
	TABLE_RANK_SIDE, /* beside another one, never alone */
	TABLE_RANK_OTHER,
	TABLE_RANK_WAITS,
	TABLE_RANK_SAMPLES,
};

#define TABLE_KIND_COLUMNS_MAX 9

struct table_kind {
	const char *key;       /* in files and options: "off-cpu"; NULL: the event's name */
	const char *old_key;   /* the key in files of earlier versions; NULL: the same */
	uint8_t rank;          /* enum table_rank */
	uint8_t time_kind;     /* enum table_time */
	uint8_t weight_column; /* index into columns */
	bool has_tags;
	bool is_derived; /* its rows say again what another table counts: no samples of their own */
	struct table_column columns[TABLE_KIND_COLUMNS_MAX]; /* the last one has no name */
};

/* Never NULL for an id below TABLE_ID_NR. */
const struct table_kind *table_kind(enum table_id id);
/* NULL for TABLE_SAMPLES and TABLE_EVENTS. */
const char *table_key(enum table_id id);
/* TABLE_ID_NR: no kind has that key. */
enum table_id table_from_key(const char *key);

enum tables_add_flags {
	TABLES_ESTIMATE = 1 << 0, /* counts and bytes are scaled up from a sample */
	TABLES_NO_TEMPORARY =
		1 << 1, /* TABLE_ALLOCATED without what is known of temporary blocks */
};

/* Finds or adds the table of a kind that has a key; index into p->tables. */
uint32_t tables_add(struct profile *p, enum table_id id, unsigned flags);
/* The kind of a table with that event name and these columns. */
enum table_id tables_identify(const struct profile *p, const struct table *shape);

/* The table of that kind, with rows or without, or NULL. */
const struct table *tables_find(const struct profile *p, enum table_id id);
/* The same if it has rows, else NULL. */
const struct table *tables_find_rows(const struct profile *p, enum table_id id);
bool tables_has_rows(const struct profile *p, enum table_id id);
/* A folded difference is two tables of these names, of samples: is the profile one? */
#define TABLES_BEFORE "before"
#define TABLES_AFTER  "after"
bool tables_are_difference(const struct profile *p);
/* Index of the table's column of that role, or -1. */
int table_column(const struct table *t, enum column_role role);

#endif
