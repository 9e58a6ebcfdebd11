/* Files read by another process, among them one that never answers. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "host/proc.h"
#include "host/reader/hostfile.h"

static void add_proc_path(char *to, size_t n, const char *name)
{
	(void)snprintf(to, n, "/proc/%d/%s", getpid(), name);
}

static bool has_same_bytes(struct byte_source *s, int fd, size_t n, uint64_t offset)
{
	CLEANUP(free_p) uint8_t *a = xmalloc(n);
	CLEANUP(free_p) uint8_t *b = xmalloc(n);
	return !s->ops->read(s->ctx, a, n, offset, NULL) && !file_pread(fd, b, n, offset, NULL) &&
	       !memcmp(a, b, n);
}

TEST(hostfile_reads_what_pread_reads)
{
	struct byte_source s;
	CLEANUP(close_p) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[MAX(n, 0)] = 0;
	CHECK(!hostfile_open_path(&s, -1, path));
	struct stat st;
	CHECK(!fstat(fd, &st) && s.st.st_ino == st.st_ino && s.st.st_size == st.st_size);
	bool is_same = true;
	for (uint64_t at = 0; at < 200000; at += 777)
		is_same &= has_same_bytes(&s, fd, 100, at);
	CHECK(is_same);
	for (uint64_t at = 200000; at > 1000; at -= 997)
		is_same &= has_same_bytes(&s, fd, 64, at);
	CHECK(is_same);
	CHECK(has_same_bytes(&s, fd, (size_t)MIN(st.st_size, (off_t)5 << 20), 0));
	CHECK(has_same_bytes(&s, fd, 10, (uint64_t)st.st_size - 10));
	char c[2];
	CHECK(s.ops->read(s.ctx, c, 2, (uint64_t)st.st_size - 1, NULL) == -ENODATA);
	source_close(&s);
}

TEST(hostfile_opens_regular_files_only)
{
	struct byte_source s;
	char dir[] = "/tmp/hostfile.XXXXXX";
	CHECK(mkdtemp(dir) != NULL);
	CLEANUP(free_p) char *fifo = xasprintf("%s/fifo", dir);
	CHECK(!mkfifo(fifo, 0600));
	CHECK(hostfile_open_path(&s, -1, fifo) == -EINVAL);
	CHECK(hostfile_open_path(&s, -1, "/dev/null") == -EINVAL);
	CHECK(hostfile_open_path(&s, -1, dir) == -EINVAL);
	CHECK(hostfile_open_path(&s, -1, "/no/such") == -ENOENT);
	CHECK(hostfile_open_proc(&s, fifo) == -EINVAL);
	(void)unlink(fifo);
	(void)rmdir(dir);
	/* In a root directory, a path does not leave it. */
	CLEANUP(close_p) int root = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(hostfile_open_path(&s, root, "/../etc/passwd") == -ENOENT);
	CLEANUP(close_p) int own = hostfile_open_root(getpid());
	CHECK(own >= 0 && !hostfile_open_path(&s, own, "/etc/passwd"));
	source_close(&s);
}

TEST(hostfile_reads_proc)
{
	char path[64];
	CLEANUP(buf_release) struct buf a = {0};
	add_proc_path(path, sizeof(path), "maps");
	CHECK(!hostfile_read_text(&a, path, 1 << 20, NULL) && strstr(buf_str(&a), "[stack]"));
	CHECK(hostfile_read_text(&a, path, 10, NULL) == -EFBIG);
	/* A text of more than one window. */
	enum { NR = 20000 };
	char *p = mmap(NULL, (size_t)NR * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < NR; i++)
		(void)mprotect(p + i * 8192, 4096, PROT_READ);
	CLEANUP(buf_release) struct buf b = {0};
	CHECK(!hostfile_read_text(&b, path, 64 << 20, NULL));
	size_t nr_lines = 0;
	for (size_t i = 0; i < b.n; i++)
		nr_lines += b.p[i] == '\n';
	CHECK(b.n > (1 << 20) && nr_lines >= NR * 2);
	(void)munmap(p, (size_t)NR * 8192);

	struct byte_source mem;
	uint64_t word = 42;
	uint64_t got = 0;
	add_proc_path(path, sizeof(path), "mem");
	CHECK(!hostfile_open_proc(&mem, path));
	CHECK(!mem.ops->read(mem.ctx, &got, sizeof(got), (uintptr_t)&word, NULL) && got == 42);
	word = 43;
	CHECK(!mem.ops->read(mem.ctx, &got, sizeof(got), (uintptr_t)&word, NULL) && got == 43);
	source_close(&mem);
}

/* A stopped reader does not answer, like one that waits for a file. */
TEST(hostfile_does_not_wait_for_ever)
{
	struct byte_source hung;
	struct byte_source file;
	struct byte_source again;
	char c;
	char path[PATH_MAX];
	add_proc_path(path, sizeof(path), "mem");
	CHECK(!hostfile_open_proc(&hung, path));
	path[MAX(readlink("/proc/self/exe", path, sizeof(path) - 1), (ssize_t)0)] = 0;
	CLEANUP(close_p) int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CHECK(!hostfile_open_path(&file, -1, path));
	int32_t reader = hostfile_reader_pid(&hung);
	CHECK(reader > 0 && hostfile_reader_pid(&file) == reader);
	CHECK(!kill(reader, SIGSTOP));

	uint64_t before = clock_mono_ns();
	hostfile_set_deadline(20);
	CHECK(hung.ops->read(hung.ctx, &c, 1, (uintptr_t)path, NULL) == -EINPROGRESS);
	CHECK(!hostfile_open_path(&again, -1, "/etc/passwd")); /* others go on meanwhile */
	CHECK(hostfile_reader_pid(&again) != reader);
	CHECK(clock_mono_ns() - before < HOSTFILE_DEADLINE_MS * NS_PER_MS / 2);
	CHECK(!kill(reader, SIGCONT)); /* a late answer is no harm */
	hostfile_set_deadline(HOSTFILE_DEADLINE_MS);
	CHECK(!hung.ops->read(hung.ctx, &c, 1, (uintptr_t)path, NULL) && c == path[0]);

	CHECK(!kill(reader, SIGSTOP));
	CHECK(hung.ops->read(hung.ctx, &c, 1, (uintptr_t)path, NULL) == -ETIMEDOUT);
	CHECK(!hostfile_reader_pid(&hung));
	CHECK(hung.ops->read(hung.ctx, &c, 1, (uintptr_t)path, NULL) == -ETIMEDOUT);
	/* Other files of that reader are read on by another one. */
	CHECK(has_same_bytes(&file, own, 4096, 8192));
	source_close(&file);
	source_close(&again);
	source_close(&hung);
	CHECK(!kill(reader, SIGCONT)); /* it sees that it was abandoned */
}

static int set_cpu(pid_t pid, int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(pid, sizeof(set), &set);
}

/* The reader shares a CPU with a process of higher priority. */
TEST(hostfile_waits_for_a_reader_that_waits_for_a_cpu)
{
	struct byte_source mem;
	char path[PATH_MAX];
	cpu_set_t all;
	uint64_t word = 42;
	uint64_t got = 0;
	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	int cpu = 0;
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	add_proc_path(path, sizeof(path), "mem");
	CHECK(!hostfile_open_proc(&mem, path));
	int32_t reader = hostfile_reader_pid(&mem);
	CHECK(!set_cpu(reader, cpu) && !setpriority(PRIO_PROCESS, (id_t)reader, 10));
	pid_t busy = fork();
	if (busy == 0) {
		(void)set_cpu(0, cpu);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	hostfile_set_deadline(1);
	for (int i = 0; i < 30; i++)
		CHECK(!mem.ops->read(mem.ctx, &got, sizeof(got), (uintptr_t)&word, NULL) &&
		      got == 42);
	hostfile_set_deadline(HOSTFILE_DEADLINE_MS);
	CHECK(!kill(busy, SIGKILL) && waitpid(busy, NULL, 0) == busy);
	(void)sched_setaffinity(reader, sizeof(all), &all);
	source_close(&mem);
}

/* As if the hypervisor had taken all CPUs away for longer than the deadline. */
TEST(hostfile_does_not_count_time_without_cpus)
{
	struct byte_source mem;
	char path[PATH_MAX];
	uint64_t word = 42;
	uint64_t got = 0;
	add_proc_path(path, sizeof(path), "mem");
	CHECK(!hostfile_open_proc(&mem, path));
	int32_t reader = hostfile_reader_pid(&mem);
	pid_t own = getpid();
	CHECK(!kill(reader, SIGSTOP));
	pid_t other = fork();
	if (other == 0) {
		(void)usleep(100000);
		(void)kill(own, SIGSTOP);
		(void)usleep((HOSTFILE_DEADLINE_MS + 100) * 1000);
		(void)kill(own, SIGCONT);
		(void)usleep(20000);
		(void)kill(reader, SIGCONT);
		_exit(0);
	}
	CHECK(!mem.ops->read(mem.ctx, &got, sizeof(got), (uintptr_t)&word, NULL) && got == 42);
	CHECK(waitpid(other, NULL, 0) == other);
	source_close(&mem);
}

TEST(hostfile_gives_up_after_a_few_readers)
{
	uint64_t id = proc_exec_id(getpid());
	int32_t readers[HOSTFILE_ABANDONED_MAX];
	struct byte_source s;
	uint8_t c[8];
	for (unsigned i = 0; i < HOSTFILE_ABANDONED_MAX; i++) {
		CHECK(!hostfile_open_proc(&s, "/proc/self/mem"));
		readers[i] = hostfile_reader_pid(&s);
		CHECK(!kill(readers[i], SIGSTOP));
		CHECK(s.ops->read(s.ctx, c, 1, (uintptr_t)c, NULL) == -ETIMEDOUT);
		source_close(&s);
	}
	uint64_t before = clock_mono_ns();
	CHECK(hostfile_open_proc(&s, "/proc/self/mem") == -ETIMEDOUT);
	/* What cannot be read says nothing about the program: the cleanup process asks again. */
	CHECK(proc_check_exec(getpid(), id, NULL) == -ETIMEDOUT);
	CHECK(clock_mono_ns() - before < HOSTFILE_DEADLINE_MS * NS_PER_MS / 2);
	hostfile_restart();
	CHECK(!proc_check_exec(getpid(), id, NULL) && !proc_check_exec(getpid(), 0, NULL));
	CHECK(proc_check_exec(getpid(), id ^ 1, NULL) == -ESRCH);
	CHECK(proc_check_exec(INT32_MAX, id, NULL) == -ESRCH);
	CHECK(!hostfile_open_proc(&s, "/proc/self/mem"));
	CHECK(!s.ops->read(s.ctx, c, 1, (uintptr_t)c, NULL));
	source_close(&s);
	for (unsigned i = 0; i < HOSTFILE_ABANDONED_MAX; i++)
		CHECK(!kill(readers[i], SIGCONT));
}

TEST(hostfile_survives_the_death_of_a_reader)
{
	struct byte_source s;
	uint8_t c[8];
	CHECK(!hostfile_open_path(&s, -1, "/etc/passwd"));
	CHECK(!kill(hostfile_reader_pid(&s), SIGKILL));
	int rc = s.ops->read(s.ctx, c, 1, 100, NULL); /* of the window, or by another reader */
	CHECK(!rc || rc == -EIO);
	source_close(&s);
	CHECK(!hostfile_open_path(&s, -1, "/etc/passwd") ||
	      !hostfile_open_path(&s, -1, "/etc/passwd"));
	source_close(&s);
}
