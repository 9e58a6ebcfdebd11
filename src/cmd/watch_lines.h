/*
 * assay watch: a reading as a line of a table for people, of CSV, or of JSON. One list of fields
 * makes all three (docs/formats/watch.md). Numbers of CSV and JSON are plain: bytes, seconds,
 * percent; what is not known is empty, or null.
 */
#ifndef ASSAY_CMD_WATCH_LINES_H
#define ASSAY_CMD_WATCH_LINES_H

#include "base/base.h"
#include "base/buf.h"
#include "base/json.h"
#include "cmd/watch_probe.h"

struct watch_lines {
	uint64_t start_ns;      /* time 0 */
	uint64_t machine_bytes; /* 0 = not known */
	unsigned columns;       /* of the table for people; 0 = as wide as it comes */
	bool has_group;
	bool has_allocator;
};

void watch_lines_heading(struct buf *to, const struct watch_lines *l);
void watch_lines_add(struct buf *to, const struct watch_lines *l, const struct watch_tick *t);

void watch_lines_csv_heading(struct buf *to);
void watch_lines_csv(struct buf *to, const struct watch_lines *l, const struct watch_tick *t);
/* Keys and values into an object that is open. */
void watch_lines_json(struct json *j, const struct watch_lines *l, const struct watch_tick *t);

#endif
