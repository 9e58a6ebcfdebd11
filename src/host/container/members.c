/* Groups of processes; see members.h. */
#include "base/base.h"
#include "host/container/members.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/lines.h"

#define PROCS_BYTES_MAX ((size_t)16 << 20)
#define DEPTH_MAX       16
#define LIST_SHARE      50

void members_release(struct members *m)
{
	close_p(&m->fd);
	free(m->cgroup);
	*m = (struct members)MEMBERS_INIT;
}

/* ---- the folder --------------------------------------------------------------------------- */

static int open_folder(const char *root, const char *tree, const char *cgroup)
{
	CLEANUP(free_p) char *path = xasprintf("%ssys/fs/cgroup%s%s", root, tree, cgroup);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* In version 2, or in the hierarchy of these controllers in version 1. */
static int open_cgroup(const char *root, const char *cgroup, const char *controllers)
{
	if (*controllers) {
		const char *name = strncmp(controllers, "name=", 5) ? controllers : controllers + 5;
		CLEANUP(free_p) char *tree = xasprintf("/%s", name);
		return open_folder(root, tree, cgroup);
	}
	int fd = open_folder(root, "", cgroup);
	return fd >= 0 ? fd : open_folder(root, "/unified", cgroup);
}

void members_of_container(struct members *ret_m, const char *root, const struct container *c)
{
	*ret_m = (struct members){.fd = open_cgroup(root, c->cgroup, c->controllers),
				  .cgroup = xstrdup(c->cgroup)};
}

/* The hierarchies of version 1 that a path may be of. */
static const char *const trees[] = {"systemd", "memory", "cpu", "cpu,cpuacct", "pids"};

int members_of_cgroup(struct members *ret_m, const char *root, const char *path, struct err *err)
{
	static const char mount[] = "/sys/fs/cgroup";
	bool is_folder = !strncmp(path, mount, strlen(mount)) && path[strlen(mount)] == '/';
	CLEANUP(free_p)
	char *cgroup = xasprintf("%s%s", is_folder || path[0] == '/' ? "" : "/",
				 is_folder ? path + strlen(mount) : path);
	for (size_t n = strlen(cgroup); n > 1 && cgroup[n - 1] == '/'; n--)
		cgroup[n - 1] = 0;
	int fd = open_cgroup(root, cgroup, "");
	for (size_t i = 0; fd < 0 && i < ARRAY_LEN(trees); i++)
		fd = open_cgroup(root, cgroup, trees[i]);
	if (fd < 0) {
		(void)err_set(err, -ENOENT, "there is no cgroup '%s'", path);
		return err_hint(err, "a process's cgroup is in /proc/PID/cgroup; all of them: "
				     "systemd-cgls");
	}
	*ret_m = (struct members){.fd = fd, .cgroup = TAKE(cgroup)};
	return 0;
}

int members_of_user(struct members *ret_m, const char *user, struct err *err)
{
	uint64_t uid;
	bool is_number = sv_to_u64(sv_from_str(user), &uid) && uid < UINT32_MAX;
	const struct passwd *entry = is_number ? NULL : getpwnam(user);
	if (!is_number && !entry)
		return err_set(err, -ENOENT, "there is no user '%s'", user);
	*ret_m = (struct members){.fd = -1, .uid = is_number ? (uint32_t)uid : entry->pw_uid};
	return 0;
}

/* ---- processes ---------------------------------------------------------------------------- */

static void add(struct pid_list *to, int32_t pid)
{
	if (pid > 0 && pid != getpid() && !pid_list_has(to, pid))
		vec_push(&to->pids, pid);
}

/* Of the folder and those below it. @fd is closed. */
static void list_folder(struct pid_list *to, int fd, int depth)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct sv line;
	DIR *dir = fdopendir(fd);
	if (!dir) {
		(void)close(fd);
		return;
	}
	if (!file_read_at(&text, fd, "cgroup.procs", PROCS_BYTES_MAX, NULL)) {
		struct lines in = lines_from(text.p, text.n);
		uint64_t pid;
		while (lines_next(&in, &line))
			if (sv_to_u64(line, &pid) && pid <= INT32_MAX)
				add(to, (int32_t)pid);
	}
	for (struct dirent *e; depth < DEPTH_MAX && (e = readdir(dir));) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		int below = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0)
			list_folder(to, below, depth + 1);
	}
	(void)closedir(dir);
}

static bool is_below(struct sv path, const char *cgroup)
{
	size_t n = strlen(cgroup);
	return sv_has_prefix(path, sv_from_str(cgroup)) &&
	       (path.n == n || path.p[n] == '/' || n == 1);
}

static bool has_cgroup(int32_t pid, const char *root, const char *cgroup)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(free_p) char *path = xasprintf("%sproc/%d/cgroup", root, pid);
	struct sv line;
	if (file_read(&text, path, PROCS_BYTES_MAX, NULL))
		return false;
	struct lines in = lines_from(text.p, text.n);
	while (lines_next(&in, &line)) {
		(void)sv_split(&line, ':');
		(void)sv_split(&line, ':');
		if (is_below(line, cgroup))
			return true;
	}
	return false;
}

static void list_matching(struct pid_list *to, const struct members *m, const char *root)
{
	CLEANUP(pid_list_release) struct pid_list all = {0};
	CLEANUP(free_p) char *path = xasprintf("%sproc", root);
	if (proc_list_in(&all, path, NULL))
		return;
	vec_foreach(pid, &all.pids) {
		uint32_t uid;
		if (pid_list_has(to, *pid))
			continue;
		if (m->cgroup ? has_cgroup(*pid, root, m->cgroup)
			      : !proc_uid(*pid, &uid, NULL) && uid == m->uid)
			add(to, *pid);
	}
}

void members_list(struct pid_list *to, struct members *m, const char *root)
{
	uint64_t start_ns = clock_mono_ns();
	if (start_ns < m->next_ns)
		return;
	int fd = m->fd >= 0 ? openat(m->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0)
		list_folder(to, fd, 0);
	else if (m->fd < 0)
		list_matching(to, m, root);
	uint64_t end_ns = clock_mono_ns();
	m->next_ns = end_ns + (end_ns - start_ns) * LIST_SHARE;
}
