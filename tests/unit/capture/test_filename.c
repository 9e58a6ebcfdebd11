/* capture/bpf/filename: texts for files that the BPF programs report. */
#include "base/base.h"

#include "capture/bpf/filename.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "tap.h"

static void set_names(struct kernel_file *r, const char *names, size_t n)
{
	memcpy(r->names, names, n);
	r->nr_names = (uint16_t)n;
}

static bool is_named(const struct kernel_file *r, const char *expected)
{
	CLEANUP(buf_release) struct buf b = {0};
	filename_add(&b, r);
	bool is_same = !strcmp(buf_str(&b), expected);
	if (!is_same)
		printf("# got '%s', expected '%s'\n", buf_str(&b), expected);
	return is_same;
}

TEST(filename_path_is_built_from_its_parts)
{
	struct kernel_file r = {.kind = KFILE_PATH};
	set_names(&r, "data.mdb\0db\0var", 16);
	CHECK(is_named(&r, "/var/db/data.mdb"));
	r.is_deleted = 1;
	CHECK(is_named(&r, "/var/db/data.mdb (deleted)"));
	r.nr_names = 0;
	CHECK(is_named(&r, "[shared memory]"));
	r.nr_names = 16;
	r.is_deleted = 0;
	r.is_cut = 1;
	CHECK(is_named(&r, ".../var/db/data.mdb"));
}

TEST(filename_without_parts_has_its_inode)
{
	struct kernel_file r = {.kind = KFILE_PATH, .inode = 7, .dev = 254u << 20 | 1};
	CHECK(is_named(&r, "inode 7 of device 254:1"));
	r.kind = KFILE_PIPE;
	CHECK(is_named(&r, "pipe:[7]"));
}

TEST(filename_of_a_socket_has_the_service_port)
{
	struct kernel_file r = {.kind = KFILE_SOCKET, .family = AF_INET, .protocol = IPPROTO_TCP};
	inet_pton(AF_INET, "10.0.0.5", r.remote);
	r.remote_port = 5432;
	CHECK(is_named(&r, "tcp 10.0.0.5:5432"));
	r.remote_port = 0;
	r.local_port = 6379;
	CHECK(is_named(&r, "tcp :6379 from 10.0.0.5"));
	r.family = AF_INET6;
	r.local_port = 0;
	r.remote_port = 443;
	inet_pton(AF_INET6, "2001:db8::1", r.remote);
	CHECK(is_named(&r, "tcp [2001:db8::1]:443"));
	inet_pton(AF_INET6, "::ffff:10.0.0.5", r.remote);
	CHECK(is_named(&r, "tcp 10.0.0.5:443"));
	r.family = 16;
	r.inode = 9;
	CHECK(is_named(&r, "socket:[9] of family 16"));
}

TEST(filename_unix_sockets_by_path_or_abstract_name)
{
	struct kernel_file r = {.kind = KFILE_SOCKET, .family = AF_UNIX, .inode = 5};
	CHECK(is_named(&r, "unix:[5]"));
	set_names(&r, "/run/x.sock", 12);
	CHECK(is_named(&r, "unix /run/x.sock"));
	set_names(&r, "\0bus", 4);
	CHECK(is_named(&r, "unix @bus"));
}

TEST(filename_accepts_any_bytes)
{
	struct kernel_file r = {.is_cut = 1, .nr_names = UINT16_MAX};
	memset(r.names, 0, sizeof(r.names));
	for (unsigned kind = 0; kind < 8; kind++)
		for (unsigned fill = 0; fill < 3; fill++) {
			CLEANUP(buf_release) struct buf b = {0};
			memset(r.names, fill == 2 ? 'x' : (int)fill, sizeof(r.names));
			r.kind = (uint8_t)kind;
			r.family = (uint16_t)kind;
			filename_add(&b, &r);
			CHECK(b.n <= 2 * sizeof(r.names) + 100);
		}
}
