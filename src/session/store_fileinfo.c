/* Marks of our files; see store_fileinfo.h. */
#include "base/base.h"
#include "session/store_fileinfo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "format/format.h"

#define HEAD_BYTES     1024
#define MANIFEST_LIMIT ((size_t)16 << 20)

static bool has(const char *head, size_t n, const char *mark)
{
	return memmem(head, n, mark, strlen(mark)) != NULL;
}

/* Looks for what assay's writers put at the start: the class of pictures, the schema of JSON. */
static bool has_mark(const char *head, size_t n)
{
	bool is_svg = has(head, n, "<svg") && (has(head, n, "class=\"assay-flame\"") ||
					       has(head, n, "class=\"assay-chart\""));
	bool is_html = has(head, n, "<html") && has(head, n, "name=\"generator\" content=\"assay");
	bool is_json = sv_has_prefix(sv_from(head, n), SV("{\"schema\":\"assay-"));
	return is_svg || is_html || is_json;
}

int store_manifest_open(int dirfd, int flags)
{
	struct stat dir;
	struct stat st;
	CLEANUP(close_p)
	int fd = openat(dirfd, STORE_MANIFEST,
			flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || fstat(dirfd, &dir) || !S_ISREG(st.st_mode) ||
	    st.st_nlink != 1 || (st.st_uid != geteuid() && st.st_uid != dir.st_uid))
		return -1;
	return take_fd(&fd);
}

static bool is_in_manifest(int dirfd, const char *name, ino_t inode)
{
	CLEANUP(close_p) int fd = store_manifest_open(dirfd, O_RDONLY);
	CLEANUP(buf_release) struct buf text = {0};
	if (fd < 0 || file_read_fd(&text, fd, MANIFEST_LIMIT, NULL))
		return false;
	CLEANUP(free_p) char *want = xasprintf("%ju %s", (uintmax_t)inode, name);
	struct sv left = buf_sv(&text);
	while (left.n)
		if (sv_eq_str(sv_split(&left, '\n'), want))
			return true;
	return false;
}

bool store_fileinfo_read(struct store_fileinfo *ret_m, int dirfd, const char *name)
{
	/* O_NONBLOCK: opening a FIFO of that name must not block. */
	CLEANUP(close_p)
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	char head[HEAD_BYTES];
	ssize_t n = pread(fd, head, sizeof(head), 0);
	size_t have = n > 0 ? (size_t)n : 0;
	struct store_fileinfo m = {
		.bytes = (uint64_t)st.st_size,
		.mtime_ns = (int64_t)st.st_mtim.tv_sec * (int64_t)NS_PER_SEC + st.st_mtim.tv_nsec,
		.dev = st.st_dev,
		.inode = st.st_ino,
		.is_recording = assayfile_sniff(sv_from(head, have)),
	};
	m.is_ours =
		m.is_recording || has_mark(head, have) || is_in_manifest(dirfd, name, st.st_ino);
	*ret_m = m;
	return true;
}
