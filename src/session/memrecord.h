/*
 * Stores readings of a memwatch as rows of the table "memory" of a profile, for the summary of
 * `assay watch`; with -o the profile is also written to a recording every second.
 */
#ifndef ASSAY_SESSION_MEMRECORD_H
#define ASSAY_SESSION_MEMRECORD_H

#include "base/base.h"
#include "base/err.h"
#include "format/assay/assayfile.h"
#include "host/procend.h"
#include "model/profile.h"
#include "session/memwatch.h"
#include "session/store.h"

struct memrecord {
	struct profile *p;
	uint32_t table;
	uint32_t allocator_table;
	uint64_t query_ns;  /* of the last answer of the allocator in that */
	VEC(task_id) tasks; /* by index of the process in the memwatch */
	struct store_place place;
	struct assayfile_writer *writer; /* NULL: no recording */
	uint64_t next_flush_ns;
	uint64_t nr_bytes; /* of the finished file */
};

/* @output: path of the recording, or NULL. @target: name of the target. */
int memrecord_open(struct memrecord *w, const char *output, const char *target, struct err *err);
void memrecord_release(struct memrecord *w);
/* Removes the recording: for a target of which nothing was read. */
void memrecord_abandon(struct memrecord *w);
/* Adds a row for each process, from its last reading. */
void memrecord_add(struct memrecord *w, const struct memwatch *from, const struct memreading *t);
/* Completes the file and seals the profile. @end: how the target ended. */
int memrecord_finish(struct memrecord *w, const struct memwatch *from, const struct procend *end,
		     struct err *err);

#endif
