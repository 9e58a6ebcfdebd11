/*
 * The shared-memory protocol between the heap recorder that runs inside a target (inject/) and
 * assay (src/capture/heap/, src/remote/patch/). Both sides include this header. The injected image
 * carries HEAP_WIRE_VERSION.
 *
 * Memory in the target:
 *	image   memfd "assay-heap": the ELF image built from inject/. Text is mapped r-x, data rw-,
 *	        both private. It stays mapped after a detach and the next attach uses it again. For
 *	        its layout see src/remote/patch/image.h
 *	stubs   memfd "assay-heap-stubs", mapped r-x, one or more pages within jump range of each
 *	        patched function: the displaced instructions and the jumps. They stay mapped as well
 *	local   private anonymous memory with MADV_WIPEONFORK: struct heap_local and data that only
 *	        the target uses (per-thread state, set of known stacks, set of sampled blocks). A
 *	        forked child sees zeros, so the recorder does nothing there
 *	shared  memfd "assay-heap-ring", sealed against resizing, MADV_DONTFORK: struct heap_shared,
 *	        slots, ring buffers. Both sides read and write it
 *	tables  memfd "assay-heap-tables", sealed against resizing, mapped read-only in the target:
 *	        struct ktables_head and unwind rows (wire/kernel_tables.h); the process is space 0.
 *	        Filled by src/capture/bpf/kerneltables.h
 *
 * Trust: assay keeps its own copy of the geometry, copies each ring head once and checks it, and
 * checks every record. The target never follows a pointer from shared memory.
 *
 * The recorder is "inert" while heap_data.local or heap_local.is_active is 0: patched functions
 * then only run their original code.
 *
 * To stop recording, assay sets is_active = 0, calls membarrier(MEMBARRIER_CMD_GLOBAL) and waits
 * until no slot has is_inside set. The recorder sets is_inside, executes a compiler barrier and
 * reads is_active again before it writes anything. A thread can be preempted for any time between
 * its first read of is_active and the store to is_inside. Therefore:
 *	- [shared, + shared_bytes) is not simply unmapped. One mmap with MAP_FIXED | MAP_NORESERVE
 *	  replaces it and the tables by private anonymous memory; local memory is zeroed
 *	  (MADV_DONTNEED), which is inert
 *	- assay then sets heap_data.local = 0 and looks for threads that may come back to the image or
 *	  the stubs: by their pc and by every word of their stacks (remote/patch/quiesce.h). If there
 *	  is none, all three are unmapped
 *	- else they stay mapped, empty. The next attach reuses them if all addresses and sizes are the
 *	  same, otherwise it maps other memory; the next detach tries again to unmap all
 *
 * A thread is identified by its thread pointer T (fs base; tpidr_el0), which is even. A slot
 * belongs to one thread pointer, and only that thread writes to the slot's ring. The states of
 * heap_slot.owner, changed by compare-and-swap only:
 *	0                 never used; the first owner chooses the size of the ring
 *	T                 in use by the thread with thread pointer T
 *	T | 1             retiring: assay saw that the thread ended, and has drained the ring
 *	HEAP_OWNER_FREE   free for any thread
 * A thread finds its slot by linear probing from its home slot (a hash of T): it stops at its own
 * slot or at one with owner 0. A used slot never returns to 0.
 *
 * Thread pointers are reused: a new thread may have the T of one that ended, and then finds that
 * thread's slot. A retiring slot (T | 1) is therefore not free yet: a thread with the same T
 * changes it back to T at its next event and stores its own thread id. If no thread claims it for
 * HEAP_RETIRE_NS, no thread is inside and nothing was written since, assay changes it to
 * HEAP_OWNER_FREE.
 *
 * Two threads never write to one ring. Before a write a thread sets is_inside, executes a compiler
 * barrier and reads the owner:
 *	- it reads T | 1 or a later state: it writes only if its swap T | 1 -> T succeeds, and
 *	  until then no other thread can take the slot
 *	- it read T before assay stored T | 1: its store to is_inside comes earlier in program
 *	  order and has left the store buffer when assay checks is_inside HEAP_RETIRE_NS later.
 *	  (x86 lets a load pass an earlier store only while that store is in the store buffer:
 *	  microseconds. An interrupt or a context switch drains it.)
 * If a thread dies while is_inside is set, its slot keeps T.
 *
 * A thread can also be preempted between its read of the owner and its store to is_inside, and its
 * heap_thread_state may belong to another thread afterwards. That can corrupt one event of each of
 * the two threads, but never a ring.
 *
 * Times are time stamp counter values; assay converts them. Records of one ring are in time order;
 * the reader merges rings by time. An allocation is stamped after the allocator returned, a free
 * before the allocator is called, so the records of one block are in order across threads.
 */
#ifndef ASSAY_WIRE_HEAP_WIRE_H
#define ASSAY_WIRE_HEAP_WIRE_H

#include "heap_count.h"
#include "walk_end.h"
#include "wire_types.h"

#define HEAP_WIRE_MAGIC   0x70616568u /* "heap" */
#define HEAP_WIRE_VERSION 5u
#define HEAP_WIRE_FILES   "memfd:assay-heap" /* how the names of all mappings begin */

#define HEAP_SITES_MAX  256 /* patched functions of one process */
#define HEAP_SLOTS_MAX  4096
#define HEAP_FRAMES_MAX 512 /* per stack; of a deeper stack the innermost frames are kept */
#define HEAP_OWNER_FREE 1u
#define HEAP_RETIRE_NS  100000000u
/*
 * Address space is reserved for a large ring per slot, memory is not: the first HEAP_LARGE_RINGS
 * slots in use have rings of heap_local.ring_bytes, later ones of
 * max(ring_bytes / HEAP_SMALL_RING_PART, min(ring_bytes, HEAP_SMALL_RING_BYTES)).
 */
#define HEAP_LARGE_RINGS      256u
#define HEAP_SMALL_RING_PART  8u
#define HEAP_SMALL_RING_BYTES 65536u

/*
 * The signature of a patched function: which of its integer arguments a0, a1, a2 are block and
 * size, and where the result is.
 */
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
	/* Not allocators: calls by which a program forbids itself system calls or rdtsc. */
	HEAP_PRCTL = 16,   /* prctl(option, value ...) */
	HEAP_SYSCALL = 17, /* syscall(number, arguments ...) */
	HEAP_SHAPE_NR
};

/*
 * The variables of the image that assay sets. A stub jumps to the image's entry for the shape of
 * its function (symbol heap_entry_<shape>) with all argument registers untouched and the site
 * number (index of the patched function, remote/patch/inject.h) in r11 (x86-64; x16 on arm64). The
 * entry calls heap_data.original[site], a trampoline that runs the displaced instructions and jumps
 * to the instruction after them.
 *
 * With method PROF no functions are patched, and original[0] is the backtrace function that
 * jemalloc's profiler used before.
 *
 * heap_data is in the image's data segment, so it survives a fork. local == 0: inert.
 */
struct heap_data {
	wire_u32 magic;
	wire_u32 version;
	wire_u64 local; /* address of struct heap_local */
	wire_u64 original[HEAP_SITES_MAX];
	/*
	 * For a throwing operator new (HEAP_ALLOC_0): the nothrow variant, with the same arguments
	 * followed by a std::nothrow. The entry calls it instead; if it returns NULL, the entry
	 * removes its frame and jumps to the original, which throws. An exception cannot propagate
	 * through a frame of the image, because no unwinder knows its unwind tables. 0: not a
	 * throwing function. A throwing function without a nothrow variant is not patched.
	 */
	wire_u64 nothrow[HEAP_SITES_MAX];
};

/*
 * The recorder's configuration, in local memory; assay writes it before the first stub is in
 * place. All zeros: inert. The memory it points to (thread_states, stacks, blocks, rules) is zeroed
 * when an attach begins. Addresses are in the target, page aligned. Of the counts only nr_blocks
 * may be 0.
 */
struct heap_local {
	wire_u32 is_active;  /* records; assay sets it last. The target may clear it */
	wire_u32 generation; /* of this attach, never 0; see heap_slot.generation */
	wire_u64 shared;
	wire_u64 slots_off;
	wire_u64
		thread_states; /* nr_slots x HEAP_THREAD_STATE_BYTES: the last stack of each slot's thread */
	wire_u32 nr_slots;      /* here, because shared memory is not trusted */
	wire_u32 flags;         /* enum heap_flags */
	wire_u32 is_full_trace; /* records every allocation; else samples */
	wire_u32
		nr_blocks; /* capacity of the set of sampled blocks, a power of two >= 64; 0: no set */
	wire_u64 blocks; /* HEAP_BLOCKS_BYTES(nr_blocks) */
	wire_u64 interval_bytes;
	wire_u64 shared_bytes;
	wire_u64 rings_off;
	wire_u32 ring_bytes; /* a power of two >= 8192 */
	wire_u32 tid_off;    /* offset of the thread id (u32) from the thread pointer; 0: unknown */
	wire_u64 tables;     /* 0: no unwind tables, frame pointers only */
	wire_u64 tables_rows; /* a power of two */
	wire_u64 rules;       /* cache of unwind rules by return address: nr_rules x 16 bytes */
	wire_u32 nr_rules;    /* a power of two; HEAP_RULES_DEFAULT */
	wire_u32 nr_stacks;   /* capacity of the set of known stacks (u64 each), a power of two */
	wire_u64 stacks;
	/* The mapping of the main thread's stack at the time of the attach. */
	wire_u64 main_stack_lo;
	wire_u64 main_stack_hi;
	wire_u64 image_lo; /* image text and stubs: frames in it are not recorded */
	wire_u64 image_hi;
	/* The allocator's code: hooks omit the innermost frames that are in it. 0: none */
	wire_u64 skip_lo;
	wire_u64 skip_hi;
	wire_u64
		assay_timeout_tsc; /* the recorder becomes inert when alive_tsc is older than this */
	wire_u64
		wait_tsc; /* how long a thread waits for room in its ring before it drops a record */
	/* Written by the target: number of munmap-like calls, after which a stack may be unmapped. */
	wire_u32 nr_unmaps;
	wire_u32 pad;
	/*
	 * Allocations of at least this size are recorded, whatever the sampling: interval_bytes, or 0
	 * for all. assay may change it from 0 to interval_bytes while the recorder is active.
	 */
	wire_u64 always_bytes;
	wire_u64
		pythons; /* nr_slots x HEAP_PYTHON_STATE_BYTES: Python frames of each slot's thread */
};

#define HEAP_THREAD_STATE_BYTES 65536
#define HEAP_PYTHON_STATE_BYTES 73728
#define HEAP_RULES_DEFAULT      8192
#define HEAP_WAKE_PARTS         4 /* the reader is woken when a ring is fuller than 1/4 */
/* A filter of one bit per word of the set, followed by the set. */
#define HEAP_BLOCKS_BYTES(nr_blocks) ((wire_u64)(nr_blocks)*8 + (nr_blocks) / 8)

enum heap_flags {
	HEAP_SYSCALLS_ALLOWED = 1 << 0, /* no seccomp filter: the recorder may make system calls */
	/*
	 * The rdfsbase instruction works; the recorder uses it until HEAP_FS0_IS_TP is set. Without
	 * this flag the recorder always reads fs:0, so it must not be active before the C library
	 * has set the thread pointer of the main thread.
	 */
	HEAP_HAS_FSGSBASE = 1 << 1,
	/*
	 * In all threads the word at fs:0 is the thread pointer. The recorder sets this flag itself
	 * when it sees it. rdfsbase takes ten times as long as the load.
	 */
	HEAP_FS0_IS_TP = 1 << 2,
};

/* The `extra` argument of jemalloc's hooks. */
enum heap_hook_extra {
	HEAP_HOOK_PLAIN = 0,
	HEAP_HOOK_PVALLOC = 1, /* jemalloc 5.3.1: its enum hook_alloc_e also has pvalloc */
};

/* Header at offset 0 of shared memory. */
struct heap_shared {
	wire_u32 magic;
	wire_u32 version;
	wire_u64 alive_tsc; /* assay stores the current time several times a second */
	wire_u8 pad0[48];
	/* Written by the target, with atomic additions (rare). */
	wire_u64 nr_no_slot;       /* events of threads that found no free slot */
	wire_u64 nr_no_slot_bytes; /* allocated bytes of these */
	/*
	 * Stacks not stored because the set of known stacks or the ring was full. Their events are
	 * recorded with stack id 0.
	 */
	wire_u64 nr_no_stack;
	wire_u64
		nr_no_block; /* sampled blocks for which the set was full: their frees are not recorded */
	wire_u64
		went_inert_tsc; /* when the recorder stopped because alive_tsc was too old; 0: it did not */
	/*
	 * A futex, 0 while assay sleeps between two drains. A thread whose ring is fuller than
	 * 1 / HEAP_WAKE_PARTS sets it to 1 and wakes assay.
	 */
	wire_u32 wake_futex;
	wire_u32
		is_tsc_forbidden; /* the target disabled rdtsc (strict seccomp, PR_SET_TSC): inert */
	wire_u32 nr_taken;        /* slots that were ever in use */
	wire_u32 pad1;
	/* Events in Python code whose Python frames could not be read or stored. */
	wire_u64 nr_no_python;
};

/* One per thread. What the target writes and what assay writes are different cache lines. */
struct heap_slot {
	/* Written by the target. */
	wire_u64 owner; /* see above; also written by assay */
	wire_u32 tid;
	wire_u32 generation; /* heap_local.generation when the slot was last claimed */
	wire_u64 head;       /* total bytes written to the ring */
	wire_u32 is_inside;  /* the thread is in the recorder and may use shared memory */
	wire_u32 nr_dropped; /* records that did not fit */
	wire_u64 nr_allocs;  /* successful allocation calls; exact also when sampled */
	wire_u64 unused;
	wire_u64 nr_frees;
	wire_u64 dropped_bytes; /* allocated bytes of dropped records */
	/* Written by assay. */
	wire_u64 tail; /* total bytes read */
	/* Written by the target once: size of its ring, a power of two >= 8192. */
	wire_u32 ring_bytes;
	wire_u32 pad[13];
	/* Written by the target: its allocations by size; exact also when sampled. */
	struct heap_class_count classes[HEAP_COUNT_CLASSES];
};

/*
 * Records are sequences of 8-byte words. A record never wraps around the end of a ring:
 * HEAP_RECORD_PAD fills the rest.
 *	word 0   bits 0..3 kind, 4..11 site (HEAP_SITE_NONE: a hook), 12..63 the low 52 bits
 *	         of the time stamp counter
 *	ALLOC    1: block (48 bits) | stack id bits 0..15 << 48
 *	         2: size (48 bits) | stack id bits 16..31 << 48
 *	ALLOC_ALL  the same, recorded while all allocations were (always_bytes 0 in a sampled recording)
 *	FREE     1: block
 *	STACK    1: stack id (32 bits) | number of frames << 32 | enum walk_end << 48
 *	         then the frames: return addresses, leaf first. Written before the first record
 *	         that refers to the id, or to another ring at about that time; may be written to
 *	         several rings
 *	PYCODE   1: number of bytes, a struct kernel_pycode (kernel_python.h) with a part of its
 *	         lines follows. Written before the first PYSTACK with its key, as STACK
 *	PYSTACK  1: stack id (32 bits) | id of the native stack << 32
 *	         2: number of frames | enum python_end << 32
 *	         then each struct python_frame. The id stands for the native stack with the Python
 *	         frames. Its time is after that of the records that it refers to
 *	MAP      1: address | stack id bits 0..15 << 48   2: length | stack id bits 16..31 << 48
 *	UNMAP    1: address   2: length
 *	PAD      word 0 is HEAP_RECORD_PAD, the reader skips to the end of the ring
 * A realloc that moved or resized its block is FREE (stamped before the call) and ALLOC; a failed
 * realloc writes nothing. Stack id 0: unknown.
 */
enum heap_record {
	HEAP_RECORD_PAD = 0,
	HEAP_RECORD_ALLOC = 1,
	HEAP_RECORD_FREE = 2,
	HEAP_RECORD_STACK = 3,
	HEAP_RECORD_MAP = 4,
	HEAP_RECORD_UNMAP = 5,
	HEAP_RECORD_ALLOC_ALL = 6,
	HEAP_RECORD_PYCODE = 7,
	HEAP_RECORD_PYSTACK = 8,
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
_Static_assert(sizeof(struct heap_slot) == 512, "slot size");
_Static_assert(sizeof(struct heap_shared) == 128, "shared head size");
#endif

#endif
