/*
 * What a source saw, raw and time-stamped: addresses, registers and stack bytes, never names.
 * Live capture and the readers of event files (perf.data) produce these; ingest/ turns them into
 * a profile. An event and everything that it points to is valid only until the sink returns.
 *
 * Times are CLOCK_MONOTONIC nanoseconds where the source could choose, else the file's own clock.
 */
#ifndef ASSAY_MODEL_EVENT_H
#define ASSAY_MODEL_EVENT_H

#include "base/base.h"
#include "base/err.h"
#include "model/loss.h"
#include "wait_reason.h"

enum event_kind {
	EVENT_SAMPLE = 1,
	EVENT_MAP,       /* code was mapped */
	EVENT_COMM,      /* a thread's name; is_exec: the process image was replaced */
	EVENT_FORK,      /* a thread or process was born */
	EVENT_EXIT,      /* a thread ended */
	EVENT_LOST,      /* the kernel dropped records */
	EVENT_THROTTLE,  /* the kernel paused sampling */
	EVENT_SWITCH,    /* a thread went on or off a CPU */
	EVENT_MARK,      /* a phase boundary set by the user */
	EVENT_STACK,     /* the frames of a stack that other events refer to */
	EVENT_AGGREGATE, /* what the kernel added up: so many, so much, of one kind in one second */
};

/* Markers inside a call chain, as the kernel writes them (perf_event.h, PERF_CONTEXT_*). */
#define CHAIN_KERNEL ((uint64_t)-128)
#define CHAIN_USER   ((uint64_t)-512)
#define CHAIN_MAX    ((uint64_t)-4095) /* this and above: a marker, not an address */

#define EVENT_BUILD_ID_MAX 20

struct event_sample {
	uint32_t spec;         /* which event: index into the source's specs */
	uint64_t ip;           /* where it hit */
	uint64_t period;       /* weight: events or ns that this sample stands for */
	bool is_user;          /* hit in user mode */
	const uint64_t *chain; /* leaf first, with CHAIN_* markers; may be NULL */
	uint32_t nr_chain;
	/* User registers in the kernel's order of bits in regs_mask (wire/arch.h); NULL if none. */
	const uint64_t *regs;
	uint64_t regs_mask;
	bool is_compat; /* 32-bit task */
	/* Copied user stack from the stack pointer upwards; nr_stack bytes are valid. */
	const uint8_t *stack;
	uint64_t nr_stack;
	bool is_stack_full; /* the copy filled its space: there was more */
	uint64_t addr;      /* data address, if asked for */
	const uint8_t *raw; /* tracepoint payload */
	uint32_t nr_raw;
	/*
	 * Stacks told by EVENT_STACK before, instead of chain, regs and stack; 0 = none. In user
	 * mode user_ref holds the callers, ip is the leaf; in the kernel user_ref and kernel_ref
	 * hold everything.
	 */
	uint64_t user_ref;
	uint64_t kernel_ref;
};

/*
 * The frames behind a 64-bit reference, leaf first, in one of two forms: addresses that the
 * kernel side found (chain), or registers and copied stack for the walker (regs). Told once, or
 * again when the kernel side had forgotten it. A reference is a hash of the process's address
 * space and the frames, so it never changes its meaning.
 */
struct event_stack {
	uint64_t ref;
	bool is_kernel;        /* kernel addresses; they go on top of a user stack */
	bool is_callers;       /* chain[0] is a return address too */
	const uint64_t *chain; /* no markers */
	uint32_t nr_chain;
	enum loss_kind loss; /* of a chain: why it ends before the thread's start, or LOSS_NR */
	const uint64_t *regs;
	uint64_t regs_mask;
	const uint8_t *stack;
	uint64_t nr_stack;
};

/*
 * A row of a table with tags; time_ns is the start of its second where rows are added up by second
 * (TABLE_TIME_SLICE), else the moment.
 */
struct event_aggregate {
	/* enum table_id, or TABLE_EVENTS + index of the event for events by name. Rows of a table
	 * that the capture did not ask for are dropped. */
	uint32_t spec;
	uint64_t user_ref;
	uint64_t kernel_ref;
	uint8_t reason;      /* enum wait_reason */
	uint8_t evidence;    /* enum wait_evidence */
	uint8_t log2_ns;     /* class of duration; LOG2_NONE = none */
	uint16_t size_class; /* model/heap.h, 0 = none */
	int16_t syscall;     /* -1 = none */
	const char *object;  /* NULL = none */
	const char *detail;  /* NULL = none */
	int32_t other_pid;   /* 0 = none */
	int32_t other_tid;
	uint64_t other_ref;    /* user stack of the other thread */
	const int64_t *values; /* as many as the table has columns */
};

struct event_map {
	uint64_t start;
	uint64_t len;
	uint64_t pgoff; /* bytes into the file */
	uint32_t dev_major;
	uint32_t dev_minor;
	uint64_t inode; /* 0 when unknown (then build_id may be there) */
	uint8_t build_id[EVENT_BUILD_ID_MAX];
	uint8_t nr_build_id; /* 0 = unknown */
	bool is_exec;        /* executable mapping; others are not code */
	bool is_kernel;      /* the kernel or a module */
	const char *path;    /* as the kernel says it, in the target's root */
};

struct event {
	enum event_kind kind;
	uint64_t time_ns;
	int32_t pid; /* process (tgid) and thread, in the recorder's namespace */
	int32_t tid;
	int32_t cpu; /* -1 = unknown */
	union {
		struct event_sample sample;
		struct event_map map;
		struct {
			const char *name;
			bool is_exec;
		} comm;
		struct {
			int32_t ppid;
			int32_t ptid;
			/* Told after the fact: its mappings are told as well, none come from the
			 * parent. */
			bool is_past;
		} fork;
		struct {
			uint64_t nr;     /* records */
			bool is_samples; /* known to have been samples (FORMAT_LOST) */
		} lost;
		struct {
			bool is_out;
			bool is_preempt;
		} sw;
		struct {
			const char *text;
		} mark;
		struct event_stack stack;
		struct event_aggregate aggregate;
	};
};

/* The name of thread @tid, borrowed. */
static inline struct event event_comm(int32_t pid, int32_t tid, uint64_t time_ns, const char *name)
{
	return (struct event){.kind = EVENT_COMM,
			      .time_ns = time_ns,
			      .pid = pid,
			      .tid = tid,
			      .cpu = -1,
			      .comm = {.name = name}};
}

/* A row of @spec with borrowed @values; what else applies to it is for the caller to set. */
static inline struct event event_aggregate(uint32_t spec, int32_t pid, int32_t tid,
					   uint64_t time_ns, const int64_t *values)
{
	return (struct event){
		.kind = EVENT_AGGREGATE,
		.time_ns = time_ns,
		.pid = pid,
		.tid = tid,
		.cpu = -1,
		.aggregate = {.spec = spec, .log2_ns = LOG2_NONE, .syscall = -1, .values = values}};
}

/* Receives events; returns 0, or negative to stop the source with an error. */
struct event_sink {
	int (*event)(void *ctx, const struct event *ev, struct err *err);
	void *ctx;
};

#endif
