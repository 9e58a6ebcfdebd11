/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is remembered of a thread's former walks. A walk follows from the registers that it began
 * with, the mappings, and the words of the stack that it read, and from nothing else: where all
 * of them are what they were, so is the stack.
 */
#ifndef ASSAY_BPF_STACK_MEMO_H
#define ASSAY_BPF_STACK_MEMO_H

#include <linux/types.h>

/* Which memory: threads come back to the same places in each of these. */
enum walk_slot { WALK_WAIT = 0, WALK_WAKE = 1, WALK_EVENT = 2, WALK_NR };

#define WALK_MEMO_WORDS 40  /* more than these were read: not remembered */
#define WALK_MEMO_SPAN  256 /* in words from the stack pointer upwards */

struct walk_memo {
	__u64 ip;
	__u64 sp;
	__u64 fp;
	__u64 ref;   /* 0: nothing remembered */
	__u64 words; /* hash of the words at offs */
	__u32 generation;
	__u8 is_call;
	__u8 nr;
	__u16 span; /* 1 + the largest of offs */
	__u8 offs[WALK_MEMO_WORDS];
};

/* One for each slot, and more for waits, as threads take turns in a few of them. */
#define WALK_WAIT_WAYS 2
#define WALK_NR_MEMOS  (WALK_NR + WALK_WAIT_WAYS - 1)

#endif
