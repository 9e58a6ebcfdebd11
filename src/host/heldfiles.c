/* Keeps files open; see heldfiles.h. */
#include "base/base.h"
#include "host/heldfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "host/privileges.h"

struct held {
	char *path;
	int fd;
};

/* One of the mutable globals: filled once, before rights are dropped and threads are started. */
static VEC(struct held) held;

void host_hold_file(const char *path)
{
	struct stat st;
	if (!host_effective_caps() || stat(path, &st) || !S_ISREG(st.st_mode))
		return;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd >= 0)
		vec_push(&held, (struct held){xstrdup(path), fd});
}

int host_open_held(const char *path)
{
	vec_foreach(h, &held) {
		if (strcmp(h->path, path))
			continue;
		(void)lseek(h->fd, 0, SEEK_SET);
		int fd = fcntl(h->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	return -ENOENT;
}
