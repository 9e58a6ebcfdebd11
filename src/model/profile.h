/*
 * The profile: what every source and reader fills and every analysis reads.
 *
 *	strings   interned text; everything else refers to it by str_id
 *	modules   binaries, kernel, JIT regions
 *	mappings  where and when a module was mapped in a process
 *	locations code addresses as (module, offset); named later without touching anything else:
 *	          location.first_frame/nr_frames is a run of `frames`, innermost inlined first
 *	stacks    prefix tree: a node is (parent, location); root = 0; a sample holds its leaf node
 *	tasks     threads under one name
 *	tables    rows by column: samples of an event, or what a source added up (tables.h)
 *	tags      what a row of a table of waits or events says besides its stack, interned
 *	marks, facts, losses
 *
 * Life: profile_new, filled by ingest/ or a reader, profile_seal, then const. Ids are dense and
 * append-only, which is what lets a recording be written in increments (session file). Element 0
 * of modules, locations, functions, stacks, tasks, tags is a dummy meaning "none".
 */
#ifndef ASSAY_MODEL_PROFILE_H
#define ASSAY_MODEL_PROFILE_H

#include "base/base.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/facts.h"
#include "model/ids.h"
#include "model/loss.h"
#include "model/tables.h"
#include "model/wait.h"

/* Values of these enums reach files: append only. */
enum module_kind {
	MODULE_NONE = 0,
	MODULE_ELF = 1,     /* a file; offset = byte offset in the file */
	MODULE_KERNEL = 2,  /* offset = absolute address */
	MODULE_KMODULE = 3, /* kernel module; offset = absolute address */
	MODULE_VDSO = 4,    /* offset = byte offset in the vDSO image */
	MODULE_JIT = 5,     /* anonymous executable memory of one process; offset = address */
	MODULE_UNKNOWN = 6, /* address in no mapping of one process; offset = address */
	MODULE_PSEUDO = 7,  /* frames that are no code: [truncated], event names, comm roots */
	MODULE_NAMED = 8,   /* frames read from a text format that has names only */
};

#define MODULE_BUILD_ID_MAX 20

struct module {
	enum module_kind kind;
	str_id path; /* as mapped, in the target's root; "[kernel.kallsyms]", "[vdso]", "//anon" */
	uint8_t build_id[MODULE_BUILD_ID_MAX];
	uint8_t nr_build_id;
	bool is_deleted;
	uint64_t dev; /* major << 32 | minor */
	uint64_t inode;
	int32_t pid; /* JIT and UNKNOWN: whose memory */
};

struct mapping {
	module_id module;
	int32_t pid;
	uint64_t start;
	uint64_t len;
	uint64_t pgoff;
	uint64_t from_ns; /* when it was mapped; 0 = before the capture */
	uint64_t to_ns;   /* UINT64_MAX = until the end */
};

enum location_flags {
	LOCATION_CALL = 1 << 0,   /* a return address: the code that runs is the call before it */
	LOCATION_KERNEL = 1 << 1, /* kernel code */
	LOCATION_NAMED = 1 << 2,  /* naming was done (perhaps without finding a name) */
	LOCATION_ASKED_AGAIN = 1 << 3, /* while a file is read: naming is tried a second time */
};

struct location {
	module_id module;
	uint32_t flags;
	uint64_t offset; /* see enum module_kind */
	uint32_t first_frame;
	uint16_t nr_frames; /* 0 = no name known */
	uint16_t unsym;     /* enum loss_kind why there is no name, or 0 */
};

/* One function instance at a location; frames[first] is innermost, the last one is physical. */
struct frame {
	func_id func;
	str_id file;
	uint32_t line; /* 0 = unknown */
	bool is_inlined;
};

enum func_flags {
	FUNC_GUESSED = 1 << 0, /* from .eh_frame or PLT, no symbol: module!fn_1a2b0 */
	FUNC_KERNEL = 1 << 1,
	FUNC_JIT = 1 << 2,
};

struct function {
	str_id name;    /* as shown */
	str_id linkage; /* as in the binary (mangled), or 0 when the same */
	module_id module;
	uint32_t flags;
	uint64_t start; /* offset of its first instruction in the module, 0 = unknown */
};

struct stack_node {
	stack_id parent;
	loc_id loc;
};

struct task {
	int32_t pid;
	int32_t tid;
	str_id comm;
	uint64_t start_ns; /* first seen */
	uint64_t end_ns;   /* exit, or 0 */
};

enum unit { UNIT_COUNT = 0, UNIT_NS = 1, UNIT_BYTES = 2 };

struct column {
	str_id name; /* "samples", "time", "period" */
	enum unit unit;
	bool is_level;    /* a level (live bytes), not a flow */
	bool is_estimate; /* scaled from a sample */
};

/*
 * What tells the rows of a table of waits or events apart, besides thread and stack. Fields that
 * do not apply are 0 (log2_ns: LOG2_NONE, syscall: -1).
 */
struct tag {
	uint8_t reason;       /* enum wait_reason */
	uint8_t evidence;     /* enum wait_evidence, bits */
	uint8_t log2_ns;      /* duration class of its intervals: floor(log2(ns)), or LOG2_NONE */
	int16_t syscall;      /* number on this architecture, -1 = none */
	str_id object;        /* waited for or worked on: "lock 0x7f..", a path, a peer */
	str_id detail;        /* outcome of an event: "EAGAIN", "woken" */
	task_id other;        /* who woke it; in a table of blame: who is to blame */
	stack_id other_stack; /* where that thread was then */
	uint16_t size_class;  /* of blocks of memory (model/heap.h), 0 = none */
};

enum table_time {
	TABLE_TIME_INSTANT = 0,
	TABLE_TIME_INTERVAL = 1,
	TABLE_TIME_SLICE = 2,
	TABLE_TIME_TIMELESS = 3,
};

#define TABLE_COLUMNS_MAX 12

/*
 * Rows of one kind. Column 0 is a count (of samples, waits, calls; more than 1 where rows are added
 * up), the others are as the kind has them (tables.h). Views weigh by `weight_column`.
 */
struct table {
	str_id event;
	enum table_id id; /* its kind; set when it is made */
	enum table_time time_kind;
	uint32_t nr_columns;
	uint32_t weight_column;
	struct column columns[TABLE_COLUMNS_MAX];
	double freq_hz; /* asked for, 0 = a fixed period */
	size_t n;
	size_t cap;
	uint64_t *time_ns; /* 0 where unknown */
	stack_id *stack;
	task_id *task;
	int16_t *cpu;    /* -1 = unknown */
	int64_t *values; /* n x nr_columns */
	bool has_tags;
	uint32_t *tag; /* index into tags; NULL unless has_tags */
};

struct mark {
	uint64_t time_ns;
	str_id text;
};

struct fact {
	str_id key;
	str_id value;
};

struct profile {
	struct intern strings;
	VEC(struct module) modules;
	VEC(struct mapping) mappings;
	VEC(struct location) locations;
	VEC(struct frame) frames;
	VEC(struct function) functions;
	VEC(struct stack_node) stacks;
	VEC(struct task) tasks;
	VEC(struct table) tables;
	VEC(struct tag) tags;
	VEC(struct mark) marks;
	VEC(struct fact) facts;
	struct losses losses;
	uint64_t start_ns; /* of the capture, on the event clock; 0 = unknown */
	uint64_t end_ns;
	int64_t wall_start_ns; /* CLOCK_REALTIME at start_ns, 0 = unknown */
	bool is_incomplete;    /* the recorder was killed or the file cut */
	bool is_sealed;

	/* Locations in the order in which they were named: what a recording has to append. */
	VEC(loc_id) named_log;

	/* Lookup tables for the builders; empty after a seal. */
	struct map loc_index;
	struct map stack_index;
	struct map func_index;
	struct map module_index;
	struct map task_index;
	struct map tag_index;
};

struct profile *profile_new(void);
void profile_free(struct profile *p);
void profile_free_p(struct profile **pp);

str_id profile_str(struct profile *p, const char *s, size_t n);
str_id profile_cstr(struct profile *p, const char *s);
const char *profile_text(const struct profile *p, str_id id); /* borrowed, never NULL */
struct sv profile_sv(const struct profile *p, str_id id);

/* Finds the module with the same identity (kind, path, dev, inode, build-id, pid) or adds it. */
module_id profile_module(struct profile *p, const struct module *m);
/* Finds or adds. Same (module, offset, CALL flag) gives the same id. */
loc_id profile_location(struct profile *p, module_id module, uint64_t offset, uint32_t flags);
/* A frame that is no code, already named: "[truncated]", an event's or a thread's name. */
loc_id profile_pseudo(struct profile *p, const char *name);
/* Finds or adds by (module, linkage or name, start). */
func_id profile_function(struct profile *p, const struct function *f);
/* Names a location: frames are copied, innermost first. nr may be 0 with a reason in unsym. */
void profile_name_location(struct profile *p, loc_id loc, const struct frame *frames, size_t nr,
			   enum loss_kind unsym);
/* The child of @parent at @loc, found or added. Build from the root outwards. */
stack_id profile_stack(struct profile *p, stack_id parent, loc_id loc);
task_id profile_task(struct profile *p, int32_t pid, int32_t tid, str_id comm, uint64_t time_ns);
/* The table of an event (found by name), or a new one. Index into tables. */
uint32_t profile_table(struct profile *p, const struct table *shape);
/* Room for n more samples, for readers that fill the columns themselves. */
void table_reserve(struct table *t, size_t n);
/* values: nr_columns numbers. */
void profile_sample(struct profile *p, uint32_t table, uint64_t time_ns, stack_id stack,
		    task_id task, int cpu, const int64_t *values);
/* Finds or adds. */
uint32_t profile_tag(struct profile *p, const struct tag *tag);
/* The same into a table with has_tags. */
void profile_tagged_sample(struct profile *p, uint32_t table, uint64_t time_ns, stack_id stack,
			   task_id task, int cpu, uint32_t tag, const int64_t *values);
void profile_mark(struct profile *p, uint64_t time_ns, const char *text);

/* Sorts each table by time (stable) and drops the builders' lookup tables. */
void profile_seal(struct profile *p);
/* Adds everything of @from to @to (mapping ids); for several inputs in one view. */
void profile_merge(struct profile *to, const struct profile *from);

/* Shown name of a location's physical or inlined frame i; never NULL ("[unknown]"). */
const char *profile_frame_name(const struct profile *p, const struct frame *f);
/* Short module name: base name of the path, "[kernel]", "[vdso]". */
const char *profile_module_name(const struct profile *p, module_id id);

#endif
