/*
 * For the files that compute measures only: what they share. Everything is computed on first use and
 * lives in the arena.
 */
#ifndef ASSAY_ANALYZE_DIAGNOSE_MEASUREBASE_H
#define ASSAY_ANALYZE_DIAGNOSE_MEASUREBASE_H

#include "analyze/diagnose/measures.h"
#include "analyze/wait/blame.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/clock.h"

#define MEASURE_EVIDENCE_NS    (50 * NS_PER_MS) /* less wait time than this is no evidence ... */
#define MEASURE_EVIDENCE_WAITS 200              /* ... unless there are that many waits */
#define MEASURE_ACTIVE         "non-idle thread time"

/* Adds up, of one blamed thread's name, function and activity. */
struct culprit {
	const char *thread;
	const char *function;
	enum wait_reason doing;
	uint64_t ns;
};

/* What the holders of locks waited for while others waited for the locks. */
struct lockcause {
	enum wait_reason doing; /* WAIT_NONE: they worked, or it is not known */
	uint64_t ns;            /* of waits for locks */
	double chain_pct;       /* of that: whom the holder waited for did so */
	const char *where;
	const char *call;
	const char *who;
	const char *waiters;
};

struct waitmeasures {
	const struct selection *sel;
	const struct breakdown *l;
	const struct report *tables; /* locks, waiting functions, executors */
	uint64_t active_ns;
	struct selection own_sel;
	struct breakdown own_l;
	struct report *own_tables;
	bool is_failed; /* the filters fit no waits */
	bool has_blame;
	struct blame blame;
	bool has_culprit;
	struct culprit culprit;
	uint64_t culprit_ns;
	bool has_idle; /* those below */
	const char *idle_where;
	size_t nr_held; /* threads that waited for the whole capture for what may be a lock */
	const char *held_where;
	struct culprit idle_for; /* who ended most of the idle waits */
	uint64_t idle_for_ns;
	bool has_writer;
	struct culprit writer; /* to the pipes that are waited for */
	uint64_t writer_ns;
	bool has_peer;
	struct culprit peer; /* whom sockets are waited for */
	uint64_t peer_ns;
	bool has_lockcause;
	struct lockcause lockcause;
	bool has_executors;
	uint64_t executor_ns;
	uint64_t executor_nr;
};

struct measures {
	struct arena a;
	const struct profile *p;
	struct select_spec spec;
	const char *input;      /* file name for commands, or NULL */
	struct measures *whole; /* of a part of the same profile, or NULL */
	uint32_t left_out;      /* sections, bits */
	struct waitmeasures *waits;
	struct cpumeasures *cpu; /* cpumeasures.c */
	struct cpufunctions *functions;
	struct memorymeasures *memory; /* memorymeasures.c */
	struct heapmeasures *heap;
	struct iomeasures *io; /* iomeasures.c */
};

void wait_measures_release(struct measures *m);
void heap_measures_release(struct measures *m);
/* Selects and breaks down; NULL: that is not possible with these filters. */
struct waitmeasures *measured_waits(struct measures *m);
/* Tables of locks, waiting functions and executors; NULL as above. */
const struct report *measured_tables(struct measures *m);
/* Without rows if the profile has none; NULL as above. */
const struct blame *measured_blame(struct measures *m);
/* Returns the table with a key, or NULL if there is none or it has no rows. */
const struct report_table *measured_table(const struct report *r, const char *key);
size_t measured_column(const struct report_table *t, const char *key);
/* A share of the time that is not idle. */
double measured_pct(const struct waitmeasures *w, uint64_t ns);
/* A name as sentences have it. */
const char *measures_name(struct measures *m, const char *name);

/* The rows of a section, as many as *ret_nr. */
const struct measure *capture_measures(size_t *ret_nr);
const struct measure *wait_measures(size_t *ret_nr);
const struct measure *cause_measures(size_t *ret_nr);
const struct measure *lock_measures(size_t *ret_nr);
const struct measure *memory_measures(size_t *ret_nr);
const struct measure *heap_measures(size_t *ret_nr);
const struct measure *io_measures(size_t *ret_nr);
const struct measure *fault_measures(size_t *ret_nr);
const struct measure *cpu_measures(size_t *ret_nr);
const struct measure *reason_measures(size_t *ret_nr); /* the family by reason */

#endif
