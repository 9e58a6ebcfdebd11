/*
 * What the files of the perf.data reader share; nobody else includes it.
 *
 *	perfdata_read.c     bytes -> records: chunks, pipe, compression, the loop
 *	perfdata_attr.c     attributes, ids, names of events
 *	perfdata_features.c what the header says: host, build-ids, event names
 *	perfdata_order.c    records -> time order
 *	perfdata_sample.c   record -> struct event
 */
#ifndef ASSAY_FORMAT_PERF_PERFDATA_PRIV_H
#define ASSAY_FORMAT_PERF_PERFDATA_PRIV_H

#include <linux/perf_event.h>

#include "base/base.h"
#include "base/err.h"
#include "base/map.h"
#include "base/file/rd.h"
#include "base/vec.h"
#include "format/perf/perfdata.h"
#include "format/perf/perfdata_file.h"
#include "model/event.h"

#define PD_RECORD_MAX ((size_t)65536) /* a record's size is 16 bits */
#define PD_HEADER_LEN ((size_t)8)     /* struct perf_event_header */

/* Limits of what a file may make us allocate. */
#define PD_SPECS_MAX   65536u
#define PD_FEATURE_MAX ((uint64_t)64 << 20)

/* How the records of one event are laid out, worked out once from its attribute. */
struct pd_layout {
	struct perf_event_attr attr;
	uint32_t time_off;          /* of the time in a sample record; 0 = has none */
	uint32_t id_off;            /* of the id in a sample record; 0 = has none */
	uint32_t trailer_len;       /* bytes of sample_id at the end of other records; 0 = none */
	uint32_t trailer_time_back; /* from the end back to the time; 0 = none */
	uint32_t trailer_id_back;
};

/* A record that waits for its turn. */
struct pd_entry {
	uint64_t time_ns;
	const uint8_t *rec;
	uint32_t chunk; /* which chunk holds it; see perfdata_read.c */
	uint32_t spec;
};

struct pd_order {
	VEC(struct pd_entry) waiting;
	VEC(struct pd_entry) scratch;
	VEC(size_t) runs;
	bool is_sorted;
	uint64_t max_ns;       /* latest time queued so far */
	uint64_t round_max_ns; /* what max_ns was when the last round ended */
	uint64_t delivered_ns;
};

struct pd_chunk {
	uint8_t *p; /* NULL: bytes that belong to the caller */
	size_t nr_refs;
};

/* A stream of records in chunks: the file, or what came out of its compressed records. */
struct pd_stream {
	uint32_t chunk; /* the one being filled */
	size_t begin;   /* of the first record not yet parsed, in it */
	size_t end;
	bool is_open;
};

struct pd_reader {
	const struct event_sink *sink;
	struct perfdata_info *info;
	VEC(struct pd_layout) layouts; /* parallel to info->specs */
	struct map ids;                /* event id -> spec + 1 */
	struct map read_values;        /* (id, tid) -> index into read_last */
	VEC(uint64_t) read_last;
	uint64_t last_id;
	uint32_t last_spec;
	uint64_t lost_reported;
	bool is_stopped; /* the sink or the system failed: an error, not a damaged file */

	struct pd_order order;
	VEC(struct pd_chunk) chunks;
	VEC(uint32_t) free_chunks;
	uint64_t skip_bytes; /* of payload that follows a record */
	void *zstd;
	struct pd_stream plain; /* decompressed */

	struct {
		int fd; /* -1: memory */
		const uint8_t *p;
		size_t n;
		uint64_t pos;
		uint64_t limit; /* of the data section, when known */
		bool has_seek;
	} in;
	uint64_t bounce[PD_RECORD_MAX / sizeof(uint64_t)]; /* for a record that is not aligned */
};

static inline uint16_t pd_size(const uint8_t *rec)
{
	uint16_t v;
	memcpy(&v, rec + 6, sizeof(v));
	return v;
}
static inline uint16_t pd_misc(const uint8_t *rec)
{
	uint16_t v;
	memcpy(&v, rec + 4, sizeof(v));
	return v;
}
static inline uint32_t pd_type(const uint8_t *rec)
{
	uint32_t v;
	memcpy(&v, rec, sizeof(v));
	return v;
}
static inline uint64_t pd_u64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* perfdata_attr.c */
/* Adds an event from the n bytes of its attribute; 0 or negative. */
int pd_add_attr(struct pd_reader *r, const uint8_t *attr, size_t n, struct err *err);
void pd_add_id(struct pd_reader *r, uint64_t id, uint32_t spec);
/* The spec of a record, or UINT32_MAX if the file does not tell. */
uint32_t pd_spec_of(struct pd_reader *r, const uint8_t *rec, uint32_t type, size_t n);

/* perfdata_features.c */
/* One feature's bytes; what is damaged or unknown is left out. */
void pd_feature(struct pd_reader *r, unsigned feature, const uint8_t *p, size_t n);
void pd_build_id_record(struct pd_reader *r, const uint8_t *rec, size_t n);
/* Gives a map that has no build-id the one of its path. */
void pd_apply_build_id(const struct perfdata_info *info, struct event_map *map);

/* perfdata_order.c */
void pd_order_add(struct pd_order *o, struct pd_entry e);
/* Delivers, in order, what is not later than limit_ns. */
int pd_order_flush(struct pd_reader *r, uint64_t limit_ns, struct err *err);
/* A round ended: what is older than the round before is complete. */
int pd_order_round(struct pd_reader *r, struct err *err);
void pd_order_release(struct pd_order *o);

/* perfdata_sample.c */
/* Decodes one record of the kernel's and hands it to the sink. */
int pd_deliver(struct pd_reader *r, const uint8_t *rec, uint32_t spec, struct err *err);
/* The time of a record of the kernel's; 0 = it has none. */
uint64_t pd_time_of(const struct pd_layout *l, const uint8_t *rec, uint32_t type, size_t n);

/* perfdata_read.c */
void pd_chunk_unref(struct pd_reader *r, uint32_t chunk);
/* Remembers why the rest of the file cannot be read (the first reason stays). */
void pd_problem(struct pd_reader *r, const char *fmt, ...) PRINTF(2, 3);

#endif
