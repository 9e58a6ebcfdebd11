/*
 * State and steps of the perf.data reader. Used by its files only:
 *
 *	perfdata_read.c     input, chunks, decompression, and the loop over records
 *	perfdata_attr.c     event attributes and ids: which event a record belongs to
 *	perfdata_features.c feature sections of the header: host, build-ids, event names
 *	perfdata_order.c    sorts records by time
 *	perfdata_sample.c   decodes a record into a struct event
 */
#ifndef ASSAY_FORMAT_PERF_PERFDATA_READER_H
#define ASSAY_FORMAT_PERF_PERFDATA_READER_H

#include <linux/perf_event.h>

#include "base/base.h"
#include "base/err.h"
#include "base/map.h"
#include "base/file/rd.h"
#include "base/vec.h"
#include "format/perf/perfdata.h"
#include "format/perf/perfdata_layout.h"
#include "model/event.h"

#define PD_RECORD_MAX ((size_t)65536) /* a record's size is 16 bits */
#define PD_HEADER_LEN ((size_t)8)     /* struct perf_event_header */

/* Limits on allocations whose sizes come from the file. */
#define PD_SPECS_MAX   65536u
#define PD_FEATURE_MAX ((uint64_t)64 << 20)

/* Offsets of fields in the records of one event, computed once from its attribute. */
struct pd_layout {
	struct perf_event_attr attr;
	uint32_t time_off;          /* of the time in a sample record; 0 = none */
	uint32_t id_off;            /* of the id in a sample record; 0 = none */
	uint32_t trailer_len;       /* bytes of sample_id at the end of other records; 0 = none */
	uint32_t trailer_time_back; /* distance of the time from the record's end; 0 = none */
	uint32_t trailer_id_back;
};

/* A record in the queue. */
struct pd_entry {
	uint64_t time_ns;
	const uint8_t *rec;
	uint32_t chunk; /* the chunk that contains it; see perfdata_read.c */
	uint32_t spec;  /* event: index into perfdata_info.specs */
};

/* The queue that sorts records by time; see perfdata_order.c. */
struct pd_order {
	VEC(struct pd_entry) waiting;
	VEC(struct pd_entry) scratch;
	VEC(size_t) runs; /* starts of the sorted runs in waiting */
	bool is_sorted;
	uint64_t max_ns;       /* latest time queued so far */
	uint64_t round_max_ns; /* value of max_ns at the end of the last round */
	uint64_t delivered_ns; /* time of the last record passed to the sink */
};

/* A buffer with records; freed or reused when no queued record refers to it. */
struct pd_chunk {
	uint8_t *p; /* NULL: memory of the caller */
	size_t nr_refs;
};

/* A stream of records in chunks: the file, or its decompressed records. */
struct pd_stream {
	uint32_t chunk; /* the chunk being filled */
	size_t begin;   /* offset in it of the first record not parsed yet */
	size_t end;     /* offset after its last byte */
	bool is_open;
};

struct pd_reader {
	const struct event_sink *sink;
	struct perfdata_info *info;
	VEC(struct pd_layout) layouts; /* parallel to info->specs */
	struct map ids;                /* event id -> spec + 1 */
	struct map read_values;        /* (id, tid) -> index into read_last */
	VEC(uint64_t) read_last;       /* last value of a counter, for PERF_SAMPLE_READ */
	uint64_t last_id;              /* cache of one id and its spec */
	uint32_t last_spec;
	uint64_t lost_reported; /* sum of the EVENT_LOST events so far */
	bool is_stopped;        /* the sink or a system call failed: an error, not a damaged file */

	struct pd_order order;
	VEC(struct pd_chunk) chunks;
	VEC(uint32_t) free_chunks;
	uint64_t skip_bytes; /* bytes to skip after the current record */
	void *zstd;
	struct pd_stream plain; /* decompressed records */

	struct {
		int fd; /* -1: memory */
		const uint8_t *p;
		size_t n;
		uint64_t pos;
		uint64_t limit; /* end of the data section, if known */
		bool has_seek;
	} in;
	uint64_t bounce[PD_RECORD_MAX / sizeof(uint64_t)]; /* aligned copy of an unaligned record */
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
/* Adds an event, described by the n bytes of its attribute. */
int pd_add_attr(struct pd_reader *r, const uint8_t *attr, size_t n, struct err *err);
void pd_add_id(struct pd_reader *r, uint64_t id, uint32_t spec);
/* Returns the spec that a record belongs to, or UINT32_MAX if unknown. */
uint32_t pd_spec_of(struct pd_reader *r, const uint8_t *rec, uint32_t type, size_t n);

/* perfdata_features.c */
/* Reads one feature section; skips damaged and unknown parts. */
void pd_feature(struct pd_reader *r, unsigned feature, const uint8_t *p, size_t n);
void pd_build_id_record(struct pd_reader *r, const uint8_t *rec, size_t n);
/* Sets the build-id of a map event that has none, by its path. */
void pd_apply_build_id(const struct perfdata_info *info, struct event_map *map);

/* perfdata_order.c */
void pd_order_add(struct pd_order *o, struct pd_entry e);
/* Delivers the queued records up to limit_ns in order. */
int pd_order_flush(struct pd_reader *r, uint64_t limit_ns, struct err *err);
/* Handles FINISHED_ROUND: delivers the records up to the end of the previous round. */
int pd_order_round(struct pd_reader *r, struct err *err);
void pd_order_release(struct pd_order *o);

/* perfdata_sample.c */
/* Decodes one record of the kernel and passes it to the sink. */
int pd_deliver(struct pd_reader *r, const uint8_t *rec, uint32_t spec, struct err *err);
/* Returns the time of a record of the kernel; 0 = none. */
uint64_t pd_time_of(const struct pd_layout *l, const uint8_t *rec, uint32_t type, size_t n);

/* perfdata_read.c */
void pd_chunk_unref(struct pd_reader *r, uint32_t chunk);
/* Sets info->problem and is_incomplete unless a problem is set already. */
void pd_problem(struct pd_reader *r, const char *fmt, ...) PRINTF(2, 3);

#endif
