/* host/othercpu: programs that used the CPUs, by made files of /proc. */
#include "base/base.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "host/othercpu.h"

static char proc[] = "/tmp/assay-othercpu-XXXXXX";

static void put(int pid, const char *name, int parent, unsigned own, unsigned children)
{
	CLEANUP(free_p) char *dir = xasprintf("%s/%d", proc, pid);
	CLEANUP(free_p) char *path = xasprintf("%s/stat", dir);
	CLEANUP(free_p)
	char *text = xasprintf("%d (%s) S %d 1 1 0 -1 0 0 0 0 0 %u 0 %u 0 20 0 1 0 %d 0 0\n", pid,
			       name, parent, own, children, pid);
	CHECK(!dir_make(dir, 0755, NULL));
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && !file_write_all(fd, text, strlen(text), NULL));
	close_p(&fd);
}

static void end(int pid)
{
	CLEANUP(free_p) char *dir = xasprintf("%s/%d", proc, pid);
	CLEANUP(free_p) char *path = xasprintf("%s/stat", dir);
	CHECK(!unlink(path) && !rmdir(dir));
}

TEST(other_programs_are_named_without_the_target)
{
	CLEANUP(othercpu_release) struct othercpu o = {0};
	CLEANUP(pid_list_release) struct pid_list all = {0};
	CLEANUP(buf_release) struct buf text = {0};
	struct target t = {.child = 100};
	CHECK(mkdtemp(proc));
	uint64_t tick = (uint64_t)sysconf(_SC_CLK_TCK);
	put(1, "init", 0, 5, 500);
	put(2, "kthreadd", 0, 0, 0);
	put(3, "kworker/0:1", 2, 10, 0);
	put(100, "target", 1, 100, 0);
	put(101, "child of it", 100, 0, 0);
	put(200, "make (a) b", 1, 10, 1000);
	put(201, "sh", 200, 20, 30); /* ends, with what it had before */
	put(202, "cc1", 201, 40, 0); /* as well */
	put(300, "stress", 1, 100, 0);
	othercpu_begin(&o, proc);
	end(201);
	end(202);
	put(1, "init", 0, 5, 5000);
	put(3, "kworker/0:1", 2, 10 + (unsigned)tick, 0);
	put(100, "target", 1, 1100, 0);
	put(101, "child of it", 100, 900, 0);
	put(200, "make (a) b", 1, 10, 1000 + 20 + 30 + 40 + 5 * (unsigned)tick);
	put(300, "stress", 1, 100 + 6 * (unsigned)tick, 0);
	put(301, "stress", 300, 6 * (unsigned)tick, 0);
	othercpu_end(&o, &text, proc, &t, o.start_ns + 10 * NS_PER_SEC);
	CHECK_STR(buf_str(&text),
		  "1.80 CPUs: stress 1.20, make (a) b with its children 0.50, kernel threads 0.10");
	CHECK(!proc_list_in(&all, proc, NULL));
	vec_foreach(pid, &all.pids)
		end(*pid);
	(void)rmdir(proc);
}

TEST(idle_programs_are_not_named)
{
	CLEANUP(othercpu_release) struct othercpu o = {0};
	CLEANUP(buf_release) struct buf text = {0};
	struct target t = {.child = getpid()};
	othercpu_begin(&o, "/nonexistent");
	othercpu_end(&o, &text, "/nonexistent", &t, o.start_ns + NS_PER_SEC);
	CHECK_STR(buf_str(&text), "");
}
