/*
 * Between the recorder inside a target (inject/) and assay (capture/). Both sides are built from
 * this header; the image that is injected carries HEAP_WIRE_VERSION.
 *
 * Memory in the target:
 *	image   memfd "assay-heap": the ELF image of inject/, its text mapped to read and execute,
 *	        its data to read and write, both private. Stays after a detach and is used again by
 *	        the next attach. remote/patch/image.h knows what is where in it
 *	stubs   one page or more within reach of each patched function, to read and execute: the
 *	        displaced instructions and the jumps. They stay as well
 *	local   private anonymous memory with MADV_WIPEONFORK: struct heap_local and what only the
 *	        target itself uses (remembered stacks, the set of known stacks, the set of sampled
 *	        blocks). A child that is forked finds zeros: the recorder is inert in it
 *	shared  memfd "assay-heap-ring", sealed against resizing, MADV_DONTFORK: struct heap_shared,
 *	        slots, rings. Read and written by both sides
 *	tables  memfd "assay-heap-tables", sealed against resizing; the target maps it read-only:
 *	        struct ktables_head and rows (wire/kernel_tables.h), the process being space 0.
 *	        capture/bpf/kerneltables.h fills it
 *
 * Nothing that assay reads of it is believed: geometry is assay's own copy, heads are copied once
 * and checked, records are checked one by one. The target in turn never trusts a pointer in
 * shared memory.
 *
 * To stop: is_active = 0, then membarrier(MEMBARRIER_CMD_GLOBAL), then wait until no slot has
 * is_inside. The recorder sets is_inside, a compiler barrier, and looks at is_active again before
 * it writes anything. A thread may have been interrupted between its first look at is_active and
 * is_inside, for as long as the kernel likes. So:
 *	- local memory is never unmapped. Another attach may write into the one that is there if
 *	  all addresses and sizes stay as they are, and else leaves it as it is, inert, and maps
 *	  another (MADV_DONTNEED makes zeros of it: inert)
 *	- [shared, + shared_bytes) is not unmapped either, but replaced at one go by private
 *	  anonymous memory (mmap with MAP_FIXED | MAP_NORESERVE), to be replaced again by the ring
 *	  of the next attach
 *	- tables may go when nobody is inside; if somebody stays inside, they stay
 *
 * A thread is known by its thread pointer T (fs base; tpidr_el0), which is even. A slot belongs to
 * one thread pointer; the only writer of its ring is that thread. Its word `owner` is
 *	0                 never taken; the ring's size is said by who takes it first
 *	T                 taken
 *	T | 1             assay has learnt that the thread ended, and read all of its ring
 *	HEAP_OWNER_NONE   anybody may have it
 * and changes by compare-and-swap only. A thread finds its slot by going on from its home (a hash
 * of T) until one is its own, or never taken: no slot is that again.
 *
 * Thread pointers are used again: a thread may come with the T of one that has ended, and finds a
 * slot of its own. So T | 1 is not for others yet. Who has that T makes it T again at its next
 * event and says its own thread id. What nobody wanted for HEAP_RETIRE_NS becomes HEAP_OWNER_NONE,
 * if nobody is inside and nothing was written since. Two cannot write to one ring: a thread that is
 * about to sets is_inside, a compiler barrier, and looks at the owner. Either it sees T | 1 or what
 * came after, and does not write unless its swap T | 1 -> T succeeds, before which no other can
 * take the slot; or it looked before T | 1 was there, and its is_inside, earlier in its program, has
 * left the processor's store buffer long before assay looks, HEAP_RETIRE_NS later. (x86 lets a load
 * pass an earlier store for as long as that buffer is full, which is microseconds; whoever is
 * interrupted or scheduled away has emptied it.) A slot of which the thread died inside stays with
 * its T.
 *
 * A thread may still be on its way between its look at the owner and is_inside, for as long as the
 * kernel likes, and the memo may be another's by then. It can spoil its own event and the other's
 * that way, never a ring.
 *
 * Time is the time stamp counter; assay converts it. Records of one ring are in order of time;
 * rings are merged by it. Allocations are stamped after the allocator returned, frees before it is
 * called, so that a block's records are in order across threads.
 */
#ifndef ASSAY_WIRE_HEAP_WIRE_H
#define ASSAY_WIRE_HEAP_WIRE_H

#include "walk_end.h"
#include "wire_types.h"

#define HEAP_WIRE_MAGIC   0x70616568u /* "heap" */
#define HEAP_WIRE_VERSION 3u

#define HEAP_SITES_MAX  256 /* patched functions of one process */
#define HEAP_SLOTS_MAX  4096
#define HEAP_FRAMES_MAX 512 /* of a stack; deeper ones keep their leaf side */
#define HEAP_OWNER_NONE 1u
#define HEAP_RETIRE_NS  100000000u
/*
 * Address space is there for a large ring for each slot, but not the memory: only the slots that
 * are taken first use all of it.
 */
#define HEAP_WIDE_SLOTS   256u
#define HEAP_NARROW_PART  8u
#define HEAP_NARROW_BYTES 65536u /* no less than this, or than what there is */

/* What a function does with its arguments a0, a1, a2 (integers in order). */
enum heap_shape {
	HEAP_SHAPE_NONE = 0,
	HEAP_ALLOC_0 = 1,    /* block = f(size ...): malloc, valloc, mallocx, operator new */
	HEAP_ALLOC_1 = 2,    /* block = f(x, size ...): memalign, aligned_alloc, mi_heap_malloc */
	HEAP_ALLOC_01 = 3,   /* block = f(n, size): calloc */
	HEAP_ALLOC_12 = 4,   /* block = f(x, n, size): mi_heap_calloc */
	HEAP_ALLOC_OUT = 5,  /* int = f(&block, alignment, size): posix_memalign */
	HEAP_REALLOC_1 = 6,  /* block = f(block, size ...): realloc, rallocx */
	HEAP_REALLOC_12 = 7, /* block = f(block, n, size): reallocarray */
	HEAP_REALLOC_2 = 8,  /* block = f(x, block, size): mi_heap_realloc */
	HEAP_RESIZE = 9,     /* size = f(block, size, extra, flags), in place: xallocx */
	HEAP_FREE_0 = 10,    /* f(block ...): free, cfree, dallocx, sdallocx, operator delete */
	HEAP_MMAP = 11,
	HEAP_MUNMAP = 12,
	HEAP_MREMAP = 13,
	HEAP_BRK = 14,  /* int = brk(addr) */
	HEAP_SBRK = 15, /* old = sbrk(delta) */
	/* By which a program forbids the recorder what it does: no allocations. */
	HEAP_PRCTL = 16,   /* prctl(option, value ...) */
	HEAP_SYSCALL = 17, /* syscall(number, arguments ...) */
	HEAP_SHAPE_NR
};

/*
 * A stub jumps to the image's entry for its shape (symbol heap_entry_<shape>) with all argument
 * registers untouched and the site's number in r11 (x86-64; x16 on arm64). The entry calls
 * heap_data.original[site], which runs the displaced instructions and goes on behind them.
 *
 * Without sites (method PROF) original[0] is what jemalloc took stacks of samples with before.
 *
 * heap_data is in the image's data: it survives a fork. local == 0: inert.
 */
struct heap_data {
	wire_u32 magic;
	wire_u32 version;
	wire_u64 local; /* address of struct heap_local */
	wire_u64 original[HEAP_SITES_MAX];
	/*
	 * Of an operator new that throws (HEAP_ALLOC_0): the one with the same arguments and a
	 * std::nothrow behind, which is called in its place. If it fails, the original is called as
	 * if the recorder was not there. No exception can pass a frame of the image, as no unwinder
	 * knows of it. 0: none; a function that throws and has none cannot be patched.
	 */
	wire_u64 nothrow[HEAP_SITES_MAX];
};

/*
 * In local memory; written by assay before the first stub is in place. Zeros: inert. What belongs
 * to it (memos, stacks, blocks, rules) is zeros when an attach begins: all of it, except that
 * nr_blocks may be 0. Addresses are those of the target, page aligned.
 */
struct heap_local {
	wire_u32 is_active;  /* the one switch, written last; 0 is also written by the target */
	wire_u32 generation; /* of this attach, never 0; slots of another one are taken over */
	wire_u64 shared;
	wire_u64 slots_off;
	wire_u64 memos;     /* nr_slots x HEAP_MEMO_BYTES: the last stack of each slot's thread */
	wire_u32 nr_slots;  /* a copy: what is in shared memory is not trusted */
	wire_u32 flags;     /* enum heap_flags */
	wire_u32 is_every;  /* every allocation; else sampled */
	wire_u32 nr_blocks; /* set of sampled blocks: nr_blocks x u64, a power of two, from 64; 0:
			       none */
	wire_u64 blocks;    /* HEAP_BLOCKS_BYTES(nr_blocks) */
	wire_u64 interval_bytes;
	wire_u64 shared_bytes;
	wire_u64 rings_off;
	wire_u32 ring_bytes; /* a power of two, from 8192 */
	wire_u32 tid_off; /* where the thread's id (u32) is from its thread pointer; 0: not known */
	wire_u64 tables;  /* 0: no rules, frames by frame pointers */
	wire_u64 tables_rows; /* a power of two */
	wire_u64 rules;       /* of return addresses, looked up before: nr_rules x 16 bytes */
	wire_u32 nr_rules;    /* a power of two; HEAP_RULES_DEFAULT */
	wire_u32 nr_stacks;   /* set of known stacks: nr_stacks x u64, a power of two */
	wire_u64 stacks;
	/* The mapping of the stack of the process's first thread, as it is at the attach. */
	wire_u64 main_stack_lo;
	wire_u64 main_stack_hi;
	wire_u64 image_lo; /* of the image's text and the stubs: frames to leave out */
	wire_u64 image_hi;
	/* Of the allocator's code: frames to leave out on the leaf's side, for hooks. 0: none */
	wire_u64 skip_lo;
	wire_u64 skip_hi;
	wire_u64 silent_tsc; /* assay was silent for so long: inert */
	wire_u64 wait_tsc;   /* how long a full ring is waited for before a record is dropped */
	/* By the target: calls by which a stack may have gone that a thread knew to be there. */
	wire_u32 nr_unmaps;
	wire_u32 pad;
};

#define HEAP_MEMO_BYTES    65536
#define HEAP_RULES_DEFAULT 8192
#define HEAP_WAKE_PARTS    4
/* The set itself, and before it a bit for each of its words, as a filter. */
#define HEAP_BLOCKS_BYTES(nr_blocks) ((wire_u64)(nr_blocks)*8 + (nr_blocks) / 8)

enum heap_flags {
	HEAP_MAY_CALL_KERNEL =
		1 << 0, /* no seccomp filter: sched_yield, gettid, mincore may be used */
	/*
	 * rdfsbase may be used, until the first thread has a thread pointer. Without it the
	 * recorder reads fs:0 from the beginning: it must not be active before the C library has
	 * set the thread pointer of the first thread.
	 */
	HEAP_HAS_FSGSBASE = 1 << 1,
	/*
	 * fs:0 holds the thread pointer in all threads. The recorder finds out by itself where it
	 * may use rdfsbase, which takes ten times as long.
	 */
	HEAP_FS_IS_SET = 1 << 2,
};

/* What jemalloc's hooks are given as `extra`. */
enum heap_hook_extra {
	HEAP_HOOK_PLAIN = 0,
	HEAP_HOOK_PVALLOC = 1, /* 5.3.1: one more in the list of functions */
};

/* At offset 0 of shared memory. */
struct heap_shared {
	wire_u32 magic;
	wire_u32 version;
	wire_u64 alive_tsc; /* by assay, several times a second */
	wire_u8 pad0[48];
	/* By the target, with atomic additions (rare). */
	wire_u64 nr_no_slot;       /* events of threads for which there was no slot */
	wire_u64 nr_no_slot_bytes; /* of allocations among them */
	wire_u64 nr_no_stack;      /* the set of stacks was full: stack 0 */
	wire_u64 nr_no_block;      /* sampled, but no room in the set: its free will not be seen */
	wire_u64 went_inert_tsc;   /* 0, or when it fell silent because assay was */
	/*
	 * A futex: 0 while assay sleeps between two looks at the rings. Who finds its ring filled
	 * to more than a part in HEAP_WAKE_PARTS then makes it 1 and wakes.
	 */
	wire_u32 wake_futex;
	wire_u32 has_shut; /* the target forbade its threads the time stamp counter: inert */
	wire_u32 nr_taken; /* slots that were ever taken */
	wire_u8 pad1[12];
};

/* One for each thread; 128 bytes: what each side writes is a cache line of its own. */
struct heap_slot {
	/* By the target. */
	wire_u64 owner; /* see above */
	wire_u32 tid;
	wire_u32 generation; /* of the attach in which it was taken */
	wire_u64 head;       /* bytes ever written to the ring */
	wire_u32 is_inside;  /* the thread is in the recorder: shared memory may be in use */
	wire_u32 nr_dropped; /* records for which there was no room */
	wire_u64 nr_allocs;  /* exact, also when sampled: calls that gave a block */
	wire_u64 nr_bytes;
	wire_u64 nr_frees;
	wire_u64 dropped_bytes; /* of allocations among the dropped */
	/* By assay. */
	wire_u64 tail; /* bytes ever read */
	/* By the target, once: of its ring, a power of two from 8192. */
	wire_u32 ring_bytes;
	wire_u32 pad[13];
};

/*
 * Records: 8-byte words, never split at the end of a ring (HEAP_RECORD_PAD fills it).
 *	word 0   bits 0..3 kind, 4..11 site (HEAP_SITE_NONE: a hook), 12..63 the lower 52 bits
 *	         of the time stamp counter
 *	ALLOC    1: block (48 bits) | stack bits 0..15 << 48
 *	         2: size (48 bits) | stack bits 16..31 << 48
 *	FREE     1: block
 *	STACK    1: stack (32 bits) | frames << 32 | enum walk_end << 48
 *	         then the frames: return addresses, leaf first. Told before the first record that
 *	         names it, or in another ring at about that time; perhaps in several rings
 *	MAP      1: address | stack bits 0..15 << 48   2: length | stack bits 16..31 << 48
 *	UNMAP    1: address   2: length
 *	PAD      word 0 is HEAP_RECORD_PAD, the rest of the ring up to its end is to be skipped
 * A realloc that moved or resized is FREE (stamped before the call) and ALLOC. A failed one is
 * nothing. Stack 0: unknown.
 */
enum heap_record {
	HEAP_RECORD_PAD = 0,
	HEAP_RECORD_ALLOC = 1,
	HEAP_RECORD_FREE = 2,
	HEAP_RECORD_STACK = 3,
	HEAP_RECORD_MAP = 4,
	HEAP_RECORD_UNMAP = 5,
	HEAP_RECORD_NR
};
#define HEAP_KIND_MASK   0xfu
#define HEAP_SITE_SHIFT  4
#define HEAP_SITE_NONE   0xffu
#define HEAP_TSC_SHIFT   12
#define HEAP_TSC_BITS    52
#define HEAP_ADDR_BITS   48
#define HEAP_ADDR_MASK   (((wire_u64)1 << HEAP_ADDR_BITS) - 1)
#define HEAP_STACK_SHIFT 48

#if !defined(__bpf__) && !defined(__cplusplus)
_Static_assert(sizeof(struct heap_slot) == 128, "slot size");
_Static_assert(sizeof(struct heap_shared) == 128, "shared head size");
#endif

#endif
