/*
 * Events -> profile: follows address spaces, threads and names in time order, walks stacks,
 * interns them. The heart of both a live capture and the reading of perf.data.
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
	/* A stack of nr_bytes copied was too short: the source may copy more. May be NULL. */
	void (*wants_more_stack)(void *ctx, int32_t tid, uint64_t nr_bytes);
	/*
	 * The process's executable mappings are these now; NULL: it is gone. Told once for a run
	 * of mappings, before the next event of another kind is applied. May be NULL.
	 */
	void (*space_changed)(void *ctx, int32_t pid, const struct space *sp);
	void *ctx;
};

struct builder;

/* Borrows the profile and the opener. */
struct builder *builder_new(struct profile *p, const struct builder_options *options);
void builder_free(struct builder *b);
DEFINE_FREE_P(builder, struct builder)
/* The table that samples of the source's event @spec go to. */
void builder_set_table(struct builder *b, uint32_t spec, uint32_t table);
/* The same for samples of events that stand for bytes (page faults): rows are counts and bytes. */
void builder_set_bytes_table(struct builder *b, uint32_t spec, uint32_t table, uint32_t bytes_each);
/* Shape of a sampled event's table: samples and a weight (ns for clocks, else the period). */
struct table builder_table_shape(struct profile *p, const char *event, double freq_hz);
/* Never fails for what an event says: nonsense is counted in the profile's losses. */
struct event_sink builder_sink(struct builder *b);
/* Tells changes of mappings that are still to be told. */
void builder_emit_spaces(struct builder *b);
/*
 * Rows (EVENT_AGGREGATE) whose stacks have not come yet are kept back, since what the kernel adds up
 * and what it sends go different ways. To be called each second, and with _all at the end: a row
 * whose stacks are not there by the second call gets "[lost stack]".
 */
void builder_resolve_pending(struct builder *b);
void builder_resolve_all(struct builder *b);
/* Whether a name and mappings may be known: something was told of it. */
bool builder_knows_thread(const struct builder *b, int32_t pid, int32_t tid);
/* For naming; lives as long as the builder. */
struct modules *builder_modules(struct builder *b);
/* Time of the last event seen. */
uint64_t builder_last_ns(const struct builder *b);

#endif
