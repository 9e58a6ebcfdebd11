/*
 * assay watch: the readings as a profile with the table "memory", which the summary is made of and
 * which -o writes to a recording second by second.
 */
#ifndef ASSAY_CMD_WATCH_RECORD_H
#define ASSAY_CMD_WATCH_RECORD_H

#include "base/base.h"
#include "base/err.h"
#include "cmd/watch_probe.h"
#include "format/assayfile.h"
#include "model/profile.h"
#include "session/store.h"

struct watch_record {
	struct profile *p;
	uint32_t table;
	VEC(task_id) tasks; /* by process of the probe */
	struct store_place place;
	struct assayfile_writer *writer; /* NULL: nothing is written */
	uint64_t next_flush_ns;
	uint64_t nr_bytes;
};

/* @output: of the recording, or NULL. @target: its name. */
int watch_record_open(struct watch_record *w, const char *output, const char *target,
		      struct err *err);
void watch_record_release(struct watch_record *w);
/* Rows of the processes as they were read last. */
void watch_record_add(struct watch_record *w, const struct watch_probe *probe,
		      const struct watch_tick *t);
/* Completes the file and seals the profile. Nothing was read: the file goes. */
int watch_record_finish(struct watch_record *w, const struct watch_probe *probe, struct err *err);

#endif
