/* base/file/file: what is opened by name makes nobody wait, and outputs are replaced as a whole. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/mem.h"

static char dir[64];

static void set_up(void)
{
	alarm(20);
	(void)snprintf(dir, sizeof(dir), "/tmp/assay-file-XXXXXX");
	CHECK(mkdtemp(dir) && !chdir(dir));
}

static void tear_down(void)
{
	(void)unlink("fifo");
	(void)unlink("file");
	(void)unlink("link");
	CHECK(!rmdir(dir));
}

TEST(a_fifo_of_another_user_is_refused_at_once)
{
	if (geteuid())
		tap_skip("needs root");
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(out_release) struct out o = {.fd = -1};
	set_up();
	CHECK(!mkfifo("fifo", 0666) && !chown("fifo", 65534, 65534));
	CHECK(file_open_named("fifo", &err) == -EPERM && err.hint);
	CHECK(file_read_named(&b, "fifo", 100, NULL) == -EPERM);
	CHECK(out_open(&o, "fifo", 0600, NULL) == -EPERM);
	/* a link of another user that leads to a device */
	CHECK(!symlink("/dev/null", "link") && !lchown("link", 65534, 65534));
	CHECK(out_open(&o, "link", 0600, NULL) == -EPERM);
	tear_down();
}

TEST(own_fifos_pipes_and_devices_are_used)
{
	int pipes[2];
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(out_release) struct out o = {.fd = -1};
	set_up();
	CHECK(!mkfifo("fifo", 0600));
	CLEANUP(close_p) int keep = open("fifo", O_RDWR | O_CLOEXEC);
	CHECK(!out_open(&o, "fifo", 0600, NULL) && !out_write(&o, "x", 1, NULL) && !o.tmp_name);
	CLEANUP(close_p) int fd = file_open_named("fifo", NULL);
	char c = 0;
	CHECK(fd >= 0 && read(fd, &c, 1) == 1 && c == 'x');
	CHECK(!pipe(pipes) && write(pipes[1], "abc", 3) == 3 && !close(pipes[1]));
	CLEANUP(free_p) char *name = xasprintf("/dev/fd/%d", pipes[0]);
	CHECK(!file_read_named(&b, name, 100, NULL));
	CHECK_STR(buf_str(&b), "abc");
	buf_clear(&b);
	CHECK(!file_read_named(&b, "/dev/null", 100, NULL) && !b.n);
	tear_down();
}

TEST(an_output_replaces_a_link_and_not_what_it_leads_to)
{
	struct stat st;
	CLEANUP(buf_release) struct buf b = {0};
	set_up();
	buf_add_str(&b, "first");
	CHECK(!out_file("file", 0600, &b, NULL) && !symlink("file", "link"));
	buf_add_str(&b, " and second");
	CHECK(!out_file("link", 0600, &b, NULL));
	CHECK(!lstat("link", &st) && S_ISREG(st.st_mode) && st.st_size == 16);
	CHECK(!stat("file", &st) && st.st_size == 5);
	CHECK(out_file("no/such/dir", 0600, &b, NULL) == -ENOENT);
	tear_down();
}
