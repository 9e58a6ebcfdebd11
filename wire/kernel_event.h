/*
 * Counting of named events (bpf/counts.bpf.h): the configuration of each event, which user space
 * writes to an array with one element for each event; the rows that are summed up in the kernel;
 * and single events as they come through the ring.
 */
#ifndef ASSAY_WIRE_KERNEL_EVENT_H
#define ASSAY_WIRE_KERNEL_EVENT_H

#include "kernel_record.h"
#include "wire_types.h"

#define COUNTS_EVENTS_MAX 1024
#define COUNTS_RAW_MAX    512 /* bytes of a payload that are kept with a single event */
#define COUNTS_RAW_SMALL  64  /* enough for most */
#define COUNTS_LOCS_MAX   2   /* __data_loc fields that are read */

enum count_flags {
	/* Machine-wide: hits in threads that are not targets count too, without thread or stack. */
	COUNT_MACHINE = 1 << 0,
	COUNT_KERNEL_STACK = 1 << 1,
	COUNT_NO_STACK = 1 << 2,
	/*
	 * Occurs in interrupts, never in page faults. So if user mode was left without a system
	 * call, it was for an interrupt, and the hit is not the thread's. (Interrupts of user mode
	 * begin on the thread's own kernel stack.)
	 */
	COUNT_OF_INTERRUPTS = 1 << 4,
	COUNT_IN_THREAD = 1 << 5, /* never in an interrupt: system calls */
	COUNT_SINGLY = 1 << 3,    /* each hit is sent through the ring; summed up if it is full */
};

/* How the outcome, by which hits of an event are distinguished, is derived from the payload. */
enum count_outcome {
	OUTCOME_NONE = 0,
	OUTCOME_RETURN = 1,  /* a negative return value; 0 for all others */
	OUTCOME_COMMAND = 2, /* of a futex call: the operation without its flags */
	OUTCOME_STATE = 3,   /* of a context switch: 1 = blocked, 0 = preempted */
	OUTCOME_LETTER = 4,  /* of a block request: the first byte of its rwbs */
	OUTCOME_CALL = 5,    /* number of a system call */
};

/* Configuration of an event. Offsets are in bytes from the start of the tracepoint's payload. */
struct count_config {
	wire_u32 flags;       /* enum count_flags */
	wire_u16 outcome_at;  /* offset of the field for the outcome */
	wire_u8 nr_outcome;   /* size of that field in bytes: 1, 4, 8 */
	wire_u8 outcome;      /* enum count_outcome */
	wire_u16 amount_at;   /* offset of a field that is summed up besides the count */
	wire_u8 nr_amount;    /* size of that field in bytes: 4, 8; 0 = no amount */
	wire_u8 amount_shift; /* amount = field << amount_shift */
	wire_u16 nr_raw;      /* bytes of the payload's fixed part */
	wire_u16 nr_locs;     /* of loc_at */
	wire_u16 loc_at[COUNTS_LOCS_MAX]; /* offsets of __data_loc words: length << 16 | offset */
};

/* tgid and tid of a hit in an interrupt, or in a thread that is not a target. */
#define COUNT_ELSEWHERE (-1)

/* Sums are those of slices of this length, which are read when they have ended. */
#define COUNT_SLICE_NS 500000000u

/* Key of a sum. */
struct count_key {
	wire_u64 user_ref;   /* user stack reference, 0 = no stack was taken */
	wire_u64 kernel_ref; /* kernel stack reference, 0 = no stack was taken */
	wire_u32 slice_idx;  /* slice of the hits, from the capture's start */
	wire_u32 event;      /* index of the event */
	wire_s32 tgid;       /* or COUNT_ELSEWHERE */
	wire_s32 tid;        /* or COUNT_ELSEWHERE */
	wire_s32 outcome;    /* see enum count_outcome */
	wire_u32 pad;
};

struct count_value {
	wire_u64 nr;     /* of hits */
	wire_u64 amount; /* sum of their amounts */
};

/* Totals of an event on one CPU. */
struct count_total {
	wire_u64 nr;          /* hits in targets; with COUNT_MACHINE all hits */
	wire_u64 nr_stacks;   /* hits of nr that have a stack */
	wire_u64 nr_full;     /* hits of nr counted only here, since the maps were full */
	wire_u64 full_amount; /* amount of these */
	wire_u64 nr_singly;   /* sent through the ring */
	/* Limit on the cost of stacks. */
	wire_u64 window;    /* number of the current window of 0.1 s */
	wire_u64 stack_ns;  /* time spent on stacks in that window */
	wire_u64 skip_log2; /* one of 2^skip_log2 hits gets a stack */
};

/* RECORD_EVENT: a single hit. Fields as in struct count_key. */
struct kernel_event {
	struct kernel_record head;
	wire_u64 user_ref;
	wire_u64 kernel_ref;
	wire_u32 event;
	wire_s32 cpu;
	wire_s32 outcome;
	wire_u32 nr_raw; /* valid bytes of raw */
	wire_u64 amount;
	wire_u8 raw[]; /* the payload; room for COUNTS_RAW_SMALL or COUNTS_RAW_MAX bytes */
};

#ifndef __bpf__
_Static_assert(sizeof(struct count_config) == 20, "config of an event");
_Static_assert(sizeof(struct count_key) == 40, "key of a sum");
_Static_assert(sizeof(struct count_total) == 64, "totals of an event");
_Static_assert(sizeof(struct kernel_event) == 64, "single event");
#endif

#endif
