/*
 * perf.data reader: the file, its header, and the loop over its records.
 *
 *	descriptor --read--> chunk --records--+--> order --> sink
 *	                                      |      ^
 *	                  COMPRESSED --zstd--> chunk-+
 *
 * Records are not copied: they stay in the chunk they were read into until they are delivered.
 * A chunk counts its queued records and is reused when there are none; an incomplete record at the
 * end of a chunk is moved to the start of the next one. A caller's memory is one chunk that is
 * never freed.
 */
#include "base/base.h"
#include "format/perf/perfdata_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <zstd.h>

#include "base/mem.h"
#include "format/format.h"

#define CHUNK_BYTES    ((size_t)256 << 10)
#define SAMPLE_BYTES   64 /* a sample has at least so many, with a short chain */
#define QUEUED_AT_ONCE ((uint64_t)1 << 19)

static int parse_records(struct pd_reader *r, struct pd_stream *s, bool is_plain, struct err *err);

/* ---- chunks ------------------------------------------------------------------------------ */

static uint32_t chunk_new(struct pd_reader *r)
{
	uint32_t id;
	if (r->free_chunks.n) {
		id = r->free_chunks.p[--r->free_chunks.n];
	} else {
		id = (uint32_t)r->chunks.n;
		vec_push(&r->chunks, (struct pd_chunk){.p = xmalloc(CHUNK_BYTES)});
	}
	r->chunks.p[id].nr_refs = 1; /* reference of the stream that fills it */
	return id;
}

void pd_chunk_unref(struct pd_reader *r, uint32_t chunk)
{
	struct pd_chunk *c = &r->chunks.p[chunk];
	ASSERT(c->nr_refs);
	if (!--c->nr_refs && c->p)
		vec_push(&r->free_chunks, chunk);
}

/* Makes room for at least one more record at the stream's end, with a new chunk if needed. */
static void stream_make_room(struct pd_reader *r, struct pd_stream *s)
{
	if (s->is_open && CHUNK_BYTES - s->end >= PD_RECORD_MAX)
		return;
	uint32_t fresh = chunk_new(r);
	size_t left = s->is_open ? s->end - s->begin : 0;
	if (s->is_open) {
		memcpy(r->chunks.p[fresh].p, r->chunks.p[s->chunk].p + s->begin, left);
		pd_chunk_unref(r, s->chunk);
	}
	*s = (struct pd_stream){.chunk = fresh, .end = left, .is_open = true};
}

static void stream_close(struct pd_reader *r, struct pd_stream *s)
{
	if (s->is_open)
		pd_chunk_unref(r, s->chunk);
	s->is_open = false;
}

void pd_problem(struct pd_reader *r, const char *fmt, ...)
{
	r->info->is_incomplete = true;
	if (r->info->problem)
		return;
	CLEANUP(buf_release) struct buf b = {0};
	va_list ap;
	va_start(ap, fmt);
	buf_vaddf(&b, fmt, ap);
	va_end(ap);
	r->info->problem = arena_strdup(&r->info->text, buf_str(&b));
}

/* ---- input ------------------------------------------------------------------------------- */

/* Reads up to n bytes at the current position; 0 at the end. */
static ssize_t input_read(struct pd_reader *r, void *to, size_t n, struct err *err)
{
	if (r->in.pos >= r->in.limit)
		return 0;
	n = MIN(n, r->in.limit - r->in.pos);
	ssize_t got = r->in.has_seek ? file_pread_some(r->in.fd, to, n, r->in.pos, err)
				     : file_read_some(r->in.fd, to, n, err);
	if (got < 0) {
		r->is_stopped = true;
		return (int)got;
	}
	r->in.pos += (uint64_t)got;
	return got;
}

/* Reads n bytes at an offset of the file or memory; false if it is shorter. */
static bool input_at(struct pd_reader *r, uint64_t off, void *to, size_t n)
{
	if (off > r->in.n || n > r->in.n - off)
		return false;
	if (r->in.fd < 0) {
		memcpy(to, r->in.p + off, n);
		return true;
	}
	return !file_pread(r->in.fd, to, n, off, NULL);
}

/* ---- records of perf itself --------------------------------------------------------------- */

static void user_attr(struct pd_reader *r, const uint8_t *rec, size_t n)
{
	uint32_t size = 0;
	if (n >= PD_HEADER_LEN + 8)
		memcpy(&size, rec + PD_HEADER_LEN + 4, sizeof(size));
	if (!size)
		size = PERF_ATTR_SIZE_VER0;
	if (size > n - PD_HEADER_LEN || pd_add_attr(r, rec + PD_HEADER_LEN, size, NULL)) {
		r->info->nr_unparsed++;
		return;
	}
	for (size_t at = PD_HEADER_LEN + size; at + 8 <= n; at += 8)
		pd_add_id(r, pd_u64(rec + at), (uint32_t)r->layouts.n - 1);
}

/* The name of an event that is not in its attribute (type 2 of EVENT_UPDATE). */
static void user_event_update(struct pd_reader *r, const uint8_t *rec, size_t n)
{
	struct rd rd = rd_from(rec + PD_HEADER_LEN, n - PD_HEADER_LEN);
	uint64_t kind = rd_u64(&rd);
	const uint32_t *spec = map_get(&r->ids, rd_u64(&rd));
	if (kind != 2 || !spec || rd.is_bad)
		return;
	size_t len = strnlen((const char *)rd.p, rd_left(&rd));
	if (len)
		r->info->specs.p[*spec - 1].name =
			arena_strndup(&r->info->text, (const char *)rd.p, len);
}

/* Decompresses a COMPRESSED record and parses the records in it. */
static int user_compressed(struct pd_reader *r, const uint8_t *p, size_t n, struct err *err)
{
	if (!r->zstd)
		r->zstd = ZSTD_createDStream();
	ZSTD_inBuffer in = {p, n, 0};
	for (;;) {
		stream_make_room(r, &r->plain);
		struct pd_stream *s = &r->plain;
		ZSTD_outBuffer out = {r->chunks.p[s->chunk].p + s->end, CHUNK_BYTES - s->end, 0};
		size_t in_before = in.pos;
		size_t rc = ZSTD_decompressStream(r->zstd, &out, &in);
		if (ZSTD_isError(rc))
			return err_set(err, -EBADMSG, "compressed data is damaged: %s",
				       ZSTD_getErrorName(rc));
		s->end += out.pos;
		TRY(parse_records(r, s, true, err));
		bool is_drained = out.pos < out.size;
		if (in.pos == in.size && is_drained)
			return 0;
		if (in.pos == in_before && !out.pos)
			return err_set(err, -EBADMSG, "compressed data is damaged");
	}
}

static int user_record(struct pd_reader *r, const uint8_t *rec, uint32_t type, size_t n,
		       bool is_plain, struct err *err)
{
	struct rd rd32 = rd_from(rec + PD_HEADER_LEN, n - PD_HEADER_LEN);
	struct rd rd = rd32;
	uint32_t size = rd_u32(&rd32);
	uint64_t size64 = rd_u64(&rd);
	switch (type) {
	case PD_HEADER_ATTR:
		user_attr(r, rec, n);
		return 0;
	case PD_EVENT_UPDATE:
		user_event_update(r, rec, n);
		return 0;
	case PD_HEADER_FEATURE:
		if (!rd.is_bad && size64 < PD_FEAT_BITS)
			pd_feature(r, (unsigned)size64, rd.p, rd_left(&rd));
		return 0;
	case PD_HEADER_BUILD_ID:
		pd_build_id_record(r, rec, n);
		return 0;
	case PD_HEADER_TRACING_DATA: /* followed by that many bytes, padded */
		r->skip_bytes = ((uint64_t)size + 7) & ~(uint64_t)7;
		return 0;
	case PD_AUXTRACE:
		r->skip_bytes = size64;
		return 0;
	case PD_FINISHED_ROUND:
		return pd_order_round(r, err);
	case PD_COMPRESSED:
	case PD_COMPRESSED2:
		if (is_plain) /* nested compressed records are invalid */
			return err_set(err, -EBADMSG, "compressed data within compressed data");
		if (type == PD_COMPRESSED)
			return user_compressed(r, rec + PD_HEADER_LEN, n - PD_HEADER_LEN, err);
		if (rd.is_bad || size64 > rd_left(&rd))
			return err_set(err, -EBADMSG, "compressed record is shorter than it says");
		return user_compressed(r, rd.p, size64, err);
	default: /* ID_INDEX, THREAD_MAP, CPU_MAP, STAT*, TIME_CONV, FINISHED_INIT, ... */
		return 0;
	}
}

/* ---- the loop ---------------------------------------------------------------------------- */

static int kernel_record(struct pd_reader *r, const uint8_t *rec, uint32_t type, size_t n,
			 uint32_t chunk, struct err *err)
{
	uint32_t spec = pd_spec_of(r, rec, type, n);
	if (UNLIKELY(spec == UINT32_MAX)) {
		r->info->nr_unparsed++;
		return 0;
	}
	uint64_t time_ns = pd_time_of(&r->layouts.p[spec], rec, type, n);
	if (UNLIKELY(!time_ns)) /* synthesized by perf: deliver first */
		return pd_deliver(r, rec, spec, err);
	r->chunks.p[chunk].nr_refs++;
	pd_order_add(&r->order, (struct pd_entry){time_ns, rec, chunk, spec});
	return 0;
}

/* Parses all complete records of the stream's chunk; -ENODATA: the rest is malformed. */
static int parse_records(struct pd_reader *r, struct pd_stream *s, bool is_plain, struct err *err)
{
	const uint8_t *base = r->chunks.p[s->chunk].p ? r->chunks.p[s->chunk].p : r->in.p;
	uint32_t chunk = s->chunk;
	while (s->end - s->begin >= PD_HEADER_LEN) {
		if (r->skip_bytes) {
			size_t n = MIN(r->skip_bytes, s->end - s->begin);
			s->begin += n;
			r->skip_bytes -= n;
			continue;
		}
		const uint8_t *rec = base + s->begin;
		size_t n = pd_size(rec);
		uint32_t type = pd_type(rec);
		if (UNLIKELY(n < PD_HEADER_LEN)) {
			pd_problem(r, "a record has a size of %zu bytes, less than its header", n);
			return -ENODATA;
		}
		if (n > s->end - s->begin)
			return 0;
		s->begin += n;
		int rc = type < PD_HEADER_ATTR ? kernel_record(r, rec, type, n, chunk, err)
					       : user_record(r, rec, type, n, is_plain, err);
		if (UNLIKELY(rc))
			return rc;
	}
	return 0;
}

static int read_stream(struct pd_reader *r, struct pd_stream *s, struct err *err)
{
	for (;;) {
		stream_make_room(r, s);
		ssize_t got =
			input_read(r, r->chunks.p[s->chunk].p + s->end, CHUNK_BYTES - s->end, err);
		if (got < 0)
			return (int)got;
		if (!got)
			return 0;
		s->end += (size_t)got;
		TRY(parse_records(r, s, false, err));
	}
}

/* Reads the data section from in.pos to in.limit and delivers all records. */
static int read_data(struct pd_reader *r, struct err *err)
{
	struct pd_stream s = {0};
	CLEANUP(err_release) struct err why = {0};
	int rc;
	if (r->in.fd < 0) {
		vec_push(&r->chunks, (struct pd_chunk){.nr_refs = 1});
		s = (struct pd_stream){.chunk = (uint32_t)r->chunks.n - 1,
				       .begin = r->in.pos,
				       .end = MIN(r->in.limit, r->in.n),
				       .is_open = true};
		rc = parse_records(r, &s, false, &why);
	} else {
		/* A queue that grows is copied; room that nothing uses costs none. */
		if (r->in.limit < UINT64_MAX)
			vec_reserve(&r->order.waiting,
				    MIN((r->in.limit - r->in.pos) / SAMPLE_BYTES, QUEUED_AT_ONCE));
		rc = read_stream(r, &s, &why);
	}
	if (!rc && s.end > s.begin)
		pd_problem(r, "the file ends within a record");
	else if (!rc && r->skip_bytes)
		pd_problem(r, "the file ends within its data");
	if (rc && r->is_stopped) /* the sink or a system call failed */
		return err_move(err, &why);
	if (rc)
		pd_problem(r, "%s", err_msg(&why));
	rc = pd_order_flush(r, UINT64_MAX, err);
	stream_close(r, &r->plain);
	stream_close(r, &s);
	return rc;
}

/* ---- header ------------------------------------------------------------------------------ */

static int read_ids(struct pd_reader *r, struct pd_section ids, uint32_t spec, struct err *err)
{
	if (ids.off > r->in.n || ids.n > r->in.n - ids.off)
		return err_set(err, -EBADMSG, "the ids of event %u are outside the file", spec);
	for (uint64_t i = 0; i < ids.n / 8; i++) {
		uint64_t id;
		if (!input_at(r, ids.off + i * 8, &id, sizeof(id)))
			return err_set(err, -EBADMSG, "cannot read the ids of event %u", spec);
		pd_add_id(r, id, spec);
	}
	return 0;
}

static int read_attrs(struct pd_reader *r, const struct pd_file_header *h, struct err *err)
{
	uint64_t each = h->attr_size;
	if (each < PERF_ATTR_SIZE_VER0 + sizeof(struct pd_section) || each > 4096)
		return err_set(err, -EBADMSG, "event attributes of %" PRIu64 " bytes", each);
	uint64_t nr = h->attrs.n / each;
	if (!nr)
		return err_set(err, -EBADMSG, "it describes no events");
	for (uint64_t i = 0; i < nr; i++) {
		uint8_t attr[4096];
		if (!input_at(r, h->attrs.off + i * each, attr, each))
			return err_set(err, -EBADMSG, "event %" PRIu64 " is outside the file", i);
		struct pd_section ids;
		memcpy(&ids, attr + each - sizeof(ids), sizeof(ids));
		TRY(pd_add_attr(r, attr, each - sizeof(ids), err));
		TRY(read_ids(r, ids, (uint32_t)i, err));
	}
	return 0;
}

static bool has_feature(const struct pd_file_header *h, unsigned bit)
{
	return h->features[bit / 64] >> (bit % 64) & 1;
}

static void read_features(struct pd_reader *r, const struct pd_file_header *h)
{
	uint64_t at = h->data.off + h->data.n;
	CLEANUP(buf_release) struct buf b = {0};
	for (unsigned bit = 1; bit < PD_FEAT_BITS; bit++) {
		if (!has_feature(h, bit))
			continue;
		struct pd_section s;
		if (!input_at(r, at, &s, sizeof(s))) {
			pd_problem(r, "the file is truncated: feature sections are missing");
			return;
		}
		at += sizeof(s);
		if (s.off > r->in.n || s.n > r->in.n - s.off) {
			pd_problem(r, "the file is truncated: some feature sections are missing");
			continue;
		}
		if (bit == PD_FEAT_TRACING_DATA || !s.n || s.n > PD_FEATURE_MAX)
			continue;
		buf_clear(&b);
		if (input_at(r, s.off, buf_reserve(&b, s.n), s.n))
			pd_feature(r, bit, (const uint8_t *)b.p, s.n);
	}
}

static int read_file(struct pd_reader *r, struct err *err)
{
	struct pd_file_header h;
	if (!input_at(r, 0, &h, sizeof(h)))
		return err_set(err, -EBADMSG, "is truncated within its header");
	TRY(read_attrs(r, &h, err));
	if (has_feature(&h, PD_FEAT_DIR_FORMAT) && h.data.n)
		r->info->problem = "only the first file of a directory recording was read";
	if (h.data.off > r->in.n)
		return err_set(err, -EBADMSG, "its data are at offset %" PRIu64 ", past its end",
			       h.data.off);
	r->in.pos = h.data.off;
	if (!h.data.n) { /* written at the end: 0 means that features are missing, too */
		r->in.limit = r->in.n;
		if (r->in.n > h.data.off)
			pd_problem(r, "perf record was killed before it could finish the file");
		return read_data(r, err);
	}
	if (h.data.n > r->in.n - h.data.off) {
		r->in.limit = r->in.n;
		pd_problem(r, "the file is truncated: it has %" PRIu64 " of %" PRIu64 " data bytes",
			   r->in.n - h.data.off, h.data.n);
	} else {
		r->in.limit = h.data.off + h.data.n;
		read_features(r, &h);
	}
	return read_data(r, err);
}

static int read_pipe(struct pd_reader *r, struct err *err)
{
	r->info->is_pipe = true;
	r->in.limit = UINT64_MAX;
	int rc = read_data(r, err);
	if (!rc && !r->info->specs.n)
		return err_set(err, -EBADMSG, "it describes no events");
	return rc;
}

int perfdata_sniff(struct sv head)
{
	struct rd rd = rd_from(head.p, head.n);
	uint64_t magic = rd_u64(&rd);
	return magic == PD_MAGIC || magic == PD_MAGIC_SWAPPED || magic == PD_MAGIC_V1 ? 100 : 0;
}

/* Reads the rest after the first 16 bytes, which determine the kind of file. */
static int read_any(struct pd_reader *r, const uint8_t *start, size_t n, struct err *err)
{
	if (!n)
		return err_set(err, -ENODATA, "is empty");
	if (n < 16 || !perfdata_sniff(sv_from((const char *)start, n)))
		return err_set(err, -EBADMSG, "is not a perf.data file");
	uint64_t magic = pd_u64(start);
	uint64_t header_size = pd_u64(start + 8);
	if (magic == PD_MAGIC_SWAPPED) {
		err_set(err, -ENOTSUP, "was recorded on a big-endian machine");
		return err_hint(err, "run `perf script` there and read its text");
	}
	if (magic == PD_MAGIC_V1) {
		err_set(err, -ENOTSUP, "has the format of perf before 2010");
		return err_hint(err, "run `perf script` of that time and read its text");
	}
	r->in.pos = 16;
	if (header_size == 16)
		return read_pipe(r, err);
	if (header_size < sizeof(struct pd_file_header))
		return err_set(err, -EBADMSG, "has a header of %" PRIu64 " bytes", header_size);
	return read_file(r, err);
}

static void reader_free_p(struct pd_reader **rp)
{
	struct pd_reader *r = *rp;
	vec_foreach(c, &r->chunks)
		free(c->p);
	vec_release(&r->chunks);
	vec_release(&r->free_chunks);
	vec_release(&r->layouts);
	vec_release(&r->read_last);
	map_release(&r->ids);
	map_release(&r->read_values);
	pd_order_release(&r->order);
	ZSTD_freeDStream(r->zstd);
	free(r);
}

static struct pd_reader *reader_new(const struct event_sink *sink, struct perfdata_info *info)
{
	struct pd_reader *r = xcalloc(1, sizeof(*r));
	r->sink = sink;
	r->info = info;
	r->in.fd = -1;
	return r;
}

int perfdata_read(const void *p, size_t n, const struct event_sink *sink,
		  struct perfdata_info *info, struct err *err)
{
	CLEANUP(reader_free_p) struct pd_reader *r = reader_new(sink, info);
	r->in.p = p;
	r->in.n = n;
	return read_any(r, p, n, err);
}

/* A regular perf.data file through a pipe is read completely first, as its header has offsets. */
static int read_spooled(const struct event_sink *sink, struct perfdata_info *info, int fd,
			const uint8_t *start, size_t n, struct err *err)
{
	CLEANUP(buf_release) struct buf all = {0};
	buf_add(&all, start, n);
	TRY(file_read_fd(&all, fd, FILE_LIMIT, err));
	return perfdata_read(all.p, all.n, sink, info, err);
}

int perfdata_read_fd(int fd, const struct event_sink *sink, struct perfdata_info *info,
		     struct err *err)
{
	CLEANUP(reader_free_p) struct pd_reader *r = reader_new(sink, info);
	struct file_info facts;
	TRY(file_info_fd(&facts, fd, err));
	if (facts.is_dir) {
		err_set(err, -EISDIR, "is a directory");
		return err_hint(err, "recordings of `perf record --threads` are not read; "
				     "record without --threads");
	}
	r->in.fd = fd;
	r->in.has_seek = facts.is_regular;
	r->in.limit = UINT64_MAX;
	r->in.n = facts.nr_bytes;
	uint8_t start[16];
	size_t n = 0;
	while (n < sizeof(start)) {
		ssize_t got = input_read(r, start + n, sizeof(start) - n, err);
		if (got < 0)
			return (int)got;
		if (!got)
			break;
		n += (size_t)got;
	}
	bool is_pipe_mode = n == sizeof(start) && pd_u64(start + 8) == sizeof(start);
	if (!r->in.has_seek && perfdata_sniff(sv_from((const char *)start, n)) && !is_pipe_mode)
		return read_spooled(sink, info, fd, start, n, err);
	return read_any(r, start, n, err);
}
