/*
 * Facts: metadata of a recording (host, command, accuracy, ...) as key/value texts, one value per
 * key, in the order in which they were set. This header is for code that sets or reads facts
 * without access to the rest of a profile.
 *
 * Each fact that assay sets or reads has an id here. The keys, which files store and reports show,
 * are in facts.c. Facts from files of other programs are set by key.
 */
#ifndef ASSAY_MODEL_FACTS_H
#define ASSAY_MODEL_FACTS_H

#include "base/base.h"
#include "model/loss.h"

struct profile;

/* Not stored in files, so the order may change. */
enum fact_id {
	/* the recording */
	FACT_RECORDER,
	FACT_KIND,
	FACT_SOURCE,
	FACT_HOST,
	FACT_KERNEL,
	FACT_ARCH,
	FACT_CPU,
	FACT_CPUS,
	FACT_TARGET,
	FACT_COMMAND,
	FACT_EVENT,
	FACT_FREQUENCY,
	FACT_MODE,
	FACT_STACKS,
	FACT_CPU_TIME,
	FACT_ACCURACY,
	FACT_REMEDY,
	FACT_PROBLEM,
	FACT_RECORDING_NOTE,
	FACT_DUMPS, /* the dumps of a folder that were read */
	/* the heap */
	FACT_HEAP_ALLOCATOR, /* "jemalloc 5.3.0, static, prefix _rjem_" */
	FACT_HEAP_METHOD,    /* "patch", ...; after ": " the reason for this method */
	FACT_HEAP_SAMPLING,  /* "every allocation", or the sampling interval in bytes */
	FACT_HEAP_ATTACHED,  /* "launch" or "attach" */
	FACT_HEAP_ENDED, /* "yes": all processes ended before the capture did; absent: not known */
	FACT_HEAP_DUMP,  /* "truncated: ..."; absent: the dump is complete, or there is none */
	FACT_HEAP_DUMP_BAD_LINE,
	FACT_HEAP_ALLOCATIONS,
	FACT_HEAP_BYTES,
	FACT_HEAP_FREES,
	FACT_HEAP_CHECK,
	FACT_HEAP_PROCESSES,
	FACT_HEAP_UNPATCHED_NAME,
	FACT_HEAP_LATE,
	FACT_HEAP_STOPPED,
	FACT_HEAP_UNTIL,
	FACT_HEAP_ALL_STOPPED,
	FACT_HEAP_LONGEST_THREAD_STOP,
	FACT_HEAP_LONGEST_STOP,
	FACT_HEAP_RING_READING,
	FACT_HEAP_LONGEST_GAP,
	FACT_HEAP_TABLE_BYTES,
	FACT_HEAP_PROBES,
	FACT_GROWTH,
	/* memory */
	FACT_MEMORY_MACHINE, /* RAM of the machine, bytes */
	FACT_MEMORY_LIMIT,   /* limit of the cgroup, bytes; `assay limit`: a text; absent: none */
	FACT_MEMORY_PEAK,
	FACT_AT_LIMIT,
	FACT_OUT_OF_MEMORY,
	FACT_MEMORY_REFUSED,
	FACT_MEMORY_READINGS,
	FACT_MEMORY_PRESSURE,
	FACT_MEMORY_CGROUP,
	/* input and output, waits, events, spans */
	FACT_READ_FOR,
	FACT_IO_UNDER_WAY,
	FACT_BLOCK_IN_FLIGHT,
	FACT_EVENTS_WITH_STACKS,
	FACT_EVENTS_OF_MACHINE,
	FACT_EVENTS_SINGLY,
	FACT_EVENTS_REFUSED,
	FACT_NEVER_CALLED,
	/* readers of files that other programs wrote */
	FACT_MASSIF_UNIT,
	FACT_MASSIF_OPTIONS,
	FACT_MASSIF_BAD_LINE,
	FACT_HEAPTRACK_BAD_LINE,
	FACT_FOLDED_ROUNDED,
	FACT_FOLDED_BAD_LINE,
	/* used in reports only, never stored in a recording */
	FACT_DURATION,
	FACT_VIEW,
	FACT_VERDICT,
	FACT_CPUS_IN_USE,
	FACT_CONTEXT_SWITCHES,
	FACT_READ_WRITE,
	FACT_PROCESS,
	FACT_ALLOCATOR,
	FACT_ARENAS,
	FACT_MACHINE,
	FACT_CGROUP,
	FACT_LIMIT,
	FACT_TIME,
	FACT_PRESSURE,
	FACT_BEFORE,
	FACT_AFTER,
	FACT_NR
};

const char *fact_key(enum fact_id id);
enum fact_id fact_from_key(const char *key); /* FACT_NR: not a fact with an id */
/* Whether a fact is a technical detail, shown only with -v and in JSON. */
bool fact_is_detail(const char *key, const char *value);

/* Set or read a fact by id. Values are copied; setting replaces; returned texts are borrowed. */
void profile_fact(struct profile *p, enum fact_id id, const char *value);
const char *profile_get_fact(const struct profile *p, enum fact_id id); /* NULL: not set */
uint64_t profile_get_fact_nr(const struct profile *p, enum fact_id id); /* 0: not a number */
/* The same by key. */
void profile_fact_text(struct profile *p, const char *key, const char *value);
const char *profile_get_fact_text(const struct profile *p, const char *key);

void profile_factf(struct profile *p, enum fact_id id, const char *fmt, ...) PRINTF(3, 4);
/* Sets a fact to a number (nothing if it is 0); to a duration with its unit. */
void profile_fact_nr(struct profile *p, enum fact_id id, uint64_t nr);
void profile_fact_ns(struct profile *p, enum fact_id id, uint64_t ns);

/* Adds @nr to the counter of a kind of loss. */
void profile_lose(struct profile *p, enum loss_kind kind, uint64_t nr);

#endif
