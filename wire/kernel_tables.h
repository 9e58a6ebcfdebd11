/*
 * The unwind tables and mappings that user space writes and the BPF walker reads. They are the one
 * element of a BPF_F_MMAPABLE array ("tables"), which capture/bpf/engine.c maps. The injected heap
 * recorder reads the same layout from a memfd (heap_wire.h). The head has a fixed size; the number
 * of rows behind it is chosen when the BPF object is loaded:
 *
 *	+------------------+ 0
 *	| spaces[]         | the mappings of each process: a range of maps[], replaced by one store
 *	| maps[]           | executable mappings, sorted within a range
 *	| pages[]          | of each binary: index of the first row of each 4 KiB page
 *	| specials[]       | struct unwind_special of each binary
 *	| pythons[]        | struct python_layout of each binary with a Python interpreter
 *	+------------------+ KTABLES_HEAD_BYTES
 *	| rows[nr_rows]    | struct unwind_row of each binary; nr_rows is a power of two
 *	+------------------+
 *
 * To publish the mappings of a process, user space
 *	1. writes each binary that is not there yet: rows, then specials, then pages. pages[i] is
 *	   the index into rows[] (of all binaries) of the first row whose pc is in page i or later
 *	   (unwind_table.pages + the binary's first row); there are nr_pages + 1 of them. The range
 *	   first page + nr_pages belongs to the binary until the capture ends and cannot be
 *	   reused for another binary, since the rule cache of the BPF walker is keyed by
 *	   (first page << 12 | offset);
 *	2. writes the mappings to a free range of maps[], sorted by start, disjoint;
 *	3. stores spaces[idx].now = kspace_pack(first, nr, generation) by compare-and-swap against
 *	   the value that it read before exec_ns (see below). A range that no space refers to any
 *	   more may be reused a second later.
 * A generation identifies the contents of one range: never 0, never reused within a capture.
 * Processes with equal mappings (forks) share range and generation. Stack references are hashes
 * seeded with the generation.
 *
 * exec: the BPF program sets exec_ns, then stores a value in `now` that has no maps and whose
 * generation part is derived from the time. User space reads `now`, then exec_ns. If exec_ns is later than the events that user space
 * has applied, it publishes nothing. Else it does the compare-and-swap; if that fails, it starts
 * over.
 *
 * The map "procs" (tgid -> struct kproc) has the index of each process. User space adds targets
 * before they run (index by fetch-and-add of next_space). BPF programs add forks of targets (the
 * child's space starts as a copy of its parent's) and, system-wide, each process that they meet.
 * They remove a process when its last thread exits, and put its index into the queue "free_spaces".
 */
#ifndef ASSAY_WIRE_KERNEL_TABLES_H
#define ASSAY_WIRE_KERNEL_TABLES_H

#include "kernel_python.h"
#include "unwind_row.h"
#include "wire_types.h"

#define KTABLES_NR_SPACES    (1u << 14)
#define KTABLES_NR_MAPS      (1u << 16)
#define KTABLES_NR_PAGES     (1u << 18) /* 1 GiB of code */
#define KTABLES_NR_SPECIALS  (1u << 15)
#define KTABLES_NR_PYTHONS   (1u << 6)
#define KTABLES_ROWS_DEFAULT (1u << 22) /* 32 MiB */
#define KTABLES_ROWS_MAX     (1u << 24)

enum kmap_kind {
	KMAP_NONE = 0,    /* no rows: user space walks the stack */
	KMAP_RULES = 1,   /* has rows; the vDSO too */
	KMAP_JIT = 2,     /* anonymous executable memory: walked by frame pointers */
	KMAP_MISSING = 3, /* as NONE: the file could not be opened, or there was no room */
};

/* An executable mapping. */
struct kmap {
	wire_u64 start; /* addresses in the process */
	wire_u64 end;
	wire_u64 base;       /* address of pc 0 of the rows: load bias + unwind_table.base */
	wire_u32 first_page; /* index into pages[] */
	wire_u32 nr_pages;
	wire_u32 first_row; /* rows of the binary: [first_row, end_row) */
	wire_u32 end_row;
	wire_u32 first_special; /* index into specials[] */
	wire_u32 nr_specials;
	wire_u32 kind;     /* enum kmap_kind */
	wire_u32 python_1; /* 1 + index into pythons[]; 0: no Python interpreter */
};

/* The published mappings of a process. */
struct kspace {
	wire_u64 now; /* kspace_pack */
	wire_u64
		exec_ns; /* creation or last exec of the process (CLOCK_MONOTONIC), 0 = before the capture */
	/* generation << 32 | 1 + index into maps[] of its Python interpreter; 0, or of another
	 * generation than `now`: it has none. Stored before `now`. */
	wire_u64 python;
};

/* generation << 32 | nr << 16 | first; nr == 0: nothing published. */
#define KSPACE_MAPS_MAX 0xffffu
static inline wire_u64 kspace_pack(wire_u32 first, wire_u32 nr, wire_u32 generation)
{
	return (wire_u64)generation << 32 | (wire_u64)nr << 16 | first;
}

struct ktables_head {
	wire_u32 next_space; /* next unused index, fetch-and-add; then the queue "free_spaces" */
	wire_u32 pad[15];
	struct kspace spaces[KTABLES_NR_SPACES];
	struct kmap maps[KTABLES_NR_MAPS];
	wire_u32 pages[KTABLES_NR_PAGES];
	struct unwind_special specials[KTABLES_NR_SPECIALS];
	struct python_layout pythons[KTABLES_NR_PYTHONS];
};

#define KTABLES_HEAD_BYTES ((sizeof(struct ktables_head) + 4095) / 4096 * 4096)

/* The value of map "procs"; key: tgid (u32) in the root PID namespace. */
struct kproc {
	wire_u32 space_idx; /* index into spaces[] */
	wire_u32 flags;     /* enum kproc_flags */
	wire_u64 since_ns;  /* when an AT_EXEC process became a target; else 0 */
};
enum kproc_flags {
	KPROC_TARGET = 1,  /* all of its threads are targets, and the processes that it forks */
	KPROC_THREADS = 2, /* only the threads in the map "tids" are (key: tid, value: u8) */
	KPROC_AT_EXEC = 4, /* a launched command before its exec: becomes a target by the exec */
};

/* What the BPF programs lost: index into the per-CPU array "losses" of u64 counters. */
enum kernel_loss {
	KLOSS_RING_FULL = 0, /* records: the ring was full; stacks among them are sent later */
	KLOSS_SAMPLES,       /* CPU samples among the records of KLOSS_RING_FULL */
	KLOSS_STATE,         /* events of a thread: no memory for its state */
	KLOSS_SCRATCH,       /* stacks: programs were nested too deeply */
	KLOSS_PROCS_FULL,    /* processes: no room */
	KLOSS_MAP_FULL,      /* an interval, a span, a block request: a map was full */
	KLOSS_NR = 16,
};

/* What the BPF programs did: the one element of the per-CPU array "engine_counts". */
struct kernel_counts {
	wire_u64 nr_stacks;            /* RECORD_STACK sent */
	wire_u64 nr_copies;            /* RECORD_COPY sent */
	wire_u64 nr_copies_over_limit; /* not sent: over the limit of bytes per second */
	wire_u64 nr_walks;
	wire_u64 nr_stack_cache_hits; /* stacks found in the per-thread cache, not walked */
	wire_u64 nr_frames;           /* walked */
	wire_u64 nr_rule_misses;      /* rules that were not in the rule cache */
	wire_u64 nr_map_searches;     /* binary searches for a mapping */
	wire_u64 nr_ends[16];         /* walks by enum walk_end */
	wire_u64 nr_pythons;          /* stacks of threads with Python frames */
	wire_u64 nr_pythons_partly;   /* of these, some frames could not be read */
	wire_u64 nr_python_frames;    /* read */
};

/* Measured run time of BPF programs: index into the per-CPU array "costs" of struct kernel_cost. */
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
/* Every 64th run is timed; the time of all runs is estimated as timed_ns / nr_timed * nr_runs. */
struct kernel_cost {
	wire_u64 nr_runs;
	wire_u64 nr_timed; /* runs that were timed */
	wire_u64 timed_ns; /* sum of the timed runs */
};

#ifndef __bpf__
_Static_assert(sizeof(struct kmap) == 56, "kmap size");
_Static_assert(sizeof(struct kspace) == 24, "kspace size");
#endif

#endif
