/*
 * What the parts of the recorder share. Memory of assay's making is described in
 * wire/heap_wire.h; here is what the recorder keeps for itself in it.
 */
#ifndef ASSAY_INJECT_HEAP_INNER_H
#define ASSAY_INJECT_HEAP_INNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap_wire.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE    __attribute__((noinline))
#define ONCE(x)     (*(volatile __typeof__(x) *)&(x))
/* Order as another thread sees it after a membarrier, and as a signal handler here does. */
#define BARRIER() __asm__ volatile("" : : : "memory")

/*
 * A call in progress, on the program's stack; heap_entry.S knows the offsets. Behind it lie the
 * caller's rbp and the return address.
 */
struct heap_call {
	uint64_t args[6];
	uint64_t rax;
	uint64_t site;
	struct heap_memo *memo; /* NULL: nothing to do afterwards */
	struct heap_local *local;
	uint64_t unused;
	uint64_t tsc;   /* before the call, if it matters */
	uint64_t block; /* that was there before the call */
	uint64_t flags; /* enum call_flags */
	uint64_t result;
	uint64_t rdx;
	uint64_t caller_fp;
	uint64_t caller_pc;
};
_Static_assert(offsetof(struct heap_call, memo) == 64, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_call, result) == 112, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_call, caller_fp) == 128, "known to heap_entry.S");

enum call_flags {
	CALL_IS_FREE_REPORTED = 1 << 0, /* if it was in the set, it is not any more */
};

/*
 * A frame, and how it is known still to be there: the word below sp is pc, and if the value of fp
 * matters, the word at fp_at is fp. Two halves, as the first one is all that most comparisons need.
 */
struct heap_frame {
	uint64_t pc; /* 48 bits | enum frame_bits */
	uint64_t sp;
};
struct heap_origin {
	uint64_t fp;
	uint64_t fp_at; /* 0: nowhere, or it does not matter */
	uint64_t hash;  /* of this frame and all further out */
};
#define FRAME_NEEDS_FP ((uint64_t)1 << 48) /* it, or one further out without a value of its own */
#define FRAME_HAS_WORD ((uint64_t)1 << 49) /* fp_at matters */
#define FRAME_HIDDEN   ((uint64_t)1 << 50) /* not told */
#define FRAME_ODD      ((uint64_t)1 << 51) /* its caller is not found by these words alone */

static inline uint64_t frame_pc(const struct heap_frame *f)
{
	return f->pc & HEAP_ADDR_MASK;
}

#define HEAP_STACKCACHES      1024u
#define HEAP_STACKCACHE_WAYS  4u
#define HEAP_STACKCACHE_WORDS 5056u

/*
 * Of one thread: how it stands, and the frames of its last stack, the outermost last. New frames
 * are collected at the beginning until they meet one that is known. The first line of memory is
 * all that most events use; heap_entry.S knows it.
 */
struct heap_memo {
	struct heap_call *nest; /* the call that is in progress: those below are its own */
	uint64_t tp;            /* whose it is; 0: nobody's */
	struct heap_slot *slot;
	int64_t countdown;  /* bytes to the next sample */
	uint64_t always;    /* sizes from here on are recorded without a draw */
	uint32_t hash_mask; /* of the filter of sampled blocks; 0: every free is looked at */
	uint32_t nr_nested; /* within the call nest, and what the slot had counted by then */
	uint64_t nested_at;
	uint64_t inside_at; /* stack pointer in the recorder, while slot.is_inside */
	uint64_t rng;
	uint32_t is_full; /* the ring was, and waiting was of no use */
	uint32_t ring_bytes;
	/* Readable memory around the stack pointer, whole pages. */
	uint64_t ok_lo;
	uint64_t ok_hi;
	/* The last stack. */
	uint64_t end_at; /* where the word is that ended it; 0: none did */
	uint64_t end_word;
	uint64_t outermost; /* no word above this is needed */
	uint32_t generation;
	uint32_t top;   /* index of the leaf; HEAP_FRAMES_MAX: nothing known */
	uint32_t plain; /* from here on no frame is odd */
	uint32_t end;   /* enum walk_end */
	uint32_t stack; /* its number; 0: to be looked up */
	uint32_t stackcache_next;
	uint64_t
		stackcache_key; /* of the last walk, if it looked for its stack and did not find it */
	uint32_t ok_unmaps;     /* local.nr_unmaps when ok_lo..ok_hi was */
	uint32_t pad0;
	uint64_t pad[4];
	struct heap_frame frames[HEAP_FRAMES_MAX];
	struct heap_origin origins[HEAP_FRAMES_MAX];
	/* Earlier stacks; see heap_stackcache.h. */
	uint32_t stackcache_at[HEAP_STACKCACHES];
	uint64_t stackcache[HEAP_STACKCACHE_WORDS];
};
_Static_assert(sizeof(struct heap_memo) <= HEAP_MEMO_BYTES, "memo size");
_Static_assert(HEAP_MEMO_BYTES == 1 << 16, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_memo, tp) == 8, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_memo, slot) == 16, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_memo, hash_mask) == 40, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_memo, frames) % 64 == 0, "in lines of memory");
_Static_assert(offsetof(struct heap_data, nothrow) == 16 + 256 * 8, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_local, shared) == 8, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_local, memos) == 24, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_shared, has_shut) == 108, "known to heap_entry.S");
_Static_assert(HEAP_MAY_CALL_KERNEL == 1, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_local, nr_slots) == 32, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_local, flags) == 36, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_local, blocks) == 48, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_slot, owner) == 0, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_slot, nr_frees) == 48, "known to heap_entry.S");

/* For places where a hash must be cheap: heap_entry.S has the same. */
#define HASH_32 0x9e3779b1u

/* What one event works with. */
struct heap_ctx {
	struct heap_local *local;
	struct heap_slot *slot;
	struct heap_memo *memo;
	struct heap_shared *shared;
	uint64_t tsc;
};

extern struct heap_data heap_data;

static inline uint64_t heap_tsc(void)
{
	uint32_t lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

static inline uint64_t heap_mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/* A system call without errno. */
static inline int64_t heap_syscall(int64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	int64_t ret = nr;
	register uint64_t r10 __asm__("r10") = a3;
	__asm__ volatile("syscall"
			 : "+a"(ret)
			 : "D"(a0), "S"(a1), "d"(a2), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

#endif
