#include "base/base.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "host/fdname.h"
#include "tap.h"

static void check_text(const char *got, const char *fmt, ...) PRINTF(2, 3);
static void check_text(const char *got, const char *fmt, ...)
{
	CLEANUP(buf_release) struct buf want = {0};
	va_list ap;
	va_start(ap, fmt);
	buf_vaddf(&want, fmt, ap);
	va_end(ap);
	CHECK_STR(got, buf_str(&want));
}

static uint64_t inode_of(int fd)
{
	struct stat st;
	CHECK(!fstat(fd, &st));
	return st.st_ino;
}

TEST(fdname_file_is_its_path)
{
	CLEANUP(fdnames_free_p) struct fdnames *f = fdnames_new();
	char path[] = "/tmp/fdnameXXXXXX";
	int fd = mkstemp(path);
	CHECK_STR(fdnames_get(f, getpid(), fd, inode_of(fd), 0, "file"), path);
	close(fd);
	unlink(path);
}

TEST(fdname_other_inode_is_not_believed)
{
	CLEANUP(fdnames_free_p) struct fdnames *f = fdnames_new();
	char path[] = "/tmp/fdnameXXXXXX";
	int fd = mkstemp(path);
	check_text(fdnames_get(f, getpid(), fd, inode_of(fd) + 1, 8 << 20 | 1, "file"),
		   "file [8:1:%llu]", (unsigned long long)inode_of(fd) + 1);
	close(fd);
	unlink(path);
}

TEST(fdname_is_kept_after_the_file_was_closed)
{
	CLEANUP(fdnames_free_p) struct fdnames *f = fdnames_new();
	char path[] = "/tmp/fdnameXXXXXX";
	int fd = mkstemp(path);
	uint64_t inode = inode_of(fd);
	CHECK_STR(fdnames_get(f, getpid(), fd, inode, 0, "file"), path);
	close(fd);
	unlink(path);
	CHECK_STR(fdnames_get(f, getpid(), fd, inode, 0, "file"), path);
}

TEST(fdname_tcp_has_both_ends)
{
	CLEANUP(fdnames_free_p) struct fdnames *f = fdnames_new();
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int server = socket(AF_INET, SOCK_STREAM, 0);
	int client = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!bind(server, (struct sockaddr *)&at, n) && !listen(server, 1));
	CHECK(!getsockname(server, (struct sockaddr *)&at, &n));
	CHECK(!connect(client, (struct sockaddr *)&at, n));
	struct sockaddr_in own;
	CHECK(!getsockname(client, (struct sockaddr *)&own, &n));
	check_text(fdnames_get(f, getpid(), server, inode_of(server), 0, "file"),
		   "tcp 127.0.0.1:%u listening", ntohs(at.sin_port));
	check_text(fdnames_get(f, getpid(), client, inode_of(client), 0, "file"),
		   "tcp 127.0.0.1:%u -> 127.0.0.1:%u", ntohs(own.sin_port), ntohs(at.sin_port));
}

TEST(fdname_ipv6_is_in_brackets)
{
	CLEANUP(fdnames_free_p) struct fdnames *f = fdnames_new();
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, n))
		tap_skip("no IPv6 here");
	CHECK(!getsockname(fd, (struct sockaddr *)&at, &n));
	check_text(fdnames_get(f, getpid(), fd, inode_of(fd), 0, "file"), "udp [::1]:%u",
		   ntohs(at.sin6_port));
}

TEST(fdname_unix_socket_has_its_path)
{
	CLEANUP(fdnames_free_p) struct fdnames *f = fdnames_new();
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/fdname %d.sock", getpid());
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(!bind(fd, (struct sockaddr *)&at, sizeof(at)));
	check_text(fdnames_get(f, getpid(), fd, inode_of(fd), 0, "file"), "unix %s", at.sun_path);
	unlink(at.sun_path);
}

TEST(fdname_pipe_and_eventfd)
{
	CLEANUP(fdnames_free_p) struct fdnames *f = fdnames_new();
	int ends[2];
	CHECK(!pipe(ends));
	int event = eventfd(0, 0);
	check_text(fdnames_get(f, getpid(), ends[0], inode_of(ends[0]), 0, "file"), "pipe:[%llu]",
		   (unsigned long long)inode_of(ends[0]));
	CHECK_STR(fdnames_get(f, getpid(), event, inode_of(event), 0, "file"), "eventfd");
}

TEST(fdname_of_nothing_is_a_number)
{
	CLEANUP(fdnames_free_p) struct fdnames *f = fdnames_new();
	CHECK_STR(fdnames_get(f, getpid(), 9999, 77, 259 << 20 | 3, "file"), "file [259:3:77]");
}

TEST(fdname_of_a_pipe_that_is_gone_says_pipe)
{
	CLEANUP(fdnames_free_p) struct fdnames *f = fdnames_new();
	CHECK_STR(fdnames_get(f, getpid(), 9999, 77, 15, "pipe"), "pipe:[77]");
}

TEST(fdname_reads_of_a_flood_of_files_are_limited)
{
	CLEANUP(fdnames_free_p) struct fdnames *f = fdnames_new();
	const char *path = "/etc/passwd";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t inode = inode_of(fd), start_ns = clock_mono_ns(), nr = 0;
	for (uint32_t dev = 0; dev < 5000; dev++) /* not cached: each is another device */
		nr += !strcmp(fdnames_get(f, getpid(), fd, inode, dev, "file"), path);
	uint64_t earned = (clock_mono_ns() - start_ns) / (10 * NS_PER_MS) + 2;
	CHECK(nr >= 500 && nr <= 500 + earned);
	usleep(30000);
	CHECK_STR(fdnames_get(f, getpid(), fd, inode, 5000, "file"), path);
	close(fd);
}
