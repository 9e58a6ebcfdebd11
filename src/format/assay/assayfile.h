/*
 * Recordings (`.assay`): the file that a capture writes while it runs and that other commands
 * read. docs/formats/assay.md describes the format.
 *
 * The file is append-only: each flush adds one or more checksummed zstd chunks with the elements
 * and rows that were added to the profile since the previous flush. Ids are dense and append-only,
 * so only the 88-byte header is ever rewritten. If assay is killed, the file can be read up to the
 * last flush.
 *
 * Writing, to a descriptor that session/store opened (this module opens no files):
 *
 *	struct assayfile_writer *w = assayfile_writer_new(fd, "cpu");
 *	each second: assayfile_flush(w, profile, &err);
 *	assayfile_finish(w, profile, &err);     before profile_seal, which reorders samples
 *	assayfile_writer_free(w);
 *
 * A flush that fails (disk full) leaves the file unchanged and the data in the profile: a later
 * flush writes them again. After k failures in a row (k up to 5), assayfile_flush skips the next
 * 2^k - 1 attempts and returns -ENOSPC. Samples that assayfile_finish could not write are counted
 * in the header and become LOSS_DISK when the file is read.
 *
 * The reader checks every length, count and id and limits decompression by the file's size. A
 * damaged chunk is skipped and its samples are counted as LOSS_DAMAGED.
 */
#ifndef ASSAY_FORMAT_ASSAY_ASSAYFILE_H
#define ASSAY_FORMAT_ASSAY_ASSAYFILE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "model/profile.h"

#define ASSAYFILE_KIND_MAX 16 /* "cpu", "offcpu", ...; with the NUL */
#define ASSAYFILE_SECTIONS 15 /* kinds of sections (assayfile_layout.h), 0 is none */

struct format_input;
struct assayfile_writer; /* opaque */

/*
 * The writer owns @fd from now on. It is seekable, or a pipe (then the header is not completed).
 * @kind is copied.
 */
struct assayfile_writer *assayfile_writer_new(int fd, const char *kind);
void assayfile_writer_free(struct assayfile_writer *w);
DEFINE_FREE_P(assayfile_writer, struct assayfile_writer)

/* Appends what was added to @p since the last flush, if anything. */
int assayfile_flush(struct assayfile_writer *w, const struct profile *p, struct err *err);
/* Flushes, writes the index and completes the header. Call once, also after failed flushes. */
int assayfile_finish(struct assayfile_writer *w, const struct profile *p, struct err *err);
/* Returns the size of the file so far. */
uint64_t assayfile_bytes(const struct assayfile_writer *w);
/* Returns the number of samples of @p that are not in the file yet. */
uint64_t assayfile_unsaved(const struct assayfile_writer *w, const struct profile *p);

/* Appends a complete recording with the contents of @p to a buffer. */
int assayfile_write(struct buf *to, const struct profile *p, const char *kind, struct err *err);

/*
 * State of a file after reading, for appending symbol names later: assayfile_read, symbolize, then
 * assayfile_writer_resume and assayfile_finish.
 */
struct assayfile_pos {
	uint64_t end;                    /* offset after the last complete chunk */
	bool can_append;                 /* the profile's ids are those in the file (no damage) */
	size_t held[ASSAYFILE_SECTIONS]; /* elements in the file, by kind of section */
	uint64_t nr_samples;
	char kind[ASSAYFILE_KIND_MAX];
};

/*
 * Reads a recording into a new profile. The profile is not sealed (profile_seal sorts the tables by
 * time; no rows may be added afterwards): the caller may symbolize and merge, then seals it.
 * (*ret_p)->is_incomplete is set if the writer did not finish the file, or if samples are missing
 * in it. -EBADMSG: not a recording, or inconsistent; -ENOTSUP: a newer format. @ret_pos may be
 * NULL.
 */
int assayfile_read(struct profile **ret_p, struct assayfile_pos *ret_pos, const void *bytes,
		   size_t n, struct err *err);
/* The same for an input that is read to its end, with format_check_room of its stored size. */
int assayfile_read_input(struct profile **ret_p, struct assayfile_pos *ret_pos,
			 const struct format_input *in, struct err *err);
/*
 * Returns a writer that appends to the file @fd, from which @p was read; @p may have more elements
 * by now. The writer owns @fd on success.
 */
int assayfile_writer_resume(struct assayfile_writer **ret_w, int fd,
			    const struct assayfile_pos *pos, const struct profile *p,
			    struct err *err);

/* Summary of a recording for lists: from the header or, if unfinished, from the chunk headers. */
struct assayfile_info {
	char kind[ASSAYFILE_KIND_MAX]; /* [a-z0-9-], "" when damaged */
	int64_t wall_start_ns;         /* 0 = unknown */
	uint64_t duration_ns;
	uint64_t nr_samples;
	uint64_t file_bytes;
	bool is_incomplete; /* the writer did not finish the file, or did not write all samples */
};
/* @fd: a regular file. -EBADMSG if it is not a recording. */
int assayfile_info(struct assayfile_info *ret_info, int fd, struct err *err);

#endif
