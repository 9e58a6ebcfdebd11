/*
 * The Firefox Profiler's processed profile (JSON, version 60), only written. docs/formats/firefox.md
 *
 *	firefox.c          the file: what is known of the recording, threads by weight, counters
 *	firefox_tables.c   strings, functions, frames and stacks, which all threads share
 *	firefox_threads.c  samples and markers of one thread
 */
#ifndef ASSAY_FORMAT_EXCHANGE_FIREFOX_H
#define ASSAY_FORMAT_EXCHANGE_FIREFOX_H

#include "base/base.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/text/json.h"
#include "base/vec.h"
#include "format/format.h"
#include "model/profile.h"

/* Indexes of the categories in meta.categories. */
enum firefox_category {
	FIREFOX_OTHER,
	FIREFOX_USER,
	FIREFOX_KERNEL,
	FIREFOX_JIT,
	FIREFOX_WAITING,
	FIREFOX_CATEGORIES
};

#define FIREFOX_NONE UINT32_MAX

struct firefox_func {
	uint32_t name;     /* string */
	uint32_t resource; /* FIREFOX_NONE: none */
	uint32_t source;   /* FIREFOX_NONE: none */
};

struct firefox_frame {
	uint32_t func;
	uint32_t line;
	uint8_t depth; /* of inlined functions */
	uint8_t category;
};

struct firefox_stack {
	uint32_t prefix; /* FIREFOX_NONE: the root */
	uint32_t frame;
};

struct firefox_resource {
	module_id module;
	uint32_t name; /* string */
};

struct firefox_tables {
	const struct profile *p;
	struct intern strings;
	VEC(struct firefox_func) funcs;
	VEC(struct firefox_frame) frames;
	VEC(struct firefox_stack) stacks;
	VEC(struct firefox_resource) resources;
	VEC(uint32_t) sources;  /* strings */
	uint32_t *stack_of;     /* by stack_id: index + 1, 0 = not used yet */
	uint32_t *first_of_loc; /* by loc_id: index of its outermost frame + 1 */
	struct map func_index;
	struct map resource_index;
	struct map source_index;
	struct map leaf_index; /* (stack, string of a reason) -> stack */
};

void firefox_tables_init(struct firefox_tables *t, const struct profile *p);
void firefox_tables_release(struct firefox_tables *t);
/* Finds or adds the stack; @leaf: a frame on top of it for a wait reason, or NULL. */
uint32_t firefox_stack(struct firefox_tables *t, stack_id stack, const char *leaf);
uint32_t firefox_string(struct firefox_tables *t, struct sv s);
/* Writes the members "libs" and "shared". */
void firefox_put_tables(struct json *j, const struct firefox_tables *t);

/* A row of a table, in a thread. */
struct firefox_row {
	const struct table *t;
	uint32_t row;
};

struct firefox_thread {
	task_id task;       /* the last of a thread's names */
	uint64_t weight_ns; /* CPU time and waits that are not idle, for the order */
	uint64_t first_ns;
	uint64_t last_ns;
	VEC(struct firefox_row) samples;
	VEC(struct firefox_row) markers;
	VEC(struct firefox_row) blocks; /* allocated or freed */
};

struct firefox_writer {
	const struct profile *p;
	const struct format_options *options;
	struct format_output *to;
	struct json j;
	struct firefox_tables tables;
	VEC(struct firefox_thread) threads;
	enum unit unit;   /* of the samples' weights */
	bool is_timeless; /* samples are placed one after the other */
};

/* What a sample weighs, in the unit of its table's weight. */
uint64_t firefox_weight(const struct table *t, size_t row);
/* The frame that stands for a wait's reason ("[lock]"), or NULL. */
const char *firefox_reason(const struct firefox_writer *w, const struct table *t, size_t row);
/* Adds the stacks of a thread to the tables, which come first in the file. */
void firefox_collect_stacks(struct firefox_writer *w, const struct firefox_thread *t);
/* Writes a thread; the first one has the marks. */
int firefox_put_thread(struct firefox_writer *w, const struct firefox_thread *t, bool has_marks,
		       struct err *err);
/* Writes meta.markerSchema. */
void firefox_put_schemas(struct json *j);
/* Writes a time of the profile's clock, in ms since its start. */
void firefox_put_time(struct firefox_writer *w, uint64_t time_ns);

#endif
