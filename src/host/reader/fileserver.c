/*
 * The file server and the file readers; see reader_protocol.h.
 *
 *	assay ── "a reader, please" ──► file server ── fork ──► file reader
 *	assay ◄── its socket, its memory ──┘                        │
 *	assay ◄───────── requests, answers, bytes of files ─────────┘
 *
 * A reader may wait for a file for ever, and be unkillable then: it has no terminal, none of assay's
 * descriptors and no child, so that nothing waits for it.
 */
#include "base/base.h"
#include "host/reader/reader_protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/cachefile.h"
#include "base/mem.h"
#include "base/process/descriptors.h"
#include "base/process/fdpass.h"
#include "host/limits.h"
#include "host/privileges.h"
#include "host/syscallfilter.h"

/*
 * Opening a FIFO may block and opening a device has effects (rewinds a tape, starts a watchdog). The
 * type of a file in a possibly hostile root is therefore checked first, through an O_PATH descriptor.
 */
#define STAT_FLAGS  (O_PATH | O_CLOEXEC)
#define OPEN_FLAGS  (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
#define HANDLES_MAX 65536

struct reader {
	int sock;
	struct reader_head *head;
	uint8_t *window;
	uint64_t devs[HANDLES_MAX]; /* by handle, which is the descriptor: device + 1; 0 = closed */
};

static uint64_t dev_of(const struct stat *st)
{
	return (uint64_t)major(st->st_dev) << 32 | minor(st->st_dev);
}

/* ---- opening ----------------------------------------------------------------------------- */

/* Sets the device of an O_PATH descriptor without asking its file system, if it is a regular file. */
static int check_regular(struct reader *r, const struct reader_request *q, int path_fd)
{
	struct statx st;
	if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st))
		return -errno;
	r->head->dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
	for (uint32_t i = 0; i < MIN(q->nr_silent, (uint32_t)READER_SILENT_MAX); i++)
		if (q->silent[i] == r->head->dev)
			return -ETIMEDOUT;
	return S_ISREG(st.stx_mode) ? 0 : -EINVAL;
}

/* Opens the file of an O_PATH descriptor, which is closed, if it is a regular one. */
static int open_regular(struct reader *r, const struct reader_request *q, int path_fd)
{
	CLEANUP(close_p) int fd = path_fd;
	if (fd < 0)
		return -errno;
	TRY(check_regular(r, q, fd));
	char path[40];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int opened = open(path, OPEN_FLAGS);
	return opened < 0 ? -errno : opened;
}

static int open_in_root(struct reader *r, const struct reader_request *q, int root_fd,
			const char *path)
{
	if (root_fd < 0)
		return open_regular(r, q, open(path, STAT_FLAGS));
	struct open_how how = {.flags = STAT_FLAGS,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	return open_regular(r, q, (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how)));
}

static int open_root(int32_t pid)
{
	char path[40];
	(void)snprintf(path, sizeof(path), "/proc/%d/root", pid);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_name(int handle)
{
	char path[40];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	int fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_mapped(struct reader *r, const struct reader_request *q, const char *path,
		       bool *ret_is_exact)
{
	char link[80];
	(void)snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, q->pid,
		       q->start, q->end);
	r->head->dev = q->dev;
	int fd = open_regular(r, q, open(link, STAT_FLAGS));
	*ret_is_exact = fd >= 0;
	if (fd >= 0 || fd == -ETIMEDOUT)
		return fd;
	if (path[0] != '/')
		return -ENOENT;
	CLEANUP(close_p) int root = open_root(q->pid);
	fd = open_in_root(r, q, root, path);
	if (fd < 0 && fd != -ETIMEDOUT && root >= 0)
		fd = open_in_root(r, q, -1, path);
	return fd;
}

static int open_proc(const char *path)
{
	if (strncmp(path, "/proc/", 6) != 0)
		return -EINVAL;
	int fd = open(path, OPEN_FLAGS);
	return fd < 0 ? -errno : fd;
}

/* ---- requests ---------------------------------------------------------------------------- */

static bool has_handle(const struct reader *r, int32_t handle)
{
	return handle >= 0 && handle < HANDLES_MAX && r->devs[handle];
}

static void close_handle(struct reader *r, int32_t handle)
{
	if (!has_handle(r, handle))
		return;
	r->head->dev = r->devs[handle] - 1;
	r->devs[handle] = 0;
	(void)close(handle); /* a file system may be asked, and not answer */
}

static int keep(struct reader *r, int fd, uint64_t dev)
{
	if (fd >= HANDLES_MAX) {
		(void)close(fd);
		return -EMFILE;
	}
	r->devs[fd] = dev + 1;
	return 0;
}

static int read_at(struct reader *r, int fd, uint64_t offset, uint64_t n, uint64_t *ret_n)
{
	n = MIN(n, (uint64_t)READER_WINDOW_BYTES);
	*ret_n = 0;
	while (*ret_n < n) {
		ssize_t got = pread(fd, r->window + *ret_n, n - *ret_n, (off_t)(offset + *ret_n));
		if (got < 0)
			return *ret_n ? 0 : -errno;
		if (got == 0)
			return 0;
		*ret_n += (uint64_t)got;
	}
	return 0;
}

/* Keeps a file that was opened for the client, and reads its first bytes. */
static int take_file(struct reader *r, int fd, struct reader_answer *a)
{
	if (fd < 0)
		return fd;
	if (fstat(fd, &a->st)) {
		int rc = -errno;
		(void)close(fd);
		return rc;
	}
	TRY(keep(r, fd, dev_of(&a->st)));
	a->handle = fd;
	/* A failure shows when the client reads. */
	(void)read_at(r, fd, 0, READER_FIRST_BYTES, &a->n);
	return 0;
}

/* Reads on in a file of /proc; it stays open if there may be more than fits. */
static int read_text(struct reader *r, int fd, struct reader_answer *a)
{
	int rc = 0;
	while (a->n < READER_WINDOW_BYTES) {
		ssize_t got = read(fd, r->window + a->n, READER_WINDOW_BYTES - a->n);
		if (got <= 0) {
			rc = got < 0 ? -errno : 0;
			r->devs[fd] = 0;
			(void)close(fd);
			return rc;
		}
		a->n += (uint64_t)got;
	}
	a->handle = fd;
	return 0;
}

static int open_text(struct reader *r, const char *path, struct reader_answer *a)
{
	int fd = open_proc(path);
	if (fd < 0)
		return fd;
	TRY(keep(r, fd, 0));
	return read_text(r, fd, a);
}

static int open_proc_file(struct reader *r, const char *path, struct reader_answer *a)
{
	int fd = open_proc(path);
	if (fd < 0)
		return fd;
	TRY(keep(r, fd, 0));
	a->handle = fd;
	return 0;
}

/* What is known of the file without asking its server is enough: kind, device, inode. */
static int stat_link(const char *path, struct stat *ret_st)
{
	struct statx x;
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &x))
		return -errno;
	ret_st->st_mode = x.stx_mode;
	ret_st->st_ino = x.stx_ino;
	ret_st->st_dev = makedev(x.stx_dev_major, x.stx_dev_minor);
	return 0;
}

static int read_link(const struct reader *r, const char *path, struct reader_answer *a)
{
	ssize_t n = readlink(path, (char *)r->window, PATH_MAX);
	if (n < 0 || n == PATH_MAX)
		return n < 0 ? -errno : -ENAMETOOLONG;
	a->n = (uint64_t)n;
	return stat_link(path, &a->st);
}

/* A request for an open file. */
static int perform_open(struct reader *r, const struct reader_request *q, struct reader_answer *a)
{
	r->head->dev = r->devs[q->handle] - 1;
	if (q->op == READER_MORE)
		return read_text(r, q->handle, a);
	if (q->op == READER_READ)
		return read_at(r, q->handle, q->offset, q->n, &a->n);
	struct file_identity identity;
	TRY(file_identity_read(&identity, q->handle));
	memcpy(r->window, &identity, sizeof(identity));
	a->n = sizeof(identity);
	return 0;
}

/* @root_fd: passed with the request, or -1. *ret_fd: to pass with the answer. */
static int perform(struct reader *r, const struct reader_request *q, const char *path, int root_fd,
		   struct reader_answer *a, int *ret_fd)
{
	bool is_exact = false;
	int rc;
	switch ((enum reader_op)q->op) {
	case READER_OPEN_MAPPED:
		rc = take_file(r, open_mapped(r, q, path, &is_exact), a);
		a->is_exact = is_exact ||
			      (q->inode && a->st.st_ino == q->inode && dev_of(&a->st) == q->dev);
		return rc;
	case READER_OPEN_PATH:
		return take_file(r, open_in_root(r, q, root_fd, path), a);
	case READER_OPEN_PROC:
		return open_proc_file(r, path, a);
	case READER_OPEN_ROOT:
		*ret_fd = open_root(q->pid);
		return MIN(*ret_fd, 0);
	case READER_NAME:
		*ret_fd = has_handle(r, q->handle) ? open_name(q->handle) : -EBADF;
		return MIN(*ret_fd, 0);
	case READER_TEXT:
		return open_text(r, path, a);
	case READER_LINK:
		return read_link(r, path, a);
	case READER_READ:
	case READER_MORE:
	case READER_IDENTIFY:
		return has_handle(r, q->handle) ? perform_open(r, q, a) : -EBADF;
	case READER_CLOSE:
		close_handle(r, q->handle);
		return 0;
	}
	return -EINVAL;
}

struct message {
	struct reader_request request;
	char path[READER_PATH_MAX + 1];
};

/* Returns false at the end of assay. */
static bool answer_next(struct reader *r)
{
	static struct message m;
	CLEANUP(close_p) int root_fd = -1;
	CLEANUP(close_p) int passed = -1;
	ssize_t n = fdpass_receive(r->sock, &m, sizeof(m) - 1, &root_fd, 1);
	struct reader_request *q = &m.request;
	if (n < (ssize_t)sizeof(*q) || (size_t)n != sizeof(*q) + q->nr_path)
		return false;
	m.path[q->nr_path] = 0;
	struct reader_answer a = {.seq = q->seq, .handle = -1};
	r->head->dev = 0;
	__atomic_store_n(&r->head->seq, q->seq, __ATOMIC_RELEASE);
	a.rc = perform(r, q, m.path, root_fd, &a, &passed);
	r->head->cpu_ns = clock_process_cpu_ns();
	__atomic_store_n(&r->head->seq, 0, __ATOMIC_RELEASE);
	if (q->op == READER_CLOSE)
		return true;
	struct iovec part = {&a, sizeof(a)};
	return !fdpass_send(r->sock, &part, 1, &passed, passed >= 0 ? 1 : 0);
}

static void reader_run(int sock, int memory) __attribute__((noreturn));
static void reader_run(int sock, int memory)
{
	static struct reader r;
	(void)prctl(PR_SET_NAME, "assay-reader");
	void *p = mmap(NULL, READER_HEAD_BYTES + READER_WINDOW_BYTES, PROT_READ | PROT_WRITE,
		       MAP_SHARED, memory, 0);
	if (p == MAP_FAILED)
		_exit(1);
	(void)close(memory);
	host_limit_calls(HOST_CALLS_READING);
	r.sock = sock;
	r.head = p;
	r.head->pid = getpid();
	r.window = (uint8_t *)p + READER_HEAD_BYTES;
	while (answer_next(&r))
		;
	_exit(0);
}

/* ---- the server -------------------------------------------------------------------------- */

static int make_memory(void)
{
	CLEANUP(close_p) int fd = memfd_create("assay-reader", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)(READER_HEAD_BYTES + READER_WINDOW_BYTES)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -1;
	return take_fd(&fd);
}

/* Returns false if assay cannot be answered. */
static bool start_reader(int control)
{
	int pair[2];
	char ok = 1;
	struct iovec part = {&ok, 1};
	CLEANUP(close_p) int memory = make_memory();
	if (memory < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return !fdpass_send(control, &part, 1, NULL, 0);
	CLEANUP(close_p) int theirs = pair[0];
	CLEANUP(close_p) int own = pair[1];
	pid_t pid = fork();
	if (pid == 0) {
		(void)close(control);
		(void)close(theirs);
		reader_run(own, memory);
	}
	int fds[] = {theirs, memory};
	return !fdpass_send(control, &part, 1, fds, pid > 0 ? ARRAY_LEN(fds) : 0);
}

void fileserver_run(int control)
{
	sigset_t none;
	(void)setsid(); /* signals of the terminal are for assay */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGCHLD, SIG_IGN); /* nobody waits for readers */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_DFL);
	(void)prctl(PR_SET_NAME, "assay-files");
	(void)!chdir("/");         /* a file system with assay's directory can be unmounted */
	host_raise_priority();     /* who asks runs at this priority, and waits */
	(void)host_raise_nofile(); /* a reader holds every binary of the targets open */
	descriptors_use_null();
	descriptors_keep_only((const int[]){0, 1, 2, control}, 4);
	(void)fcntl(control, F_SETFD, FD_CLOEXEC);
	(void)host_become_invoker(NULL); /* without the right to, it has few others */
	host_drop(host_caps_of_files());
	host_limit_calls(HOST_CALLS_FORK);
	char request;
	while (fdpass_receive(control, &request, 1, NULL, 0) == 1 && start_reader(control))
		;
	_exit(0);
}

/* The arguments lie one behind the other. */
static void hide_arguments(int argc, char **argv)
{
	if (argc > 0)
		memset(argv[0], 0, (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]));
}

int fileserver_start(int argc, char **argv)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		/* Not a child of assay, which waits for its children. */
		if (fork())
			_exit(0);
		hide_arguments(argc, argv);
		fileserver_run(pair[1]);
	}
	(void)close(pair[1]);
	if (pid < 0) {
		(void)close(pair[0]);
		return -1;
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pair[0];
}
