/*
 * Where captures lie: ./profiling/<target>/<kind>-YYYYMMDD-HHMMSS.assay, and beside each its
 * pictures and texts under the same stem (.svg, .folded).
 *
 * Everything is made through a descriptor of its directory, new (O_EXCL) and never through a
 * symbolic link; files 0600, directories 0755; under sudo they belong to the invoking user.
 *
 * What may be removed later must carry our mark: a recording its first bytes, a picture or JSON
 * its generator's mark, anything else (folded text has no room for one) an entry in the
 * directory's manifest, `.assay-files`, with its inode. Nothing else is ever removed.
 *
 *	struct store_place place;
 *	int fd;
 *	store_place_new(&place, &fd, NULL, "redis-server", "cpu", clock_real_ns(), &err);
 *	... assayfile_writer_new(fd, "cpu") ...
 *	struct out o;
 *	store_out(&o, &place, ".svg", &err);
 *	char *svg = store_path(&place, ".svg");
 *	store_place_release(&place);
 */
#ifndef ASSAY_SESSION_STORE_H
#define ASSAY_SESSION_STORE_H

#include "base/base.h"
#include "base/err.h"
#include "base/file/file.h"
#include "base/vec.h"
#include "format/assay/assayfile.h"

#define STORE_BASE   "profiling"
#define STORE_SUFFIX ".assay"
/* Heap dumps that were asked for alone (store_place_foreign), as entries of the list. */
#define STORE_DUMP_SUFFIX ".heap"
#define STORE_DUMP_KIND   "dump"

struct store_place {
	int dirfd;
	char *dir;  /* as it is printed: "profiling/redis-server", "" = the current one */
	char *stem; /* "cpu-20261121-035008" */
	char *file; /* the recording's name in the directory */
	char *old;  /* where the recording that it replaces waits until release, or NULL */
};

/*
 * A new recording of @target (of a path, its last part); *ret_fd is its open file. @base NULL:
 * STORE_BASE. A taken name gets "-2", "-3", ...
 */
int store_place_new(struct store_place *ret, int *ret_fd, const char *base, const char *target,
		    const char *kind, int64_t wall_ns, struct err *err);
/* The same for a file of another format (a heap dump): "<kind>-<time><suffix>". */
int store_place_foreign(struct store_place *ret, int *ret_fd, const char *base, const char *target,
			const char *kind, const char *suffix, int64_t wall_ns, struct err *err);
/*
 * The place that the user named with -o FILE; ".assay" is taken off for the stem. A file that is
 * there is replaced only if it is a recording of ours or empty.
 */
int store_place_at(struct store_place *ret, int *ret_fd, const char *path, struct err *err);
/* The same for a file of another format, which may be replaced the same way. */
int store_place_foreign_at(struct store_place *ret, int *ret_fd, const char *path, struct err *err);
/* The capture came to nothing: its recording goes, one that it replaced comes back. */
void store_abandon(struct store_place *p);
void store_place_release(struct store_place *p);

/* Path of the stem with a suffix (".assay", ".svg"), to print; owned by the caller. */
char *store_path(const struct store_place *p, const char *suffix);
/* A new file beside the recording (one of ours under that name is replaced). */
int store_create(const struct store_place *p, const char *suffix, int *ret_fd, struct err *err);
/* The same as an output; it is in place at once, so commit and release only close it. */
int store_out(struct out *ret_o, const struct store_place *p, const char *suffix, struct err *err);

/* ---- what is there ------------------------------------------------------------------------ */

struct store_file {
	char *name; /* in the target's directory */
	uint64_t bytes;
};

struct store_entry {
	char *target;
	char *stem;
	char *path; /* of the recording */
	struct assayfile_info info;
	int64_t time_ns;  /* when it began: by its header, else by the file's last change */
	int64_t mtime_ns; /* last change */
	uint64_t bytes;   /* of all files */
	VEC(struct store_file) files; /* the recording, then what shares its stem and is ours */
};

struct store_list {
	VEC(struct store_entry) entries; /* oldest first */
};

/* A base that does not exist gives an empty list. Unreadable and foreign files are passed over. */
int store_list_read(struct store_list *ret_l, const char *base, struct err *err);
void store_list_release(struct store_list *l);
/* Borrowed from the list; @kind NULL: any. NULL when there is none. */
const struct store_entry *store_newest(const struct store_list *l, const char *kind);
/* Path of the newest recording, for commands without a file; -ENOENT with a hint. */
int store_newest_path(char **ret_path, const char *base, const char *kind, struct err *err);

struct store_filter {
	const char *kind;      /* NULL: all */
	const char *target;    /* NULL: all */
	int64_t older_than_ns; /* began before this wall time; 0: any */
	uint64_t keep;         /* the newest ones of each target and kind that stay */
};
/* Whether each entry (by index) matches; @ret_marks has room for l->entries.n. */
void store_match(const struct store_list *l, const struct store_filter *f, bool *ret_marks);

/*
 * Removes an entry's files, each only if it is still what the list saw. *ret_bytes: freed, also
 * on an error. The target's directory goes when nothing is left in it.
 */
int store_remove(const char *base, const struct store_entry *e, uint64_t *ret_bytes,
		 struct err *err);
/* Whether something seems to be writing it right now: unfinished and changed within a minute. */
bool store_is_busy(const struct store_entry *e, int64_t now_ns);

#endif
