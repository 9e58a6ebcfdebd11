/*
 * The memory that user space fills and the stack engine in the kernel reads: one element of a
 * BPF_F_MMAPABLE array ("tables"), mapped by capture/bpf/engine.c. Its head has fixed places, the
 * rows follow and may be as many as was chosen when the object was loaded:
 *
 *	+------------------+ 0
 *	| spaces[]         | what each process maps now: a range of maps[], replaced by one store
 *	| maps[]           | executable mappings, sorted within a range
 *	| pages[]          | of each binary: first row of each 4 KiB page
 *	| specials[]       | struct unwind_special of each binary
 *	+------------------+ KTABLES_HEAD_BYTES
 *	| rows[nr_rows]    | struct unwind_row of each binary; nr_rows is a power of two
 *	+------------------+
 *
 * To publish a process's mappings:
 *	1. place each binary that is not there yet: rows, then specials, then pages. pages[i] is
 *	   the index into rows[] (of all, not of the binary) of the first row whose pc is in
 *	   page i or later (unwind_table.pages + the binary's first row); nr_pages + 1 of them.
 *	   First page + nr_pages must stay the binary's own for as long as the capture runs, as
 *	   what the kernel remembers of code is named by (first page << 12 | offset): to give them
 *	   to another binary, give the capture up.
 *	2. write the maps to a free range of maps[], in order of start, disjoint
 *	3. store spaces[idx].now = kspace_pack(first, nr, generation) by compare-and-swap against
 *	   the value read before step "exec_ns" below; a range that is no longer named by any space
 *	   may be reused a second later
 * A generation names the contents of one range: never used for another within a capture, never 0;
 * processes with equal mappings (forks) share range and generation. References of stacks are
 * seeded with it.
 *
 * exec: the kernel side sets exec_ns, then stores a pack without maps whose generation part is a
 * time. User space reads `now`, then exec_ns; where exec_ns is later than the events that it has
 * applied, it publishes nothing; else compare-and-swap, and on failure all over again.
 *
 * Which idx a process has says the map "procs" (tgid -> struct kproc). User space adds targets
 * there before they run (idx taken by fetch-and-add of next_space); the kernel side adds forks of
 * targets (the child's space starts as its parent's) and, system-wide, whatever it meets; it deletes
 * a process when its last thread has gone, and hands its idx to the queue "free_spaces".
 */
#ifndef ASSAY_WIRE_KERNEL_TABLES_H
#define ASSAY_WIRE_KERNEL_TABLES_H

#include "unwind_row.h"
#include "wire_types.h"

#define KTABLES_NR_SPACES    (1u << 14)
#define KTABLES_NR_MAPS      (1u << 16)
#define KTABLES_NR_PAGES     (1u << 18) /* 1 GiB of code */
#define KTABLES_NR_SPECIALS  (1u << 15)
#define KTABLES_ROWS_DEFAULT (1u << 22) /* 32 MiB */
#define KTABLES_ROWS_MAX     (1u << 24)

enum kmap_kind {
	KMAP_NONE = 0,    /* no rules, and none will come: user space is asked to finish */
	KMAP_RULES = 1,   /* rows; the vDSO as well */
	KMAP_JIT = 2,     /* anonymous executable memory: frame pointers */
	KMAP_MISSING = 3, /* the file could not be opened, or there was no room: as NONE */
};

struct kmap {
	wire_u64 start;
	wire_u64 end;
	wire_u64 base; /* address of the table's pc 0 here: bias + unwind_table.base */
	wire_u32 first_page;
	wire_u32 nr_pages;
	wire_u32 first_row; /* rows of the binary: [first_row, end_row) */
	wire_u32 end_row;
	wire_u32 first_special;
	wire_u32 nr_specials;
	wire_u32 kind; /* enum kmap_kind */
	wire_u32 pad;
};

struct kspace {
	wire_u64 now;     /* kspace_pack */
	wire_u64 exec_ns; /* when it last began anew (CLOCK_MONOTONIC), 0 = never */
};

/* generation << 32 | nr << 16 | first; nr == 0: nothing published. */
#define KSPACE_MAPS_MAX 0xffffu
static inline wire_u64 kspace_pack(wire_u32 first, wire_u32 nr, wire_u32 generation)
{
	return (wire_u64)generation << 32 | (wire_u64)nr << 16 | first;
}

struct ktables_head {
	wire_u32 next_space; /* fetch-and-add; at the end: "free_spaces" */
	wire_u32 pad[15];
	struct kspace spaces[KTABLES_NR_SPACES];
	struct kmap maps[KTABLES_NR_MAPS];
	wire_u32 pages[KTABLES_NR_PAGES];
	struct unwind_special specials[KTABLES_NR_SPECIALS];
};

#define KTABLES_HEAD_BYTES ((sizeof(struct ktables_head) + 4095) / 4096 * 4096)

/* The value of map "procs"; key: tgid (u32) in the root PID namespace. */
struct kproc {
	wire_u32 space_idx;
	wire_u32 flags;    /* enum kproc_flags */
	wire_u64 since_ns; /* when an AT_EXEC became a target; else 0 */
};
enum kproc_flags {
	KPROC_TARGET = 1,  /* all of its threads are watched, and what it forks */
	KPROC_THREADS = 2, /* only those threads that the map "tids" names (key: tid, value: u8) */
	KPROC_AT_EXEC = 4, /* a command at its gate: a target once it executes its program */
};

/* What the kernel side had to leave out: index into the per-CPU array "losses" of u64. */
enum kernel_loss {
	KLOSS_RING_FULL = 0, /* records; a stack among them is told again */
	KLOSS_SAMPLES,       /* of these: CPU samples */
	KLOSS_STATE,         /* no memory for a thread's state: events of it */
	KLOSS_SCRATCH,       /* programs nested too deeply: stacks */
	KLOSS_PROCS_FULL,    /* processes for which there was no room */
	KLOSS_MAP_FULL,      /* an interval, a span, a block request: a table of the kernel side */
	KLOSS_NR = 16,
};

/* What it did: the per-CPU array "engine_counts" of one of these. */
struct kernel_counts {
	wire_u64 nr_stacks;      /* RECORD_STACK sent */
	wire_u64 nr_copies;      /* RECORD_COPY sent */
	wire_u64 nr_copies_held; /* not sent: too many bytes of them this second */
	wire_u64 nr_walks;
	wire_u64 nr_memo_hits; /* stacks known without a walk */
	wire_u64 nr_frames;
	wire_u64 nr_rule_misses; /* rules that the cache did not have */
	wire_u64 nr_map_searches;
	wire_u64 nr_ends[16]; /* how walks ended, by enum walk_end */
};

/* Self-timing: index into the per-CPU array "costs" of struct kernel_cost. */
enum kernel_cost_id {
	COST_SAMPLE = 0, /* bpf/cpu.bpf.h */
	COST_SWITCH,     /* bpf/waits.bpf.h */
	COST_WAKE,
	COST_EVENT, /* bpf/counts.bpf.h */
	COST_IO,    /* bpf/io.bpf.h */
	COST_BLOCK,
	COST_FAULT,
	COST_SPAN, /* bpf/spans.bpf.h */
	COST_HEAP, /* bpf/heap.bpf.h */
	COST_NR = 16,
};
/* Time in programs is estimated as timed_ns / nr_timed * nr_runs. */
struct kernel_cost {
	wire_u64 nr_runs;
	wire_u64 nr_timed;
	wire_u64 timed_ns;
};

#ifndef __bpf__
_Static_assert(sizeof(struct kmap) == 56, "kmap size");
_Static_assert(sizeof(struct kspace) == 16, "kspace size");
#endif

#endif
