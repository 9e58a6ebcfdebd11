/*
 * The store of recordings: ./profiling/<target>/<kind>-YYYYMMDD-HHMMSS.assay, and in the same
 * directory the files made from each recording, with the same stem (.svg, .folded). Creates, lists
 * and removes them.
 *
 * Files are created through a descriptor of their directory, with O_EXCL and without following
 * symbolic links; files 0600, directories 0755. They belong to the user that assay runs as: under
 * sudo the one who ran it, unless only another user may write in the folder (host_use_folder).
 *
 * Only files that assay wrote are ever removed: recordings by their first bytes, pictures and JSON
 * by their generator mark, others (folded text has no place for a mark) by an entry with their inode
 * in the directory's manifest, `.assay-files`.
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
/* Heap dumps without a recording (store_place_foreign) are entries of the list too. */
#define STORE_DUMP_SUFFIX ".heap"
#define STORE_DUMP_KIND   "dump"

struct store_place {
	int dirfd;
	char *dir;  /* path to print: "profiling/redis-server", "" = the current directory */
	char *stem; /* "cpu-20261121-035008" */
	char *file; /* the recording's name in the directory */
	char *old;  /* name of the replaced recording, kept until release; or NULL */
	bool has_other_owner; /* assay became the folder's owner, who gets the files */
	unsigned nr_new_dirs; /* created for it: 1 the target's directory, 2 also the base */
};

/*
 * Creates a recording of @target (the base name of a path); *ret_fd is its open file. @base NULL:
 * STORE_BASE. If the name exists, "-2", "-3", ... is appended.
 */
int store_place_new(struct store_place *ret, int *ret_fd, const char *base, const char *target,
		    const char *kind, int64_t wall_ns, struct err *err);
/* The same for a file of another format (a heap dump): "<kind>-<time><suffix>". */
int store_place_foreign(struct store_place *ret, int *ret_fd, const char *base, const char *target,
			const char *kind, const char *suffix, int64_t wall_ns, struct err *err);
/*
 * Creates the recording at the path of -o FILE; the stem is the name without ".assay". An existing
 * file is replaced only if assay wrote it or it is empty.
 */
int store_place_at(struct store_place *ret, int *ret_fd, const char *path, struct err *err);
/* The same for a file of another format. */
int store_place_foreign_at(struct store_place *ret, int *ret_fd, const char *path, struct err *err);
/*
 * Removes the recording of a failed capture, and directories created for it, and restores the
 * recording that it replaced.
 */
void store_abandon(struct store_place *p);
void store_place_release(struct store_place *p);

/* Returns the path of the stem with a suffix (".assay", ".svg"); owned by the caller. */
char *store_path(const struct store_place *p, const char *suffix);
/* Creates a file beside the recording. A file of that name that assay wrote is replaced. */
int store_create(const struct store_place *p, const char *suffix, int *ret_fd, struct err *err);
/* The same as a struct out. The file is not renamed: commit and release only close it. */
int store_out(struct out *ret_o, const struct store_place *p, const char *suffix, struct err *err);

/* ---- listing and removing ----------------------------------------------------------------- */

struct store_file {
	char *name; /* in the target's directory */
	uint64_t bytes;
};

struct store_entry {
	char *target;
	char *stem;
	char *path; /* of the recording */
	struct assayfile_info info;
	int64_t time_ns;              /* start: by its header, else the file's mtime */
	int64_t mtime_ns;             /* last change */
	uint64_t bytes;               /* of all files */
	VEC(struct store_file) files; /* the recording, then assay's files with its stem */
};

struct store_list {
	VEC(struct store_entry) entries; /* oldest first */
};

/* Lists recordings. A missing base gives an empty list. Unreadable and other files are skipped. */
int store_list_read(struct store_list *ret_l, const char *base, struct err *err);
void store_list_release(struct store_list *l);
/* Returns the newest recording of a kind (NULL: any), borrowed from the list, or NULL. */
const struct store_entry *store_newest(const struct store_list *l, const char *kind);
/* Returns the path of the newest recording, owned by the caller; -ENOENT with a hint. */
int store_newest_path(char **ret_path, const char *base, const char *kind, struct err *err);

struct store_filter {
	const char *kind;      /* NULL: all */
	const char *target;    /* NULL: all */
	int64_t older_than_ns; /* started before this wall clock time; 0: any */
	uint64_t keep;         /* number of newest ones of each target and kind not to match */
	uint64_t max_bytes;    /* of the newest ones of the kind and target not to match; 0: any */
};
/* Sets for each entry (by index) whether it matches; @ret_marks has l->entries.n elements. */
void store_match(const struct store_list *l, const struct store_filter *f, bool *ret_marks);

/*
 * Removes an entry's files, each only if it has not changed since it was listed. *ret_bytes: bytes
 * freed; it is set on errors, too. Removes the target's directory if it is empty then.
 */
int store_remove(const char *base, const struct store_entry *e, uint64_t *ret_bytes,
		 struct err *err);
/*
 * Returns whether the recording is likely still being written: it is unfinished and was changed at
 * most a minute before @now_ns (wall clock).
 */
bool store_is_busy(const struct store_entry *e, int64_t now_ns);

#endif
