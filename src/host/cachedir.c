/* The cache directory; see cachedir.h. */
#include "base/base.h"
#include "host/cachedir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* Nobody but this user may write it: neither what is in it nor what it leads to is another's. */
static int check_own(int fd, const char *path, struct err *err)
{
	struct stat st;
	if (fd < 0 || fstat(fd, &st))
		return err_sys(err, "results are not cached: '%s'", path);
	if (st.st_uid != geteuid())
		return err_set(err, -EPERM,
			       "results are not cached: '%s' belongs to user %u, and assay runs "
			       "as user %u",
			       path, st.st_uid, geteuid());
	if (st.st_mode & 022)
		return err_set(err, -EPERM,
			       "results are not cached: '%s' may be written by other users", path);
	return 0;
}

/* Opens a folder below @at, or creates it, and moves *fd to it. */
static int enter(int *fd, const char *name, int flags, struct err *err)
{
	(void)mkdirat(*fd, name, 0700); /* exists, or openat fails */
	CLEANUP(close_p) int next = openat(*fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	TRY(check_own(next, name, err));
	close(*fd);
	*fd = take_fd(&next);
	return 0;
}

char *host_cache_dir(struct err *err)
{
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	bool has_xdg = xdg && xdg[0] == '/';
	if (!has_xdg && (!home || home[0] != '/')) {
		(void)err_set(err, -ENOENT, "results are not cached: HOME is not set");
		return NULL;
	}
	if (has_xdg && mkdir(xdg, 0700) && errno != EEXIST) {
		(void)err_sys(err, "results are not cached: cannot create '%s'", xdg);
		return NULL;
	}
	const char *base = has_xdg ? xdg : home;
	CLEANUP(close_p) int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (check_own(fd, base, err) || (!has_xdg && enter(&fd, ".cache", 0, err)) ||
	    enter(&fd, "assay", O_NOFOLLOW, err))
		return NULL;
	return xasprintf("%s%s/assay", base, has_xdg ? "" : "/.cache");
}
