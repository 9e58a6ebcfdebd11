/* Opens the files of mappings; see module_files.h. */
#include "base/base.h"
#include "session/module_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "host/proc.h"
#include "host/reader/hostfile.h"
#include "session/kernelsyms.h"

#define JITDUMP_LIMIT ((size_t)1 << 30)

/* The vDSO has one or two pages. Its length is not in auxv: it is read up to the first fault. */
#define VDSO_BYTES_MAX 16384

static int read_own_vdso(void *ctx, struct buf *to)
{
	(void)ctx;
	uint64_t at = getauxval(AT_SYSINFO_EHDR);
	if (!at)
		return -ENOENT;
	CLEANUP(close_p) int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (size_t n = 0; n < VDSO_BYTES_MAX; n += 4096) {
		ssize_t got = pread(fd, buf_reserve(to, 4096), 4096, (off_t)(at + n));
		if (got <= 0)
			break;
		to->n += (size_t)got;
	}
	return to->n ? 0 : -EFAULT;
}

static int read_kallsyms(void *ctx, struct buf *to)
{
	(void)ctx;
	return kernelsyms_read(to, NULL);
}

/* ---- live processes ---------------------------------------------------------------------- */

#define ROOTS_MAX 64 /* descriptors kept; for processes with other roots host paths are tried */

static int root_of(struct live_files *l, int32_t pid)
{
	CLEANUP(close_p) int fd = hostfile_open_root(pid);
	CLEANUP(free_p) char *ns = xasprintf("/proc/%d/ns/mnt", pid);
	struct stat root;
	struct stat mounts;
	if (fd < 0 || fstat(fd, &root) || stat(ns, &mounts))
		return -1;
	vec_foreach(r, &l->roots)
		if (r->mnt_nsid == mounts.st_ino && r->dev == root.st_dev &&
		    r->inode == root.st_ino)
			return r->fd;
	if (l->roots.n >= ROOTS_MAX)
		return -1;
	int kept = fd;
	fd = -1;
	vec_push(&l->roots, (struct live_root){.mnt_nsid = mounts.st_ino,
					       .dev = root.st_dev,
					       .inode = root.st_ino,
					       .fd = kept});
	return kept;
}

static struct live_process *process_of(struct live_files *l, int32_t pid)
{
	uint32_t *idx = map_put(&l->by_pid, (uint32_t)pid, NULL);
	if (!*idx) {
		struct live_process p = {.pid = pid, .nspid = pid, .root_fd = -1};
		p.root_fd = root_of(l, pid);
		(void)proc_nspid(pid, &p.nspid, NULL); /* on failure the pid here is used */
		(void)proc_uid(pid, &p.uid, NULL);
		vec_push(&l->processes, p);
		*idx = (uint32_t)l->processes.n;
	}
	return &l->processes.p[*idx - 1];
}

static int live_open(void *ctx, struct byte_source *ret_s, int32_t pid, const struct event_map *map)
{
	(void)ctx;
	struct hostfile_mapping m = {.pid = pid,
				     .start = map->start,
				     .end = map->start + map->len,
				     .path = map->path,
				     .dev_major = map->dev_major,
				     .dev_minor = map->dev_minor,
				     .inode = map->inode};
	bool is_exact;
	TRY(hostfile_open_mapped(ret_s, &is_exact, &m));
	/* Without a build-id only the inode shows that this is the mapped file. */
	if (!is_exact && !map->nr_build_id && map->inode && ret_s->st.st_ino != map->inode) {
		source_close(ret_s);
		return -ESTALE;
	}
	return 0;
}

/* Whether a path in the process's root directory leads to the file of @st. */
static bool leads_to(int root_fd, const char *path, const struct stat *st)
{
	CLEANUP(source_close) struct byte_source source = {0};
	return path[0] == '/' && !hostfile_open_path(&source, root_fd, path) &&
	       source.st.st_dev == st->st_dev && source.st.st_ino == st->st_ino;
}

/*
 * Tries the first argument, then its base name, or the process's name, in the folder of the file and
 * in the usual ones. The first argument is free text, and a process may rename itself: but what is
 * used is a name of the file.
 */
static int live_invoked(void *ctx, int32_t pid, const char *comm, const char *mapped,
			struct buf *to)
{
	static const char *const folders[] = {"/usr/bin", "/usr/sbin",      "/bin",
					      "/sbin",    "/usr/local/bin", "/usr/local/sbin"};
	int root_fd = process_of(ctx, pid)->root_fd;
	CLEANUP(source_close) struct byte_source file = {0};
	TRY(hostfile_open_path(&file, root_fd, mapped));
	CLEANUP(buf_release) struct buf first = {0};
	(void)proc_argv0(&first, pid, NULL);
	const char *arg = buf_str(&first);
	if (leads_to(root_fd, arg, &file.st)) {
		buf_add_str(to, arg);
		return 0;
	}
	const char *name = path_base(arg);
	if (strncmp(name, comm, 15) != 0)
		name = comm;
	if (strchr(name, '/'))
		return -ENOENT;
	CLEANUP(buf_release) struct buf path = {0};
	buf_addf(&path, "%.*s%s", (int)(path_base(mapped) - mapped), mapped, name);
	for (size_t i = 0; !leads_to(root_fd, buf_str(&path), &file.st); i++) {
		if (i == sizeof(folders) / sizeof(*folders))
			return -ENOENT;
		buf_clear(&path);
		buf_addf(&path, "%s/%s", folders[i], name);
	}
	buf_add_sv(to, buf_sv(&path));
	return 0;
}

static int live_root(void *ctx, int32_t pid)
{
	return process_of(ctx, pid)->root_fd;
}

/* Opens a perf map or jitdump only if it belongs to the process's user or to root. */
static int open_owned(struct byte_source *ret_s, int root_fd, const char *path, uint32_t uid)
{
	CLEANUP(source_close) struct byte_source source = {0};
	TRY(hostfile_open_path(&source, root_fd, path));
	if (source.st.st_uid != uid && source.st.st_uid != 0)
		return -EPERM;
	*ret_s = source;
	source = (struct byte_source){0};
	return 0;
}

static int read_owned(int root_fd, const char *path, uint32_t uid, struct buf *to)
{
	CLEANUP(source_close) struct byte_source source = {0};
	TRY(open_owned(&source, root_fd, path, uid));
	return source_read_all(to, &source, JITDUMP_LIMIT, NULL);
}

static int live_jitdump(void *ctx, int32_t pid, const char *path, struct buf *to)
{
	struct live_process *p = process_of(ctx, pid);
	return read_owned(p->root_fd, path, p->uid, to);
}

static int live_perfmap(void *ctx, int32_t pid, struct byte_source *ret_s)
{
	struct live_process *p = process_of(ctx, pid);
	CLEANUP(free_p) char *path = xasprintf("/tmp/perf-%d.map", p->nspid);
	return open_owned(ret_s, p->root_fd, path, p->uid);
}

void live_files_init(struct live_files *l)
{
	*l = (struct live_files){.access = {.open = live_open,
					    .open_path = hostfile_open_path,
					    .invoked = live_invoked,
					    .root = live_root,
					    .read_kallsyms = read_kallsyms,
					    .open_perfmap = live_perfmap,
					    .read_jitdump = live_jitdump,
					    .read_vdso = read_own_vdso}};
	l->access.ctx = l;
}

void live_files_release(struct live_files *l)
{
	vec_foreach(r, &l->roots)
		close_p(&r->fd);
	vec_release(&l->roots);
	vec_release(&l->processes);
	map_release(&l->by_pid);
}

/* ---- recordings -------------------------------------------------------------------------- */

/* Opens ~/.debug/.build-id/xx/yyyy/elf, perf's cache of recorded binaries. */
static int open_from_perf_cache(struct byte_source *ret_s, const struct event_map *map)
{
	const char *home = getenv("HOME");
	if (!home || map->nr_build_id < 2)
		return -ENOENT;
	CLEANUP(buf_release) struct buf path = {0};
	buf_addf(&path, "%s/.debug/.build-id/%02x/", home, map->build_id[0]);
	for (size_t i = 1; i < map->nr_build_id; i++)
		buf_addf(&path, "%02x", map->build_id[i]);
	buf_add_str(&path, "/elf");
	TRY(hostfile_open_path(ret_s, -1, buf_str(&path)));
	/* HOME may be another user's (sudo -E), whose files must not be taken for the system's. */
	if (!ret_s->st.st_uid || ret_s->st.st_uid == geteuid())
		return 0;
	source_close(ret_s);
	return -EPERM;
}

/* Returns whether it is the mapped file: by inode, or, without build-ids, not newer than the dump. */
static bool is_mapped_inode(const struct stored_files *s, const struct event_map *map,
			    const struct stat *st, bool is_below_symfs)
{
	if (st->st_ino == map->inode)
		return true;
	if (!s->written_ns)
		return false;
	int64_t changed_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
	return is_below_symfs || changed_ns <= s->written_ns;
}

static int stored_open(void *ctx, struct byte_source *ret_s, int32_t pid,
		       const struct event_map *map)
{
	(void)pid;
	struct stored_files *s = ctx;
	if (!open_from_perf_cache(ret_s, map))
		return 0;
	CLEANUP(free_p) char *path = xasprintf("%s%s", s->symfs ? s->symfs : "", map->path);
	int rc = hostfile_open_path(ret_s, -1, path);
	bool is_below_symfs = !rc && s->symfs;
	if (rc && s->symfs)
		rc = hostfile_open_path(ret_s, -1, map->path);
	if (!rc && !map->nr_build_id && map->inode &&
	    !is_mapped_inode(s, map, &ret_s->st, is_below_symfs)) {
		source_close(ret_s);
		return -ESTALE;
	}
	return rc;
}

static int stored_root(void *ctx, int32_t pid)
{
	(void)ctx;
	(void)pid;
	return -1;
}

static int read_stored(struct stored_files *s, struct buf *to,
		       int (*read)(struct buf *to, const char *cache_dir))
{
	size_t from = to->n;
	if (!s->is_this_kernel)
		return -ENOENT;
	TRY(read(to, s->cache_dir));
	if (!kernelsyms_is_elsewhere(sv_from(to->p + from, to->n - from), &s->kernel))
		return 0;
	to->n = from;
	s->is_this_kernel = false;
	return -ENOENT;
}

static int stored_kallsyms(void *ctx, struct buf *to)
{
	struct stored_files *s = ctx;
	return read_stored(s, to, kernelsyms_read);
}

static int cached_kallsyms(void *ctx, struct buf *to)
{
	struct stored_files *s = ctx;
	return read_stored(s, to, kernelsyms_load);
}

static int stored_jitdump(void *ctx, int32_t pid, const char *path, struct buf *to)
{
	(void)pid;
	struct stored_files *s = ctx;
	CLEANUP(free_p) char *full = xasprintf("%s%s", s->symfs ? s->symfs : "", path);
	return read_owned(-1, full, getuid(), to);
}

static int stored_perfmap(void *ctx, int32_t pid, struct byte_source *ret_s)
{
	struct stored_files *s = ctx;
	CLEANUP(free_p) char *path = xasprintf("%s/tmp/perf-%d.map", s->symfs ? s->symfs : "", pid);
	return open_owned(ret_s, -1, path, getuid());
}

void stored_files_init(struct stored_files *s, const char *symfs, const char *cache_dir)
{
	*s = (struct stored_files){.access = {.open = stored_open,
					      .open_path = hostfile_open_path,
					      .root = stored_root,
					      .read_kallsyms = stored_kallsyms,
					      .read_cached_kallsyms = cached_kallsyms,
					      .open_perfmap = stored_perfmap,
					      .read_jitdump = stored_jitdump,
					      .read_vdso = read_own_vdso},
				   .symfs = symfs,
				   .cache_dir = cache_dir};
	s->access.ctx = s;
}
