/* Creates files in the store; see store.h. store_list.c lists and removes them. */
#include "base/base.h"
#include "session/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/escape.h"
#include "base/mem.h"
#include "host/privileges.h"
#include "session/store_fileinfo.h"

#define FILE_MODE 0600
#define DIR_MODE  0755
#define TRIES_MAX 1000

/*
 * Opens a directory below @at, creating it if needed (then counts it in *nr_new). Does not follow
 * symbolic links.
 */
static int open_dir(int *ret_fd, int at, const char *name, unsigned *nr_new, struct err *err)
{
	bool is_new = !mkdirat(at, name, DIR_MODE);
	if (!is_new && errno != EEXIST) {
		int rc = err_sys(err, "cannot create directory '%s'", name);
		err_hint(err, "start assay in a folder that you may write, or name the recording "
			      "with -o FILE");
		return rc;
	}
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		int rc = err_sys(err, "cannot open directory '%s'", name);
		if (rc == -ENOTDIR || rc == -ELOOP)
			err_hint(err,
				 "'%s' is not a directory, or is a symbolic link; name the "
				 "recording with -o FILE",
				 name);
		return rc;
	}
	*nr_new += is_new;
	*ret_fd = fd;
	return 0;
}

static int create_file(int *ret_fd, int dirfd, const char *name, struct err *err)
{
	int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	struct stat st;
	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	int rc = err_sys(err, "cannot create '%s'", name);
	if (rc == -EACCES || rc == -EPERM)
		return err_hint(err, "start assay in a folder that you may write, or name the "
				     "recording with -o FILE");
	if (rc != -EEXIST || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) || S_ISREG(st.st_mode))
		return rc;
	err_set(err, rc, "cannot create '%s': it is a %s", name,
		S_ISDIR(st.st_mode)    ? "directory"
		: S_ISFIFO(st.st_mode) ? "FIFO"
		: S_ISLNK(st.st_mode)  ? "symbolic link"
				       : "special file");
	return err_hint(err, "name a file that does not exist, or a recording to replace");
}

/* Returns whether a file with this stem exists: pictures would be mixed up. */
static bool is_taken(int dirfd, const char *stem)
{
	static const char *const suffixes[] = {STORE_SUFFIX, ".svg",  ".folded",
					       ".json",      ".html", ".heap"};
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		CLEANUP(free_p) char *name = xasprintf("%s%s", stem, suffixes[i]);
		struct stat st;
		if (!fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
			return true;
	}
	return false;
}

static int create_unique(struct store_place *p, int *ret_fd, const char *stem, const char *suffix,
			 struct err *err)
{
	for (int i = 1; i <= TRIES_MAX; i++) {
		CLEANUP(free_p) char *try = i == 1 ? xstrdup(stem) : xasprintf("%s-%d", stem, i);
		if (is_taken(p->dirfd, try))
			continue;
		CLEANUP(free_p) char *name = xasprintf("%s%s", try, suffix);
		int rc = create_file(ret_fd, p->dirfd, name, err);
		if (rc == -EEXIST)
			continue; /* created by another assay meanwhile */
		if (!rc) {
			p->stem = TAKE(try);
			p->file = TAKE(name);
		}
		return rc;
	}
	return err_set(err, -EEXIST, "too many recordings named '%s'", stem);
}

/* Directories with other files are kept: rmdir refuses them. */
static void remove_new_dirs(const struct store_place *p)
{
	if (!p->nr_new_dirs)
		return;
	if (p->dirfd >= 0)
		store_remove_empty_dir(AT_FDCWD, p->dirfd, p->dir);
	CLEANUP(free_p) char *base = xstrndup(p->dir, (size_t)(path_base(p->dir) - p->dir) - 1);
	if (p->nr_new_dirs > 1)
		(void)rmdir(base);
}

static int place_new(struct store_place *ret, int *ret_fd, const char *base, const char *target,
		     const char *kind, const char *suffix, int64_t wall_ns, struct err *err)
{
	if (!base)
		base = STORE_BASE;
	CLEANUP(buf_release) struct buf dir = {0};
	escape_filename(&dir, sv_from_str(*path_base(target) ? path_base(target) : target));
	CLEANUP(buf_release) struct buf stem = {0};
	escape_filename(&stem, sv_from_str(kind));
	buf_add_ch(&stem, '-');
	clock_add_stamp(&stem, wall_ns);

	CLEANUP(close_p) int base_fd = -1;
	struct store_place p = {.dirfd = -1};
	TRY(open_dir(&base_fd, AT_FDCWD, base, &p.nr_new_dirs, err));
	p.dir = xasprintf("%s/%s", base, buf_str(&dir));
	int rc = open_dir(&p.dirfd, base_fd, buf_str(&dir), &p.nr_new_dirs, err);
	rc = rc ? rc : host_use_folder(p.dirfd, W_OK | X_OK, &p.has_other_owner, err);
	if (!rc)
		rc = create_unique(&p, ret_fd, buf_str(&stem), suffix, err);
	if (rc) {
		remove_new_dirs(&p);
		store_place_release(&p);
		return err_wrap(err, "below '%s'", base);
	}
	*ret = p;
	return 0;
}

int store_place_new(struct store_place *ret, int *ret_fd, const char *base, const char *target,
		    const char *kind, int64_t wall_ns, struct err *err)
{
	return place_new(ret, ret_fd, base, target, kind, STORE_SUFFIX, wall_ns, err);
}

/* Returns 0: no such file, 1: written by assay or empty, -EEXIST: another file. */
static int may_replace(const struct store_place *p, const char *name, struct err *err)
{
	struct store_fileinfo mark;
	if (!store_fileinfo_read(&mark, p->dirfd, name))
		return 0;
	if (mark.is_ours || !mark.bytes)
		return 1;
	err_set(err, -EEXIST, "'%s' exists and was not written by assay", name);
	err_hint(err, "remove it, or use another file name");
	return -EEXIST;
}

/* Renames an existing recording, so that it can be restored if the capture fails. */
static int put_aside(struct store_place *p, const char *name, struct err *err)
{
	int rc = may_replace(p, name, err);
	if (rc <= 0)
		return rc;
	CLEANUP(free_p) char *old = xasprintf("%s~", name);
	rc = may_replace(p, old, err);
	if (rc < 0)
		return rc;
	if (renameat(p->dirfd, name, p->dirfd, old))
		return err_sys(err, "cannot replace '%s'", name);
	p->old = TAKE(old);
	return 0;
}

int store_place_at(struct store_place *ret, int *ret_fd, const char *path, struct err *err)
{
	const char *name = path_base(path);
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return err_set(err, -EINVAL, "'%s' is not a file name", path);
	CLEANUP(free_p) char *dir = xstrndup(path, (size_t)(name - path));
	struct store_place p = {.dirfd =
					open(*dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	if (p.dirfd < 0) {
		int bad = err_sys(err, "cannot open directory '%s'", *dir ? dir : ".");
		if (bad == -ENOENT) {
			CLEANUP(buf_release) struct buf word = {0};
			escape_shell(&word, sv_from_str(dir));
			err_hint(err, "create it first: mkdir -p %s", buf_str(&word));
		}
		return bad;
	}
	int rc = host_use_folder(p.dirfd, W_OK | X_OK, &p.has_other_owner, err);
	rc = rc ? rc : put_aside(&p, name, err);
	if (!rc)
		rc = create_file(ret_fd, p.dirfd, name, err);
	p.file = xstrdup(name);
	if (rc) {
		if (p.old)
			(void)renameat(p.dirfd, p.old, p.dirfd, name); /* restores it */
		free(TAKE(p.old));
		store_place_release(&p);
		return rc;
	}
	size_t n = strlen(dir);
	while (n > 1 && dir[n - 1] == '/')
		dir[--n] = 0;
	p.dir = TAKE(dir);
	struct sv stem = sv_from_str(name);
	if (sv_has_suffix(stem, SV(STORE_SUFFIX)) && stem.n > strlen(STORE_SUFFIX))
		stem.n -= strlen(STORE_SUFFIX);
	p.stem = xstrndup(stem.p, stem.n);
	*ret = p;
	return 0;
}

void store_abandon(struct store_place *p)
{
	(void)unlinkat(p->dirfd, p->file, 0); /* created by store_place_*, without a result */
	if (p->old)
		(void)renameat(p->dirfd, p->old, p->dirfd, p->file);
	free(TAKE(p->old));
	remove_new_dirs(p);
}

void store_place_release(struct store_place *p)
{
	if (p->old)
		(void)unlinkat(p->dirfd, p->old, 0);
	free(p->old);
	free(p->file);
	close_p(&p->dirfd);
	free(p->dir);
	free(p->stem);
	*p = (struct store_place){.dirfd = -1};
}

char *store_path(const struct store_place *p, const char *suffix)
{
	const char *slash = !*p->dir || !strcmp(p->dir, "/") ? "" : "/";
	return xasprintf("%s%s%s%s", p->dir, slash, p->stem, suffix);
}

/* Opens the manifest for appending; creates it, owned by the user of the recordings, or -1. */
static int open_manifest(int dirfd)
{
	int fd = -1;
	return create_file(&fd, dirfd, STORE_MANIFEST, NULL) == -EEXIST
		       ? store_manifest_open(dirfd, O_WRONLY | O_APPEND)
		       : fd;
}

/* Adds a manifest entry. Failure is ignored: `assay clean` then does not remove the file. */
static void note_ours(const struct store_place *p, int fd, const char *name)
{
	int manifest CLEANUP(close_p) = open_manifest(p->dirfd);
	struct stat st;
	if (manifest < 0 || fstat(fd, &st))
		return;
	CLEANUP(free_p) char *line = xasprintf("%ju %s\n", (uintmax_t)st.st_ino, name);
	(void)file_write_all(manifest, line, strlen(line), NULL);
}

int store_create(const struct store_place *p, const char *suffix, int *ret_fd, struct err *err)
{
	CLEANUP(free_p) char *name = xasprintf("%s%s", p->stem, suffix);
	int rc = may_replace(p, name, err);
	if (rc == 1 && unlinkat(p->dirfd, name, 0) && errno != ENOENT)
		rc = err_sys(err, "cannot replace '%s'", name);
	if (rc >= 0)
		rc = create_file(ret_fd, p->dirfd, name, err);
	if (rc)
		return rc;
	note_ours(p, *ret_fd, name);
	return 0;
}

int store_place_foreign(struct store_place *ret, int *ret_fd, const char *base, const char *target,
			const char *kind, const char *suffix, int64_t wall_ns, struct err *err)
{
	int rc = place_new(ret, ret_fd, base, target, kind, suffix, wall_ns, err);
	if (!rc)
		note_ours(ret, *ret_fd, ret->file);
	return rc;
}

int store_place_foreign_at(struct store_place *ret, int *ret_fd, const char *path, struct err *err)
{
	int rc = store_place_at(ret, ret_fd, path, err);
	if (!rc)
		note_ours(ret, *ret_fd, ret->file);
	return rc;
}

int store_out(struct out *ret_o, const struct store_place *p, const char *suffix, struct err *err)
{
	int fd;
	int rc = store_create(p, suffix, &fd, err);
	if (!rc)
		*ret_o = (struct out){.fd = fd, .path = store_path(p, suffix)};
	return rc;
}
