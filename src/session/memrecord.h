/*
 * Readings of memory as a profile with the table "memory", which the summary is made of and
 * which -o writes to a recording second by second.
 */
#ifndef ASSAY_SESSION_MEMRECORD_H
#define ASSAY_SESSION_MEMRECORD_H

#include "base/base.h"
#include "base/err.h"
#include "format/assay/assayfile.h"
#include "model/profile.h"
#include "session/memwatch.h"
#include "session/store.h"

struct memrecord {
	struct profile *p;
	uint32_t table;
	VEC(task_id) tasks; /* by process of the memwatch */
	struct store_place place;
	struct assayfile_writer *writer; /* NULL: nothing is written */
	uint64_t next_flush_ns;
	uint64_t nr_bytes; /* of the file, when it is finished */
};

/* @output: of the recording, or NULL. @target: its name. */
int memrecord_open(struct memrecord *w, const char *output, const char *target, struct err *err);
void memrecord_release(struct memrecord *w);
/* Nothing was read: the file goes. */
void memrecord_abandon(struct memrecord *w);
/* Rows of the processes as they were read last. */
void memrecord_add(struct memrecord *w, const struct memwatch *from, const struct memreading *t);
/* Completes the file and seals the profile. */
int memrecord_finish(struct memrecord *w, const struct memwatch *from, struct err *err);

#endif
