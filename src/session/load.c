/* Reads any supported file as a profile; see load.h. */
#include "base/base.h"
#include "session/load.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/instream.h"
#include "format/assay/assayfile.h"
#include "format/format.h"
#include "host/heldfiles.h"
#include "ingest/livesofar.h"
#include "ingest/symbolworker.h"
#include "model/heapcalibrate.h"
#include "session/dumpset.h"
#include "session/load_symbols.h"
#include "session/load_perfdata.h"

/* An opened input: the bytes read so far, and the stream of the rest. */
struct input {
	struct instream *rest;
	bool is_seekable;   /* a plain file: the descriptor can be read again from its start */
	int64_t written_ns; /* mtime, 0 = not a file */
	struct buf head;
};

static void input_release(struct input *in)
{
	instream_free(in->rest);
	buf_release(&in->head);
}

static int read_head(struct input *in, struct err *err)
{
	while (in->head.n < FORMAT_SNIFF_BYTES) {
		size_t want = FORMAT_SNIFF_BYTES - in->head.n;
		ssize_t n = instream_read(in->rest, buf_reserve(&in->head, want), want, err);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		in->head.n += (size_t)n;
		in->head.p[in->head.n] = 0;
	}
	return 0;
}

static int input_open(struct input *in, const char *path, struct err *err)
{
	int fd = STDIN_FILENO;
	if (strcmp(path, "-")) {
		fd = host_open_held(path);
		fd = fd >= 0 ? fd : file_open_named(path, err);
		if (fd < 0)
			return fd;
	}
	struct stat st;
	bool is_known = !fstat(fd, &st);
	if (is_known && S_ISDIR(st.st_mode)) {
		if (fd > STDIN_FILENO)
			close(fd);
		err_set(err, -EISDIR, "'%s' is a directory", path);
		return err_hint(err, "name a file in it; `assay ls` lists recordings");
	}
	if (is_known && S_ISREG(st.st_mode))
		in->written_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	bool is_at_start = lseek(fd, 0, SEEK_CUR) == 0;
	TRY(instream_open(&in->rest, fd, err));
	in->is_seekable = is_at_start && !instream_is_packed(in->rest);
	return read_head(in, err);
}

/*
 * Appends symbols that were found on opening to the file, so that it can be opened with them later,
 * also on another machine. Only if the recording belongs to the caller and nobody writes it (a
 * recorder holds its lock). Failure is ignored: the file may be read-only.
 */
static void append_names(const char *path, const struct stat *was, const struct assayfile_pos *pos,
			 const struct profile *p)
{
	CLEANUP(close_p)
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	if (fd < 0 || !pos->can_append || flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &st) ||
	    st.st_dev != was->st_dev || st.st_ino != was->st_ino || st.st_size != was->st_size ||
	    st.st_uid != geteuid() || st.st_nlink != 1)
		return;
	CLEANUP(assayfile_writer_free_p) struct assayfile_writer *w = NULL;
	if (assayfile_writer_resume(&w, fd, pos, p, NULL))
		return;
	(void)take_fd(&fd); /* owned by the writer now */
	/* A flush, unlike finish, leaves the file marked as unfinished. */
	if (p->is_incomplete)
		(void)assayfile_flush(w, p, NULL);
	else
		(void)assayfile_finish(w, p, NULL);
}

static int load_recording(struct profile **ret_p, const char *path, struct input *in,
			  const struct load_options *options, struct err *err)
{
	struct stat st;
	int fd = instream_fd(in->rest);
	bool is_file = fd > STDIN_FILENO && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
		       !instream_is_packed(in->rest);
	struct assayfile_pos pos;
	CLEANUP(profile_free_p) struct profile *p = NULL;
	struct format_input input = {buf_sv(&in->head), in->rest};
	TRY(assayfile_read_input(&p, &pos, &input, err));
	/* Symbols found with reduced options (no inlines, lines) are not stored. */
	bool is_plain = !options->demangle_flags && !options->symbolizer_flags;
	if (load_symbols(p, options) && is_file && is_plain)
		append_names(path, &st, &pos, p);
	if (options->demangle_flags)
		symbolworker_redemangle(p, options->demangle_flags);
	*ret_p = TAKE(p);
	return 0;
}

static int load_events(struct profile **ret_p, struct input *in, const struct load_options *options,
		       struct err *err)
{
	int fd = instream_fd(in->rest);
	if (in->is_seekable && lseek(fd, 0, SEEK_SET) == 0)
		return load_perfdata_fd(ret_p, fd, options, err);
	struct format_input input = {buf_sv(&in->head), in->rest};
	return load_perfdata(ret_p, &input, options, err);
}

static int load_stacks(struct profile **ret_p, const char *path, struct input *in,
		       const struct load_options *load, struct err *err)
{
	const struct format *f = format_sniff(buf_sv(&in->head));
	const char *hint;
	const char *foreign = format_foreign(buf_sv(&in->head), &hint);
	if (foreign && (!f || !strcmp(f->name, "folded"))) {
		err_set(err, -EINVAL, "this is %s, which assay does not read", foreign);
		return err_hint(err, "%s", hint);
	}
	if (!f || !f->read) {
		err_set(err, -EINVAL, in->head.n ? "not a format that assay reads" : "it is empty");
		return err_hint(err,
				"assay reads its own recordings, perf.data, `perf script` text, "
				"folded stacks, pprof and heap profiles; assay convert --list");
	}
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct format_input input = {buf_sv(&in->head), in->rest};
	struct format_options options = {0};
	options.folded.flags = FOLDED_FIND_THREADS;
	struct jemallocheap_name name;
	if (jemallocheap_parse_name(sv_from_str(path), &name))
		options.jemallocheap.pid = name.pid;
	TRY(f->read(p, &input, &options, err));
	if (f->flags & FORMAT_NEEDS_NAMES)
		(void)load_dump_symbols(p, load,
					in->written_ns); /* on failure it is shown unsymbolized */
	*ret_p = TAKE(p);
	return 0;
}

/* Whoever wrote the file could write any number. */
static void ignore_implausible(struct profile *p)
{
	uint64_t duration_ns = p->end_ns > p->start_ns ? p->end_ns - p->start_ns : 0;
	if (losses_ignore_implausible(&p->losses, duration_ns))
		profile_fact(p, FACT_LOSSES_IGNORED,
			     "the recording's lost-event counters are not plausible: those are "
			     "ignored");
}

static int load_unsealed(struct profile **ret_p, const char *path,
			 const struct load_options *options, struct err *err)
{
	CLEANUP(input_release) struct input in = {0};
	TRY(input_open(&in, path, err));
	int rc;
	if (assayfile_sniff(buf_sv(&in.head)))
		rc = load_recording(ret_p, path, &in, options, err);
	else if (perfdata_sniff(buf_sv(&in.head)))
		rc = load_events(ret_p, &in, options, err);
	else
		rc = load_stacks(ret_p, path, &in, options, err);
	bool is_cut = instream_is_cut(in.rest);
	if (rc && is_cut)
		err_hint(err, "the file is truncated: its compressed data have no end");
	if (rc)
		return err_wrap(err, "reading '%s'", path);
	if (is_cut)
		format_truncated(*ret_p, "its compressed data have no end");
	ignore_implausible(*ret_p);
	if ((*ret_p)->is_incomplete)
		livesofar_add(*ret_p);
	return 0;
}

static int read_dump(void *ctx, struct profile **ret_p, const char *path, struct err *err)
{
	return load_unsealed(ret_p, path, ctx, err);
}

static int load_dumps(struct profile **ret_p, const char *const *paths, size_t nr,
		      const struct load_options *options, struct err *err)
{
	CLEANUP(dumpset_release) struct dumpset set = {0};
	int rc = dumpset_select(&set, paths, nr, options->dumps, err);
	struct load_options read = *options;
	return rc ? rc : dumpset_read_all(ret_p, &set, read_dump, &read, err);
}

int load_profile(struct profile **ret_p, const char *path, const struct load_options *options,
		 struct err *err)
{
	return load_profiles(ret_p, &path, 1, options, err);
}

static bool are_dumps(const char *const *paths, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!dumpset_is(paths[i]))
			return false;
	/* a single existing file needs no selection */
	return nr > 1 || access(paths[0], F_OK) ||
	       !sv_has_suffix(sv_from_str(paths[0]), SV(".heap"));
}

static int load_each(struct profile **ret_p, const char *const *paths, size_t nr,
		     const struct load_options *options, struct err *err)
{
	CLEANUP(profile_free_p) struct profile *all = NULL;
	for (size_t i = 0; i < nr; i++) {
		CLEANUP(profile_free_p) struct profile *p = NULL;
		TRY(load_unsealed(&p, paths[i], options, err));
		heapcalibrate(p);
		tables_scale_time(p);
		if (all)
			profile_merge(all, p);
		else
			all = TAKE(p);
	}
	*ret_p = TAKE(all);
	return 0;
}

static bool is_of_perf(const struct profile *p)
{
	const char *recorder = profile_get_fact(p, FACT_RECORDER);
	const char *source = profile_get_fact(p, FACT_SOURCE);
	return (recorder && !strcmp(recorder, "perf")) ||
	       (source && !strcmp(source, "perf script"));
}

int load_profiles(struct profile **ret_p, const char *const *paths, size_t nr,
		  const struct load_options *options, struct err *err)
{
	ASSERT(nr);
	struct profile *p;
	for (size_t i = 0; options->dumps && i < nr; i++)
		if (!dumpset_is(paths[i]))
			return err_set(err, -EINVAL,
				       "--dumps needs a dump, or a folder or pattern of dumps, "
				       "and '%s' is none",
				       paths[i]);
	TRY(are_dumps(paths, nr) ? load_dumps(&p, paths, nr, options, err)
				 : load_each(&p, paths, nr, options, err));
	if (is_of_perf(p)) /* after merging, since files of two frequencies have two periods */
		tables_weigh_by_period(p);
	profile_seal(p);
	*ret_p = p;
	return 0;
}
