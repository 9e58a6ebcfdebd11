/*
 * Counting events by name: how each one is looked at (told to the programs through an array, one
 * element an event), what is added up in the kernel, and single events as they come through the
 * ring.
 */
#ifndef ASSAY_WIRE_KERNEL_EVENT_H
#define ASSAY_WIRE_KERNEL_EVENT_H

#include "kernel_record.h"
#include "wire_types.h"

#define COUNTS_EVENTS_MAX 1024
#define COUNTS_RAW_MAX    512 /* bytes of a payload that are kept with a single event */
#define COUNTS_RAW_SMALL  64  /* enough for most */
#define COUNTS_LOCS_MAX   2

enum count_flags {
	/* Also where no target runs: counted for the machine as a whole, without thread or stack.
	 */
	COUNT_MACHINE = 1 << 0,
	COUNT_KERNEL_STACK = 1 << 1,
	COUNT_NO_STACK = 1 << 2,
	/*
	 * Comes in interrupts, not in faults: where user code was left by itself, it was for one.
	 * (Interrupts of user code run on the thread's own stack.)
	 */
	COUNT_OF_INTERRUPTS = 1 << 4,
	COUNT_IN_THREAD = 1 << 5, /* never in an interrupt: system calls */
	COUNT_SINGLY = 1 << 3,    /* each hit through the ring; where that is full, added up */
};

/* What tells the hits of an event apart. */
enum count_outcome {
	OUTCOME_NONE = 0,
	OUTCOME_RETURN = 1,  /* a negative return value; 0 for all others */
	OUTCOME_COMMAND = 2, /* of a futex call: the operation without its flags */
	OUTCOME_STATE = 3,   /* of a switch: 1 = the thread blocked, 0 = it was preempted */
	OUTCOME_LETTER = 4,  /* of a block request: the first byte of its rwbs */
	OUTCOME_CALL = 5,    /* number of a system call */
};

struct count_config {
	wire_u32 flags;
	wire_u16 outcome_at; /* offset in the payload */
	wire_u8 nr_outcome;  /* bytes there: 1, 4, 8 */
	wire_u8 outcome;     /* enum count_outcome */
	wire_u16 amount_at;  /* what is added up besides the count; nr_amount 0 = nothing */
	wire_u8 nr_amount;   /* 4, 8 */
	wire_u8 amount_shift;
	wire_u16 nr_raw; /* of the payload's fixed part */
	wire_u16 nr_locs;
	wire_u16 loc_at[COUNTS_LOCS_MAX]; /* words that say where further bytes lie: len << 16 | at
					   */
};

/* The tid of a hit that is nobody's: in an interrupt, or in a thread that is no target. */
#define COUNT_ELSEWHERE (-1)

struct count_key {
	wire_u64 user_ref; /* 0 = none was taken */
	wire_u64 kernel_ref;
	wire_u32 slice; /* seconds since the capture's start */
	wire_u32 event;
	wire_s32 tgid;
	wire_s32 tid;
	wire_s32 outcome;
	wire_u32 pad;
};

struct count_value {
	wire_u64 nr;
	wire_u64 amount;
};

/* Per event and CPU. */
struct count_total {
	wire_u64 nr;        /* hits of targets, and with COUNT_MACHINE of all */
	wire_u64 nr_stacks; /* of them: with a stack */
	wire_u64 nr_full;   /* of them: added up here only, for want of room */
	wire_u64 full_amount;
	wire_u64 nr_singly;
	/* What stacks cost in the present tenth of a second, and how many hits are left out. */
	wire_u64 window;
	wire_u64 stack_ns;
	wire_u64 sparse; /* one of 2^sparse hits gets a stack */
};

struct kernel_event {
	struct kernel_record head;
	wire_u64 user_ref;
	wire_u64 kernel_ref;
	wire_u32 event;
	wire_s32 cpu;
	wire_s32 outcome;
	wire_u32 nr_raw;
	wire_u64 amount;
	wire_u8 raw[]; /* room for COUNTS_RAW_SMALL or COUNTS_RAW_MAX bytes */
};

#ifndef __bpf__
_Static_assert(sizeof(struct count_config) == 20, "config of an event");
_Static_assert(sizeof(struct count_key) == 40, "key of a sum");
_Static_assert(sizeof(struct count_total) == 64, "totals of an event");
_Static_assert(sizeof(struct kernel_event) == 64, "single event");
#endif

#endif
