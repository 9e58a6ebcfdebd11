/* Access to tracefs; see tracefs.h. */
#include "base/base.h"
#include "host/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/text/lines.h"
#include "base/mem.h"

/* linux/mount.h, which older libc headers lack. */
#ifndef SYS_fsopen
#define SYS_fsopen   430
#define SYS_fsconfig 431
#define SYS_fsmount  432
#endif
#define FSOPEN_CLOEXEC_      1u
#define FSMOUNT_CLOEXEC_     1u
#define FSCONFIG_CMD_CREATE_ 6u

#define LIST_LIMIT   ((size_t)8 << 20)
#define FORMAT_LIMIT ((size_t)1 << 20)

static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

static int try_place(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!faccessat(fd, "events", R_OK | X_OK, AT_EACCESS))
		return fd;
	int rc = -errno;
	(void)close(fd);
	return rc;
}

static int mount_privately(void)
{
	CLEANUP(close_p) int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC_);
	if (fs < 0)
		return -errno;
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE_, NULL, NULL, 0))
		return -errno;
	int fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC_, 0);
	return fd < 0 ? -errno : fd;
}

int tracefs_refused(struct err *err)
{
	err_set(err, -EACCES, "no permission to use the kernel's tracepoints");
	return err_hint(err, "run with sudo, or give assay CAP_DAC_READ_SEARCH with CAP_BPF and "
			     "CAP_PERFMON: sudo setcap cap_bpf,cap_perfmon,cap_dac_read_search+ep "
			     "assay; in a container --cap-add DAC_READ_SEARCH and mount "
			     "/sys/kernel/tracing");
}

/* One of the mutable globals: set once, before rights are dropped. */
static int held_fd = -1;

void tracefs_hold(void)
{
	if (held_fd < 0)
		(void)tracefs_open(&held_fd, NULL);
}

int tracefs_open(int *ret_fd, struct err *err)
{
	int refusal = -ENOENT;
	if (held_fd >= 0) {
		*ret_fd = fcntl(held_fd, F_DUPFD_CLOEXEC, 3);
		return *ret_fd < 0 ? err_sys(err, "cannot duplicate the descriptor") : 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		int fd = try_place(places[i]);
		if (fd >= 0) {
			*ret_fd = fd;
			return 0;
		}
		if (fd == -EACCES || fd == -EPERM)
			refusal = -EACCES;
	}
	int fd = mount_privately();
	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	if (fd == -ENODEV)
		return err_set(err, -ENOTSUP, "this kernel has no tracepoints (no tracefs)");
	if (refusal != -EACCES && fd != -EPERM && fd != -EACCES)
		return err_set(err, fd, "cannot open the kernel's list of tracepoints: %s",
			       strerror(-fd));
	return tracefs_refused(err);
}

void tracefs_names_release(struct tracefs_names *n)
{
	vec_release(&n->names);
	arena_release(&n->arena);
}

static int by_name(const void *a, const void *b)
{
	const struct sv *x = a;
	const struct sv *y = b;
	int c = memcmp(x->p, y->p, MIN(x->n, y->n));
	return c ? c : (x->n > y->n) - (x->n < y->n);
}

int tracefs_list(struct tracefs_names *ret_n, int fd, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	int rc = file_read_at(&text, fd, "available_events", LIST_LIMIT, err);
	if (rc == -EACCES || rc == -EPERM) { /* files belong to root, also in a private mount */
		err_release(err);
		return tracefs_refused(err);
	}
	if (rc)
		return err_wrap(err, "reading the list of tracepoints");
	struct tracefs_names n = {0};
	struct lines in = lines_from(text.p, text.n);
	struct sv line;
	while (lines_next(&in, &line)) {
		if (sv_index(line, ':') > 0)
			vec_push(&n.names,
				 sv_from(arena_strndup(&n.arena, line.p, line.n), line.n));
	}
	if (n.names.n)
		qsort(n.names.p, n.names.n, sizeof(*n.names.p), by_name);
	*ret_n = n;
	return 0;
}

/* Reads a file of the tracepoint's directory. */
static int read_of_event(struct buf *to, int fd, struct sv name, const char *file, struct err *err)
{
	struct sv event = name;
	struct sv system = sv_split(&event, ':');
	if (!system.n || !event.n || memchr(name.p, '/', name.n) || name.p[0] == '.')
		return err_set(err, -ENOENT, "'%.*s' is not a tracepoint name", SV_ARGS(name));
	CLEANUP(free_p)
	char *path = xasprintf("events/%.*s/%.*s/%s", SV_ARGS(system), SV_ARGS(event), file);
	return file_read_at(to, fd, path, FORMAT_LIMIT, err);
}

int tracefs_format(struct buf *to, int fd, struct sv name, struct err *err)
{
	return read_of_event(to, fd, name, "format", err);
}

int tracefs_id(uint32_t *ret_id, int fd, struct sv name, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	uint64_t id;
	TRY(read_of_event(&text, fd, name, "id", err));
	if (!sv_to_u64(sv_trim(buf_sv(&text)), &id) || id > UINT32_MAX)
		return err_set(err, -EINVAL, "tracepoint '%.*s' has no id", SV_ARGS(name));
	*ret_id = (uint32_t)id;
	return 0;
}
