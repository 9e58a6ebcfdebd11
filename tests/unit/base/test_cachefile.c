/* base/file/cachefile: only files that nobody else could have written are read. */
#include "base/base.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/cachefile.h"
#include "base/file/file.h"
#include "base/mem.h"

static char root[64];
static char dir[80];

static void set_up(void)
{
	(void)snprintf(root, sizeof(root), "/tmp/assay-cachefile-XXXXXX");
	CHECK(mkdtemp(root) != NULL);
	(void)snprintf(dir, sizeof(dir), "%s/cache", root);
}

static void write_file(const char *name, const char *text, uint64_t dir_bytes)
{
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_str(&b, text);
	cache_file_write(dir, name, &b, dir_bytes);
}

static bool is_read(const char *from, const char *name)
{
	uint64_t n;
	CLEANUP(close_p) int fd = cache_file_open(from, name, 100, &n);
	return fd >= 0;
}

static void remove_at(const char *name)
{
	CLEANUP(free_p) char *path = xasprintf("%s/%s", root, name);
	CHECK(!remove(path));
}

TEST(cachefile_is_read_back_and_is_private)
{
	struct stat st;
	set_up();
	write_file("a.x", "hello", 100);
	CLEANUP(free_p) char *path = xasprintf("%s/a.x", dir);
	CHECK(!stat(path, &st) && (st.st_mode & 07777) == 0600);
	CHECK(!stat(dir, &st) && (st.st_mode & 07777) == 0700);
	CHECK(is_read(dir, "a.x"));
	write_file("a.x",
		   "more than a hundred bytes are refused, since the caller says that it "
		   "reads a hundred bytes at the most",
		   1000);
	CHECK(!is_read(dir, "a.x"));
	remove_at("cache/a.x");
	remove_at("cache");
	remove_at("");
}

TEST(cachefile_that_others_could_have_written_is_not_read)
{
	set_up();
	write_file("a.x", "hello", 100);
	CLEANUP(free_p) char *path = xasprintf("%s/a.x", dir);
	CLEANUP(free_p) char *other = xasprintf("%s/b.x", dir);
	CLEANUP(free_p) char *link_dir = xasprintf("%s/link", root);
	CHECK(!chmod(path, 0620) && !is_read(dir, "a.x"));
	CHECK(!chmod(path, 0600) && is_read(dir, "a.x"));
	CHECK(!chmod(dir, 0777) && !is_read(dir, "a.x"));
	write_file("b.x", "not written either", 100);
	CHECK(access(other, F_OK));
	CHECK(!chmod(dir, 0700));
	CHECK(!link(path, other) && !is_read(dir, "a.x") && !is_read(dir, "b.x"));
	CHECK(!unlink(other) && is_read(dir, "a.x"));
	CHECK(!symlink("a.x", other) && !is_read(dir, "b.x"));
	CHECK(!unlink(other) && !mkfifo(other, 0600) && !is_read(dir, "b.x"));
	CHECK(!symlink("cache", link_dir) && !is_read(link_dir, "a.x"));
	if (geteuid() == 0) {
		CHECK(!chown(path, 65534, 0) && !is_read(dir, "a.x"));
		CHECK(!chown(path, 0, 0) && is_read(dir, "a.x"));
		CHECK(!chown(dir, 65534, 0) && !is_read(dir, "a.x"));
	}
	remove_at("cache/a.x");
	remove_at("cache/b.x");
	remove_at("cache");
	remove_at("link");
	remove_at("");
}

TEST(cachefile_removes_the_oldest_of_its_suffix)
{
	set_up();
	CLEANUP(free_p) char *old = xasprintf("%s/old.x", dir);
	struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	write_file("old.x", "0123456789", 20);
	CHECK(!utimensat(AT_FDCWD, old, times, 0));
	write_file("other.y", "0123456789", 20);
	write_file("new.x", "0123456789", 20);
	CHECK(is_read(dir, "old.x"));
	write_file("newer.x", "0123456789", 20);
	CHECK(!is_read(dir, "old.x"));
	CHECK(is_read(dir, "new.x") && is_read(dir, "newer.x") && is_read(dir, "other.y"));
	remove_at("cache/new.x");
	remove_at("cache/newer.x");
	remove_at("cache/other.y");
	remove_at("cache");
	remove_at("");
}

/* A copy of a file, a rewritten file and a touched one are other files. */
TEST(file_identity_changes_with_the_file)
{
	char path[] = "/tmp/assay-identity-XXXXXX";
	struct file_identity a;
	struct file_identity b;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000}};
	CLEANUP(close_p) int fd = mkstemp(path);
	CHECK(fd >= 0 && !file_identity_read(&a, fd) && !file_identity_read(&b, fd));
	CHECK(file_identity_eq(&a, &b));
	CHECK(!utimensat(AT_FDCWD, path, times, 0) && !file_identity_read(&b, fd));
	CHECK(!file_identity_eq(&a, &b));
	a = b;
	CHECK(write(fd, "x", 1) == 1 && !file_identity_read(&b, fd));
	CHECK(!file_identity_eq(&a, &b));
	CHECK(!unlink(path));
}
