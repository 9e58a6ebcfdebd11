/*
 * Raw, time-stamped events as a source delivers them: addresses, registers and stack bytes, no
 * symbol names. Capture sources and readers of event files (perf.data) produce them; ingest/ builds
 * a profile from them. An event and everything it points to is valid only until the sink returns.
 *
 * Times are CLOCK_MONOTONIC nanoseconds in captures; files use the clock they were recorded with.
 */
#ifndef ASSAY_MODEL_EVENT_H
#define ASSAY_MODEL_EVENT_H

#include "base/base.h"
#include "base/err.h"
#include "model/loss.h"
#include "wait_reason.h"

struct kernel_pycode;
struct kernel_pystack;

enum event_kind {
	EVENT_SAMPLE = 1,
	EVENT_MAP,       /* an mmap event: code was mapped into a process */
	EVENT_COMM,      /* a thread's name; is_exec: it called execve */
	EVENT_FORK,      /* a thread or process was created */
	EVENT_EXIT,      /* a thread ended */
	EVENT_LOST,      /* the kernel dropped records because a ring buffer was full */
	EVENT_THROTTLE,  /* the kernel throttled sampling */
	EVENT_SWITCH,    /* a context switch: a thread went on or off a CPU */
	EVENT_MARK,      /* a named moment set by the user (assay mark) */
	EVENT_STACK,     /* the frames of a stack that other events refer to by reference */
	EVENT_PYCODE,    /* a Python function that Python frames refer to */
	EVENT_PYSTACK,   /* the Python frames of a stack, with a reference for both */
	EVENT_AGGREGATE, /* a table row that the source has already summed up (count, time, ...) */
};

/* Context markers in a call chain (linux/perf_event.h, PERF_CONTEXT_*). */
#define CHAIN_KERNEL ((uint64_t)-128)
#define CHAIN_USER   ((uint64_t)-512)
#define CHAIN_MAX    ((uint64_t)-4095) /* values from here on are markers, not addresses */

#define EVENT_BUILD_ID_MAX 20

struct event_sample {
	uint32_t spec;         /* which event: index into the source's specs */
	uint64_t ip;           /* sampled instruction pointer */
	uint64_t period;       /* weight: events or ns that this sample represents */
	bool is_user;          /* sampled in user mode */
	const uint64_t *chain; /* call chain, leaf first, with CHAIN_* markers; may be NULL */
	uint32_t nr_chain;
	/* User registers, in the order of the bits in regs_mask (wire/arch.h); NULL if none. */
	const uint64_t *regs;
	uint64_t regs_mask;
	bool is_compat; /* 32-bit task */
	/* Copied user stack from the stack pointer upwards; nr_stack bytes are valid. */
	const uint8_t *stack;
	uint64_t nr_stack;
	bool is_stack_full; /* the copy reached its size limit: the stack may be larger */
	uint64_t addr;      /* data address, if sampled */
	const uint8_t *raw; /* tracepoint payload */
	uint32_t nr_raw;
	/*
	 * References to stacks of earlier EVENT_STACK events, used instead of chain, regs and
	 * stack; 0 = none. For a sample in user mode, ip is the leaf and user_ref its callers; for
	 * one in kernel mode, kernel_ref and user_ref are the whole stack.
	 */
	uint64_t user_ref;
	uint64_t kernel_ref;
};

/*
 * The frames of a stack with a 64-bit reference, leaf first, in one of two forms: addresses that
 * the BPF programs unwound (chain), or registers and copied stack for the user-space unwinder
 * (regs). Sent once, and again if the BPF programs have dropped it from their set of sent stacks. A
 * reference is a hash of the address space and the frames, so it always denotes the same stack.
 */
struct event_stack {
	uint64_t ref;
	bool is_kernel;        /* a kernel stack; its callers are a user stack */
	bool is_callers;       /* chain[0] is a return address as well, not a leaf */
	const uint64_t *chain; /* without markers */
	uint32_t nr_chain;
	enum loss_kind loss; /* why the chain is truncated, or LOSS_NR if it is complete */
	/* Of a deep stack: after nr_inner frames, nr_gap_min frames or more are missing; 0: none. */
	uint32_t nr_inner;
	uint32_t nr_gap_min;
	const uint64_t *regs;
	uint64_t regs_mask;
	const uint8_t *stack;
	uint64_t nr_stack;
};

/*
 * A row of a table with tags. The event's time_ns is the start of the second for tables that are
 * aggregated by second (TABLE_TIME_SLICE), else the time at which it happened.
 */
struct event_aggregate {
	/* enum table_id, or TABLE_EVENTS + index of the event for events by name. Rows of tables
	 * that the capture does not record are dropped. */
	uint32_t spec;
	uint64_t user_ref;
	uint64_t kernel_ref;
	uint8_t reason;      /* enum wait_reason */
	uint8_t evidence;    /* enum wait_evidence */
	uint8_t log2_ns;     /* duration bucket: floor(log2(ns)); LOG2_NONE = none */
	uint16_t size_class; /* size class of blocks (model/heap.h), 0 = none */
	int16_t syscall;     /* -1 = none */
	const char *object;  /* NULL = none */
	const char *detail;  /* NULL = none */
	int32_t other_pid;   /* other thread, e.g. the waker; 0 = none */
	int32_t other_tid;
	uint64_t other_ref; /* reference of its user stack */
	int32_t direct_pid; /* struct tag.direct; 0 = none */
	int32_t direct_tid;
	uint64_t direct_ref;   /* reference of its user stack */
	const int64_t *values; /* one per column of the table */
};

struct event_map {
	uint64_t start;
	uint64_t len;
	uint64_t pgoff; /* offset in the file, bytes */
	uint32_t dev_major;
	uint32_t dev_minor;
	uint64_t inode; /* 0 = unknown (then build_id may be set) */
	uint8_t build_id[EVENT_BUILD_ID_MAX];
	uint8_t nr_build_id; /* 0 = unknown */
	bool is_exec;        /* executable mapping */
	bool is_kernel;      /* the kernel or a kernel module */
	bool is_symbol;      /* a function of the kernel (BPF programs): @path is its name */
	const char *path; /* as reported by the kernel, relative to the target's root directory */
};

struct event {
	enum event_kind kind;
	uint64_t time_ns;
	int32_t pid; /* process (tgid) and thread, in assay's PID namespace */
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
			/* Synthesized for a process that already ran when recording started: its
			 * mappings follow as events and are not copied from the parent. */
			bool is_synthesized;
		} fork;
		struct {
			uint64_t nr;     /* number of lost records */
			bool is_samples; /* all of them were samples (PERF_FORMAT_LOST) */
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
		/* As sent by the BPF programs, lengths checked (wire/kernel_python.h). */
		const struct kernel_pycode *pycode;
		const struct kernel_pystack *pystack;
	};
};

/* Returns an EVENT_COMM event for thread @tid; @name is borrowed. */
static inline struct event event_comm(int32_t pid, int32_t tid, uint64_t time_ns, const char *name)
{
	return (struct event){.kind = EVENT_COMM,
			      .time_ns = time_ns,
			      .pid = pid,
			      .tid = tid,
			      .cpu = -1,
			      .comm = {.name = name}};
}

/* Returns an EVENT_AGGREGATE event of @spec with borrowed @values; the caller sets the tags. */
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

/* Receives events. The function returns 0, or negative errno to stop the source with an error. */
struct event_sink {
	int (*event)(void *ctx, const struct event *ev, struct err *err);
	void *ctx;
};

#endif
