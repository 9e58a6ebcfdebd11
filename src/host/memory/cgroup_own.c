/*
 * Creates cgroups, limits them and removes them, also if assay is killed.
 *
 *	assay ──mkdir, flock──► assay-PID-N ◄──flock (inherited), rmdir── cleanup process
 *
 * The cleanup process (base/process/cleanup.h) is forked before any process is moved in. Creator and
 * cleanup process share the open file description that holds the lock.
 */
#include "base/base.h"
#include "host/memory/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/text/lines.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "host/privileges.h"

#define NAMES_TRIED 1000
/*
 * Version 1 charges memory in batches of 64 pages, first against the memory+swap limit, where
 * kernels since 6.14 do not count failures. This slack makes the memory limit fail first.
 */
#define SWAP_SLACK_BYTES (64u * 4096)
#define DEPTH_MAX        8 /* of cgroups that the command created in this one */
#define WAIT_NS          10000000L
#define WAITS            300 /* a killed process takes a while to leave its cgroup */

static int write_at(int dirfd, const char *name, const char *text)
{
	CLEANUP(close_p) int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC);
	/* cgroup files accept the whole text or nothing */
	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int write_number(int dirfd, const char *name, uint64_t v)
{
	CLEANUP(free_p)
	char *text = v == MEMGROUP_NO_LIMIT ? xstrdup("-1") : xasprintf("%" PRIu64, v);
	return write_at(dirfd, name, text);
}

static int dup_fd(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* ---- the parent --------------------------------------------------------------------------- */

/*
 * Enables the memory controller for the cgroup's children. *ret_is_new: it was not enabled before.
 */
static bool enable_memory(int fd, bool *ret_is_new)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (file_read_at(&b, fd, "cgroup.subtree_control", 4096, NULL))
		return false;
	if (sv_has_item(sv_trim(buf_sv(&b)), ' ', SV("memory")))
		return true;
	*ret_is_new = !write_at(fd, "cgroup.subtree_control", "+memory");
	return *ret_is_new;
}

/* Moves @at to its parent; false: it is the root. at->fd is -1 if the parent cannot be opened. */
static bool go_up(const struct memgroup_tree *t, struct memgroup *at)
{
	char *slash = strrchr(at->path, '/');
	if (strlen(at->path) <= strlen(t->mount) + 1 || !slash)
		return false;
	*slash = '\0';
	close_p(&at->fd);
	at->fd = openat(t->root_fd, at->path + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return true;
}

/*
 * Version 2: a cgroup that contains processes cannot enable controllers for its children, except
 * the root. Finds the nearest cgroup, from the caller's upwards, where the memory controller is
 * enabled or can be.
 */
static int find_parent_v2(const struct memgroup_tree *t, struct memgroup *at, bool *ret_is_new,
			  struct err *err)
{
	CLEANUP(free_p) char *from = xstrdup(at->path);
	while (!enable_memory(at->fd, ret_is_new)) {
		if (!go_up(t, at)) {
			err_set(err, -EBUSY,
				"no cgroup above '%s' can enable the memory controller", from);
			return err_hint(err,
					"run as root on the host, or in a unit with delegation: "
					"systemd-run --scope -p Delegate=yes assay limit ...");
		}
		if (at->fd < 0)
			return err_sys(err, "cannot open the cgroup '%s'", at->path);
	}
	return 0;
}

static int open_folder(int dirfd, const char *name)
{
	return openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void close_dir_p(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* Opens a cgroup's folder to list its children; NULL: it cannot be read. */
static DIR *open_dir(int fd)
{
	CLEANUP(close_p) int copy = open_folder(fd, ".");
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	if (dir)
		(void)take_fd(&copy);
	return dir;
}

/* Returns the name of the next child; NULL: no more. */
static const char *next_group(DIR *dir)
{
	const struct dirent *d;
	while ((d = readdir(dir)))
		if (d->d_type == DT_DIR && d->d_name[0] != '.')
			return d->d_name;
	return NULL;
}

static bool has_groups(int fd)
{
	CLEANUP(close_dir_p) DIR *dir = open_dir(fd);
	return !dir || next_group(dir); /* an unreadable one may have children */
}

/* Disables the memory controller again, unless other children may use it by now. */
static void disable_memory(int parent_fd)
{
	if (!has_groups(parent_fd))
		(void)write_at(parent_fd, "cgroup.subtree_control", "-memory");
}

static int refused(struct err *err, int code, const char *what, const char *path)
{
	err_set(err, code, "cannot %s the cgroup '%s': %s", what, path, strerror(-code));
	if (code == -EROFS)
		return err_hint(err, "cgroups are mounted read-only: run on the host, or start the "
				     "container with --privileged or -v "
				     "/sys/fs/cgroup:/sys/fs/cgroup:rw");
	if (code == -EACCES || code == -EPERM)
		return err_hint(err, "run with sudo (the command still runs as you), or with "
				     "--rlimit, which limits the allocations of each process");
	return code;
}

static int make_named(struct memgroup *g, const char *parent_path, struct err *err)
{
	for (unsigned i = 1; i <= NAMES_TRIED; i++) {
		g->name = xasprintf(MEMGROUP_PREFIX "%d-%u", (int)getpid(), i);
		if (!mkdirat(g->parent_fd, g->name, 0755))
			break;
		int rc = -errno;
		free_p(&g->name);
		g->name = NULL;
		if (rc != -EEXIST || i == NAMES_TRIED)
			return refused(err, rc, "create a child of", parent_path);
	}
	g->path = xasprintf("%s/%s", parent_path, g->name);
	g->fd = openat(g->parent_fd, g->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->fd < 0 || flock(g->fd, LOCK_EX | LOCK_NB)) {
		int rc = err_sys(err, "cannot open the cgroup '%s'", g->path);
		(void)unlinkat(g->parent_fd, g->name, AT_REMOVEDIR);
		return rc;
	}
	return 0;
}

int memgroup_make(struct memgroup *ret_g, const struct memgroup_tree *t, struct err *err)
{
	CLEANUP(memgroup_release) struct memgroup own = MEMGROUP_INIT;
	CLEANUP(memgroup_release) struct memgroup g = MEMGROUP_INIT;
	TRY(memgroup_open(&own, t, 0, err));
	g.version = t->version;
	g.creator_fd = dup_fd(own.fd);
	TRY(t->version == MEMGROUP_V2 ? find_parent_v2(t, &own, &g.has_enabled, err) : 0);
	g.parent_fd = dup_fd(own.fd);
	if (g.creator_fd < 0 || g.parent_fd < 0)
		return err_sys(err, "cannot open the cgroup '%s'", own.path);
	int rc = make_named(&g, own.path, err);
	if (rc && g.has_enabled)
		disable_memory(g.parent_fd);
	if (rc)
		return rc;
	*ret_g = g;
	g = (struct memgroup)MEMGROUP_INIT;
	return 0;
}

/* ---- limits ------------------------------------------------------------------------------- */

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	return a > MEMGROUP_NO_LIMIT - b ? MEMGROUP_NO_LIMIT : a + b;
}

static int refused_limit(struct err *err, int code, const struct memgroup *g, const char *what,
			 uint64_t bytes)
{
	return err_set(err, code, "cannot limit the %s of '%s' to %s: %s", what, g->path,
		       num_bytes(bytes).s, strerror(-code));
}

int memgroup_limit(struct memgroup *g, uint64_t memory_bytes, uint64_t swap_bytes,
		   bool *ret_has_swap, struct err *err)
{
	bool is_v1 = g->version == MEMGROUP_V1;
	const char *memory = is_v1 ? "memory.limit_in_bytes" : "memory.max";
	const char *swap = is_v1 ? "memory.memsw.limit_in_bytes" : "memory.swap.max";
	bool has_swap = !faccessat(g->fd, swap, F_OK, 0);
	if (memory_bytes != MEMGROUP_NO_LIMIT) {
		int rc = write_number(g->fd, memory, memory_bytes);
		if (rc)
			return refused_limit(err, rc, g, "memory", memory_bytes);
	}
	if (swap_bytes != MEMGROUP_NO_LIMIT && has_swap) {
		/* version 1 counts memory and swap together */
		uint64_t both = sum_of(memory_bytes, sum_of(swap_bytes, SWAP_SLACK_BYTES));
		int rc = write_number(g->fd, swap, is_v1 ? both : swap_bytes);
		if (rc)
			return refused_limit(err, rc, g, "swap", swap_bytes);
	}
	*ret_has_swap = has_swap;
	return 0;
}

int memgroup_add(const struct memgroup *g, int32_t pid, struct err *err)
{
	CLEANUP(free_p) char *text = xasprintf("%d", pid);
	int rc = write_at(g->fd, "cgroup.procs", text);
	return rc ? refused(err, rc, "move a process to", g->path) : 0;
}

bool memgroup_has_processes(const struct memgroup *g)
{
	char first;
	CLEANUP(close_p) int fd = openat(g->fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	return fd < 0 || read(fd, &first, 1) != 0;
}

/* ---- removal ------------------------------------------------------------------------------ */

static size_t move_all(int from_fd, int to_fd)
{
	CLEANUP(buf_release) struct buf b = {0};
	size_t nr = 0;
	if (file_read_at(&b, from_fd, "cgroup.procs", (size_t)1 << 20, NULL))
		return 0;
	struct sv line;
	struct lines in = lines_from(b.p, b.n);
	while (lines_next(&in, &line)) {
		CLEANUP(free_p) char *pid = xasprintf("%.*s", SV_ARGS(line));
		nr += line.n && !write_at(to_fd, "cgroup.procs", pid);
	}
	return nr;
}

/* Moves all processes out of a cgroup and its descendants and removes the descendants. */
static size_t empty_group(int fd, int to_fd, int depth)
{
	size_t nr = move_all(fd, to_fd);
	CLEANUP(close_dir_p) DIR *dir = open_dir(fd);
	const char *name;
	while (dir && depth < DEPTH_MAX && (name = next_group(dir))) {
		CLEANUP(close_p) int sub = open_folder(fd, name);
		if (sub < 0)
			continue;
		nr += empty_group(sub, to_fd, depth + 1);
		(void)unlinkat(fd, name, AT_REMOVEDIR);
	}
	return nr;
}

/* Removes the cgroup; 0 also if it is gone already. @has_enabled: of struct memgroup. */
static int remove_group(int parent_fd, const char *name, int fd, int creator_fd, bool has_enabled,
			size_t *ret_nr_moved)
{
	size_t nr = 0;
	int rc = 0;
	for (int i = 0; i < WAITS; i++) {
		if (i)
			(void)nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
		nr += empty_group(fd, creator_fd, 0);
		rc = unlinkat(parent_fd, name, AT_REMOVEDIR) ? -errno : 0;
		if (rc != -EBUSY)
			break;
	}
	*ret_nr_moved = nr;
	if (!rc && has_enabled)
		disable_memory(parent_fd);
	return rc == -ENOENT ? 0 : rc;
}

/* What the cleanup process reports. */
struct removal {
	int rc;
	size_t nr_moved;
};

static struct removal remove_own(const struct memgroup *g)
{
	struct removal r = {0};
	r.rc = remove_group(g->parent_fd, g->name, g->fd, g->creator_fd, g->has_enabled,
			    &r.nr_moved);
	return r;
}

int memgroup_remove(struct memgroup *g, size_t *ret_nr_moved, struct err *err)
{
	struct removal r = {0};
	ASSERT(g->name);
	if (!g->cleanup.pid)
		r = remove_own(g);
	else if (cleanup_run(&g->cleanup, &r, sizeof(r))) /* it has the rights; this process none */
		r.rc = -ECHILD;
	if (ret_nr_moved)
		*ret_nr_moved = r.nr_moved;
	return r.rc ? refused(err, r.rc, "remove", g->path) : 0;
}

/* These two run in the cleanup process. */
static void keep_rights(void)
{
	host_drop(HOST_CAP_BIT(CAP_DAC_OVERRIDE));
}

static void remove_left(void *ctx, int fd)
{
	struct removal r = remove_own(ctx);
	/* if assay was killed there is nobody to report to */
	(void)send(fd, &r, sizeof(r), MSG_NOSIGNAL);
}

int memgroup_start_cleanup(struct memgroup *g, struct err *err)
{
	const int keep[] = {g->fd, g->parent_fd, g->creator_fd};
	ASSERT(g->name && !g->cleanup.pid);
	return cleanup_start(&g->cleanup,
			     &(struct cleanup_spec){.keep = keep,
						    .nr_keep = ARRAY_LEN(keep),
						    .begin = keep_rights,
						    .fn = remove_left,
						    .ctx = g},
			     err);
}

/* ---- cgroups of earlier runs -------------------------------------------------------------- */

/* Returns whether the name is "assay-<pid>-<n>": other names may begin with "assay-" too. */
static bool is_our_name(const char *name)
{
	if (strncmp(name, MEMGROUP_PREFIX, strlen(MEMGROUP_PREFIX)))
		return false;
	const char *pid = name + strlen(MEMGROUP_PREFIX);
	size_t nr_pid = strspn(pid, "0123456789");
	const char *n = pid + nr_pid + 1;
	return nr_pid && pid[nr_pid] == '-' && *n && !n[strspn(n, "0123456789")];
}

/* Removes the children of a cgroup whose lock is free. */
static size_t clean_below(int fd, int creator_fd)
{
	size_t nr = 0;
	CLEANUP(close_dir_p) DIR *dir = open_dir(fd);
	const char *name;
	while (dir && (name = next_group(dir))) {
		CLEANUP(close_p) int sub = is_our_name(name) ? open_folder(fd, name) : -1;
		size_t nr_moved;
		if (sub >= 0 && !flock(sub, LOCK_EX | LOCK_NB))
			nr += !remove_group(fd, name, sub, creator_fd, false, &nr_moved);
	}
	return nr;
}

int memgroup_clean(const struct memgroup_tree *t, size_t *ret_nr_removed, struct err *err)
{
	CLEANUP(memgroup_release) struct memgroup at = MEMGROUP_INIT;
	TRY(memgroup_open(&at, t, 0, err));
	CLEANUP(close_p) int creator_fd = dup_fd(at.fd);
	size_t nr = 0;
	do
		nr += clean_below(at.fd, creator_fd);
	while (go_up(t, &at) && at.fd >= 0);
	*ret_nr_removed = nr;
	return 0;
}
