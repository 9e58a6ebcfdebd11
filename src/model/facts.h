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
#include "base/text/num.h"
#include "model/loss.h"

struct profile;

/* The numbers are not stored in files, so the order may change. */
enum fact_id {
	/* the recording */
	FACT_RECORDER,
	FACT_KIND,
	FACT_SOURCE, /* the program or format that a file of another program came from */
	FACT_HOST,
	FACT_KERNEL,
	FACT_ARCH,
	FACT_CPU,
	FACT_CPUS,
	FACT_TARGET,
	FACT_CONTAINER, /* names; of several containers each of these facts lists all */
	FACT_CONTAINER_IMAGE,
	FACT_CONTAINER_ENGINE, /* docker, podman, ... */
	FACT_CONTAINER_ID,
	FACT_JOINED,       /* processes that joined the container, cgroup or user meanwhile */
	FACT_STARTED_WHEN, /* the condition that the capture waited for, and its values */
	FACT_TARGET_END, /* "killed by SIGKILL"; absent: it exited, still ran, or it is not known */
	FACT_EXIT_STATUS, /* of the launched command, if no signal killed it */
	FACT_COMMAND,     /* its program; with --with-args its arguments, too */
	FACT_PAGE_OF,     /* the input is an HTML page: the name of its recording, or "" */
	FACT_REDACTED,    /* what was removed before the file was shared (redact.h) */
	FACT_EVENT,
	FACT_FREQUENCY,
	FACT_MODE,    /* "user only" or "user and kernel" */
	FACT_STACKS,  /* how call stacks were recorded */
	FACT_JIT_MAP, /* with --jit-map: which map was written, or why none was */
	FACT_PYTHON, /* why frames of Python code are missing; absent: there is none, or all are read */
	FACT_TAIL_CALLS, /* shares of the tables whose stacks have inferred frames */
	FACT_CPU_TIME,
	FACT_CPU_TIME_NS,  /* the same in ns; rows of samples are scaled to it */
	FACT_THROTTLED_NS, /* threads were held back by the CPU quota of their cgroup */
	FACT_OTHER_CPU, /* programs outside of the target: "1.73 CPUs: stress-ng 1.20, cc1 0.43" */
	FACT_ACCURACY,
	FACT_NOT_RECORDED,   /* parts that were to be recorded, and why they are not */
	FACT_REMEDY,         /* how to make a later capture more accurate */
	FACT_PROBLEM,        /* what is wrong with the file that was read */
	FACT_DAMAGED,        /* what a damaged recording lacks, of which the end is there */
	FACT_RECORDING_NOTE, /* "written by a newer assay: N sections skipped" */
	FACT_LOSSES_IGNORED, /* counters of losses that are not plausible, as a sentence */
	FACT_DUMPS,          /* the dumps of a folder that were read */
	FACT_STEAL, /* CPU time of all CPUs that the hypervisor took by the kernel's account, ns */
	FACT_NO_ANSWER, /* files that did not answer in time: "'/mnt/a', '/mnt/b'" */
	/* the heap */
	FACT_HEAP_ALLOCATOR, /* "jemalloc 5.3.0, static, prefix _rjem_" */
	FACT_HEAP_METHOD,    /* "patch", ...; after ": " the reason for this method */
	FACT_HEAP_SAMPLING,  /* "every allocation", or the sampling interval in bytes */
	FACT_HEAP_ATTACHED,  /* "launch" or "attach" */
	FACT_HEAP_SLICES,    /* start of the first slice of time (heap.h), ns after the start */
	FACT_HEAP_TICK,      /* resolution of allocation times, ns; absent: a second (heap.h) */
	FACT_HEAP_ENDED, /* "yes": all processes exited before the capture ended; absent: not known */
	FACT_HEAP_PROGRAMS_ENDED, /* number of them that ended, or executed another, before others */
	FACT_HEAP_KILLED,         /* number of recorded processes that a signal killed */
	FACT_HEAP_DUMP, /* "truncated: ..."; absent: the dump is complete, or there is none */
	FACT_HEAP_DUMP_BAD_LINE,
	FACT_HEAP_ALLOCATIONS,
	FACT_HEAP_BYTES,
	FACT_HEAP_FREES,
	FACT_HEAP_FULL_FOR, /* sampled: the part that was recorded in full, as text */
	FACT_HEAP_SIZES, /* sampled: exact counts by class (heap_count.h), "class:nr:bytes ..." */
	FACT_HEAP_CHECK, /* bytes by sampling compared with bytes counted */
	FACT_HEAP_PROCESSES,
	FACT_HEAP_UNPATCHED_NAME,
	FACT_HEAP_LOADED_LATER,     /* a library with an allocator, loaded during the capture */
	FACT_HEAP_RECORDER_STOPPED, /* "yes": a recorder stopped: assay got no CPU for 2 s */
	FACT_HEAP_RECORDED_UNTIL,   /* the event that ended the recording early, as text */
	FACT_HEAP_THREADS_STOPPED,
	FACT_HEAP_LONGEST_THREAD_STOP,
	FACT_HEAP_LONGEST_STOP,
	FACT_HEAP_RING_READING,
	FACT_HEAP_LONGEST_GAP, /* longest time between two drains of a ring */
	FACT_HEAP_TABLE_BYTES,
	FACT_HEAP_PROBES,
	FACT_GROWTH, /* how page faults were counted for the growth of memory */
	/* memory */
	FACT_MEMORY_MACHINE, /* RAM of the machine, bytes */
	FACT_MEMORY_LIMIT,   /* limit of the cgroup, bytes; `assay limit`: a text; absent: none */
	FACT_MEMORY_PEAK,
	FACT_AT_LIMIT,
	FACT_OUT_OF_MEMORY,
	FACT_OOM_KILL,        /* time of the last OOM kill, ns after the start of the recording */
	FACT_MEMORY_PEAK_RSS, /* bytes, of the process with most, as the kernel counted */
	FACT_MEMORY_REFUSED,
	FACT_MEMORY_READINGS,
	FACT_MEMORY_PARTS, /* the RSS breakdown at the end, as text: see watchpage.c */
	FACT_MEMORY_PRESSURE,
	FACT_MEMORY_CGROUP,
	/* input and output, waits, events, spans */
	FACT_DISK_READS, /* "4.58 GiB from disk, 7.43 MiB for each of 631 major faults ..." */
	FACT_IO_NOTHING, /* no call was recorded: what the kernel's own counters say, and why */
	FACT_IO_SYNCS_ONLY, /* reads and writes were not recorded one by one: the kernel's own counters */
	FACT_IO_CALLS_AT_START,
	FACT_BLOCK_IN_FLIGHT,
	FACT_EVENTS_WITH_STACKS,
	FACT_EVENTS_OF_MACHINE,
	FACT_EVENTS_SINGLE_FOR, /* how long single events were recorded, a duration */
	FACT_EVENTS_REFUSED,
	FACT_NEVER_CALLED,
	FACT_INTERVALS, /* which single waits were kept, if not all */
	/* readers of files that other programs wrote */
	FACT_MASSIF_UNIT,
	FACT_MASSIF_OPTIONS,
	FACT_MASSIF_LAST_SITES, /* the last snapshot with sites, if it is not the last one */
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
	FACT_MARKS, /* why no mark can be set; not set: marks can be set */
	FACT_NR
};

const char *fact_key(enum fact_id id);
enum fact_id fact_from_key(const char *key); /* FACT_NR: not a fact with an id */
/* Whether a fact is a technical detail, shown only with --details and in JSON. */
bool fact_is_detail(const char *key, const char *value);
/* Whether first pages omit a fact: details, and how and where the recording was made. */
bool fact_is_second(const char *key, const char *value);

/*
 * Facts that are stored as a number of ns or bytes: sets what to show for key and value, "throttled by CPU
 * quota" and "12.3 ms"; else the texts themselves. *ret_value is borrowed from @scratch or @value.
 */
const char *fact_shown(const char *key, const char *value, struct num_text *scratch,
		       const char **ret_value);

/* Set or read a fact by id. Values are copied; setting replaces; returned texts are borrowed. */
void profile_fact(struct profile *p, enum fact_id id, const char *value);
const char *profile_get_fact(const struct profile *p, enum fact_id id); /* NULL: not set */
uint64_t profile_get_fact_nr(const struct profile *p, enum fact_id id); /* 0: not a number */
/* The same by key. */
void profile_fact_text(struct profile *p, const char *key, const char *value);
const char *profile_get_fact_text(const struct profile *p, const char *key);

void profile_factf(struct profile *p, enum fact_id id, const char *fmt, ...) PRINTF(3, 4);
/* Sets a fact to @nr in decimal; does nothing if @nr is 0. */
void profile_fact_nr(struct profile *p, enum fact_id id, uint64_t nr);
/* Sets a fact to a duration with its unit: "1.50 ms" (num_ns). */
void profile_fact_ns(struct profile *p, enum fact_id id, uint64_t ns);

/* Adds @nr to the counter of a kind of loss. */
void profile_lose(struct profile *p, enum loss_kind kind, uint64_t nr);

#endif
