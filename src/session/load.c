/* Reads any supported file as a profile; see load.h. */
#include "base/base.h"
#include "session/load.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/mem.h"
#include "base/file/zio.h"
#include "format/assay/assayfile.h"
#include "format/format.h"
#include "host/caps.h"
#include "ingest/symbolworker.h"
#include "session/dumpset.h"
#include "session/load_symbols.h"
#include "session/load_perfdata.h"

/* An opened input: the bytes read so far, and the descriptor for the rest. */
struct input {
	int fd;             /* -1 = all is in `text` */
	bool is_seekable;   /* the descriptor can be read again from its start */
	int64_t written_ns; /* mtime, 0 = not a file */
	struct buf head;
};

static void input_release(struct input *in)
{
	if (in->fd > STDIN_FILENO)
		close(in->fd);
	buf_release(&in->head);
}

static int read_head(struct input *in, struct err *err)
{
	while (in->head.n < FORMAT_SNIFF_BYTES) {
		size_t want = FORMAT_SNIFF_BYTES - in->head.n;
		ssize_t n = read(in->fd, buf_reserve(&in->head, want), want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "cannot read");
		if (n == 0)
			break;
		in->head.n += (size_t)n;
		in->head.p[in->head.n] = 0;
	}
	return 0;
}

/* Reads the whole input into memory and decompresses it. */
static int read_whole(struct input *in, struct err *err)
{
	if (in->fd < 0)
		return 0;
	TRY(file_read_fd(&in->head, in->fd, FILE_LIMIT, err));
	enum zkind kind = zio_sniff(in->head.p, in->head.n);
	if (kind != ZKIND_NONE) {
		CLEANUP(buf_release) struct buf plain = {0};
		int rc = zio_decompress(&plain, kind, in->head.p, in->head.n, FILE_LIMIT, err);
		if (rc && (rc != -ENODATA || !plain.n))
			return rc;
		err_release(err); /* what a truncated stream contains is used */
		struct buf packed = in->head;
		in->head = plain;
		plain = packed;
	}
	if (in->fd > STDIN_FILENO)
		close(in->fd);
	in->fd = -1;
	in->is_seekable = false;
	return 0;
}

static int input_open(struct input *ret_in, const char *path, struct err *err)
{
	struct input in = {.fd = STDIN_FILENO};
	if (strcmp(path, "-")) {
		in.fd = file_open_named(path, err);
		if (in.fd < 0)
			return in.fd;
	}
	struct stat st;
	if (!fstat(in.fd, &st) && S_ISDIR(st.st_mode)) {
		input_release(&in);
		err_set(err, -EISDIR, "'%s' is a directory", path);
		return err_hint(err, "name a file in it; `assay ls` lists recordings");
	}
	if (!fstat(in.fd, &st) && S_ISREG(st.st_mode))
		in.written_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	in.is_seekable = lseek(in.fd, 0, SEEK_CUR) == 0;
	int rc = read_head(&in, err);
	if (!rc && zio_sniff(in.head.p, in.head.n) != ZKIND_NONE)
		rc = read_whole(&in, err);
	if (rc) {
		input_release(&in);
		return rc;
	}
	*ret_in = in;
	return 0;
}

/*
 * Appends symbols that were found on opening to the file, so that it can be opened with them later,
 * also on another machine. Only if the recording belongs to the caller and nobody writes it (a
 * recorder holds its lock). Failure is ignored: the file may be read-only.
 */
static void append_names(const char *path, const struct stat *was, const struct assayfile_pos *pos,
			 const struct profile *p)
{
	CLEANUP(close_p) int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	struct stat st;
	if (fd < 0 || !pos->can_append || flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &st) ||
	    st.st_dev != was->st_dev || st.st_ino != was->st_ino || st.st_size != was->st_size ||
	    st.st_uid != geteuid())
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
	bool is_file = in->fd > STDIN_FILENO && !fstat(in->fd, &st) && S_ISREG(st.st_mode);
	struct assayfile_pos pos;
	CLEANUP(profile_free_p) struct profile *p = NULL;
	TRY(read_whole(in, err));
	TRY(assayfile_read(&p, &pos, in->head.p, in->head.n, err));
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
	if (in->is_seekable && lseek(in->fd, 0, SEEK_SET) == 0)
		return load_perfdata_fd(ret_p, in->fd, options, err);
	TRY(read_whole(in, err));
	return load_perfdata(ret_p, in->head.p, in->head.n, options, err);
}

static int load_stacks(struct profile **ret_p, const char *path, struct input *in,
		       const struct load_options *load, struct err *err)
{
	const struct format *f = format_sniff(buf_sv(&in->head));
	if (!f || !f->read) {
		err_set(err, -EINVAL, in->head.n ? "not a format that assay reads" : "it is empty");
		return err_hint(err,
				"assay reads its own recordings, perf.data, `perf script` text, "
				"folded stacks and heap profiles; assay convert --list");
	}
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct format_input input = {buf_sv(&in->head), in->fd};
	struct format_options options = {0};
	options.folded.flags = FOLDED_ROOT_IS_COMM;
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
	/* Untrusted input is parsed from here on: drops the capabilities that this does not need. */
	host_keep_caps(HOST_SYMBOLIZING);
	CLEANUP(input_release) struct input in = {.fd = -1};
	TRY(input_open(&in, path, err));
	int rc;
	if (assayfile_sniff(buf_sv(&in.head)))
		rc = load_recording(ret_p, path, &in, options, err);
	else if (perfdata_sniff(buf_sv(&in.head)))
		rc = load_events(ret_p, &in, options, err);
	else
		rc = load_stacks(ret_p, path, &in, options, err);
	if (rc)
		return err_wrap(err, "reading '%s'", path);
	ignore_implausible(*ret_p);
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
		if (all)
			profile_merge(all, p);
		else
			all = TAKE(p);
	}
	*ret_p = TAKE(all);
	return 0;
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
	profile_seal(p);
	*ret_p = p;
	return 0;
}
