/*
 * The inside of the builder, shared by its files: builder.c (threads, mappings, samples),
 * builder_stack.c (stacks of samples), builder_refs.c (stacks told ahead, and the rows that refer
 * to them).
 */
#ifndef ASSAY_INGEST_BUILDER_PRIV_H
#define ASSAY_INGEST_BUILDER_PRIV_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "ingest/builder.h"
#include "unwind/space.h"
#include "unwind/walk.h"

#define LOC_CACHE_SIZE  32768 /* power of two; half a megabyte */
#define CHAIN_DEPTH_MAX 4096

struct thread {
	int32_t pid;
	str_id comm;
	task_id task;      /* 0 = not needed yet */
	uint64_t first_ns; /* heard of first, or born */
	uint64_t end_ns;   /* 0 = lives */
	bool is_alive;
};

struct loc_cache_entry {
	uint64_t addr;
	uint32_t key; /* generation of the space (0 = kernel) << 1 | is_call; UINT32_MAX = empty */
	loc_id loc;
};

/*
 * The stack of a chain that was seen before, by a hash of the chain and of the mappings that it
 * is read by. Chains repeat; hashing one takes a tenth of the time of resolving it again. The
 * leaf's address is left out where it can be: callers repeat far more often (of 1.0 M samples of
 * a C++ program, 157,000 chains have 17,000 lists of callers). Two chains of one 64-bit hash would
 * be taken for each other: once in 10^7 recordings of a million different stacks.
 */
#define CHAIN_SETS ((size_t)65536) /* power of two */
#define CHAIN_WAYS 4               /* of a set, one cache line; the latest comes first */
struct chain_cache_entry {
	uint64_t hash; /* 0 = empty */
	stack_id stack;
	enum loss_kind loss;
};

/*
 * The last stack of a few threads, node by node from the root: the next one of the same thread
 * mostly shares its outer frames, which are then not looked up again. Frames of a chain that the
 * kernel walked are compared as addresses, before they are resolved.
 */
#define PATHS 64
struct path {
	VEC(loc_id) locs;
	VEC(stack_id) nodes;
	VEC(uint64_t) addrs; /* return addresses of the outermost nodes; 0..nodes.n of them */
	int32_t pid;         /* by whose mappings, as they were then, addrs were resolved */
	uint32_t generation;
	enum loss_kind loss;
};

/* Where rows of one of the source's events go. */
struct spec_table {
	uint32_t table;      /* + 1, 0 = nowhere */
	uint32_t bytes_each; /* of what samples count; 0: these are of time */
};

/* What a reference to a stack stands for (EVENT_STACK). */
struct ref_stack {
	stack_id stack;      /* user: the stack */
	uint32_t first;      /* kernel: its frames in refs.frames, leaf first */
	uint32_t nr;         /* 0 for a user stack */
	enum loss_kind loss; /* user: why it is not whole, or LOSS_NR */
};

/* A row whose stacks were not there yet when it came. */
struct late_row {
	uint32_t spec;
	int16_t cpu;
	bool is_tried;
	uint64_t time_ns;
	task_id task;
	uint64_t user_ref;
	uint64_t kernel_ref;
	uint64_t other_ref;
	struct tag tag; /* all but other_stack */
	int64_t values[TABLE_COLUMNS_MAX];
};

struct refs {
	struct map user; /* ref -> index into stacks */
	struct map kernel;
	VEC(struct ref_stack) stacks;
	VEC(loc_id) frames;
	/* stack << 32 | index of a kernel part -> both together */
	struct map joined;
	VEC(struct late_row) late;
	stack_id lost; /* [lost stack] */
};

struct builder {
	struct profile *p;
	struct builder_options options;
	struct modules modules;
	struct spaces spaces;
	struct walker *walker;
	struct map thread_by_tid; /* tid -> index + 1 */
	struct map nr_alive;      /* pid -> known threads that have not ended */
	struct map listed;        /* pids whose mappings the profile has */
	int32_t last_tid; /* of the thread looked up last; its index, if there are threads */
	uint32_t last_thread;
	VEC(struct thread) threads;
	VEC(struct spec_table) table_of_spec;
	struct refs refs;
	int32_t changed_pid; /* whose mappings changed since that was told, 0 = nobody's */
	loc_id truncated_loc;
	uint64_t last_ns;
	uint64_t now_ns; /* of the event in hand */
	struct loc_cache_entry *cache;
	struct chain_cache_entry *chains;
	struct path paths[PATHS];
	VEC(loc_id) scratch; /* frames of the sample in hand, leaf first */
};

/* ---- builder.c --------------------------------------------------------------------------- */
/* The table of a source's event, or NULL when nobody wants it. */
const struct spec_table *builder_table_of(const struct builder *b, uint32_t spec);
/* The profile's task of a thread that lives now. */
task_id builder_task(struct builder *b, const struct event *ev);
/* The same of one that may have ended since: changes nothing that is known of threads. */
task_id builder_past_task(struct builder *b, int32_t pid, int32_t tid, uint64_t time_ns);
/* Lists the process's mappings in the profile, once. */
void builder_list_mappings(struct builder *b, const struct event *ev);

/* ---- builder_stack.c --------------------------------------------------------------------- */
loc_id builder_user_location(struct builder *b, int32_t pid, struct space *sp, uint64_t addr,
			     bool is_call);
loc_id builder_kernel_location(struct builder *b, uint64_t addr, bool is_call);
/* The sample's stack by its chain, registers or address, and why it is not whole, or LOSS_NR. */
stack_id builder_sample_stack(struct builder *b, const struct event *ev, enum loss_kind *ret_loss);
/* Walks registers and copied bytes; frames go to scratch. Why it is not whole, or LOSS_NR. */
enum loss_kind builder_walk(struct builder *b, const struct event *ev, const struct walk_input *in);
/* The frames in scratch, leaf first, as a user stack. */
stack_id builder_user_stack(struct builder *b, const struct event *ev, enum loss_kind loss);

/* ---- builder_refs.c ---------------------------------------------------------------------- */
void refs_release(struct refs *r);
void builder_on_stack(struct builder *b, const struct event *ev);
void builder_on_aggregate(struct builder *b, const struct event *ev);
/* The stack of a sample that refers to its parts. */
stack_id builder_ref_stack(struct builder *b, const struct event *ev, enum loss_kind *ret_loss);

#endif
