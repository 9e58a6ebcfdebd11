/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Per-thread stack cache (task storage): results of earlier walks of the user stack.
 *
 * The result of a walk depends only on the registers at its start, the process's mappings, and the
 * stack words that it read. An entry stores these with the reference of the stack that was found.
 * If all of them are unchanged, the entry is valid and the stack is not walked again.
 * stack_cache.bpf.h has the functions.
 */
#ifndef ASSAY_BPF_STACK_CACHE_STATE_H
#define ASSAY_BPF_STACK_CACHE_STATE_H

#include <linux/types.h>

/*
 * Which cache entry a caller uses: a thread tends to repeat its last stack of each kind. WAIT: at a
 * switch out of a CPU. WAKE: where it wakes another thread. EVENT: at any other event.
 */
enum stack_cache_slot {
	STACK_CACHE_WAIT = 0,
	STACK_CACHE_WAKE = 1,
	STACK_CACHE_EVENT = 2,
	STACK_CACHE_NR_SLOTS
};

#define STACK_CACHE_WORDS 40  /* a walk that read more words is not cached */
#define STACK_CACHE_SPAN  256 /* nor one that read further than so many words above sp */

/* One cached walk; sp, ip and fp are the registers at its start. */
struct stack_cache_entry {
	__u64 ip;
	__u64 sp;
	__u64 fp;
	__u64 ref;                    /* reference of the stack; 0: the entry is empty */
	__u64 words_hash;             /* of the stack words at offs */
	__u32 generation;             /* of the process's mappings */
	__u8 is_call;                 /* ip is a return address */
	__u8 nr;                      /* of offs */
	__u16 span;                   /* 1 + the largest of offs, in words */
	__u8 offs[STACK_CACHE_WORDS]; /* words that the walk read: distance from sp, in words */
};

/*
 * One entry for each slot; for waits two, since many threads alternate between two blocking calls.
 */
#define STACK_CACHE_WAIT_WAYS  2
#define STACK_CACHE_NR_ENTRIES (STACK_CACHE_NR_SLOTS + STACK_CACHE_WAIT_WAYS - 1)

#endif
