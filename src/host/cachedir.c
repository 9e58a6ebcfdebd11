/* The cache directory; see cachedir.h. */
#include "base/base.h"
#include "host/cachedir.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/mem.h"

/* Another user's directory is not used: root must not read what that user wrote. */
static bool is_ours(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

char *host_cache_dir(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	CLEANUP(free_p) char *dir = NULL;
	if (xdg && xdg[0] == '/')
		dir = xasprintf("%s/assay", xdg);
	else if (home && home[0] == '/')
		dir = xasprintf("%s/.cache/assay", home);
	if (!dir || dir_make(dir, 0700, NULL) || !is_ours(dir))
		return NULL;
	return TAKE(dir);
}
