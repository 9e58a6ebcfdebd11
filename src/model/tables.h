/*
 * The registry of table kinds: which tables a profile can contain, with their keys and columns.
 * Sources fill tables of these kinds, recordings store them under their keys, and views declare
 * which of them they need. To add a kind: an id in enum table_id (before TABLE_UNKNOWN) and a row
 * in tables.c.
 *
 * The kind of a profile's table is in table.id. tables_identify determines it from the key and the
 * columns when a table is created or read, so a table from another program's file with the same
 * name but different columns is not confused with one of these.
 *
 * Files store keys, never ids.
 */
#ifndef ASSAY_MODEL_TABLES_H
#define ASSAY_MODEL_TABLES_H

#include "base/base.h"

struct profile;
struct table;

enum table_id {
	TABLE_SAMPLES, /* samples of CPU time or of another event; the key is the event name */

	/* Waiting. */
	TABLE_OFF_CPU,   /* off-CPU time, by stack and wait reason */
	TABLE_ON_CPU,    /* on-CPU time, by thread */
	TABLE_BLAME,     /* wait time, by what the blocking thread did during the wait */
	TABLE_INTERVALS, /* single intervals off the CPU (kept ones); columns: enum interval_column */
	/* CPU samples and waits combined: a name for options only, no profile contains it. */
	TABLE_THREAD_TIME,

	/* I/O and memory pressure. */
	TABLE_IO,      /* read, write and sync calls */
	TABLE_BLOCK,   /* block device requests */
	TABLE_FAULTS,  /* major page faults */
	TABLE_RECLAIM, /* direct reclaim */

	/* Latency of operations. */
	TABLE_SPANS,         /* calls of the measured functions */
	TABLE_SPAN_TIME,     /* time inside spans, by reason (on CPU, run queue, waits) */
	TABLE_SLOWEST_SPANS, /* the slowest calls, one by one */

	/* Memory; columns: model/heap.h. */
	TABLE_ALLOCATED,
	TABLE_LIVE,
	TABLE_PEAK,
	TABLE_FREED,
	TABLE_FREED_PREEXISTING,
	TABLE_GROWTH,
	TABLE_MAPPED,
	TABLE_MEMORY,
	TABLE_HEAP_LEVEL,
	TABLE_SNAPSHOTS,
	TABLE_CGROUP,    /* columns: enum cgroup_column */
	TABLE_ALLOCATOR, /* columns: enum allocator_column */

	TABLE_UNKNOWN, /* a table with tags of unknown kind, from a later version of assay */
	TABLE_EVENTS,  /* counts of a named event, one table per event; the key is the event name */
	TABLE_ID_NR
};

/* The columns of TABLE_INTERVALS. A row's time is when the thread was switched out. */
enum interval_column {
	INTERVAL_NR,        /* 1 */
	INTERVAL_NS,        /* until it was switched in */
	INTERVAL_QUEUE_NS,  /* of that: in the run queue; before, it was blocked */
	INTERVAL_CPU_NS,    /* CPU time of the run before */
	INTERVAL_STOLEN_NS, /* elapsed time of that run that is not CPU time */
	INTERVAL_COLUMNS
};

/* TABLE_CGROUP: bytes of the memory cgroup of a command under a limit, at instants. */
enum cgroup_column {
	CGROUP_USAGE,
	CGROUP_LIMIT,
	CGROUP_ANON,
	CGROUP_FILE,
	CGROUP_SWAP,
	CGROUP_COLUMNS
};

/* TABLE_ALLOCATOR: bytes by the allocator's own account, or by a walk of its heaps, at instants. */
enum allocator_column {
	ALLOCATOR_IN_USE, /* allocated by the program and not freed */
	ALLOCATOR_ACTIVE,
	ALLOCATOR_RESIDENT,
	ALLOCATOR_RETAINED,
	ALLOCATOR_COLUMNS
};

/* A set of table ids: TABLE_SET(IO) | TABLE_SET(BLOCK). */
typedef uint32_t table_set;
#define TABLE_SET(name) ((table_set)1 << TABLE_##name)
_Static_assert(TABLE_ID_NR <= 32, "a table_set has a bit for each table id");

/* What a column contains, independent of the table; see table_column. */
enum column_role {
	COLUMN_OTHER,
	COLUMN_COUNT, /* number of waits, calls, faults, ... */
	COLUMN_BYTES,
	COLUMN_TIME,    /* total, ns */
	COLUMN_LONGEST, /* the longest one, ns */
	COLUMN_PAGES,
};

enum table_column_flags {
	COLUMN_IS_LEVEL = 1 << 0,     /* rows combine by maximum, not by sum */
	COLUMN_IS_ESTIMATED = 1 << 1, /* scaled up from a sample (with TABLES_ESTIMATE) */
};

struct table_column {
	const char *name;
	uint8_t role;  /* enum column_role */
	uint8_t unit;  /* enum unit */
	uint8_t flags; /* enum table_column_flags */
};

/* Which table a view shows by default: the one with the highest rank. */
enum table_rank {
	TABLE_RANK_SIDE, /* never shown alone, only together with another table */
	TABLE_RANK_OTHER,
	TABLE_RANK_WAITS,
	TABLE_RANK_SAMPLES,
};

#define TABLE_KIND_COLUMNS_MAX 9

struct table_kind {
	const char *key;       /* in files and options: "off-cpu"; NULL: the event name */
	const char *old_key;   /* key in files of earlier versions; NULL: the same */
	uint8_t rank;          /* enum table_rank */
	uint8_t time_kind;     /* enum table_time */
	uint8_t weight_column; /* index into columns */
	bool has_tags;
	bool is_on_request; /* shown and converted only if it is named */
	bool is_derived;    /* its rows count time, calls or bytes that another table counts, too */
	struct table_column columns[TABLE_KIND_COLUMNS_MAX]; /* ends with a NULL name, or is full */
};

/* Never NULL for an id below TABLE_ID_NR. */
const struct table_kind *table_kind(enum table_id id);
/* NULL for TABLE_SAMPLES and TABLE_EVENTS. */
const char *table_key(enum table_id id);
/* TABLE_ID_NR if no kind has that key. */
enum table_id table_from_key(const char *key);

enum tables_add_flags {
	TABLES_ESTIMATE = 1 << 0,     /* counts and bytes are scaled up from a sample */
	TABLES_NO_TEMPORARY = 1 << 1, /* TABLE_ALLOCATED without the columns of temporary blocks */
};

/* Copies a row over another one: removing rows of a table moves those that stay to its front. */
void table_move_row(struct table *t, size_t to, size_t from);
/* Finds or adds the table of a kind that has a key. Returns its index in p->tables. */
uint32_t tables_add(struct profile *p, enum table_id id, unsigned flags);
/* Determines the kind of a table from its name (shape->event) and columns. */
enum table_id tables_identify(const struct profile *p, const struct table *shape);

/* Returns the table of a kind, even if it has no rows, or NULL. */
const struct table *tables_find(const struct profile *p, enum table_id id);
/* Returns the table of a kind if it has rows, else NULL. */
const struct table *tables_find_rows(const struct profile *p, enum table_id id);
bool tables_has_rows(const struct profile *p, enum table_id id);
/* Whether the profile is a folded-stack difference: two tables of samples with these names. */
#define TABLES_BEFORE "before"
#define TABLES_AFTER  "after"
bool tables_are_difference(const struct profile *p);
/*
 * Scales the times of samples of CPU time so that they add up to the CPU time that the kernel counted
 * (FACT_CPU_TIME_NS). Without that fact, or the second time, they stay as they are.
 */
void tables_scale_time(struct profile *p);
/*
 * For samples from another program's file: if the events per sample (the period, the second column)
 * vary within a table, makes the period its weight, as perf report does. With a constant period the
 * shares are those of the sample counts, which stay the weight.
 */
void tables_weigh_by_period(struct profile *p);
/* Returns the index of the table's column with a role, or -1. */
int table_column(const struct table *t, enum column_role role);

#endif
