/*
 * What a recording says about itself: texts by key, one a key, in the order in which they came. For
 * those that have something to say of a profile and need not know what it is made of.
 *
 * Each fact that assay itself sets or asks for has an id here; the keys, which are what files hold
 * and people read, are in facts.c alone. Keys that come from files or other programs are texts.
 */
#ifndef ASSAY_MODEL_FACTS_H
#define ASSAY_MODEL_FACTS_H

#include "base/base.h"
#include "model/loss.h"

struct profile;

/* In no file: the order is free. */
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
	FACT_HEAP_METHOD,    /* the method: "patch", ..., and after ": " why this one */
	FACT_HEAP_SAMPLING,  /* "every allocation", or bytes between samples as a number */
	FACT_HEAP_ATTACHED,  /* "launch" or "attach" */
	FACT_HEAP_ENDED, /* "yes": the programs had ended when the capture did; absent: not known */
	FACT_HEAP_DUMP,  /* "cut short: ..."; absent = it is whole, or no dump */
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
	FACT_MEMORY_MACHINE, /* bytes */
	FACT_MEMORY_LIMIT,   /* bytes, of the cgroup; of `assay limit` a text; absent = none */
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
	/* readers of files of other programs */
	FACT_MASSIF_UNIT,
	FACT_MASSIF_OPTIONS,
	FACT_MASSIF_BAD_LINE,
	FACT_HEAPTRACK_BAD_LINE,
	FACT_FOLDED_ROUNDED,
	FACT_FOLDED_BAD_LINE,
	/* reports only, in no recording */
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
enum fact_id fact_from_key(const char *key); /* FACT_NR: none of ours */
/* What the recorder did beside its samples: only for -v, and for readers of JSON. */
bool fact_is_detail(const char *key, const char *value);

void profile_fact(struct profile *p, enum fact_id id, const char *value); /* replaces */
const char *profile_get_fact(const struct profile *p, enum fact_id id);   /* or NULL */
uint64_t profile_get_fact_nr(const struct profile *p, enum fact_id id);   /* 0: no number */
void profile_fact_text(struct profile *p, const char *key, const char *value);
const char *profile_get_fact_text(const struct profile *p, const char *key);

void profile_factf(struct profile *p, enum fact_id id, const char *fmt, ...) PRINTF(3, 4);
/* A number, unless it is 0; a time in words. */
void profile_fact_nr(struct profile *p, enum fact_id id, uint64_t nr);
void profile_fact_ns(struct profile *p, enum fact_id id, uint64_t ns);

/* Adds to what is missing. */
void profile_lose(struct profile *p, enum loss_kind kind, uint64_t nr);

#endif
