/*
 * Types that all files of the recorder share: the call in progress, the per-thread state, the
 * frames of the thread's last stack. wire/heap_wire.h describes the memory that assay sets up; this
 * header describes the data in it that only the recorder uses.
 */
#ifndef ASSAY_INJECT_HEAP_RECORDER_H
#define ASSAY_INJECT_HEAP_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap_wire.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE    __attribute__((noinline))
#define ONCE(x)     (*(volatile __typeof__(x) *)&(x))
/* Compiler barrier: orders for signal handlers of this thread, and for a thread that calls
 * membarrier. */
#define BARRIER() __asm__ volatile("" : : : "memory")

/*
 * A call of a patched function in progress; heap_entry.S builds it on the program's stack, directly
 * below the saved rbp and the return address.
 */
struct heap_call {
	uint64_t args[6];
	uint64_t rax;
	uint64_t site;
	struct heap_thread_state *thread; /* NULL: no work after the call */
	struct heap_local *local;
	uint64_t unused;
	uint64_t tsc;   /* time stamp counter before the call, if needed */
	uint64_t block; /* realloc: the old block; brk: the old break */
	uint64_t flags; /* enum call_flags */
	uint64_t result;
	uint64_t rdx;
	uint64_t caller_fp;
	uint64_t caller_pc;
};
_Static_assert(offsetof(struct heap_call, thread) == 64, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_call, result) == 112, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_call, caller_fp) == 128, "known to heap_entry.S");

enum call_flags {
	/*
	 * If the call succeeds, write a FREE record: the old block was removed from the set of
	 * sampled blocks.
	 */
	CALL_RECORDS_FREE = 1 << 0,
};

/*
 * A frame of the thread's last stack, and how the next walk checks that it is unchanged: the word
 * at sp - 8 is still pc and, if the value of fp matters, the word at fp_at is still fp. Split in
 * two structs because most comparisons need only the first.
 */
struct heap_frame {
	uint64_t pc; /* 48 bits | FRAME_* bits */
	uint64_t sp;
};
struct heap_origin {
	uint64_t fp;
	uint64_t fp_at; /* address where fp was loaded from; 0: not loaded, or irrelevant */
	uint64_t hash;  /* of this frame and all outer ones */
};
#define FRAME_NEEDS_FP ((uint64_t)1 << 48) /* unwinding it or an outer frame uses fp */
#define FRAME_HAS_WORD ((uint64_t)1 << 49) /* the word at fp_at must be unchanged */
#define FRAME_HIDDEN   ((uint64_t)1 << 50) /* not recorded */
#define FRAME_COMPLEX  ((uint64_t)1 << 51) /* unwinding it used more than these two words */

static inline uint64_t frame_pc(const struct heap_frame *f)
{
	return f->pc & HEAP_ADDR_MASK;
}

#define HEAP_STACKCACHE_ENTRIES 1024u
#define HEAP_STACKCACHE_WAYS    4u
#define HEAP_STACKCACHE_WORDS   5056u

/*
 * The state of one thread: its call in progress, sampling, and the frames of its last stack.
 * `frames` is ordered from leaf to root and ends at index HEAP_FRAMES_MAX - 1. A walk collects new
 * frames from index 0 on until it reaches a frame of the last stack. Most events use only the first
 * cache line, whose layout heap_entry.S knows.
 */
struct heap_thread_state {
	struct heap_call
		*outer_call; /* outermost call in progress; calls nested in it do not count */
	uint64_t tp;         /* thread pointer of the owner; 0: none */
	struct heap_slot *slot;
	int64_t countdown;      /* bytes until the next sample point */
	uint64_t always_bytes;  /* allocations of at least this size are always recorded */
	uint32_t hash_mask;     /* slots of the set of sampled blocks - 1; 0: no set */
	uint32_t nr_nested;     /* consecutive calls nested in outer_call, without events */
	uint64_t nested_events; /* the slot's allocations + frees at the last of these calls */
	uint64_t inside_sp;     /* stack pointer at slot_enter, while slot.is_inside */
	uint64_t rng;           /* state of the random number generator */
	uint32_t is_full;       /* ring was full and the wait timed out: do not wait again */
	uint32_t ring_bytes;    /* size of the thread's ring */
	/* Range of memory around the stack pointer that is known to be readable. */
	uint64_t readable_lo;
	uint64_t readable_hi;
	/* The last stack. */
	uint64_t end_addr; /* address of the word that ended the walk; 0: none */
	uint64_t end_word;
	uint64_t outermost; /* the walk read no word above this */
	uint32_t generation;
	uint32_t top;   /* index of the leaf; HEAP_FRAMES_MAX: no stack known */
	uint32_t plain; /* no frame from this index on is FRAME_COMPLEX */
	uint32_t end;   /* enum walk_end */
	uint32_t stack; /* its stack id; 0: not looked up yet */
	uint32_t stackcache_next;
	uint64_t stackcache_key;  /* of the last walk if it missed the cache, else 0 */
	uint32_t readable_unmaps; /* local.nr_unmaps when the readable range was checked */
	uint32_t pad0;
	uint64_t pad[4];
	struct heap_frame frames[HEAP_FRAMES_MAX];
	struct heap_origin origins[HEAP_FRAMES_MAX];
	/* The stack cache; see heap_stackcache.h. */
	uint32_t stackcache_at[HEAP_STACKCACHE_ENTRIES];
	uint64_t stackcache[HEAP_STACKCACHE_WORDS];
};
_Static_assert(sizeof(struct heap_thread_state) <= HEAP_THREAD_STATE_BYTES, "thread size");
_Static_assert(HEAP_THREAD_STATE_BYTES == 1 << 16, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_thread_state, tp) == 8, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_thread_state, slot) == 16, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_thread_state, hash_mask) == 40, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_thread_state, frames) % 64 == 0, "cache line aligned");
_Static_assert(offsetof(struct heap_data, nothrow) == 16 + 256 * 8, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_local, shared) == 8, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_local, thread_states) == 24, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_shared, is_tsc_forbidden) == 108, "known to heap_entry.S");
_Static_assert(HEAP_SYSCALLS_ALLOWED == 1, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_local, nr_slots) == 32, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_local, flags) == 36, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_local, blocks) == 48, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_slot, owner) == 0, "known to heap_entry.S");
_Static_assert(offsetof(struct heap_slot, nr_frees) == 48, "known to heap_entry.S");

/* Multiplier of the 32-bit hashes; heap_entry.S uses the same. */
#define HASH_32 0x9e3779b1u

/* The context of one event. */
struct heap_ctx {
	struct heap_local *local;
	struct heap_slot *slot;
	struct heap_thread_state *thread;
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

/* System calls without errno. */
static inline int64_t heap_syscall6(int64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
				    uint64_t a4, uint64_t a5)
{
	int64_t ret = nr;
	register uint64_t r10 __asm__("r10") = a3;
	register uint64_t r8 __asm__("r8") = a4;
	register uint64_t r9 __asm__("r9") = a5;
	__asm__ volatile("syscall"
			 : "+a"(ret)
			 : "D"(a0), "S"(a1), "d"(a2), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline int64_t heap_syscall(int64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	return heap_syscall6(nr, a0, a1, a2, a3, 0, 0);
}

#endif
