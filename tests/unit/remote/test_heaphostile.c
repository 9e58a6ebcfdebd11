/*
 * The recorder put into targets that make it difficult: one that says itself what is to be undone
 * in it, one that may write to its text, one that forbids system calls meanwhile, one without room.
 */
#include "base/base.h"
#include "heapchild.h"
#include "tap.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote/patch/inject.h"
#include "remote/patch/injectstate.h"
#include "remote/jemalloc/jemalloc.h"
#include "host/proc.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define PAGE 4096

struct shared {
	struct child_flags flags;
	volatile int wants_filter; /* 1: asked for, 2: it is there */
	volatile uint64_t nr;
};
static struct shared *shared;

/* Kills whoever makes a page writable and executable, or maps over what is mapped. */
static int forbid(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_READ | PROT_WRITE | PROT_EXEC, 3, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_FIXED, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {ARRAY_LEN(code), code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int child(void)
{
	shared->flags.is_ready = 1;
	while (!shared->flags.is_over) {
		uint8_t *volatile p = malloc(100);
		p[0] = 1;
		free(p);
		shared->nr++;
		if (shared->wants_filter == 1) {
			if (forbid())
				return 2;
			shared->wants_filter = 2;
		}
	}
	return 0;
}

static pid_t start(void)
{
	shared = child_memory(sizeof(*shared));
	return child_start(&shared->flags, child);
}

static int finish(pid_t pid)
{
	return child_finish(&shared->flags, pid);
}

static void make_plan(struct heap_plan *p)
{
	*p = (struct heap_plan){.method = HEAP_METHOD_PATCH, .allocator = HEAP_ALLOCATOR_GLIBC};
	child_add_site(p, "malloc", HEAP_ALLOC_0);
	child_add_site(p, "free", HEAP_FREE_0);
}

static void come_and_go(pid_t pid, void (*meanwhile)(void))
{
	CLEANUP(heap_plan_release) struct heap_plan plan;
	CLEANUP(heapinject_free_p) struct heapinject *h = NULL;
	CLEANUP(err_release) struct err err = {0};
	make_plan(&plan);
	struct heapinject_spec spec = {.pid = pid, .plan = &plan, .interval_bytes = 1 << 16};
	int rc = heapinject_attach(&h, &spec, &err);
	rc = rc ? rc : heapinject_start(h, &err);
	if (!rc && meanwhile)
		meanwhile();
	rc = rc ? rc : heapinject_detach(h, &err);
	if (rc)
		tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
}

/* A region of stubs that nobody of ours made, with one change of text to undo. */
static void *lie(const struct text_patch *patch)
{
	struct stub_head head = {.magic = STUB_MAGIC,
				 .version = STUB_VERSION,
				 .nr_patches = 1,
				 .nr_stubs = 1,
				 .pid = getpid()};
	size_t n = stub_region_bytes(1);
	int fd = memfd_create(HEAPSPACE_STUBS, MFD_CLOEXEC);
	size_t nr_code;
	const uint8_t *code = heapcode_batch(&nr_code);
	struct stub_region g = {.nr_stubs = 1};
	CHECK(!ftruncate(fd, (off_t)n) && pwrite(fd, &head, sizeof(head), 0) == sizeof(head) &&
	      pwrite(fd, patch, sizeof(*patch), sizeof(head)) == sizeof(*patch) &&
	      pwrite(fd, code, nr_code, (off_t)stub_region_batch(&g)) == (ssize_t)nr_code);
	void *p = mmap(NULL, n, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	return p;
}

static bool is_undone(uint8_t nr_bytes, size_t off)
{
	uint8_t now = 0;
	char path[64];
	uint8_t *bait =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(bait != MAP_FAILED);
	struct text_patch patch = {.at = (uint64_t)(uintptr_t)bait + off, .nr_bytes = nr_bytes};
	memset(bait, 0xab, PAGE);
	memset(patch.new, 0xab, sizeof(patch.new));
	memset(patch.old, 0xcd, sizeof(patch.old));
	void *stubs = lie(&patch);
	pid_t pid = start();
	come_and_go(pid, NULL);
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	FILE *mem = fopen(path, "rbe");
	CHECK(mem && !fseeko(mem, (off_t)(uintptr_t)(bait + off), SEEK_SET) &&
	      fread(&now, 1, 1, mem) == 1);
	if (mem)
		fclose(mem);
	CHECK_U64(finish(pid), 0);
	munmap(stubs, stub_region_bytes(1));
	munmap(bait, PAGE);
	return now != 0xab;
}

TEST(heaphostile_changes_to_undo_that_nobody_makes_are_not_believed)
{
	CHECK(is_undone(5, 0)); /* as one of ours */
	CHECK(!is_undone(3, 0));
	CHECK(!is_undone(5, 6)); /* not in one word */
	CHECK(!is_undone(255, 0));
}

static void perms_at(pid_t pid, uint64_t addr, char perms[5])
{
	char path[64];
	char line[512];
	perms[0] = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		uint64_t lo = strtoull(line, NULL, 16);
		uint64_t hi = strtoull(strchr(line, '-') + 1, NULL, 16);
		if (addr >= lo && addr < hi)
			(void)snprintf(perms, 5, "%.4s", strchr(line, ' ') + 1);
	}
	if (maps)
		fclose(maps);
}

TEST(heaphostile_text_that_may_be_written_stays_so)
{
	char before[5];
	char after[5];
	uint64_t at = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "malloc");
	CHECK(!mprotect((void *)(uintptr_t)(at & ~4095ull), PAGE,
			PROT_READ | PROT_WRITE | PROT_EXEC));
	pid_t pid = start();
	perms_at(pid, at, before);
	come_and_go(pid, NULL);
	perms_at(pid, at, after);
	CHECK_STR(before, "rwxp");
	CHECK_STR(after, "rwxp");
	CHECK_U64(finish(pid), 0);
}

static void install_filter(void)
{
	shared->wants_filter = 1;
	while (shared->wants_filter == 1)
		usleep(100);
}

/* By an ordinary user, who may not suspend filters. */
TEST(heaphostile_a_filter_that_came_meanwhile_is_not_asked)
{
	if (!getuid() && (setgid(65534) || setuid(65534) || prctl(PR_SET_DUMPABLE, 1)))
		tap_fail(__FILE__, __LINE__, "cannot become nobody");
	pid_t pid = start();
	come_and_go(pid, install_filter);
	uint64_t nr = shared->nr;
	while (shared->nr < nr + 1000 && !waitpid(pid, NULL, WNOHANG))
		usleep(1000);
	CHECK_U64(finish(pid), 0);
}

static void is_called(void)
{
	shared->nr = UINT64_MAX / 2;
}

/* A plan may be older than the program: its addresses are not called then. */
TEST(heaphostile_functions_of_a_former_program_are_not_called)
{
	struct heap_plan plan = {.mallctl = (uint64_t)(uintptr_t)is_called};
	struct jemalloc *j = NULL;
	pid_t pid = start();
	plan.image = proc_exec_id(pid) ^ 1;
	CHECK(jemalloc_open(&j, pid, &plan, NULL) == -ESRCH);
	CHECK(!j);
	CHECK(shared->nr < UINT64_MAX / 2);
	CHECK_U64(finish(pid), 0);
}

static size_t nr_files(pid_t pid)
{
	char path[64];
	size_t n = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

TEST(heaphostile_no_descriptor_stays_where_there_is_no_room)
{
	pid_t pid = start();
	size_t before = nr_files(pid);
	CLEANUP(heap_plan_release) struct heap_plan plan;
	CLEANUP(heapinject_free_p) struct heapinject *h = NULL;
	CLEANUP(err_release) struct err err = {0};
	make_plan(&plan);
	struct heapinject_spec spec = {.pid = pid, .plan = &plan, .is_full_trace = true};
	struct rlimit limit = {256 << 20,
			       256 << 20}; /* rings, tables and thread_states take more */
	CHECK(!prlimit(pid, RLIMIT_AS, &limit, NULL));
	spec.nr_slots = 512;
	CHECK(heapinject_attach(&h, &spec, &err) == -ENOMEM);
	CHECK_U64(nr_files(pid), before);
	CHECK_U64(finish(pid), 0);
}

#endif
