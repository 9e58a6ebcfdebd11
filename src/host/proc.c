/* Reading /proc; see proc.h. */
#include "base/base.h"
#include "host/proc.h"

#include <dirent.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sv.h"
#include "heap_wire.h"
#include "host/reader/hostfile.h"

#define PROC_TEXT_LIMIT ((size_t)256 << 20)
#define AUXV_MAX        4096u

void pid_list_release(struct pid_list *l)
{
	vec_release(&l->pids);
}

static int compare_pid(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a;
	int32_t y = *(const int32_t *)b;
	return x < y ? -1 : x > y;
}

void pid_list_sort(struct pid_list *l)
{
	if (l->pids.n)
		qsort(l->pids.p, l->pids.n, sizeof(*l->pids.p), compare_pid);
}

bool pid_list_has(const struct pid_list *l, int32_t pid)
{
	vec_foreach(known, &l->pids)
		if (*known == pid)
			return true;
	return false;
}

int proc_list_in(struct pid_list *ret_l, const char *dir_path, struct err *err)
{
	DIR *dir = opendir(dir_path);
	if (!dir)
		return err_sys(err, "cannot list '%s'", dir_path);
	struct pid_list l = {0};
	for (struct dirent *e; (e = readdir(dir));) {
		uint64_t v;
		if (sv_to_u64(sv_from_str(e->d_name), &v) && v && v <= INT32_MAX)
			vec_push(&l.pids, (int32_t)v);
	}
	(void)closedir(dir);
	pid_list_sort(&l);
	*ret_l = l;
	return 0;
}

int proc_list(struct pid_list *ret_l, struct err *err)
{
	return proc_list_in(ret_l, "/proc", err);
}

int proc_threads(struct pid_list *ret_l, int32_t pid, struct err *err)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/task", pid);
	return proc_list_in(ret_l, path, err);
}

int proc_comm(struct buf *to, int32_t pid, int32_t tid, struct err *err)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/task/%d/comm", pid, tid);
	int rc = file_read(to, path, 4096, err);
	if (!rc && to->n && to->p[to->n - 1] == '\n')
		to->p[--to->n] = 0;
	return rc;
}

int proc_cmdline(struct buf *to, int32_t pid, struct err *err)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/cmdline", pid);
	size_t start = to->n;
	TRY(hostfile_read_text(to, path, 4 << 20, err));
	while (to->n > start && !to->p[to->n - 1])
		to->n--;
	for (size_t i = start; i < to->n; i++)
		if (!to->p[i])
			to->p[i] = ' ';
	if (to->p)
		to->p[to->n] = 0;
	return 0;
}

int proc_argv0(struct buf *to, int32_t pid, struct err *err)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/cmdline", pid);
	int rc = hostfile_read_text(to, path, 4 << 20, err);
	if (!rc && to->n)
		to->n = strlen(buf_str(to));
	return rc;
}

struct sv proc_status_field(const struct buf *text, const char *key)
{
	struct sv rest = buf_sv(text);
	while (rest.n) {
		struct sv line = sv_split(&rest, '\n');
		struct sv name = sv_split(&line, ':');
		if (sv_eq_str(name, key))
			return sv_trim(line);
	}
	return sv_from("", 0);
}

static int read_status(struct buf *to, int32_t pid, struct err *err)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/status", pid);
	return file_read(to, path, 1 << 20, err);
}

/* Parses the last of the numbers of a line. */
static bool last_pid(struct sv v, int32_t *ret_pid)
{
	uint64_t n;
	if (!sv_to_u64(sv_from_idx(v, (size_t)(sv_rindex(v, '\t') + 1)), &n) || n > INT32_MAX)
		return false;
	*ret_pid = (int32_t)n;
	return true;
}

/* Returns the last number after @key in status as a pid. @what: its name in the error message. */
static int status_pid(int32_t pid, const char *key, const char *what, int32_t *ret_pid,
		      struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	if (read_status(&text, pid, err))
		return -ESRCH;
	if (!last_pid(proc_status_field(&text, key), ret_pid))
		return err_set(err, -EPROTO, "no %s in /proc/%d/status", what, pid);
	return 0;
}

/*
 * A field of stat, numbered as in proc(5): 12 majflt, 16 cutime, 17 cstime, 22 starttime,
 * 52 exit_code. Field 2, a name in parentheses, may hold blanks and parentheses.
 */
bool proc_stat_field(const struct buf *stat, unsigned field, uint64_t *ret_nr)
{
	ssize_t end = sv_rindex(buf_sv(stat), ')');
	if (end < 0)
		return false;
	struct sv rest = sv_trim(sv_from_idx(buf_sv(stat), (size_t)end + 1));
	for (unsigned i = 3; i < field; i++)
		(void)sv_split(&rest, ' ');
	return sv_to_u64(sv_split(&rest, ' '), ret_nr);
}

int proc_reads(int32_t pid, struct proc_reads *ret_r, struct err *err)
{
	CLEANUP(buf_release) struct buf io = {0};
	CLEANUP(buf_release) struct buf stat = {0};
	CLEANUP(free_p) char *io_path = xasprintf("/proc/%d/io", pid);
	CLEANUP(free_p) char *stat_path = xasprintf("/proc/%d/stat", pid);
	if (hostfile_read_text(&io, io_path, 1 << 16, err) ||
	    file_read(&stat, stat_path, 1 << 16, err))
		return -ESRCH;
	struct proc_reads r;
	uint64_t nr_writes;
	if (!sv_to_u64(proc_status_field(&io, "read_bytes"), &r.disk_bytes) ||
	    !sv_to_u64(proc_status_field(&io, "rchar"), &r.call_bytes) ||
	    !sv_to_u64(proc_status_field(&io, "wchar"), &r.written_bytes) ||
	    !sv_to_u64(proc_status_field(&io, "syscr"), &r.nr_calls) ||
	    !sv_to_u64(proc_status_field(&io, "syscw"), &nr_writes) ||
	    !sv_to_u64(proc_status_field(&io, "write_bytes"), &r.dirtied_bytes) ||
	    !proc_stat_field(&stat, 10, &r.nr_minor) || !proc_stat_field(&stat, 12, &r.nr_major))
		return err_set(err, -EPROTO, "/proc/%d/io or stat cannot be read", pid);
	r.nr_calls += nr_writes;
	*ret_r = r;
	return 0;
}

uint64_t proc_start_ticks(int32_t pid)
{
	CLEANUP(buf_release) struct buf stat = {0};
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/stat", pid);
	uint64_t start;
	if (file_read(&stat, path, 1 << 16, NULL) || !proc_stat_field(&stat, 22, &start))
		return 0;
	return start;
}

uint64_t proc_now_ticks(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	uint64_t per_second = (uint64_t)MAX(sysconf(_SC_CLK_TCK), 1);
	return (uint64_t)ts.tv_sec * per_second + (uint64_t)ts.tv_nsec / (1000000000u / per_second);
}

bool proc_zombie_status(int32_t pid, uint64_t *ret_status)
{
	CLEANUP(buf_release) struct buf stat = {0};
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/stat", pid);
	struct proc_task t;
	return !proc_task(pid, pid, &t) && (t.state == 'Z' || t.state == 'X') &&
	       !file_read(&stat, path, 1 << 16, NULL) && proc_stat_field(&stat, 52, ret_status);
}

int proc_uid(int32_t pid, uint32_t *ret_uid, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	if (read_status(&text, pid, err))
		return -ESRCH;
	struct sv v = proc_status_field(&text, "Uid");
	uint64_t uid;
	if (!sv_to_u64(sv_split(&v, '\t'), &uid))
		return err_set(err, -EPROTO, "no uid in /proc/%d/status", pid);
	*ret_uid = (uint32_t)uid;
	return 0;
}

int proc_tgid(int32_t tid, int32_t *ret_pid, struct err *err)
{
	return status_pid(tid, "Tgid", "thread group", ret_pid, err);
}

int proc_parent(int32_t pid, int32_t *ret_pid, struct err *err)
{
	return status_pid(pid, "PPid", "parent", ret_pid, err);
}

int proc_nspid(int32_t pid, int32_t *ret_nspid, struct err *err)
{
	return status_pid(pid, "NSpid", "NSpid", ret_nspid, err);
}

int proc_task(int32_t pid, int32_t tid, struct proc_task *ret_t)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/task/%d/status", pid, tid);
	CLEANUP(buf_release) struct buf text = {0};
	if (file_read(&text, path, 1 << 20, NULL))
		return -ESRCH;
	struct sv state = proc_status_field(&text, "State");
	uint64_t tracer = 0;
	uint64_t seccomp = 0; /* kernels without seccomp have no such line */
	uint64_t caught = 0;
	int32_t ns_tid = tid;
	(void)sv_to_u64(proc_status_field(&text, "TracerPid"), &tracer);
	(void)sv_to_u64(proc_status_field(&text, "Seccomp"), &seccomp);
	(void)sv_to_hex(proc_status_field(&text, "SigCgt"), &caught);
	(void)last_pid(proc_status_field(&text, "NSpid"), &ns_tid);
	*ret_t = (struct proc_task){.tracer = (int32_t)tracer,
				    .seccomp = (unsigned)seccomp,
				    .caught = caught,
				    .ns_tid = ns_tid,
				    .state = state.n ? state.p[0] : 'X'};
	return 0;
}

bool proc_has_ended(int32_t pid)
{
	CLEANUP(pid_list_release) struct pid_list tids = {0};
	struct proc_task t;
	if (proc_threads(&tids, pid, NULL) || !tids.pids.n)
		return true;
	vec_foreach(tid, &tids.pids)
		if (!proc_task(pid, *tid, &t) && t.state != 'Z' && t.state != 'X')
			return false;
	return true;
}

/* "NR A0 .. A5 SP PC", "-1 SP PC", or "running" */
bool proc_parse_wait(struct sv text, struct proc_wait *ret_w)
{
	struct sv rest = sv_trim(text);
	ssize_t pc = sv_rindex(rest, ' ');
	struct sv before = sv_from(rest.p, pc > 0 ? (size_t)pc : 0);
	ssize_t sp = sv_rindex(before, ' ');
	return sp > 0 && sv_to_i64(sv_split(&before, ' '), &ret_w->nr) &&
	       sv_to_hex(sv_from_idx(sv_from(rest.p, (size_t)pc), (size_t)sp + 1), &ret_w->sp) &&
	       sv_to_hex(sv_from_idx(rest, (size_t)pc + 1), &ret_w->pc);
}

int proc_wait(int32_t pid, int32_t tid, struct proc_wait *ret_w)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/task/%d/syscall", pid, tid);
	CLEANUP(buf_release) struct buf text = {0};
	TRY(file_read(&text, path, 4096, NULL));
	return proc_parse_wait(buf_sv(&text), ret_w) ? 0 : -EAGAIN;
}

static int read_exec_id(int32_t pid, uint64_t *ret_id, struct err *err)
{
	char path[64];
	CLEANUP(buf_release) struct buf auxv = {0};
	*ret_id = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	TRY(hostfile_read_text(&auxv, path, AUXV_MAX, err));
	/* While the kernel maps the program, auxv holds only its terminator (zeros). */
	for (size_t i = 0; i < auxv.n && !*ret_id; i++)
		if (auxv.p[i])
			*ret_id = hash_bytes(auxv.p, auxv.n);
	return 0;
}

uint64_t proc_exec_id(int32_t pid)
{
	uint64_t id;
	return read_exec_id(pid, &id, NULL) ? 0 : id;
}

int proc_check_exec(int32_t pid, uint64_t id, struct err *err)
{
	uint64_t now;
	if (!id)
		return 0;
	int rc = read_exec_id(pid, &now, err);
	if (rc && rc != -ENOENT && rc != -ESRCH)
		return rc;
	return !rc && now == id
		       ? 0
		       : err_set(err, -ESRCH, "pid %d has ended or executed another program", pid);
}

/*
 * auxv consists of pairs of words, the first of which is a small number: the upper half of a 64-bit
 * word is 0, and in its place a 32-bit program has the value, which is not 0 in the first pair.
 */
bool proc_is_32bit(int32_t pid)
{
	char path[64];
	CLEANUP(buf_release) struct buf auxv = {0};
	uint32_t half[2];
	(void)snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	if (sizeof(void *) != 8 || hostfile_read_text(&auxv, path, AUXV_MAX, NULL) ||
	    auxv.n < sizeof(half))
		return false;
	memcpy(half, auxv.p, sizeof(half));
	return half[0] && half[1];
}

uint64_t proc_cpu_ns(int32_t pid)
{
	CLEANUP(buf_release) struct buf stat = {0};
	char path[64];
	struct timespec own;
	clockid_t clock;
	uint64_t user_ticks; /* of the children */
	uint64_t kernel_ticks;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &own) ||
	    file_read(&stat, path, 1 << 16, NULL) || !proc_stat_field(&stat, 16, &user_ticks) ||
	    !proc_stat_field(&stat, 17, &kernel_ticks))
		return 0;
	uint64_t tick_ns = 1000000000u / (uint64_t)MAX(sysconf(_SC_CLK_TCK), 1);
	return (uint64_t)own.tv_sec * 1000000000u + (uint64_t)own.tv_nsec +
	       (user_ticks + kernel_ticks) * tick_ns;
}

/* "start-end perms pgoff major:minor inode   path", the path may hold blanks. */
bool proc_parse_map(struct sv line, struct proc_map *ret_m, struct sv *ret_path)
{
	struct proc_map m = {0};
	uint64_t major;
	uint64_t minor;
	struct sv range = sv_split(&line, ' ');
	struct sv start = sv_split(&range, '-');
	struct sv perms = sv_split(&line, ' ');
	struct sv pgoff = sv_split(&line, ' ');
	struct sv dev = sv_split(&line, ' ');
	struct sv dev_major = sv_split(&dev, ':');
	struct sv inode = sv_split(&line, ' ');
	if (!sv_to_hex(start, &m.start) || !sv_to_hex(range, &m.end) || perms.n < 4 ||
	    !sv_to_hex(pgoff, &m.pgoff) || !sv_to_hex(dev_major, &major) ||
	    !sv_to_hex(dev, &minor) || !sv_to_u64(inode, &m.inode))
		return false;
	m.dev_major = (uint32_t)major;
	m.dev_minor = (uint32_t)minor;
	m.is_read = perms.p[0] == 'r';
	m.is_write = perms.p[1] == 'w';
	m.is_exec = perms.p[2] == 'x';
	m.is_shared = perms.p[3] == 's';
	while (line.n && line.p[0] == ' ')
		line = sv_from_idx(line, 1);
	*ret_path = line;
	*ret_m = m;
	return m.end > m.start;
}

void proc_add_map_path(struct buf *to, struct sv path)
{
	while (path.n) {
		bool is_newline = sv_has_prefix(path, SV("\\012"));
		buf_add_ch(to, is_newline ? '\n' : path.p[0]);
		path = sv_from_idx(path, is_newline ? 4 : 1);
	}
}

int proc_maps(int32_t pid, proc_map_fn fn, void *ctx, struct err *err)
{
	CLEANUP(free_p) char *file = xasprintf("/proc/%d/maps", pid);
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf path = {0};
	int rc = hostfile_read_text(&text, file, PROC_TEXT_LIMIT, err);
	if (rc == -ENOENT || rc == -ESRCH)
		return err_set(err, -ESRCH, "process %d has ended", pid);
	TRY(rc);
	struct sv rest = buf_sv(&text);
	while (rest.n) {
		struct proc_map m;
		struct sv name;
		if (!proc_parse_map(sv_split(&rest, '\n'), &m, &name))
			continue;
		buf_clear(&path);
		proc_add_map_path(&path, name);
		m.path = buf_str(&path);
		TRY(fn(ctx, &m, err));
	}
	return 0;
}

bool proc_is_recorder(const char *path)
{
	return sv_has_prefix(sv_from_str(path), SV("/" HEAP_WIRE_FILES));
}

char *proc_exe(int32_t pid)
{
	CLEANUP(free_p) char *link = xasprintf("/proc/%d/exe", pid);
	char path[PATH_MAX];
	ssize_t n = readlink(link, path, sizeof(path));
	return n > 0 ? xstrndup(path, (size_t)n) : NULL;
}

int proc_open_mapped(struct byte_source *ret_s, int32_t pid, const struct proc_map *m)
{
	bool is_exact;
	return hostfile_open_mapped(ret_s, &is_exact,
				    &(struct hostfile_mapping){.pid = pid,
							       .start = m->start,
							       .end = m->end,
							       .path = m->path,
							       .dev_major = m->dev_major,
							       .dev_minor = m->dev_minor,
							       .inode = m->inode});
}
