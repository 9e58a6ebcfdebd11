/* HotSpot's attach protocol; see jvmattach.h. */
#include "base/base.h"
#include "remote/jvmattach.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/sv.h"
#include "host/privileges.h"
#include "host/proc.h"

#define RETRY_MS   20
#define ANSWER_MAX ((size_t)4096)

static const char request[] = "1\0jcmd\0Compiler.perfmap\0\0"; /* and the NUL of the literal */

static int is_jvm(void *ctx UNUSED, const struct proc_map *m, struct err *err UNUSED)
{
	return sv_has_suffix(sv_from_str(m->path), SV("/libjvm.so"));
}

bool jvm_find(struct jvm *ret_vm, int32_t pid)
{
	bool is_it;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return false;
	is_it = proc_maps(pid, is_jvm, NULL, NULL) > 0;
	if (!is_it)
		close(fd);
	else
		*ret_vm = (struct jvm){pid, fd};
	return is_it;
}

static bool has_ended(const struct jvm *vm)
{
	struct pollfd fd = {.fd = vm->pid_fd, .events = POLLIN};
	return poll(&fd, 1, 0) != 0;
}

/* What the target is, in its own namespaces, and the folder of its files. */
struct peer {
	int32_t nspid;
	uid_t uid;
	gid_t gid;
	bool catches_quit;
	int tmp_fd;
};

/* Returns the effective id of a line "Uid:" or "Gid:" of status: the second number. */
static bool effective_id(const struct buf *status, const char *key, uint32_t *ret_id)
{
	struct sv ids = proc_status_field(status, key);
	uint64_t id;
	(void)sv_split(&ids, '\t');
	if (!sv_to_u64(sv_split(&ids, '\t'), &id) || id >= UINT32_MAX)
		return false;
	*ret_id = (uint32_t)id;
	return true;
}

/* Whether the process handles a signal itself (SigCgt: bit n - 1, hexadecimal). */
static bool is_caught(const struct buf *status, int signal)
{
	char text[32] = "";
	struct sv mask = proc_status_field(status, "SigCgt");
	if (!mask.n || mask.n >= sizeof(text))
		return false;
	memcpy(text, mask.p, mask.n);
	return strtoull(text, NULL, 16) >> (signal - 1) & 1;
}

/* Reads it as root; the process must be the same one afterwards. */
static int peer_open(struct peer *ret_p, const struct jvm *vm, struct err *err)
{
	static const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
					    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	CLEANUP(buf_release) struct buf status = {0};
	char path[64];
	struct peer p = {.tmp_fd = -1};
	(void)snprintf(path, sizeof(path), "/proc/%d/status", vm->pid);
	TRY(file_read(&status, path, (size_t)1 << 20, err));
	TRY(proc_nspid(vm->pid, &p.nspid, err));
	if (!effective_id(&status, "Uid", &p.uid) || !effective_id(&status, "Gid", &p.gid))
		return err_set(err, -EINVAL, "'%s' has no user", path);
	p.catches_quit = is_caught(&status, SIGQUIT);
	(void)snprintf(path, sizeof(path), "/proc/%d/root", vm->pid);
	CLEANUP(close_p) int root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	p.tmp_fd = (int)syscall(SYS_openat2, root_fd, "tmp", &how, sizeof(how));
	if (p.tmp_fd < 0)
		return err_sys(err, "cannot open /tmp of process %d", vm->pid);
	if (has_ended(vm)) {
		close(p.tmp_fd);
		return err_set(err, -ESRCH, "process %d has ended", vm->pid);
	}
	*ret_p = p;
	return 0;
}

static int become(const struct peer *p, struct err *err)
{
	bool is_other = geteuid() != p->uid || getegid() != p->gid;
	if (is_other && (setgroups(0, NULL) || setresgid(p->gid, p->gid, p->gid) ||
			 setresuid(p->uid, p->uid, p->uid)))
		return err_sys(err, "cannot become the user of the target");
	host_drop(0);
	return 0;
}

/* Returns whether the machine's socket is there, and belongs to its user. */
static bool is_listening(const struct peer *p, const char *name)
{
	struct stat st;
	return !fstatat(p->tmp_fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(st.st_mode) &&
	       st.st_uid == p->uid;
}

static bool wait_ms(unsigned ms, uint64_t deadline_ns)
{
	struct timespec ts = {.tv_nsec = (long)ms * 1000000};
	(void)nanosleep(&ts, NULL);
	return clock_mono_ns() < deadline_ns;
}

/* Makes the machine listen, if it does not. */
static int wake(const struct jvm *vm, const struct peer *p, const char *socket_name,
		uint64_t deadline_ns, struct err *err)
{
	char name[64];
	if (is_listening(p, socket_name))
		return 0;
	if (!p->catches_quit)
		return err_set(err, -ENOTSUP,
			       "process %d does not catch SIGQUIT (java -Xrs): it would end",
			       vm->pid);
	(void)snprintf(name, sizeof(name), ".attach_pid%d", p->nspid);
	int fd =
		openat(p->tmp_fd, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 && errno != EEXIST)
		return err_sys(err, "cannot make /tmp/%s", name);
	bool is_own = fd >= 0;
	if (is_own)
		close(fd);
	int rc = 0;
	if (syscall(SYS_pidfd_send_signal, vm->pid_fd, SIGQUIT, NULL, 0))
		rc = err_sys(err, "cannot signal process %d", vm->pid);
	while (!rc && !is_listening(p, socket_name))
		if (has_ended(vm) || !wait_ms(RETRY_MS, deadline_ns))
			rc = err_set(err, -ETIMEDOUT, "process %d does not listen", vm->pid);
	if (is_own)
		(void)unlinkat(p->tmp_fd, name, 0);
	return rc;
}

static int connect_to(int *ret_fd, const struct peer *p, const char *name, struct err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%s", p->tmp_fd,
		       name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err_sys(err, "cannot connect to /tmp/%s of the target", name);
		if (fd >= 0)
			close(fd);
		return -EIO;
	}
	*ret_fd = fd;
	return 0;
}

/* Reads until the end, at most ANSWER_MAX bytes. */
static int read_answer(struct buf *to, int fd, uint64_t deadline_ns, struct err *err)
{
	for (;;) {
		char part[512];
		uint64_t now = clock_mono_ns();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (now >= deadline_ns)
			return err_set(err, -ETIMEDOUT, "no answer in time");
		if (poll(&p, 1, (int)((deadline_ns - now) / 1000000 + 1)) <= 0)
			continue;
		ssize_t n = read(fd, part, sizeof(part));
		if (n < 0)
			return err_sys(err, "reading the answer");
		if (!n || to->n > ANSWER_MAX)
			return 0;
		buf_add(to, part, (size_t)n);
	}
}

static int ask(int fd, uint64_t deadline_ns, struct err *err)
{
	CLEANUP(buf_release) struct buf answer = {0};
	if (send(fd, request, sizeof(request), MSG_NOSIGNAL) != (ssize_t)sizeof(request))
		return err_sys(err, "cannot ask the target");
	TRY(read_answer(&answer, fd, deadline_ns, err));
	struct sv rest = buf_sv(&answer);
	struct sv code = sv_trim(sv_split(&rest, '\n'));
	struct sv text = sv_trim(rest);
	const char *text_start = text.p;
	/* An unknown command, before JDK 17, has the code 0 or 1, and a text. */
	if (!sv_eq_str(code, "0") || memmem(answer.p, answer.n, "Exception", 9))
		return err_set(err, -ENOTSUP, "it answered '%.*s'", (int)sv_split(&text, '\n').n,
			       text_start);
	return 0;
}

int jvm_write_perfmap(const struct jvm *vm, uint64_t deadline_ns, struct err *err)
{
	struct peer p = {.tmp_fd = -1};
	char name[64];
	CLEANUP(close_p) int fd = -1;
	TRY(peer_open(&p, vm, err));
	CLEANUP(close_p) int tmp_fd = p.tmp_fd;
	(void)snprintf(name, sizeof(name), ".java_pid%d", p.nspid);
	TRY(become(&p, err));
	TRY(wake(vm, &p, name, deadline_ns, err));
	TRY(connect_to(&fd, &p, name, err));
	(void)tmp_fd;
	return ask(fd, deadline_ns, err);
}
