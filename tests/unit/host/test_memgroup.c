/*
 * host/memory/cgroup.c, host/memory/cgroup_own.c: cgroups of both versions, shown by made folders.
 */
#include "base/base.h"

#include "host/cpuquota.h"
#include "host/memory/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/mem.h"
#include "tap.h"

#define V1 "sys/fs/cgroup/memory/svc"
#define V2 "sys/fs/cgroup/svc"

static char root[64];

static void put(const char *path, const char *text)
{
	CLEANUP(free_p) char *full = xasprintf("%s/%s", root, path);
	CLEANUP(free_p) char *dir = xstrdup(full);
	*strrchr(dir, '/') = '\0';
	CHECK(!dir_make(dir, 0755, NULL));
	int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && !file_write_all(fd, text, strlen(text), NULL));
	close_p(&fd);
}

static void expect(const char *path, const char *text)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(free_p) char *full = xasprintf("%s/%s", root, path);
	CHECK(!file_read(&b, full, 4096, NULL));
	CHECK_STR(buf_str(&b), text);
}

static void drop_tree(void)
{
	pid_t pid = fork();
	if (!pid) {
		execl("/bin/rm", "rm", "-rf", root, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
}

static void make_root(void)
{
	(void)snprintf(root, sizeof(root), "/tmp/memgroup-XXXXXX");
	CHECK(mkdtemp(root) != NULL && !chmod(root, 0755));
	put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=700\n"
				    "full avg10=0.00 avg60=0.00 avg300=0.00 total=300\n");
}

static void make_v1(void)
{
	make_root();
	put("proc/self/mountinfo",
	    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
	    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	    "35 31 0:32 /docker/1 /sys/fs/cgroup/memory rw master:5 - cgroup cgroup rw,memory\n"
	    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	put("sys/fs/cgroup/unified/cgroup.controllers", "\n");
	put("proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/1/svc\n0::/\n");
	put("proc/7/cgroup", "4:memory:/docker/1\n");
	put(V1 "/memory.usage_in_bytes", "1048576\n");
	put(V1 "/memory.limit_in_bytes", "2097152\n");
	put(V1 "/memory.memsw.limit_in_bytes", "3145728\n");
	put(V1 "/memory.max_usage_in_bytes", "2000000\n");
	put(V1 "/memory.failcnt", "42\n");
	put(V1 "/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	put(V1 "/memory.stat",
	    "cache 1\nrss 2\nworkingset_refault_file 1\nhierarchical_memory_limit 1900000\n"
	    "total_cache 400\ntotal_rss 600\ntotal_swap 50\ntotal_pgfault 12\ntotal_pgmajfault 5\n"
	    "total_workingset_refault_anon 6\ntotal_workingset_refault_file 7\n");
}

static void make_v2(void)
{
	make_root();
	put("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	put("sys/fs/cgroup/cgroup.controllers", "cpu io memory pids\n");
	put("sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n");
	put("proc/self/cgroup", "0::/svc\n");
	put(V2 "/memory.current", "1048576\n");
	put(V2 "/memory.max", "max\n");
	put(V2 "/memory.peak", "2000000\n");
	put(V2 "/memory.swap.current", "50\n");
	put(V2 "/memory.swap.max", "1000\n");
	put(V2 "/memory.events", "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 0\n");
	put(V2 "/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=70\n"
				   "full avg10=0.00 avg60=0.00 avg300=0.00 total=30\n");
	put(V2 "/memory.stat",
	    "anon 600\nfile 400\nkernel 90\nshmem 8\nfile_mapped 9\npgfault 12\npgmajfault 5\n"
	    "workingset_refault_anon 6\nworkingset_refault_file 7\npgscan 100\npgsteal 80\n"
	    "pgsteal_direct 60\n");
}

TEST(memgroup_finds_the_group_in_lines_of_either_version)
{
	struct sv p;
	struct sv text = sv_from_str("5:cpu,cpuacct:/a\n4:net,memory:/b/c\n0::/d\n");
	CHECK(memgroup_path_of(text, MEMGROUP_V1, &p) && sv_eq_str(p, "/b/c"));
	CHECK(memgroup_path_of(text, MEMGROUP_V2, &p) && sv_eq_str(p, "/d"));
	CHECK(!memgroup_path_of(sv_from_str("4:memory:b"), MEMGROUP_V1, &p));
	CHECK(!memgroup_path_of(sv_from_str("x\n0:\n"), MEMGROUP_V2, &p));
}

TEST(memgroup_reads_version_1_in_a_container)
{
	make_v1();
	CLEANUP(memgroup_tree_release) struct memgroup_tree t = MEMGROUP_TREE_INIT;
	CLEANUP(memgroup_release) struct memgroup g = MEMGROUP_INIT;
	CLEANUP(memgroup_release) struct memgroup top = MEMGROUP_INIT;
	struct memgroup_numbers n;
	CHECK(!memgroup_tree_open(&t, root, NULL));
	CHECK_U64(t.version, MEMGROUP_V1);
	CHECK(!memgroup_open(&g, &t, 0, NULL));
	CHECK_STR(g.path, "/" V1);
	CHECK(!memgroup_open(&top, &t, 7, NULL));
	CHECK_STR(top.path, "/sys/fs/cgroup/memory");
	CHECK(!memgroup_read(&g, &t, &n, NULL));
	CHECK_U64(n.limit_bytes, 2097152);
	CHECK_U64(n.limit_above_bytes, 1900000);
	CHECK_U64(n.swap_limit_bytes, 1048576);
	CHECK_U64(n.peak_bytes, 2000000);
	CHECK_U64(n.nr_at_limit, 42);
	CHECK_U64(n.nr_oom_kill, 3);
	CHECK_U64(n.anon_bytes, 600);
	CHECK_U64(n.file_bytes, 400);
	CHECK_U64(n.nr_refault_file, 7);
	CHECK_U64(n.some_us, 700);
	CHECK(n.has & MEMGROUP_HAS_PRESSURE && !(n.has & MEMGROUP_HAS_OWN_PRESSURE));
	drop_tree();
}

TEST(memgroup_reads_version_2_and_subtracts_counts_only)
{
	make_v2();
	CLEANUP(memgroup_tree_release) struct memgroup_tree t = MEMGROUP_TREE_INIT;
	CLEANUP(memgroup_release) struct memgroup g = MEMGROUP_INIT;
	struct memgroup_numbers a, b;
	CHECK(!memgroup_tree_open(&t, root, NULL));
	CHECK_U64(t.version, MEMGROUP_V2);
	CHECK(!memgroup_open(&g, &t, 0, NULL));
	CHECK(!memgroup_read(&g, &t, &a, NULL));
	CHECK_U64(a.limit_bytes, MEMGROUP_NO_LIMIT);
	CHECK_U64(a.swap_limit_bytes, 1000);
	CHECK_U64(a.nr_oom, 4);
	CHECK_U64(a.nr_oom_kill, 5);
	CHECK_U64(a.nr_stolen_direct, 60);
	CHECK_U64(a.some_us, 70);
	CHECK(a.has & MEMGROUP_HAS_OWN_PRESSURE);
	put(V2 "/memory.current", "5000\n");
	put(V2 "/memory.events", "max 10\noom_kill 6\n");
	CHECK(!memgroup_read(&g, &t, &b, NULL));
	struct memgroup_numbers d = memgroup_since(&a, &b);
	CHECK_U64(d.usage_bytes, 5000);
	CHECK_U64(d.nr_at_limit, 7);
	CHECK_U64(d.nr_oom_kill, 1);
	CHECK_U64(d.nr_oom, 0);
	drop_tree();
}

TEST(memgroup_takes_its_own_maximum_where_the_kernel_keeps_none)
{
	make_v2();
	CLEANUP(memgroup_tree_release) struct memgroup_tree t = MEMGROUP_TREE_INIT;
	CLEANUP(memgroup_release) struct memgroup g = MEMGROUP_INIT;
	CLEANUP(free_p) char *peak = xasprintf("%s/" V2 "/memory.peak", root);
	struct memgroup_numbers n;
	CHECK(!unlink(peak));
	CHECK(!memgroup_tree_open(&t, root, NULL) && !memgroup_open(&g, &t, 0, NULL));
	CHECK(!memgroup_read(&g, &t, &n, NULL));
	put(V2 "/memory.current", "5\n");
	CHECK(!memgroup_read(&g, &t, &n, NULL));
	CHECK_U64(n.peak_bytes, 1048576);
	CHECK(!(n.has & MEMGROUP_HAS_PEAK));
	drop_tree();
}

/* A made folder has none of the kernel's files: they are put in between. */
static void fill_v1(const char *name)
{
	static const char *const files[] = {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
					    "cgroup.procs"};
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		CLEANUP(free_p) char *path = xasprintf(V1 "/%s/%s", name, files[i]);
		put(path, "");
	}
}

TEST(memgroup_limits_memory_and_swap_together_in_version_1)
{
	make_v1();
	CLEANUP(memgroup_tree_release) struct memgroup_tree t = MEMGROUP_TREE_INIT;
	CLEANUP(memgroup_release) struct memgroup g = MEMGROUP_INIT;
	bool has_swap = false;
	CHECK(!memgroup_tree_open(&t, root, NULL));
	CHECK(!memgroup_make(&g, &t, NULL));
	CLEANUP(free_p) char *name = xasprintf("assay-%d-1", (int)getpid());
	CHECK_STR(g.name, name);
	fill_v1(name);
	CHECK(!memgroup_limit(&g, 1000, 500, &has_swap, NULL));
	CHECK(has_swap);
	CHECK(!memgroup_add(&g, 77, NULL));
	CLEANUP(free_p) char *limit = xasprintf(V1 "/%s/memory.limit_in_bytes", name);
	CLEANUP(free_p) char *both = xasprintf(V1 "/%s/memory.memsw.limit_in_bytes", name);
	CLEANUP(free_p) char *procs = xasprintf(V1 "/%s/cgroup.procs", name);
	expect(limit, "1000");
	expect(both, "263644"); /* a little more: see SWAP_SLACK_BYTES */
	expect(procs, "77");
	drop_tree();
}

TEST(memgroup_says_where_swap_is_not_accounted_for)
{
	make_v2();
	CLEANUP(memgroup_tree_release) struct memgroup_tree t = MEMGROUP_TREE_INIT;
	CLEANUP(memgroup_release) struct memgroup g = MEMGROUP_INIT;
	bool has_swap = true;
	CHECK(!memgroup_tree_open(&t, root, NULL));
	/* the caller's own group hands nothing out: the one above does */
	CHECK(!memgroup_make(&g, &t, NULL));
	CLEANUP(free_p) char *path = xasprintf("/sys/fs/cgroup/%s", g.name);
	CLEANUP(free_p) char *max = xasprintf("%s/memory.max", path + 1);
	CHECK_STR(g.path, path);
	put(max, "");
	CHECK(!memgroup_limit(&g, 4096, 0, &has_swap, NULL));
	CHECK(!has_swap);
	expect(max, "4096");
	drop_tree();
}

/* What the parent handed out for our sake it hands out no more, unless others may need it. */
static void check_taken_back(const char *other, const char *left)
{
	make_v2();
	CLEANUP(memgroup_tree_release) struct memgroup_tree t = MEMGROUP_TREE_INIT;
	CLEANUP(memgroup_release) struct memgroup g = MEMGROUP_INIT;
	put(V2 "/cgroup.subtree_control", "");
	CHECK(!memgroup_tree_open(&t, root, NULL));
	CHECK(!memgroup_make(&g, &t, NULL));
	expect(V2 "/cgroup.subtree_control", "+memory");
	if (other)
		put(other, "");
	CHECK(!memgroup_remove(&g, NULL, NULL));
	expect(V2 "/cgroup.subtree_control", left);
	drop_tree();
}

TEST(memgroup_takes_back_what_it_made_its_parent_hand_out)
{
	check_taken_back(NULL, "-memory");
	check_taken_back(V2 "/somebody/memory.max", "+memory");
}

TEST(memgroup_without_delegation_says_what_would_help)
{
	make_v2();
	CLEANUP(memgroup_tree_release) struct memgroup_tree t = MEMGROUP_TREE_INIT;
	CLEANUP(memgroup_release) struct memgroup g = MEMGROUP_INIT;
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(free_p) char *path = xasprintf("%s/sys/fs/cgroup/cgroup.subtree_control", root);
	CHECK(!unlink(path));
	CHECK(!memgroup_tree_open(&t, root, NULL));
	CHECK(memgroup_make(&g, &t, &err) == -EBUSY);
	CHECK(err.hint && strstr(err.hint, "Delegate"));
	drop_tree();
}

TEST(memgroup_that_may_not_be_made_says_so)
{
	make_v1();
	CLEANUP(memgroup_tree_release) struct memgroup_tree t = MEMGROUP_TREE_INIT;
	CLEANUP(memgroup_release) struct memgroup g = MEMGROUP_INIT;
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(free_p) char *dir = xasprintf("%s/" V1, root);
	if (!geteuid())
		CHECK(!setresuid(65534, 65534, 0)); /* root writes to any folder */
	CHECK(!memgroup_tree_open(&t, root, NULL));
	CHECK(!chmod(dir, 0555) || errno == EPERM);
	CHECK(memgroup_make(&g, &t, &err) == -EACCES);
	CHECK(err.hint && strstr(err.hint, "--rlimit"));
	CHECK(!geteuid() || !setresuid((uid_t)-1, 0, 0) || errno == EPERM);
	drop_tree();
}

TEST(memgroup_of_a_machine_without_cgroups_is_an_error_with_a_remedy)
{
	make_root();
	put("proc/self/mountinfo", "1 0 0:1 / / rw - ext4 /dev/x rw\nshort\n - \n");
	CLEANUP(memgroup_tree_release) struct memgroup_tree t = MEMGROUP_TREE_INIT;
	CLEANUP(err_release) struct err err = {0};
	CHECK(memgroup_tree_open(&t, root, &err) == -ENOENT);
	CHECK(err.hint != NULL);
	drop_tree();
}

TEST(memgroup_clean_leaves_groups_alone_that_somebody_holds_or_that_are_not_ours)
{
	make_v1();
	CLEANUP(memgroup_tree_release) struct memgroup_tree t = MEMGROUP_TREE_INIT;
	CLEANUP(memgroup_release) struct memgroup g = MEMGROUP_INIT;
	CLEANUP(free_p) char *left = xasprintf("%s/" V1 "/assay-1-1", root);
	/* names that others might give */
	static const char *const others[] = {"other",    "assay-",     "assay-1",
					     "assay-1-", "assay-ci-1", "assay-1-1.scope"};
	size_t nr = 0;
	CHECK(!mkdir(left, 0755));
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		CLEANUP(free_p) char *other = xasprintf("%s/" V1 "/%s", root, others[i]);
		CHECK(!mkdir(other, 0755));
	}
	CHECK(!memgroup_tree_open(&t, root, NULL));
	CHECK(!memgroup_make(&g, &t, NULL));
	CHECK(!memgroup_clean(&t, &nr, NULL));
	CHECK_U64(nr, 1);
	CHECK(access(left, F_OK));
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		CLEANUP(free_p) char *other = xasprintf("%s/" V1 "/%s", root, others[i]);
		CHECK(!access(other, F_OK));
	}
	CHECK(!faccessat(g.parent_fd, g.name, F_OK, 0));
	CHECK(!memgroup_remove(&g, NULL, NULL));
	CHECK(faccessat(g.parent_fd, g.name, F_OK, 0));
	drop_tree();
}

TEST(memgroup_is_removed_by_its_cleanup_process_when_its_creator_is_killed)
{
	make_v1();
	CLEANUP(free_p) char *dir = xasprintf("%s/" V1, root);
	int ready[2];
	CHECK(!pipe2(ready, O_CLOEXEC));
	pid_t maker = fork();
	if (!maker) {
		struct memgroup_tree t = MEMGROUP_TREE_INIT;
		struct memgroup g = MEMGROUP_INIT;
		close(ready[0]);
		bool is_made = !memgroup_tree_open(&t, root, NULL) &&
			       !memgroup_make(&g, &t, NULL) && !memgroup_start_cleanup(&g, NULL);
		(void)!write(ready[1], is_made ? "y" : "n", 1);
		(void)pause();
		_exit(0);
	}
	close(ready[1]);
	char answer = 'n';
	CHECK(read(ready[0], &answer, 1) == 1 && answer == 'y');
	CLEANUP(free_p) char *group = xasprintf("%s/assay-%d-1", dir, (int)maker);
	CHECK(!access(group, F_OK));
	CHECK(!kill(maker, SIGKILL) && waitpid(maker, NULL, 0) == maker);
	for (int i = 0; i < 500 && !access(group, F_OK); i++)
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	CHECK(access(group, F_OK));
	drop_tree();
}

/* ---- CPU quotas --------------------------------------------------------------------------- */

static uint64_t quota_after(struct cpuquota *q)
{
	CLEANUP(free_p) char *top = xasprintf("%s/", root);
	cpuquota_update(q, top, 7);
	return q->total_ns;
}

TEST(cpuquota_counts_from_the_first_reading_and_follows_the_process)
{
	make_root();
	CLEANUP(cpuquota_release) struct cpuquota q = {0};
	put("proc/7/cgroup", "4:memory:/other\n3:cpu:/a/b\n0::/ignored\n");
	put("sys/fs/cgroup/cpu/a/b/cpu.stat", "nr_throttled 5\nthrottled_time 5000\n");
	CHECK_U64(quota_after(&q), 0);
	put("sys/fs/cgroup/cpu/a/b/cpu.stat", "nr_throttled 9\nthrottled_time 9000\n");
	CHECK_U64(quota_after(&q), 4000);
	put("proc/7/cgroup", "3:cpu:/c\n");
	put("sys/fs/cgroup/cpu/c/cpu.stat", "throttled_time 70000\n");
	CHECK_U64(quota_after(&q), 4000);
	put("sys/fs/cgroup/cpu/c/cpu.stat", "throttled_time 70100\n");
	CHECK_U64(quota_after(&q), 4100);
	drop_tree();
}

TEST(cpuquota_of_an_ancestor_counts_in_version_2)
{
	make_root();
	CLEANUP(cpuquota_release) struct cpuquota q = {0};
	put("proc/7/cgroup", "0::/pod/one\n");
	put("sys/fs/cgroup/pod/one/cpu.stat", "usage_usec 1\nthrottled_usec 0\n");
	put("sys/fs/cgroup/pod/cpu.stat", "throttled_usec 100\n");
	CHECK_U64(quota_after(&q), 0);
	put("sys/fs/cgroup/pod/cpu.stat", "throttled_usec 350\n");
	CHECK_U64(quota_after(&q), 250000);
	put("proc/7/cgroup", ""); /* it has exited */
	put("sys/fs/cgroup/pod/cpu.stat", "throttled_usec 400\n");
	CHECK_U64(quota_after(&q), 300000);
	drop_tree();
}
