/*
 * Builds a profile from events in time order: tracks threads, their names and the mappings of
 * processes, unwinds stacks and adds rows to the tables. Used by captures and by the reader of
 * perf.data. Not thread-safe.
 */
#ifndef ASSAY_INGEST_BUILDER_H
#define ASSAY_INGEST_BUILDER_H

#include "base/base.h"
#include "ingest/modules.h"
#include "ingest/file_access.h"
#include "model/event.h"
#include "model/profile.h"

struct builder_options {
	const struct file_access *files;
	const char *cache_dir; /* for unwind tables, may be NULL */
	/* A stack copy of @nr_bytes was too short: the source may copy more. May be NULL. */
	void (*wants_more_stack)(void *ctx, int32_t tid, uint64_t nr_bytes);
	/*
	 * The process's executable mappings have changed; @sp NULL: it has exited. Called once for
	 * consecutive mmap events, before the next event of another kind is applied. May be NULL.
	 */
	void (*space_changed)(void *ctx, int32_t pid, const struct space *sp);
	void *ctx;
};

struct builder;

/* Borrows the profile and the options' pointers. */
struct builder *builder_new(struct profile *p, const struct builder_options *options);
void builder_free(struct builder *b);
DEFINE_FREE_P(builder, struct builder)
/* Sets the table that samples and rows of the source's event @spec go to. */
void builder_set_table(struct builder *b, uint32_t spec, uint32_t table);
/* As builder_set_table, for samples of @bytes_each bytes each (page faults): rows have a count and
 * bytes. */
void builder_set_bytes_table(struct builder *b, uint32_t spec, uint32_t table, uint32_t bytes_each);
/*
 * Returns name and columns for the table of a sampled event, to pass to profile_table. Columns:
 * samples, and time in ns for clocks, else the period.
 */
struct table builder_table_shape(struct profile *p, const char *event, double freq_hz);
/* The sink for events. Malformed events are counted in the profile's losses, never an error. */
/* Applies binaries that did not answer at once and have answered since. Does not wait. */
void builder_retry_modules(struct builder *b);
struct event_sink builder_sink(struct builder *b);
/* Calls space_changed for changes that were not reported yet. */
void builder_emit_spaces(struct builder *b);
/*
 * Adds pending rows: rows (EVENT_AGGREGATE) whose stacks have not arrived yet, since BPF maps and
 * ring buffers are read at different times. Call builder_resolve_pending each second and
 * builder_resolve_all at the end: a row whose stacks are missing at the second call gets the stack
 * "[lost stack]".
 */
void builder_resolve_pending(struct builder *b);
void builder_resolve_all(struct builder *b);
/* Returns whether there were events of this thread, so that its name and mappings may be known. */
bool builder_knows_thread(const struct builder *b, int32_t pid, int32_t tid);
/* The modules, for symbolization; they live as long as the builder. */
struct modules *builder_modules(struct builder *b);
/* Returns the time of the latest event. */
uint64_t builder_last_ns(const struct builder *b);

#endif
