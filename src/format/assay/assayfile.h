/*
 * The recording, `.assay`: what a capture writes as it runs and every command reads. The bytes
 * are described in docs/formats/assay.md.
 *
 * Append-only: each flush adds one or more checksummed zstd chunks that hold what the profile
 * gained since the flush before (ids are dense and append-only, so nothing is ever rewritten but
 * the 88-byte header). A recorder that is killed leaves a file that opens up to its last flush.
 *
 * Writing, with a descriptor that session/store opened (this module opens nothing):
 *
 *	struct assayfile_writer *w = assayfile_writer_new(fd, "cpu");
 *	each second: assayfile_flush(w, profile, &err);
 *	assayfile_finish(w, profile, &err);     before profile_seal, which reorders samples
 *	assayfile_writer_free(w);
 *
 * A flush that fails (disk full) leaves the file as it was and forgets nothing: a later flush (not
 * every one: they become rarer while it fails) tries all of it again. What finish could not store
 * is counted in the header and shows up as LOSS_DISK when the file is read.
 *
 * Reading trusts nothing: every length, count and id is checked, decompression is bounded by the
 * file's size. Damage in the middle costs the chunks that it hit, counted as LOSS_DAMAGED.
 */
#ifndef ASSAY_FORMAT_ASSAY_ASSAYFILE_H
#define ASSAY_FORMAT_ASSAY_ASSAYFILE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "model/profile.h"

#define ASSAYFILE_KIND_MAX 16 /* "cpu", "offcpu", ...; with the NUL */
#define ASSAYFILE_SECTIONS 15 /* kinds of sections (assayfile_layout.h), 0 is none */

struct assayfile_writer; /* opaque */

/* @fd is taken over; seekable, or a pipe (then the header is not completed). @kind is copied. */
struct assayfile_writer *assayfile_writer_new(int fd, const char *kind);
void assayfile_writer_free(struct assayfile_writer *w);
DEFINE_FREE_P(assayfile_writer, struct assayfile_writer)

/* Appends what @p gained since the last flush; nothing when there is nothing. */
int assayfile_flush(struct assayfile_writer *w, const struct profile *p, struct err *err);
/* The last flush, the index, and the header's completion. Call once, also after failed flushes. */
int assayfile_finish(struct assayfile_writer *w, const struct profile *p, struct err *err);
/* Size so far, and samples of @p that are not in the file yet. */
uint64_t assayfile_bytes(const struct assayfile_writer *w);
uint64_t assayfile_unsaved(const struct assayfile_writer *w, const struct profile *p);

/* The whole file of a profile, appended to a buffer. */
int assayfile_write(struct buf *to, const struct profile *p, const char *kind, struct err *err);

/*
 * Where a file stood when it was read, so that names found later can be appended: read with
 * assayfile_read_at, name locations, then assayfile_writer_resume and assayfile_finish.
 */
struct assayfile_pos {
	uint64_t end;    /* after the last whole chunk */
	bool can_append; /* ids in the profile are the file's: nothing was damaged */
	size_t held[ASSAYFILE_SECTIONS]; /* elements in the file, by kind of section */
	uint64_t nr_samples;
	char kind[ASSAYFILE_KIND_MAX];
};

/*
 * Not sealed: the caller may name and merge, then seals. is_incomplete is set when the recorder
 * did not finish. -EBADMSG for what is not a recording or contradicts itself, -ENOTSUP for a
 * newer format. @ret_pos may be NULL.
 */
int assayfile_read_at(struct profile **ret_p, struct assayfile_pos *ret_pos, const void *bytes,
		      size_t n, struct err *err);
/* @fd, taken over (on success), is the file that @p was read from; @p may have grown since. */
int assayfile_writer_resume(struct assayfile_writer **ret_w, int fd,
			    const struct assayfile_pos *pos, const struct profile *p,
			    struct err *err);

/* What a list of recordings shows: from the header, or the chunk headers of an unfinished file. */
struct assayfile_info {
	char kind[ASSAYFILE_KIND_MAX]; /* [a-z0-9-], "" when damaged */
	int64_t wall_start_ns;         /* 0 = unknown */
	uint64_t duration_ns;
	uint64_t nr_samples;
	uint64_t file_bytes;
	bool is_incomplete;
};
/* A regular file. -EBADMSG when it is no recording. */
int assayfile_info(struct assayfile_info *ret_info, int fd, struct err *err);

#endif
