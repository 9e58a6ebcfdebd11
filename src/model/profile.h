/*
 * The profile: the in-memory form of one or more recordings. Sources and format readers fill it,
 * analyses read it.
 *
 *	strings   interned text, referred to by str_id
 *	modules   binaries, the kernel, JIT regions
 *	mappings  address range and time of a module in a process (from mmap events)
 *	locations code addresses as (module, offset); symbolized later: location.first_frame and
 *	          nr_frames are a range of `frames`, innermost inlined function first
 *	stacks    call stacks as a prefix tree: a node is (parent, location), the root is 0; a row
 *	          refers to its leaf node
 *	tasks     threads; a thread that changes its name is one task per name
 *	tables    rows, stored by column: samples of an event, or aggregates of a source (tables.h)
 *	tags      attributes of a row besides time, thread and stack, interned
 *	marks     named moments (assay mark)
 *	facts     metadata as key/value texts (facts.h)
 *	losses    counters of lost, truncated and unsymbolized samples (loss.h)
 *
 * Life cycle: profile_new; filled by ingest/ or a reader; profile_seal; read-only from then on. Ids
 * are dense and append-only, so a recording can be written incrementally (format/assay/). Element
 * 0 of modules, locations, functions, stacks, tasks and tags is a dummy that means "none".
 *
 * Not thread safe while it is filled; a sealed profile may be read by several threads. Functions
 * that add elements return no errors; without memory they end the program (base/mem.h).
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

/* Values are stored in files: append only. */
enum module_kind {
	MODULE_NONE = 0,
	MODULE_ELF = 1,     /* an ELF file; offset = byte offset in the file */
	MODULE_KERNEL = 2,  /* offset = absolute address */
	MODULE_KMODULE = 3, /* kernel module; offset = absolute address */
	MODULE_VDSO = 4,    /* offset = byte offset in the vDSO image */
	MODULE_JIT = 5,     /* anonymous executable memory of one process; offset = address */
	MODULE_UNKNOWN = 6, /* of one process: no mapping, or "[uprobes]"; offset = address */
	MODULE_PSEUDO = 7,  /* frames that are not code: [truncated], event names, thread names */
	MODULE_NAMED = 8,   /* frames of a text format that has symbol names only */
};

#define MODULE_BUILD_ID_MAX 20

struct module {
	enum module_kind kind;
	str_id path; /* in the target's root directory; "[kernel.kallsyms]", "[vdso]", "//anon" */
	uint8_t build_id[MODULE_BUILD_ID_MAX];
	uint8_t nr_build_id;
	bool is_deleted;
	uint64_t dev; /* major << 32 | minor */
	uint64_t inode;
	int32_t pid; /* process, for JIT and UNKNOWN */
};

struct mapping {
	module_id module;
	int32_t pid;
	uint64_t start;
	uint64_t len;
	uint64_t pgoff;
	uint64_t from_ns; /* time of the mapping; 0 = before the capture */
	uint64_t to_ns;   /* time of its end; UINT64_MAX = end of the capture */
};

enum location_flags {
	LOCATION_CALL = 1 << 0,   /* a return address: symbolize the call instruction before it */
	LOCATION_KERNEL = 1 << 1, /* kernel code */
	LOCATION_SYMBOLIZED =
		1 << 2,          /* symbolization was done (perhaps without finding a symbol) */
	LOCATION_RETRY = 1 << 3, /* while a file is read: symbolize a second time */
	LOCATION_TAIL = 1 << 4,  /* its outermost frames are inferred (profile_tail_location) */
};

struct location {
	module_id module;
	uint32_t flags;
	uint64_t offset; /* see enum module_kind */
	uint32_t first_frame;
	uint16_t nr_frames; /* 0 = not symbolized */
	uint16_t unsym;     /* enum loss_kind: why there is no symbol, or 0 */
};

/*
 * A function at a location. The last frame that is not inferred is the function that contains the
 * code; frames before it are inlined into the next one. Inferred frames are functions between this
 * one and the stack's next location, whose own frames a tail call removed (symbol/tailcode.h).
 */
struct frame {
	func_id func;
	str_id file;
	uint32_t line; /* 0 = unknown */
	bool is_inlined;
	bool is_inferred;
};

enum func_flags {
	FUNC_GUESSED = 1 << 0, /* no symbol; range from .eh_frame or PLT: module!fn_1a2b0 */
	FUNC_KERNEL = 1 << 1,
	FUNC_JIT = 1 << 2,
	FUNC_PYTHON = 1 << 3, /* Python code: file.py:LINE function */
};

struct function {
	str_id name;    /* demangled, as shown */
	str_id linkage; /* mangled symbol name, or 0 if the same */
	module_id module;
	uint32_t flags; /* enum func_flags */
	uint64_t start; /* offset of its first instruction in the module, 0 = unknown */
};

struct stack_node {
	stack_id parent;
	loc_id loc;
};

/*
 * A thread under one name. One that is renamed has several, in the order in which it got the names; a
 * name that it gets again is another one.
 */
struct task {
	int32_t pid;
	int32_t tid;
	str_id comm;
	uint64_t start_ns; /* first seen under this name */
	uint64_t end_ns;   /* exit, or 0 */
};

/* What a thread and its process are called in the end; see profile_last_task. */
struct task_names {
	task_id last;
	task_id main;
	uint32_t group; /* in thread_groups */
};

enum unit { UNIT_COUNT = 0, UNIT_NS = 1, UNIT_BYTES = 2 };

struct column {
	str_id name; /* "samples", "time", "period" */
	enum unit unit;
	bool is_level;    /* a level (longest wait, RSS): combined by maximum, not by sum */
	bool is_estimate; /* scaled up from a sample */
};

/*
 * Attributes of a row besides time, thread and stack, in tables of waits, I/O, events and memory.
 * Fields that do not apply are 0 (log2_ns: LOG2_NONE, syscall: -1).
 */
struct tag {
	uint8_t reason;   /* enum wait_reason */
	uint8_t evidence; /* bits of enum wait_evidence */
	uint8_t log2_ns;  /* duration bucket of the intervals: floor(log2(ns)), or LOG2_NONE */
	int16_t syscall;  /* number on this architecture, -1 = none */
	str_id object;    /* what was waited for or used: "lock 0x7f..", a path, a socket peer */
	str_id detail;    /* result of an event: "EAGAIN", "woken" */
	task_id other;    /* the waker; in TABLE_BLAME the thread that was waited for */
	stack_id other_stack; /* call stack of that thread at the time */
	uint16_t size_class;  /* of memory blocks (model/heap.h), 0 = none */
	/* In TABLE_BLAME: the thread that was waited for directly, if it waited for `other`; else 0. */
	task_id direct;
	stack_id direct_stack; /* where that waited */
};

/* What the time of a table's rows means. */
enum table_time {
	TABLE_TIME_INSTANT = 0,  /* one event at that time */
	TABLE_TIME_INTERVAL = 1, /* an interval that begins then */
	TABLE_TIME_SLICE = 2,    /* an aggregate over the second that begins then */
	TABLE_TIME_TIMELESS = 3, /* the times are not known */
};

#define TABLE_COLUMNS_MAX 12

/*
 * Rows of one kind, stored by column. Value column 0 is a count (of samples, waits, calls; above 1
 * in aggregated rows), the others depend on the kind (tables.h).
 */
struct table {
	str_id event;     /* name: the event, or the key of the kind */
	enum table_id id; /* the kind, set by profile_table */
	enum table_time time_kind;
	uint32_t nr_columns;
	uint32_t weight_column; /* value column that views add up */
	struct column columns[TABLE_COLUMNS_MAX];
	double freq_hz; /* requested sampling frequency, 0 = a fixed period */
	size_t n;       /* rows */
	size_t cap;
	uint64_t *time_ns; /* 0 = unknown */
	stack_id *stack;
	task_id *task;
	int16_t *cpu;    /* -1 = unknown */
	int64_t *values; /* n x nr_columns, row by row */
	bool has_tags;
	uint32_t *tag; /* index into profile.tags; NULL unless has_tags */
};

struct mark {
	uint64_t time_ns;
	str_id text;
};

struct fact {
	str_id key;
	str_id value;
};

/* A time in which something was recorded, on the profile's clock. */
struct recorded {
	uint64_t from_ns;
	uint64_t to_ns;
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
	/* Of several merged recordings: when one of them ran, by time; empty: from start to end. */
	VEC(struct recorded) pieces;
	int64_t wall_start_ns;   /* CLOCK_REALTIME at start_ns, 0 = unknown */
	bool is_incomplete;      /* assay was killed while recording, or the file is truncated */
	bool has_guessed_stacks; /* by frame pointers: callers may be missing (while it is filled) */
	bool is_sealed;

	struct task_names *task_names; /* by task; once sealed */
	struct intern thread_groups;   /* names of threads without the numbers that differ */

	/* Locations in the order of their symbolization, for appending to a recording. */
	VEC(loc_id) symbolized_log;

	/* Indexes for finding existing elements; empty after profile_seal. */
	struct map loc_index;
	struct map stack_index;
	struct map func_index;
	struct map module_index;
	struct map task_index;
	struct map tag_index;
};

struct profile *profile_new(void);
void profile_free(struct profile *p);
/*
 * A sealed view of a profile that is still being filled: it shares everything with @p and is valid until
 * @p changes. Its time is from @from_ns to @to_ns. Rows of @p are sorted.
 */
void profile_peek_init(struct profile *ret_view, struct profile *p, uint64_t from_ns,
		       uint64_t to_ns);
void profile_peek_release(struct profile *view);
/* Removes the rows of all tables; what they refer to stays. */
void profile_clear_rows(struct profile *p);
void profile_free_p(struct profile **pp);

/* Intern a string; copied. A NUL in it becomes the text "\\x00", since texts end with one. */
str_id profile_str(struct profile *p, const char *s, size_t n);
str_id profile_cstr(struct profile *p, const char *s);
/*
 * The memory that a profile and an analysis of it need, in bytes; for limits (format_check_room).
 * Elements that analyses sum up need more there than here (measured with reports): a node of a stack
 * 8 bytes here and 64 to 120 in a call tree, a task 32 and 100, a row as much as here.
 */
#define PROFILE_STACK_BYTES    ((uint64_t)128)
#define PROFILE_TASK_BYTES     ((uint64_t)128)
#define PROFILE_FUNCTION_BYTES ((uint64_t)64)
uint64_t profile_bytes(const struct profile *p);
const char *profile_text(const struct profile *p, str_id id); /* borrowed, never NULL */
struct sv profile_sv(const struct profile *p, str_id id);

/* Finds or adds a module by its identity: kind, path, dev, inode, build-id, pid. */
module_id profile_module(struct profile *p, const struct module *m);
/* Finds or adds a location by (module, offset, LOCATION_CALL and LOCATION_KERNEL of flags). */
loc_id profile_location(struct profile *p, module_id module, uint64_t offset, uint32_t flags);
/*
 * Finds or adds the location of the same code as @base with the @nr inferred frames, callee first,
 * after the frames of @base, which has some.
 */
loc_id profile_tail_location(struct profile *p, loc_id base, const struct frame *inferred,
			     size_t nr);
/* Finds or adds a named frame that is not code: "[truncated]", an event name, a thread name. */
loc_id profile_pseudo_location(struct profile *p, const char *name);
/* Finds or adds a function by (module, name, linkage, start). */
func_id profile_function(struct profile *p, const struct function *f);
/* Sets the frames of a location, innermost first, copied. @nr 0: no symbol, for reason @unsym. */
void profile_set_frames(struct profile *p, loc_id loc, const struct frame *frames, size_t nr,
			enum loss_kind unsym);
/* Finds or adds the child of @parent at @loc. A stack is built from the root to the leaf. */
stack_id profile_stack(struct profile *p, stack_id parent, loc_id loc);
/* Replaces the location of a node by a profile_tail_location of it. */
void profile_set_tail(struct profile *p, stack_id stack, loc_id loc);
/* Finds or adds a task by (pid, tid, comm); @time_ns becomes start_ns of a new one. */
task_id profile_task(struct profile *p, int32_t pid, int32_t tid, str_id comm, uint64_t time_ns);
/* Adds a task with the ids and the name of @id, which profile_task finds from now on. */
task_id profile_task_again(struct profile *p, task_id id, uint64_t time_ns);
/*
 * Of a sealed profile: the task of the same thread under its last name. Rows keep the name that the
 * thread had at their time; a row for all of a thread's time has this one.
 */
task_id profile_last_task(const struct profile *p, task_id id);
/* The last task of the process's main thread, which names the process; of the thread itself if unknown. */
task_id profile_main_task(const struct profile *p, task_id id);
/*
 * Of a sealed profile: the task's name as threads that differ in numbers alone share it ("worker-#"; see
 * threadnames.h). Borrowed.
 */
const char *profile_thread_group(const struct profile *p, task_id id);
/*
 * Finds a table by name, number of columns and has_tags, or adds an empty one with the name,
 * columns and kind of time of @shape. Returns its index in tables.
 */
uint32_t profile_table(struct profile *p, const struct table *shape);
/* The memory that a row and its analysis need, in bytes. */
uint64_t table_row_bytes(const struct table *t);
/* Makes room for n more rows, for readers that fill the columns themselves. */
void table_reserve(struct table *t, size_t n);
/* Appends a row. @values: nr_columns numbers, copied. */
void profile_sample(struct profile *p, uint32_t table, uint64_t time_ns, stack_id stack,
		    task_id task, int cpu, const int64_t *values);
/* Finds or adds a tag; returns its index in tags. */
uint32_t profile_tag(struct profile *p, const struct tag *tag);
/* Appends a row with a tag to a table that has_tags. */
void profile_tagged_sample(struct profile *p, uint32_t table, uint64_t time_ns, stack_id stack,
			   task_id task, int cpu, uint32_t tag, const int64_t *values);
void profile_mark(struct profile *p, uint64_t time_ns, const char *text);

/* Sorts each table by time (stable), counts unsymbolized samples and frees the indexes. */
void profile_seal(struct profile *p);
/* Adds all elements of @from to @to, translating ids; for reports over several recordings. */
void profile_merge(struct profile *to, const struct profile *from);

enum profile_copy_flags {
	PROFILE_COPY_NAMES = 1 << 0, /* what views need: no mappings, no linkage names */
};
/* Returns a sealed copy, with the texts that are in use only, owned by the caller. */
struct profile *profile_copy(const struct profile *from, unsigned flags);

/* Returns the frame of the function that contains the location's code, or NULL: no symbol. */
const struct frame *profile_physical_frame(const struct profile *p, const struct location *l);
/* Returns the module of a frame: that of its location, or an inferred function's own. */
module_id profile_frame_module(const struct profile *p, const struct location *l,
			       const struct frame *f);
/* Returns what texts add to the name of an inferred frame, else "". */
const char *profile_frame_mark(const struct frame *f);
/* Returns the name of a frame as shown; never NULL ("[unknown]"). Borrowed. */
const char *profile_frame_name(const struct profile *p, const struct frame *f);
/* Returns the short name of a module: base name of the path, "[kernel]", "[vdso]". Borrowed. */
const char *profile_module_name(const struct profile *p, module_id id);

#endif
