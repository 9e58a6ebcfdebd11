/* Calls of mallctl in another process; see jemalloc.h. */
#include "base/base.h"
#include "remote/jemalloc/jemalloc.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/process/cleanup.h"
#include "remote/ptrace/remote.h"
#include "host/proc.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3 */
#endif

#define CALL_TIMEOUT_NS (10 * NS_PER_SEC) /* a dump of a large heap takes a while */
#define NAME_BYTES_MAX  128
#define STR_BYTES_MAX   1024
#define VALUE_BYTES_MAX 64

/* Layout of the argument memory in the target. */
struct scratch {
	char name[NAME_BYTES_MAX];
	uint64_t old_bytes;
	uint8_t old_value[VALUE_BYTES_MAX];
	uint8_t new_value[VALUE_BYTES_MAX];
	char path[64];
};

/* ---- a call -------------------------------------------------------------------------------- */

static int answer_to_err(int answer, const char *name, struct err *err)
{
	switch (answer) {
	case 0:
		return 0;
	case ENOENT:
		return err_set(err, -ENOENT, "this jemalloc has no '%s'", name);
	case EPERM:
		return err_set(err, -EPERM, "jemalloc refuses '%s': it is read only", name);
	case EINVAL:
		return err_set(err, -EINVAL, "jemalloc refuses '%s': wrong kind of value", name);
	case EFAULT:
	case EAGAIN:
		return err_set(err, -answer, "jemalloc failed at '%s'", name);
	default:
		return err_set(err, -EPROTO, "'%s': mallctl returned %d", name, answer);
	}
}

/* mallctl(name, oldp, oldlenp, newp, newlen) */
int jemalloc_control(struct jemalloc *j, const char *name, void *old, size_t nr_old,
		     const void *new, size_t nr_new, struct err *err)
{
	struct scratch s = {.old_bytes = nr_old};
	size_t n = strlen(name);
	ASSERT(n < sizeof(s.name) && nr_old <= VALUE_BYTES_MAX && nr_new <= VALUE_BYTES_MAX);
	memcpy(s.name, name, n + 1);
	if (new)
		memcpy(s.new_value, new, nr_new);
	TRY(remote_write(j->r, j->at, &s, offsetof(struct scratch, path), err));
	uint64_t old_at = j->old_at ? j->old_at : j->at + offsetof(struct scratch, old_value);
	const uint64_t args[REMOTE_ARGS_MAX] = {
		j->at + offsetof(struct scratch, name),
		old ? old_at : 0,
		old ? j->at + offsetof(struct scratch, old_bytes) : 0,
		new ? j->at + offsetof(struct scratch, new_value) : 0,
		new ? nr_new : 0,
	};
	int32_t answer = 0;
	int rc = remote_call(j->r, j->mallctl, args, &answer, err);
	if (rc)
		return err_wrap(err, "asking jemalloc for '%s'", name);
	rc = answer_to_err(answer, name, err);
	if (rc || !old)
		return rc;
	TRY(remote_read(j->r, j->at, &s, offsetof(struct scratch, new_value), err));
	if (s.old_bytes != nr_old)
		return err_set(err, -EPROTO, "'%s' has %" PRIu64 " bytes, %zu expected", name,
			       s.old_bytes, nr_old);
	return remote_read(j->r, old_at, old, nr_old, err);
}

int jemalloc_read(struct jemalloc *j, const char *name, void *to, size_t n, struct err *err)
{
	return jemalloc_control(j, name, to, n, NULL, 0, err);
}

int jemalloc_read_bool(struct jemalloc *j, const char *name, bool *ret, struct err *err)
{
	uint8_t v = 0;
	TRY(jemalloc_read(j, name, &v, sizeof(v), err));
	*ret = v != 0;
	return 0;
}

/* Reads up to the end of a page at a time: the next page may not be mapped. */
static int read_str(struct jemalloc *j, uint64_t addr, struct buf *to, struct err *err)
{
	for (size_t n = 0; n < STR_BYTES_MAX;) {
		char part[64];
		size_t want = MIN(sizeof(part), 4096 - (size_t)((addr + n) & 4095));
		TRY(remote_read(j->r, addr + n, part, want, err));
		size_t len = strnlen(part, want);
		buf_add(to, part, len);
		if (len < want)
			return 0;
		n += want;
	}
	return err_set(err, -EPROTO, "jemalloc returned a string without a terminating zero");
}

int jemalloc_write(struct jemalloc *j, const char *name, const void *from, size_t n,
		   struct err *err)
{
	return jemalloc_control(j, name, NULL, 0, from, n, err);
}

int jemalloc_write_bool(struct jemalloc *j, const char *name, bool is_on, struct err *err)
{
	uint8_t v = is_on;
	return jemalloc_write(j, name, &v, sizeof(v), err);
}

/* ---- a session ----------------------------------------------------------------------------- */

/* Three numbers separated by points. */
static bool is_version(const char *s)
{
	size_t nr_points = 0;
	if (*s < '0' || *s > '9')
		return false;
	for (; *s && *s != '-'; s++) {
		if (*s == '.')
			nr_points++;
		else if (*s < '0' || *s > '9')
			return false;
	}
	return nr_points == 2;
}

static int verify(struct jemalloc *j, const char *expected_version, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	uint64_t at = 0;
	TRY(jemalloc_read(j, "version", &at, sizeof(at), err));
	if (at)
		TRY(read_str(j, at, &text, err));
	if (!is_version(buf_str(&text)))
		return err_set(err, -ENOTSUP, "the function found is not jemalloc's mallctl");
	if (expected_version && strcmp(buf_str(&text), expected_version))
		return err_set(err, -ENOTSUP, "its version is '%s', not '%s'", buf_str(&text),
			       expected_version);
	return 0;
}

int jemalloc_prepare(struct jemalloc *j, struct err *err)
{
	return remote_scratch(j->r, sizeof(struct scratch), &j->at, err);
}

int jemalloc_open(struct jemalloc **ret_j, int32_t pid, const struct heap_plan *plan,
		  struct err *err)
{
	if (!plan->mallctl)
		return err_set(err, -ENOTSUP, "process %d has no jemalloc mallctl (%s)", pid,
			       plan->allocator_text);
	struct jemalloc *j CLEANUP(jemalloc_close_p) = xcalloc(1, sizeof(*j));
	const struct remote_options options = {.avoid = &plan->allocator_code,
					       .timeout_ns = CALL_TIMEOUT_NS};
	j->mallctl = plan->mallctl;
	TRY(plan->is_held ? remote_open_stopped(&j->r, pid, pid, &options, err)
			  : remote_open(&j->r, pid, &options, err));
	/* In a long series of dumps the pid may have executed another program meanwhile. */
	TRY(proc_check_exec(pid, plan->image, err));
	TRY(jemalloc_prepare(j, err));
	TRY(verify(j, plan->expected_version, err));
	*ret_j = TAKE(j);
	return 0;
}

void jemalloc_close(struct jemalloc *j)
{
	if (!j)
		return;
	remote_close(j->r);
	free(j);
}

void jemalloc_close_p(struct jemalloc **j)
{
	jemalloc_close(*j);
	*j = NULL;
}

uint64_t jemalloc_stopped_ns(const struct jemalloc *j)
{
	return remote_stopped_ns(j->r);
}

/* ---- profiling ----------------------------------------------------------------------------- */

int jemalloc_prof_state(struct jemalloc *j, struct jemalloc_prof *ret_p, struct err *err)
{
	struct jemalloc_prof p = {0};
	TRY(jemalloc_read_bool(j, "config.prof", &p.is_built_in, err));
	TRY(p.is_built_in ? jemalloc_read_bool(j, "opt.prof", &p.is_possible, err) : 0);
	if (p.is_possible) {
		TRY(jemalloc_read_bool(j, "prof.active", &p.is_active, err));
		TRY(jemalloc_read(j, "prof.lg_sample", &p.lg_sample, sizeof(p.lg_sample), err));
	}
	*ret_p = p;
	return 0;
}

int jemalloc_prof_check(const struct jemalloc_prof *p, const char *variable, struct err *err)
{
	if (p->is_possible)
		return 0;
	if (!p->is_built_in) {
		(void)err_set(err, -ENOTSUP,
			      "this jemalloc was built without profiling, so it has "
			      "nothing to dump");
		return err_hint(err, "`assay heap -p PID` records it as it is; for dumps "
				     "build jemalloc with --enable-prof (tikv-jemallocator: "
				     "features = [\"profiling\"])");
	}
	(void)err_set(err, -ENOTSUP,
		      "jemalloc's profiling is off in this process (opt.prof), and "
		      "it can be switched on only when a process starts");
	return err_hint(err,
			"start it with %s=prof:true in its environment (`assay env "
			"--jemalloc-prof -- CMD` sets it); `assay heap -p PID` "
			"records it as it is",
			variable ? variable : "MALLOC_CONF");
}

struct sampling {
	int32_t pid;
	const struct heap_plan *plan;
};

static int disable_sampling(void *ctx)
{
	const struct sampling *s = ctx;
	struct jemalloc *j CLEANUP(jemalloc_close_p) = NULL;
	TRY(jemalloc_open(&j, s->pid, s->plan, NULL));
	return jemalloc_write_bool(j, "prof.active", false, NULL);
}

/* Runs in the cleanup process. */
static void disable_after_death(void *ctx, int fd UNUSED)
{
	remote_undo(disable_sampling, ctx);
}

int jemalloc_guard_sampling(struct cleanup *ret_c, int32_t pid, const struct heap_plan *plan,
			    struct err *err)
{
	struct sampling s = {pid, plan};
	return cleanup_start(ret_c,
			     &(struct cleanup_spec){.begin = remote_keep_rights,
						    .fn = disable_after_death,
						    .ctx = &s},
			     err);
}

static int make_memfd(struct jemalloc *j, int64_t *ret_fd, struct err *err)
{
	static const char name[] = "assay-heap-dump";
	uint64_t at = j->at + offsetof(struct scratch, path);
	TRY(remote_write(j->r, at, name, sizeof(name), err));
	uint64_t args[REMOTE_ARGS_MAX] = {at, MFD_CLOEXEC | MFD_NOEXEC_SEAL};
	TRY(remote_syscall(j->r, SYS_memfd_create, args, ret_fd, err));
	if (*ret_fd == -EINVAL) { /* a kernel before 6.3 */
		args[1] = MFD_CLOEXEC;
		TRY(remote_syscall(j->r, SYS_memfd_create, args, ret_fd, err));
	}
	if (*ret_fd < 0)
		return err_set(err, (int)*ret_fd, "making memory for the dump in the process: %s",
			       strerror((int)-*ret_fd));
	return 0;
}

static int dump_into(struct jemalloc *j, int fd, struct err *err)
{
	char *path CLEANUP(free_p) = xasprintf("/proc/self/fd/%d", fd);
	uint64_t at = j->at + offsetof(struct scratch, path);
	int rc = remote_write(j->r, at, path, strlen(path) + 1, err);
	if (!rc)
		rc = jemalloc_write(j, "prof.dump", &at, sizeof(at), err);
	if (rc == -EFAULT || rc == -EAGAIN)
		(void)err_hint(err, "the process must see /proc to open the memory that it dumps "
				    "into");
	return rc;
}

int jemalloc_dump(struct jemalloc *j, int *ret_fd, struct err *err)
{
	int64_t there = -1;
	TRY(make_memfd(j, &there, err));
	int fd CLEANUP(close_p) = -1;
	int rc = dump_into(j, (int)there, err);
	if (!rc)
		rc = remote_get_fd(j->r, (int)there, &fd, err);
	const uint64_t args[REMOTE_ARGS_MAX] = {(uint64_t)there};
	int64_t closed;
	int close_rc = remote_syscall(j->r, SYS_close, args, &closed, rc ? NULL : err);
	if (rc || close_rc)
		return rc ? rc : close_rc;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, "rewinding the dump");
	*ret_fd = take_fd(&fd);
	return 0;
}
