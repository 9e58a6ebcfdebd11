/*
 * The writer of recordings; see assayfile.h.
 *
 * A flush encodes the new elements and rows of the profile into chunks in memory and writes them
 * with one write. Cursors are advanced only if that write succeeds, so a flush is atomic.
 */
#include "base/base.h"
#include "format/assay/assayfile.h"

#include <errno.h>

#include "base/file/file.h"
#include "base/hash.h"
#include "base/file/zio.h"
#include "format/assay/assayfile_layout.h"
#include "format/assay/assayfile_sections.h"

#define ZSTD_LEVEL   3
#define CHUNK_TARGET ((size_t)1 << 20) /* uncompressed bytes after which a chunk is closed */
#define BATCH        16384             /* elements of one section */

/* How much of the profile is in the file, and the last values of fields that may change. */
struct cursors {
	size_t held[ASSAYFILE_SECTIONS];
	uint64_t state_hash;
};

struct assayfile_writer {
	int fd;             /* -1: to memory */
	struct buf *memory; /* borrowed */
	bool is_seekable;
	unsigned nr_wait;     /* flushes to skip after failures */
	unsigned nr_failures; /* in a row */
	bool is_failed;       /* a failed write left bytes that could not be truncated */
	bool has_header;
	char kind[ASSAYFILE_KIND_MAX];
	uint64_t offset; /* end of the last complete chunk */
	uint64_t nr_samples;
	struct cursors done;
	VEC(size_t) rows;              /* by table */
	VEC(uint64_t) sent[UPDATE_NR]; /* values in the file of fields that may change */
	VEC(struct assayfile_index_entry) index;

	/* the flush in progress */
	struct cursors next;
	VEC(size_t) next_rows;
	uint64_t next_samples;
	struct buf raw;     /* the open chunk */
	struct buf section; /* one payload */
	struct buf packed;  /* closed chunks */
};

struct assayfile_writer *assayfile_writer_new(int fd, const char *kind)
{
	struct assayfile_writer *w = xcalloc(1, sizeof(*w));
	w->fd = fd;
	w->is_seekable = fd >= 0 && file_is_seekable(fd);
	memcpy(w->done.held, assayfile_held_first, sizeof(w->done.held));
	snprintf(w->kind, sizeof(w->kind), "%s", kind);
	return w;
}

void assayfile_writer_free(struct assayfile_writer *w)
{
	if (!w)
		return;
	close_p(&w->fd);
	vec_release(&w->rows);
	vec_release(&w->next_rows);
	for (size_t u = 0; u < UPDATE_NR; u++)
		vec_release(&w->sent[u]);
	vec_release(&w->index);
	buf_release(&w->raw);
	buf_release(&w->section);
	buf_release(&w->packed);
	free(w);
}

uint64_t assayfile_bytes(const struct assayfile_writer *w)
{
	return w->offset;
}

static uint64_t total_samples(const struct profile *p)
{
	uint64_t n = 0;
	vec_foreach(t, &p->tables)
		n += t->n;
	return n;
}

uint64_t assayfile_unsaved(const struct assayfile_writer *w, const struct profile *p)
{
	uint64_t n = total_samples(p);
	return n > w->nr_samples ? n - w->nr_samples : 0;
}

/* While a capture runs its end is not known: use the time of the last samples. */
static uint64_t elapsed_ns(const struct profile *p)
{
	uint64_t end_ns = p->end_ns;
	vec_foreach(t, &p->tables)
		if (!p->end_ns && t->n)
			end_ns = MAX(end_ns, t->time_ns[t->n - 1]);
	return p->start_ns && end_ns > p->start_ns ? end_ns - p->start_ns : 0;
}

/* ---- chunks ------------------------------------------------------------------------------- */

static int add_chunk(struct assayfile_writer *w, enum assayfile_chunk_type type,
		     const struct buf *raw, uint64_t elapsed, struct err *err)
{
	struct assayfile_chunk c = {
		.mark = ASSAYFILE_CHUNK_MARK,
		.type = (uint16_t)type,
		.flags = ASSAYFILE_ZSTD,
		.raw_bytes = (uint32_t)raw->n,
		.nr_samples = w->next_samples,
		.elapsed_ns = elapsed,
	};
	ASSERT(raw->n <= ASSAYFILE_RAW_MAX);
	size_t at = w->packed.n;
	buf_add(&w->packed, &c, sizeof(c));
	TRY(zio_compress_zstd(&w->packed, buf_str(raw), raw->n, ZSTD_LEVEL, err));
	size_t payload = at + sizeof(c);
	c.stored_bytes = (uint32_t)(w->packed.n - payload);
	c.payload_crc = zio_crc32(w->packed.p + payload, c.stored_bytes);
	c.header_crc = zio_crc32(&c, offsetof(struct assayfile_chunk, header_crc));
	memcpy(w->packed.p + at, &c, sizeof(c));
	return 0;
}

static int close_chunk(struct assayfile_writer *w, const struct profile *p, struct err *err)
{
	if (!w->raw.n)
		return 0;
	uint64_t at = w->offset + w->packed.n;
	TRY(add_chunk(w, ASSAYFILE_DATA, &w->raw, elapsed_ns(p), err));
	vec_push(&w->index, (struct assayfile_index_entry){at, w->next_samples, elapsed_ns(p)});
	buf_clear(&w->raw);
	return 0;
}

/* Appends w->section to the open chunk, and closes the chunk if it is large enough. */
static int add_section(struct assayfile_writer *w, const struct profile *p,
		       enum assayfile_section type, struct err *err)
{
	buf_add_ch(&w->raw, (char)type);
	buf_add_uleb(&w->raw, w->section.n);
	buf_add(&w->raw, buf_str(&w->section), w->section.n);
	buf_clear(&w->section);
	return w->raw.n < CHUNK_TARGET ? 0 : close_chunk(w, p, err);
}

/* How many of `left` elements to put in one section; fewer for elements of unlimited size. */
static size_t batch_of(const struct profile *p, enum assayfile_section type, size_t from,
		       size_t left)
{
	size_t most = MIN(left, (size_t)BATCH);
	size_t n = 0;
	size_t bytes = 0;
	size_t frames = 0;
	if (type == SECTION_STRINGS)
		while (n < most && bytes < CHUNK_TARGET)
			bytes += profile_sv(p, (str_id)(from + n++)).n;
	else if (type == SECTION_NAMES)
		while (n < most && frames < 4 * BATCH)
			frames += p->locations.p[p->symbolized_log.p[from + n++]].nr_frames;
	else
		n = most;
	return n;
}

static int add_elements(struct assayfile_writer *w, const struct profile *p,
			enum assayfile_section type, struct err *err)
{
	size_t *held = &w->next.held[type];
	size_t end = assayfile_vec(p, type).n;
	while (*held < end) {
		size_t n = batch_of(p, type, *held, end - *held);
		encode_elements(&w->section, p, type, *held, n);
		TRY(add_section(w, p, type, err));
		*held += n;
	}
	return 0;
}

static int add_samples(struct assayfile_writer *w, const struct profile *p, struct err *err)
{
	for (size_t *held = &w->next.held[SECTION_TABLE]; *held < p->tables.n; ++*held) {
		encode_table(&w->section, p, *held);
		TRY(add_section(w, p, SECTION_TABLE, err));
		vec_push(&w->next_rows, 0);
	}
	for (size_t t = 0; t < p->tables.n; t++) {
		size_t *row = &w->next_rows.p[t];
		while (*row < p->tables.p[t].n) {
			size_t n = MIN(p->tables.p[t].n - *row, (size_t)BATCH);
			encode_samples(&w->section, p, t, *row, n);
			w->next_samples += n;
			*row += n;
			TRY(add_section(w, p, SECTION_SAMPLES, err));
		}
	}
	return 0;
}

static const enum assayfile_section updated[] = {
	[UPDATE_MAPPING_END] = SECTION_MAPPINGS,
	[UPDATE_TASK_END] = SECTION_TASKS,
	[UPDATE_MODULE_DELETED] = SECTION_MODULES,
	[UPDATE_STACK_LOCATION] = SECTION_STACKS,
};

static uint64_t value_of(const struct profile *p, enum assayfile_update what, size_t i)
{
	return what == UPDATE_MAPPING_END      ? p->mappings.p[i].to_ns + 1
	       : what == UPDATE_TASK_END       ? p->tasks.p[i].end_ns
	       : what == UPDATE_STACK_LOCATION ? p->stacks.p[i].loc
					       : p->modules.p[i].is_deleted;
}

/* Writes what changed since it was written: ends, deleted files, inferred frames. */
static int add_updates(struct assayfile_writer *w, const struct profile *p, struct err *err)
{
	for (enum assayfile_update u = UPDATE_MAPPING_END; u < UPDATE_NR; u++)
		for (size_t i = 0; i < w->sent[u].n; i++) {
			if (value_of(p, u, i) == w->sent[u].p[i])
				continue;
			buf_add_uleb(&w->section, u);
			buf_add_uleb(&w->section, i);
			buf_add_uleb(&w->section, value_of(p, u, i));
		}
	return w->section.n ? add_section(w, p, SECTION_UPDATES, err) : 0;
}

static int add_state(struct assayfile_writer *w, const struct profile *p, struct err *err)
{
	encode_state(&w->section, p);
	uint64_t h = hash_bytes(buf_str(&w->section), w->section.n);
	if (h == w->done.state_hash && !w->raw.n && !w->packed.n) {
		buf_clear(&w->section);
		return 0;
	}
	w->next.state_hash = h;
	return add_section(w, p, SECTION_STATE, err);
}

/* Elements come before references to them, so that a truncated file has no invalid ids. */
static int encode_gains(struct assayfile_writer *w, const struct profile *p, struct err *err)
{
	static const enum assayfile_section defined[] = {
		SECTION_STRINGS,   SECTION_MODULES,   SECTION_MAPPINGS,
		SECTION_FUNCTIONS, SECTION_LOCATIONS, SECTION_NAMES,
		SECTION_STACKS,    SECTION_TASKS,     SECTION_TAGS,
	};
	for (size_t i = 0; i < ARRAY_LEN(defined); i++)
		TRY(add_elements(w, p, defined[i], err));
	TRY(add_updates(w, p, err));
	TRY(add_samples(w, p, err));
	TRY(add_elements(w, p, SECTION_MARKS, err));
	TRY(add_state(w, p, err));
	return close_chunk(w, p, err);
}

/* ---- writing ------------------------------------------------------------------------------ */

static int write_out(struct assayfile_writer *w, const void *p, size_t n, struct err *err)
{
	if (w->fd < 0) {
		buf_add(w->memory, p, n);
		w->offset += n;
		return 0;
	}
	TRY(w->is_failed ? file_truncate(w->fd, w->offset, err) : 0);
	w->is_failed = false;
	int rc = file_write_all(w->fd, p, n, err);
	if (rc) {
		/* The write may be partial: truncate the file, now or before the next attempt. */
		w->is_failed = w->is_seekable && file_truncate(w->fd, w->offset, NULL);
		return rc;
	}
	w->offset += n;
	return 0;
}

static struct assayfile_header make_header(const struct assayfile_writer *w,
					   const struct profile *p, enum assayfile_state state,
					   uint64_t index_offset)
{
	struct assayfile_header h = {
		.major = ASSAYFILE_MAJOR,
		.minor = ASSAYFILE_MINOR,
		.state = (uint32_t)state,
		.index_offset = index_offset,
		.wall_start_ns = p->wall_start_ns,
		.duration_ns = elapsed_ns(p),
		.nr_samples = w->nr_samples,
		.nr_unsaved = assayfile_unsaved(w, p),
	};
	memcpy(h.magic, ASSAYFILE_MAGIC, ASSAYFILE_MAGIC_LEN);
	memcpy(h.kind, w->kind, sizeof(h.kind));
	if (state == ASSAYFILE_OPEN)
		h.duration_ns = h.nr_samples = h.nr_unsaved = 0;
	h.crc = zio_crc32(&h, offsetof(struct assayfile_header, crc));
	return h;
}

static int write_header(struct assayfile_writer *w, const struct profile *p, struct err *err)
{
	if (w->has_header)
		return 0;
	struct assayfile_header h = make_header(w, p, ASSAYFILE_OPEN, 0);
	int rc = write_out(w, &h, sizeof(h), err);
	w->has_header = !rc;
	return rc;
}

static void remember(struct assayfile_writer *w, const struct profile *p)
{
	w->done = w->next;
	w->nr_samples = w->next_samples;
	vec_clear(&w->rows);
	vec_foreach(row, &w->next_rows)
		vec_push(&w->rows, *row);
	for (enum assayfile_update u = UPDATE_MAPPING_END; u < UPDATE_NR; u++) {
		size_t n = assayfile_vec(p, updated[u]).n;
		vec_clear(&w->sent[u]);
		vec_reserve(&w->sent[u], n);
		for (size_t i = 0; i < n; i++)
			vec_push(&w->sent[u], value_of(p, u, i));
	}
}

static void begin(struct assayfile_writer *w)
{
	w->next = w->done;
	w->next_samples = w->nr_samples;
	vec_clear(&w->next_rows);
	vec_foreach(row, &w->rows)
		vec_push(&w->next_rows, *row);
	buf_clear(&w->raw);
	buf_clear(&w->section);
	buf_clear(&w->packed);
}

static int flush_now(struct assayfile_writer *w, const struct profile *p, struct err *err)
{
	TRY(write_header(w, p, err));
	size_t nr_index = w->index.n;
	begin(w);
	int rc = encode_gains(w, p, err);
	if (!rc && w->packed.n)
		rc = write_out(w, buf_str(&w->packed), w->packed.n, err);
	if (rc) {
		w->index.n = nr_index;
		return rc;
	}
	remember(w, p);
	return 0;
}

/* Each attempt encodes all unsaved data again: after failures only up to one in 32 tries. */
int assayfile_flush(struct assayfile_writer *w, const struct profile *p, struct err *err)
{
	if (w->nr_wait) {
		w->nr_wait--;
		return err_set(err, -ENOSPC, "the last write of the recording failed");
	}
	int rc = flush_now(w, p, err);
	w->nr_failures = rc ? MIN(w->nr_failures + 1, 5u) : 0;
	w->nr_wait = rc ? (1u << w->nr_failures) - 1 : 0;
	return rc;
}

static int write_index(struct assayfile_writer *w, const struct profile *p, struct err *err)
{
	begin(w);
	buf_add_uleb(&w->raw, w->index.n);
	vec_foreach(e, &w->index) {
		buf_add_uleb(&w->raw, e->offset);
		buf_add_uleb(&w->raw, e->nr_samples);
		buf_add_uleb(&w->raw, e->elapsed_ns);
	}
	TRY(add_chunk(w, ASSAYFILE_END, &w->raw, elapsed_ns(p), err));
	return write_out(w, buf_str(&w->packed), w->packed.n, err);
}

int assayfile_finish(struct assayfile_writer *w, const struct profile *p, struct err *err)
{
	int rc = flush_now(w, p, err);
	uint64_t at = w->offset;
	if (!rc)
		rc = write_index(w, p, err);
	enum assayfile_state state =
		assayfile_unsaved(w, p) ? ASSAYFILE_INCOMPLETE : ASSAYFILE_FINISHED;
	struct assayfile_header h = make_header(w, p, state, rc ? 0 : at);
	if (w->fd < 0)
		memcpy(w->memory->p, &h, sizeof(h));
	else if (w->is_seekable && w->has_header && !rc)
		rc = file_pwrite_all(w->fd, &h, sizeof(h), 0, err);
	else if (w->is_seekable && w->has_header) /* needs no new disk space */
		(void)file_pwrite_all(w->fd, &h, sizeof(h), 0, NULL);
	return rc;
}

int assayfile_write(struct buf *to, const struct profile *p, const char *kind, struct err *err)
{
	CLEANUP(assayfile_writer_free_p)
	struct assayfile_writer *w = assayfile_writer_new(-1, kind);
	CLEANUP(buf_release) struct buf whole = {0};
	w->memory = &whole;
	TRY(assayfile_finish(w, p, err));
	buf_add(to, buf_str(&whole), whole.n);
	return 0;
}

int assayfile_writer_resume(struct assayfile_writer **ret_w, int fd,
			    const struct assayfile_pos *pos, const struct profile *p,
			    struct err *err)
{
	if (!pos->can_append)
		return err_set(err, -EINVAL, "cannot append to a damaged recording");
	TRY(file_truncate(fd, pos->end, err));
	struct assayfile_writer *w = assayfile_writer_new(fd, pos->kind);
	w->has_header = true;
	w->offset = pos->end;
	w->nr_samples = pos->nr_samples;
	w->next_samples = pos->nr_samples;
	memcpy(w->next.held, pos->held, sizeof(w->next.held));
	for (size_t t = 0; t < pos->held[SECTION_TABLE]; t++)
		vec_push(&w->next_rows, p->tables.p[t].n);
	remember(w, p);
	for (enum assayfile_update u = UPDATE_MAPPING_END; u < UPDATE_NR; u++)
		w->sent[u].n = MIN(w->sent[u].n, pos->held[updated[u]]);
	*ret_w = w;
	return 0;
}
