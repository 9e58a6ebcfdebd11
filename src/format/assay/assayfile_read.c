/*
 * The reader of recordings: header, chunks, damage; see assayfile.h. Sections are decoded in
 * assayfile_decode.c.
 */
#include "base/base.h"
#include "format/assay/assayfile.h"

#include <errno.h>

#include "base/file/file.h"
#include "base/file/zio.h"
#include "base/text/num.h"
#include "format/assay/assayfile_layout.h"
#include "format/assay/assayfile_sections.h"
#include "format/format.h"

#define HEADER_BYTES sizeof(struct assayfile_header)
#define CHUNK_BYTES  sizeof(struct assayfile_chunk)

struct walk {
	const uint8_t *p;
	size_t n;
	size_t off;
	size_t end;          /* after the last complete chunk */
	uint64_t nr_samples; /* expected, from the last chunk header */
	bool is_torn;        /* the file ends within a chunk */
	bool has_end;
};

int assayfile_sniff(struct sv head)
{
	return sv_has_prefix(head, sv_from(ASSAYFILE_MAGIC, ASSAYFILE_MAGIC_LEN)) ? 100 : 0;
}

static bool is_good_chunk(const struct assayfile_chunk *c)
{
	return c->mark == ASSAYFILE_CHUNK_MARK &&
	       c->header_crc == zio_crc32(c, offsetof(struct assayfile_chunk, header_crc));
}

/* Finds the next chunk header at or after w->off and notes damage before it; false: none. */
static bool find_chunk(struct walk *w, struct assayfile_reader *r, struct assayfile_chunk *ret_c)
{
	static const uint32_t mark = ASSAYFILE_CHUNK_MARK;
	size_t from = w->off;
	while (w->n - w->off >= CHUNK_BYTES) {
		memcpy(ret_c, w->p + w->off, CHUNK_BYTES);
		if (is_good_chunk(ret_c)) {
			r->has_damage |= w->off != from;
			return true;
		}
		const uint8_t *next =
			memmem(w->p + w->off + 1, w->n - w->off - 1, &mark, sizeof(mark));
		if (!next)
			break;
		w->off = (size_t)(next - w->p);
	}
	w->is_torn = from < w->n;
	w->off = w->n;
	return false;
}

static int read_data(struct walk *w, struct assayfile_reader *r, const struct assayfile_chunk *c,
		     const uint8_t *payload, struct err *err)
{
	CLEANUP(buf_release) struct buf plain = {0};
	if (c->raw_bytes > ASSAYFILE_RAW_MAX)
		return err_set(err, -EFBIG, "a chunk of %u bytes is too large", c->raw_bytes);
	r->chunk_samples = c->nr_samples;
	r->nr_held = w->n + c->raw_bytes;
	if (!(c->flags & ASSAYFILE_ZSTD))
		return decode_sections(r, payload, c->stored_bytes, err);
	TRY(format_check_room(r->nr_stored, r->p, r->nr_held, err));
	TRY(zio_decompress(&plain, ZKIND_ZSTD, payload, c->stored_bytes, c->raw_bytes, err));
	if (plain.n != c->raw_bytes)
		return err_set(err, -EBADMSG, "a chunk holds %zu bytes instead of %u", plain.n,
			       c->raw_bytes);
	return decode_sections(r, plain.p, plain.n, err);
}

static int read_chunk(struct walk *w, struct assayfile_reader *r, const struct assayfile_chunk *c,
		      struct err *err)
{
	const uint8_t *payload = w->p + w->off + CHUNK_BYTES;
	w->nr_samples = MAX(w->nr_samples, c->nr_samples);
	if (zio_crc32(payload, c->stored_bytes) != c->payload_crc) {
		r->has_damage = true;
		return 0;
	}
	if (c->type == ASSAYFILE_DATA)
		return read_data(w, r, c, payload, err);
	if (c->type == ASSAYFILE_END)
		w->has_end = true;
	else if (c->flags & ASSAYFILE_CRITICAL)
		return err_set(err, -ENOTSUP, "chunk type %u needs a newer assay", c->type);
	else
		r->nr_skipped++;
	return 0;
}

static int read_chunks(struct walk *w, struct assayfile_reader *r, struct err *err)
{
	struct assayfile_chunk c;
	while (w->off < w->n && find_chunk(w, r, &c)) {
		if (c.stored_bytes > w->n - w->off - CHUNK_BYTES) {
			w->is_torn = true;
			break;
		}
		w->has_end =
			false; /* symbol names may follow an END chunk; then there is another END */
		int rc = read_chunk(w, r, &c, err);
		if (rc) {
			err_wrap(err, "chunk at byte %zu", w->off);
			return rc;
		}
		w->off += CHUNK_BYTES + c.stored_bytes;
		w->end = w->off;
	}
	return 0;
}

static int read_header(struct assayfile_header *ret_h, bool *ret_is_good, const void *p, size_t n,
		       struct err *err)
{
	if (!assayfile_sniff(sv_from(p, n)))
		return err_set(err, -EBADMSG, "not an assay recording");
	struct assayfile_header h = {0};
	memcpy(&h, p, MIN(n, HEADER_BYTES));
	*ret_is_good =
		n >= HEADER_BYTES && h.crc == zio_crc32(&h, offsetof(struct assayfile_header, crc));
	if (*ret_is_good && h.major > ASSAYFILE_MAJOR) {
		err_set(err, -ENOTSUP, "recording format %u.%u, this assay reads %u.x", h.major,
			h.minor, ASSAYFILE_MAJOR);
		err_hint(err, "use the assay that wrote it, or a newer one");
		return -ENOTSUP;
	}
	if (!*ret_is_good)
		h = (struct assayfile_header){0};
	h.kind[ASSAYFILE_KIND_MAX - 1] = 0;
	*ret_h = h;
	return 0;
}

/*
 * Counts missing samples as losses, so that seen = written + ... + damaged holds. Samples lost
 * before the last stored state are included in its LOSS_WRITTEN; those after it (truncated file)
 * are not yet included in its LOSS_SEEN.
 */
static void count_missing(struct profile *p, const struct walk *w, const struct assayfile_reader *r,
			  const struct assayfile_header *h)
{
	uint64_t want = MAX(w->nr_samples, h->nr_samples);
	uint64_t within = r->state_samples > r->nr_samples ? r->state_samples - r->nr_samples : 0;
	uint64_t after = want > MAX(r->state_samples, r->nr_samples)
				 ? want - MAX(r->state_samples, r->nr_samples)
				 : 0;
	uint64_t *nr = p->losses.nr;
	nr[LOSS_WRITTEN] -= MIN(nr[LOSS_WRITTEN], within);
	profile_lose(p, LOSS_DAMAGED, u64_add(within, after));
	profile_lose(p, LOSS_SEEN, after);
	profile_lose(p, LOSS_DISK, h->nr_unsaved);
	profile_lose(p, LOSS_SEEN, h->nr_unsaved);
	p->is_incomplete |= within + after > 0;
	bool was_finished = h->state == ASSAYFILE_FINISHED || w->has_end;
	/* Cut between chunks: the header still says that it was finished. */
	bool is_short = h->index_offset > w->n || w->n - h->index_offset < CHUNK_BYTES;
	p->is_incomplete |= !was_finished || w->is_torn || r->has_damage || is_short;
	if (r->has_damage && was_finished && !w->is_torn && !is_short)
		profile_factf(p, FACT_DAMAGED, "a part of the file, with %s; its end is there",
			      num_noun(u64_add(within, after), "rows").s);
	if (!p->end_ns)
		vec_foreach(t, &p->tables)
			for (size_t i = 0; i < t->n; i++)
				p->end_ns = MAX(p->end_ns, t->time_ns[i]);
	if (r->nr_skipped) {
		profile_factf(p, FACT_RECORDING_NOTE, "written by a newer assay: %s skipped",
			      num_noun(r->nr_skipped, "sections").s);
	}
}

/* @nr_stored: the size of the file, which may be compressed once more. */
static int read_into(struct profile *p, struct assayfile_pos *ret_pos, const void *bytes, size_t n,
		     uint64_t nr_stored, struct err *err)
{
	struct assayfile_header h;
	bool is_good;
	TRY(read_header(&h, &is_good, bytes, n, err));
	struct assayfile_reader r = {
		.p = p,
		.gap_budget = (1u << 20) + n,
		.nr_stored = nr_stored,
		.has_damage = !is_good && n >= HEADER_BYTES,
	};
	memcpy(r.held, assayfile_held_first, sizeof(r.held));
	vec_push(&r.str_ids, 0);
	struct walk w = {
		.p = bytes,
		.n = n,
		.off = MIN(n, HEADER_BYTES),
		.end = MIN(n, HEADER_BYTES),
	};
	int rc = read_chunks(&w, &r, err);
	if (!rc) {
		struct assayfile_pos pos = {
			.end = w.end,
			.can_append = !r.has_damage && !r.has_remap && !r.nr_skipped && h.major,
			.nr_samples = r.nr_samples,
		};
		memcpy(pos.held, r.held, sizeof(pos.held));
		memcpy(pos.kind, h.kind, sizeof(pos.kind));
		count_missing(p, &w, &r, &h);
		if (ret_pos)
			*ret_pos = pos;
	}
	vec_release(&r.str_ids);
	vec_release(&r.table_rows);
	return rc;
}

int assayfile_read(struct profile **ret_p, struct assayfile_pos *ret_pos, const void *bytes,
		   size_t n, struct err *err)
{
	struct format_input in = {.head = sv_from(bytes, n)};
	return assayfile_read_input(ret_p, ret_pos, &in, err);
}

int assayfile_read_input(struct profile **ret_p, struct assayfile_pos *ret_pos,
			 const struct format_input *in, struct err *err)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(buf_release) struct buf all = {0};
	struct sv bytes;
	TRY(format_input_text(in, &all, &bytes, err));
	TRY(read_into(p, ret_pos, bytes.p, bytes.n, format_input_stored(in), err));
	*ret_p = TAKE(p);
	return 0;
}

static void copy_kind(struct assayfile_info *to, const char *kind)
{
	size_t n = strnlen(kind, ASSAYFILE_KIND_MAX - 1);
	bool is_clean = strspn(kind, "abcdefghijklmnopqrstuvwxyz0123456789-") >= n;
	if (is_clean)
		memcpy(to->kind, kind, n);
}

int assayfile_info(struct assayfile_info *ret_info, int fd, struct err *err)
{
	struct assayfile_info info = {0};
	struct file_info facts;
	TRY(file_info_fd(&facts, fd, err));
	if (!facts.is_regular)
		return err_set(err, -EBADMSG, "not a regular file");
	info.file_bytes = facts.nr_bytes;
	uint8_t bytes[HEADER_BYTES];
	size_t n = MIN(info.file_bytes, sizeof(bytes));
	TRY(n ? file_pread(fd, bytes, n, 0, err) : 0);
	struct assayfile_header h;
	bool is_good;
	TRY(read_header(&h, &is_good, bytes, n, err));
	copy_kind(&info, h.kind);
	info.wall_start_ns = h.wall_start_ns;
	info.duration_ns = h.duration_ns;
	info.nr_samples = h.nr_samples;
	info.is_incomplete = h.state != ASSAYFILE_FINISHED;
	/* Not finished: use the numbers in the chunk headers. */
	struct assayfile_chunk c;
	uint64_t off = HEADER_BYTES;
	while (h.state == ASSAYFILE_OPEN && info.file_bytes - off >= sizeof(c) &&
	       off < info.file_bytes && !file_pread(fd, &c, sizeof(c), off, NULL) &&
	       is_good_chunk(&c) && c.stored_bytes <= info.file_bytes - off - sizeof(c)) {
		info.nr_samples = c.nr_samples;
		info.duration_ns = c.elapsed_ns;
		info.is_incomplete =
			c.type != ASSAYFILE_END; /* the header of a pipe is never completed */
		off += sizeof(c) + c.stored_bytes;
	}
	*ret_info = info;
	return 0;
}

/* ---- the row in format.c ------------------------------------------------------------------ */

int assayfile_format_read(struct profile *p, const struct format_input *in,
			  const struct format_options *options, struct err *err)
{
	(void)options;
	CLEANUP(buf_release) struct buf all = {0};
	struct sv bytes;
	TRY(format_input_text(in, &all, &bytes, err));
	return read_into(p, NULL, bytes.p, bytes.n, format_input_stored(in), err);
}

int assayfile_format_write(struct format_output *to, const struct profile *p,
			   const struct format_options *options, struct err *err)
{
	(void)options;
	const char *kind = profile_get_fact(p, FACT_KIND);
	TRY(assayfile_write(&to->buf, p, kind ? kind : "cpu", err));
	return format_spill(to, err);
}
