/*
 * The payload of a tracepoint: parses the tracepoint's format file, which has a line for each
 * field,
 *
 *	field:const char * filename;	offset:24;	size:8;	signed:0;
 *
 * and prints payloads as text. Fields that all tracepoints have in common (common_*) are left out.
 * A payload may be cut short: fields beyond its end are not printed. Source:
 * Documentation/trace/events.rst, kernel/trace/trace_events.c (f_show).
 */
#ifndef ASSAY_CAPTURE_EVENTS_TRACEFMT_H
#define ASSAY_CAPTURE_EVENTS_TRACEFMT_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"

enum trace_field_kind {
	TRACE_NUMBER,
	TRACE_POINTER, /* an address, printed in hex */
	TRACE_BYTES,   /* char[N] */
	TRACE_STRING,  /* __data_loc char[]: offset and length of a text later in the payload */
	TRACE_BLOB,    /* __data_loc of something else */
	TRACE_ARRAY,   /* other arrays, printed as hex bytes */
};

#define TRACE_FIELDS_MAX 64

struct trace_field {
	struct sv name; /* borrowed from the format's text */
	enum trace_field_kind kind;
	uint16_t offset;
	uint16_t nr_bytes; /* 1, 2, 4 or 8 for numbers */
	bool is_signed;
	bool is_relative; /* __rel_loc: the offset is relative to the end of the field */
	bool is_hex;      /* a number that is a bit mask or an address */
};

struct trace_format {
	char *text; /* owned */
	struct sv name;
	uint32_t id;
	uint16_t nr_bytes; /* of the fixed part of the payload */
	uint32_t nr_fields;
	struct trace_field fields[TRACE_FIELDS_MAX];
	uint32_t nr_left_out; /* fields beyond TRACE_FIELDS_MAX, or invalid */
};

void trace_format_release(struct trace_format *f);
/* Parses a format file; copies the text. -EINVAL: it has no ID. */
int trace_format_parse(struct trace_format *ret_f, struct sv text, struct err *err);
/* The field with this name; NULL: there is none. */
const struct trace_field *trace_field(const struct trace_format *f, const char *name);
/* Appends "uaddr: 0x7f.., op: 0x80": "name: value" for system calls, else "name=value ...". */
void trace_format_print(struct buf *to, const struct trace_format *f, const uint8_t *raw, size_t n);
/* Appends the names of the fields: "uaddr, op, val". */
void trace_format_list(struct buf *to, const struct trace_format *f);

#endif
