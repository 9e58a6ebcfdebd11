/* Finds and reads memory cgroups; see cgroup.h. cgroup_own.c creates and removes them. */
#include "base/base.h"
#include "host/memory/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/text/lines.h"
#include "base/mem.h"

#define TEXT_BYTES_MAX ((size_t)256 << 10)
/* Version 1 shows "no limit" as the largest number of whole pages. */
#define NO_LIMIT_V1 (UINT64_MAX >> 2)

/* ---- text --------------------------------------------------------------------------------- */

/* Returns the number at the start of @s; 0 if there is none. */
static uint64_t number_of(struct sv s)
{
	uint64_t v = 0;
	for (size_t i = 0; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
		v = v > UINT64_MAX / 10 - 1 ? v : v * 10 + (uint64_t)(s.p[i] - '0');
	return v;
}

uint64_t memgroup_value(struct sv text, const char *key)
{
	struct sv line;
	struct lines in = lines_from(text.p, text.n);
	while (lines_next(&in, &line)) {
		struct sv name = sv_split(&line, ' ');
		if (sv_eq_str(name, key))
			return number_of(line);
	}
	return 0;
}

bool memgroup_path_of(struct sv text, enum memgroup_version version, struct sv *ret_path)
{
	struct sv line;
	struct lines in = lines_from(text.p, text.n);
	while (lines_next(&in, &line)) {
		struct sv number = sv_split(&line, ':');
		struct sv names = sv_split(&line, ':');
		bool is_it = version == MEMGROUP_V2 ? sv_eq_str(number, "0") && !names.n
						    : sv_has_item(names, ',', SV("memory"));
		if (is_it && line.n && line.p[0] == '/') {
			*ret_path = line;
			return true;
		}
	}
	return false;
}

uint64_t memgroup_stall_us(struct sv text, const char *kind)
{
	struct sv line;
	struct lines in = lines_from(text.p, text.n);
	while (lines_next(&in, &line)) {
		if (!sv_eq_str(sv_split(&line, ' '), kind))
			continue;
		const char *at = memmem(line.p, line.n, "total=", 6);
		if (at)
			return number_of(sv_from(at + 6, (size_t)(line.p + line.n - at - 6)));
	}
	return 0;
}

/* ---- the hierarchy ------------------------------------------------------------------------ */

void memgroup_tree_release(struct memgroup_tree *t)
{
	if (t->mount) {
		close_p(&t->root_fd);
		free_p(&t->mount);
		free_p(&t->top);
	}
	*t = (struct memgroup_tree)MEMGROUP_TREE_INIT;
}

struct mount_line {
	struct sv top;
	struct sv point;
	struct sv type;
	struct sv options; /* of the file system */
};

/* Parses a line of mountinfo: six fields, optional fields, "-", three fields (proc(5)). */
static bool split_mount(struct sv line, struct mount_line *ret_m)
{
	struct mount_line m = {0};
	for (int i = 0; i < 3; i++)
		(void)sv_split(&line, ' ');
	m.top = sv_split(&line, ' ');
	m.point = sv_split(&line, ' ');
	while (line.n && !sv_eq_str(sv_split(&line, ' '), "-"))
		;
	m.type = sv_split(&line, ' ');
	(void)sv_split(&line, ' ');
	m.options = line;
	*ret_m = m;
	return m.point.n > 1 && m.type.n;
}

static bool unified_has_memory(int root_fd, struct sv point)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(free_p)
	char *path = xasprintf("%.*s/cgroup.controllers", SV_ARGS(sv_from_idx(point, 1)));
	return !file_read_at(&b, root_fd, path, TEXT_BYTES_MAX, NULL) &&
	       sv_has_item(sv_trim(buf_sv(&b)), ' ', SV("memory"));
}

static bool find_mount(struct memgroup_tree *t, struct sv text)
{
	struct sv line;
	struct mount_line m;
	struct mount_line found = {0};
	struct lines in = lines_from(text.p, text.n);
	while (lines_next(&in, &line) && t->version != MEMGROUP_V1) {
		if (!split_mount(line, &m))
			continue;
		if (sv_eq_str(m.type, "cgroup") && sv_has_item(m.options, ',', SV("memory"))) {
			t->version = MEMGROUP_V1;
			found = m;
		} else if (sv_eq_str(m.type, "cgroup2") && !t->version &&
			   unified_has_memory(t->root_fd, m.point)) {
			t->version = MEMGROUP_V2;
			found = m;
		}
	}
	if (!t->version)
		return false;
	t->mount = xasprintf("%.*s", SV_ARGS(sv_from_idx(found.point, 1)));
	t->top = xasprintf("%.*s", SV_ARGS(found.top));
	return true;
}

int memgroup_tree_open(struct memgroup_tree *ret_t, const char *root, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(close_p) int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct memgroup_tree t = {.root_fd = fd};
	if (fd < 0)
		return err_sys(err, "cannot open '%s'", root);
	TRY(file_read_at(&text, fd, "proc/self/mountinfo", (size_t)16 << 20, err));
	if (!find_mount(&t, buf_sv(&text))) {
		err_set(err, -ENOENT, "no cgroups with a memory controller are mounted here");
		return err_hint(err, "in a container, start it with its cgroups: docker run "
				     "--cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup");
	}
	t.root_fd = take_fd(&fd);
	*ret_t = t;
	return 0;
}

/* ---- a process's group -------------------------------------------------------------------- */

void memgroup_release(struct memgroup *g)
{
	close_p(&g->fd);
	close_p(&g->parent_fd);
	close_p(&g->creator_fd);
	cleanup_release(&g->cleanup);
	free_p(&g->name);
	free_p(&g->path);
	*g = (struct memgroup)MEMGROUP_INIT;
}

/* Returns a cgroup's path relative to the mounted one: a container mounts only its own subtree. */
static struct sv below_top(const struct memgroup_tree *t, struct sv path)
{
	struct sv top = sv_from_str(t->top);
	if (top.n > 1 && sv_has_prefix(path, top) && (path.n == top.n || path.p[top.n] == '/'))
		return sv_from_idx(path, top.n);
	return path;
}

int memgroup_open(struct memgroup *ret_g, const struct memgroup_tree *t, int32_t pid,
		  struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct sv path;
	CLEANUP(free_p)
	char *proc = pid ? xasprintf("proc/%d/cgroup", pid) : xstrdup("proc/self/cgroup");
	int rc = file_read_at(&text, t->root_fd, proc, TEXT_BYTES_MAX, err);
	if (rc)
		return rc == -ENOENT ? err_set(err, -ESRCH, "process %d has exited", pid) : rc;
	if (!memgroup_path_of(buf_sv(&text), t->version, &path))
		return err_set(err, -ENOENT, "process %d is in no memory cgroup", pid);
	struct sv rest = below_top(t, path);
	if (rest.n == 1)
		rest.n = 0;
	struct memgroup g = MEMGROUP_INIT;
	CLEANUP(free_p) char *rel = xasprintf("%s%.*s", t->mount, SV_ARGS(rest));
	g.version = t->version;
	g.fd = openat(t->root_fd, rel, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g.fd < 0)
		return err_sys(err, "cannot open the cgroup '/%s'", rel);
	g.path = xasprintf("/%s", rel);
	*ret_g = g;
	return 0;
}

/* ---- numbers ------------------------------------------------------------------------------ */

static bool read_text(int dirfd, const char *name, struct buf *to)
{
	buf_clear(to);
	return !file_read_at(to, dirfd, name, TEXT_BYTES_MAX, NULL);
}

/* "max" is none; what cannot be read leaves the value alone. */
static bool read_number(int dirfd, const char *name, uint64_t *ret_v)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (!read_text(dirfd, name, &b))
		return false;
	*ret_v = sv_has_prefix(buf_sv(&b), SV("max")) ? MEMGROUP_NO_LIMIT : number_of(buf_sv(&b));
	return true;
}

static uint64_t limit_v1(uint64_t v)
{
	return v >= NO_LIMIT_V1 ? MEMGROUP_NO_LIMIT : v;
}

static void read_v1(const struct memgroup *g, struct memgroup_numbers *n)
{
	CLEANUP(buf_release) struct buf b = {0};
	uint64_t both = MEMGROUP_NO_LIMIT;
	(void)read_number(g->fd, "memory.limit_in_bytes", &n->limit_bytes);
	n->limit_bytes = limit_v1(n->limit_bytes);
	if (read_number(g->fd, "memory.max_usage_in_bytes", &n->peak_bytes))
		n->has |= MEMGROUP_HAS_PEAK;
	if (read_number(g->fd, "memory.memsw.limit_in_bytes", &both)) {
		n->has |= MEMGROUP_HAS_SWAP;
		both = limit_v1(both);
		if (both != MEMGROUP_NO_LIMIT && both >= n->limit_bytes)
			n->swap_limit_bytes = both - n->limit_bytes;
	}
	if (read_number(g->fd, "memory.kmem.usage_in_bytes", &n->kernel_bytes))
		n->has |= MEMGROUP_HAS_KERNEL;
	/* a failed charge counts in one of the two files: memory+swap is tried first */
	uint64_t nr_with_swap = 0;
	(void)read_number(g->fd, "memory.failcnt", &n->nr_at_limit);
	(void)read_number(g->fd, "memory.memsw.failcnt", &nr_with_swap);
	n->nr_at_limit += nr_with_swap;
	if (read_text(g->fd, "memory.oom_control", &b))
		n->nr_oom_kill = memgroup_value(buf_sv(&b), "oom_kill");
	if (!read_text(g->fd, "memory.stat", &b))
		return;
	struct sv s = buf_sv(&b);
	n->limit_above_bytes = limit_v1(memgroup_value(s, "hierarchical_memory_limit"));
	n->anon_bytes = memgroup_value(s, "total_rss");
	n->file_bytes = memgroup_value(s, "total_cache");
	n->shmem_bytes = memgroup_value(s, "total_shmem");
	n->mapped_bytes = memgroup_value(s, "total_mapped_file");
	n->swap_bytes = memgroup_value(s, "total_swap");
	n->nr_faults = memgroup_value(s, "total_pgfault");
	n->nr_major = memgroup_value(s, "total_pgmajfault");
	n->nr_refault_anon = memgroup_value(s, "total_workingset_refault_anon");
	n->nr_refault_file = memgroup_value(s, "total_workingset_refault_file") +
			     memgroup_value(s, "total_workingset_refault");
}

static void read_events_v2(const struct memgroup *g, struct memgroup_numbers *n)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (!read_text(g->fd, "memory.events", &b))
		return;
	n->nr_low = memgroup_value(buf_sv(&b), "low");
	n->nr_high = memgroup_value(buf_sv(&b), "high");
	n->nr_at_limit = memgroup_value(buf_sv(&b), "max");
	n->nr_oom = memgroup_value(buf_sv(&b), "oom");
	n->nr_oom_kill = memgroup_value(buf_sv(&b), "oom_kill");
}

/* Older kernels have no sum of kernel memory. */
static uint64_t kernel_v2(struct sv s)
{
	uint64_t sum = memgroup_value(s, "kernel");
	return sum ? sum
		   : memgroup_value(s, "slab") + memgroup_value(s, "kernel_stack") +
			       memgroup_value(s, "pagetables") + memgroup_value(s, "percpu");
}

static void read_v2(const struct memgroup *g, struct memgroup_numbers *n)
{
	CLEANUP(buf_release) struct buf b = {0};
	(void)read_number(g->fd, "memory.max", &n->limit_bytes);
	if (read_number(g->fd, "memory.peak", &n->peak_bytes))
		n->has |= MEMGROUP_HAS_PEAK;
	if (read_number(g->fd, "memory.swap.current", &n->swap_bytes) &&
	    read_number(g->fd, "memory.swap.max", &n->swap_limit_bytes))
		n->has |= MEMGROUP_HAS_SWAP;
	read_events_v2(g, n);
	if (!read_text(g->fd, "memory.stat", &b))
		return;
	struct sv s = buf_sv(&b);
	n->has |= MEMGROUP_HAS_KERNEL | MEMGROUP_HAS_RECLAIM;
	n->anon_bytes = memgroup_value(s, "anon");
	n->file_bytes = memgroup_value(s, "file");
	n->shmem_bytes = memgroup_value(s, "shmem");
	n->mapped_bytes = memgroup_value(s, "file_mapped");
	n->kernel_bytes = kernel_v2(s);
	n->nr_faults = memgroup_value(s, "pgfault");
	n->nr_major = memgroup_value(s, "pgmajfault");
	n->nr_refault_anon = memgroup_value(s, "workingset_refault_anon");
	n->nr_refault_file = memgroup_value(s, "workingset_refault_file") +
			     memgroup_value(s, "workingset_refault");
	n->nr_scanned = memgroup_value(s, "pgscan");
	n->nr_stolen = memgroup_value(s, "pgsteal");
	n->nr_stolen_direct = memgroup_value(s, "pgsteal_direct");
}

static void read_pressure(const struct memgroup *g, const struct memgroup_tree *t,
			  struct memgroup_numbers *n)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (read_text(g->fd, "memory.pressure", &b) && b.n)
		n->has |= MEMGROUP_HAS_PRESSURE | MEMGROUP_HAS_OWN_PRESSURE;
	else if (t && read_text(t->root_fd, "proc/pressure/memory", &b) && b.n)
		n->has |= MEMGROUP_HAS_PRESSURE;
	n->some_us = memgroup_stall_us(buf_sv(&b), "some");
	n->full_us = memgroup_stall_us(buf_sv(&b), "full");
}

int memgroup_read(struct memgroup *g, const struct memgroup_tree *t, struct memgroup_numbers *ret_n,
		  struct err *err)
{
	bool is_v1 = g->version == MEMGROUP_V1;
	struct memgroup_numbers n = {.limit_bytes = MEMGROUP_NO_LIMIT,
				     .limit_above_bytes = MEMGROUP_NO_LIMIT,
				     .swap_limit_bytes = MEMGROUP_NO_LIMIT};
	const char *usage = is_v1 ? "memory.usage_in_bytes" : "memory.current";
	if (!read_number(g->fd, usage, &n.usage_bytes)) {
		/* the root cgroup of version 2 has no memory.current, but the other files */
		CLEANUP(buf_release) struct buf b = {0};
		if (!read_text(g->fd, "memory.stat", &b))
			return err_set(err, -ENOENT, "the cgroup '%s' has gone", g->path);
	}
	if (is_v1)
		read_v1(g, &n);
	else
		read_v2(g, &n);
	read_pressure(g, t, &n);
	if (!n.usage_bytes)
		n.usage_bytes = n.anon_bytes + n.file_bytes + n.kernel_bytes;
	g->max_seen = MAX(g->max_seen, n.usage_bytes);
	if (!(n.has & MEMGROUP_HAS_PEAK))
		n.peak_bytes = g->max_seen;
	*ret_n = n;
	return 0;
}

struct memgroup_numbers memgroup_since(const struct memgroup_numbers *before,
				       const struct memgroup_numbers *after)
{
	struct memgroup_numbers n = *after;
	/* the counts are the last members */
	const size_t nr =
		(sizeof(n) - offsetof(struct memgroup_numbers, nr_low)) / sizeof(uint64_t);
	const uint64_t *from = &before->nr_low;
	uint64_t *to = &n.nr_low;
	for (size_t i = 0; i < nr; i++)
		to[i] -= MIN(from[i], to[i]);
	return n;
}

/* ---- events ------------------------------------------------------------------------------- */

/* Registers an eventfd for OOM events of version 1. */
static int open_event_v1(const struct memgroup *g, int *ret_fd, struct err *err)
{
	static const char file[] = "memory.oom_control";
	CLEANUP(close_p) int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CLEANUP(close_p) int on = openat(g->fd, file, O_RDONLY | O_CLOEXEC);
	CLEANUP(close_p)
	int control = openat(g->fd, "cgroup.event_control", O_WRONLY | O_CLOEXEC);
	CLEANUP(free_p) char *text = xasprintf("%d %d", event, on);
	if (event < 0 || on < 0 || control < 0)
		return err_sys(err, "cannot watch '%s/%s'", g->path, file);
	if (file_write_all(control, text, strlen(text), err))
		return err_wrap(err, "cannot watch '%s/%s'", g->path, file);
	*ret_fd = take_fd(&event);
	return 0;
}

int memgroup_open_oom(const struct memgroup *g, int *ret_fd, struct err *err)
{
	if (g->version == MEMGROUP_V1)
		return open_event_v1(g, ret_fd, err);
	CLEANUP(free_p) char *path = xasprintf("/proc/self/fd/%d/memory.events", g->fd);
	CLEANUP(close_p) int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY) < 0)
		return err_sys(err, "cannot watch '%s/memory.events'", g->path);
	*ret_fd = take_fd(&fd);
	return 0;
}
