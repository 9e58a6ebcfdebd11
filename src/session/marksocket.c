/* Marks over Unix sockets; see marksocket.h. */
#include "base/base.h"
#include "session/marksocket.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/sv.h"
#include "host/proc.h"

#define NAME_PREFIX "assay-mark/"
/*
 * Time to wait for all replies once one capture has added the mark, and for the first capture to add
 * it: a capture that gets no CPU replies late, but stores the time at which the mark was sent.
 */
#define ANSWER_WAIT_NS     (2 * NS_PER_SEC)
#define TAKER_WAIT_NS      (10 * NS_PER_SEC)
#define UNIX_LIST_MAX      ((size_t)16 << 20) /* /proc/net/unix */
#define CAPTURES_MAX       1024
#define MESSAGES_PER_DRAIN 64 /* so that a flood of messages does not delay ring draining */

enum { MARK_MAGIC = 0x6b72614d, ANSWER_MAGIC = 0x6b6f614d, MARK_VERSION = 1 };

struct mark_message {
	uint32_t magic;
	uint16_t version;
	uint16_t nr_text_bytes;
	uint64_t time_ns; /* CLOCK_MONOTONIC at the sender */
	uint32_t nr_pids; /* 0 = for every capture */
	int32_t pids[MARK_PIDS_MAX];
	char text[MARK_TEXT_BYTES_MAX];
	uint32_t pad;
};
_Static_assert(sizeof(struct mark_message) == 24 + 4 * MARK_PIDS_MAX + MARK_TEXT_BYTES_MAX,
	       "no padding");

struct mark_reply {
	uint32_t magic;
	uint32_t is_taken;
};

/* ---- sockets ------------------------------------------------------------------------------- */

/* @name without the leading NUL; empty: the kernel chooses one. */
static socklen_t abstract_name(struct sockaddr_un *ret, struct sv name)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!name.n)
		return sizeof(sa_family_t);
	size_t n = MIN(name.n, sizeof(ret->sun_path) - 1);
	memcpy(ret->sun_path + 1, name.p, n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

/* Opens a bound, non-blocking socket that receives the sender's credentials. */
static int open_socket(int *ret_fd, struct sv name, struct err *err)
{
	CLEANUP(close_p) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;
	struct sockaddr_un addr;
	socklen_t n = abstract_name(&addr, name);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) ||
	    bind(fd, (const struct sockaddr *)&addr, n))
		return err_sys(err, "cannot open a socket for marks");
	*ret_fd = take_fd(&fd);
	return 0;
}

struct datagram {
	ssize_t n; /* bytes, as sent */
	uint32_t uid;
	bool has_uid;
	struct sockaddr_un from;
	socklen_t nr_from;
};

/* Receives a datagram; false: none is pending. */
static bool receive(int fd, void *to, size_t size, struct datagram *ret_d)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {to, size};
	struct datagram d = {0};
	struct msghdr msg = {.msg_name = &d.from,
			     .msg_namelen = sizeof(d.from),
			     .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	do
		d.n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	while (d.n < 0 && errno == EINTR);
	if (d.n < 0)
		return false;
	d.nr_from = msg.msg_namelen;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
			continue;
		struct ucred who;
		memcpy(&who, CMSG_DATA(c), sizeof(who));
		d.uid = who.uid;
		d.has_uid = true;
	}
	*ret_d = d;
	return true;
}

/* ---- the capture --------------------------------------------------------------------------- */

struct marksocket {
	int fd;
	uint32_t uid;
	uint32_t sudo_uid; /* the user who ran sudo, else uid */
};

static uint32_t invoking_uid(uint32_t uid)
{
	const char *text = uid ? NULL : getenv("SUDO_UID");
	uint64_t v;
	return text && sv_to_u64(sv_from_str(text), &v) && v < UINT32_MAX ? (uint32_t)v : uid;
}

int marksocket_open(struct marksocket **ret_m, struct err *err)
{
	CLEANUP(buf_release) struct buf name = {0};
	uint32_t uid = geteuid();
	int fd;
	buf_addf(&name, NAME_PREFIX "%u/%d", uid, getpid());
	TRY(open_socket(&fd, buf_sv(&name), err));
	struct marksocket *m = xcalloc(1, sizeof(*m));
	*m = (struct marksocket){fd, uid, invoking_uid(uid)};
	*ret_m = m;
	return 0;
}

int marksocket_fd(const struct marksocket *m)
{
	return m->fd;
}

void marksocket_free(struct marksocket *m)
{
	if (!m)
		return;
	close(m->fd);
	free(m);
}

static bool is_allowed(const struct marksocket *m, const struct datagram *d)
{
	return d->has_uid && (!d->uid || d->uid == m->uid || d->uid == m->sudo_uid);
}

static bool is_valid(const struct mark_message *msg, const struct datagram *d)
{
	return d->n == sizeof(*msg) && msg->magic == MARK_MAGIC && msg->version == MARK_VERSION &&
	       msg->nr_pids <= MARK_PIDS_MAX && msg->nr_text_bytes &&
	       msg->nr_text_bytes <= MARK_TEXT_BYTES_MAX;
}

static int deliver_mark(const struct mark_message *msg, uint64_t start_ns,
			const struct event_sink *sink, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	buf_add(&text, msg->text, strnlen(msg->text, msg->nr_text_bytes));
	struct event ev = {.kind = EVENT_MARK,
			   .time_ns = MAX(MIN(msg->time_ns, clock_mono_ns()), start_ns),
			   .cpu = -1,
			   .mark = {.text = buf_str(&text)}};
	return sink->event(sink->ctx, &ev, err);
}

int marksocket_drain(struct marksocket *m, uint64_t start_ns, marksocket_has_pid_fn has_pid,
		     void *ctx, const struct event_sink *sink, struct err *err)
{
	struct mark_message msg;
	struct datagram d;
	for (int i = 0; i < MESSAGES_PER_DRAIN && receive(m->fd, &msg, sizeof(msg), &d); i++) {
		if (!is_allowed(m, &d) || !is_valid(&msg, &d))
			continue;
		bool is_ours = !msg.nr_pids;
		for (uint32_t k = 0; !is_ours && k < msg.nr_pids; k++)
			is_ours = has_pid(ctx, msg.pids[k]);
		TRY(is_ours ? deliver_mark(&msg, start_ns, sink, err) : 0);
		struct mark_reply reply = {ANSWER_MAGIC, is_ours};
		(void)sendto(m->fd, &reply, sizeof(reply), MSG_DONTWAIT | MSG_NOSIGNAL,
			     (const struct sockaddr *)&d.from,
			     d.nr_from); /* the sender may have exited */
	}
	return 0;
}

/* ---- the sender ---------------------------------------------------------------------------- */

/* Returns whether the name is "assay-mark/UID/PID" and process PID belongs to that user. */
static bool is_capture(struct sv name)
{
	struct sv rest = sv_from_idx(name, strlen(NAME_PREFIX));
	uint64_t uid;
	uint64_t pid;
	uint32_t owner;
	return sv_to_u64(sv_split(&rest, '/'), &uid) && sv_to_u64(rest, &pid) && pid &&
	       pid <= INT32_MAX && !proc_uid((int32_t)pid, &owner, NULL) &&
	       (owner == uid || owner == geteuid());
}

static bool send_to(int fd, struct sv name, const struct mark_message *msg)
{
	struct sockaddr_un addr;
	socklen_t n = abstract_name(&addr, name);
	return sendto(fd, msg, sizeof(*msg), MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&addr, n) == sizeof(*msg);
}

/* Sends the mark to every capture in the kernel's list of sockets; lines end with "@NAME". */
static int send_to_all(int fd, const struct mark_message *msg, size_t *ret_nr, struct err *err)
{
	CLEANUP(buf_release) struct buf list = {0};
	int rc = file_read(&list, "/proc/net/unix", UNIX_LIST_MAX, err);
	size_t nr = 0;
	struct sv rest = buf_sv(&list);
	while (!rc && rest.n && nr < CAPTURES_MAX) {
		struct sv line = sv_split(&rest, '\n');
		ssize_t at = sv_rindex(line, ' ');
		struct sv name = sv_from_idx(line, (size_t)(at + 1));
		if (!sv_has_prefix(name, SV("@" NAME_PREFIX)))
			continue;
		name = sv_from_idx(name, 1);
		nr += is_capture(name) && send_to(fd, name, msg);
	}
	*ret_nr = nr;
	return rc;
}

static void count_answers(struct mark_answer *a, int fd)
{
	uint64_t start = clock_mono_ns();
	while (a->nr_answers < a->nr_captures) {
		uint64_t until = start + (a->nr_taken ? ANSWER_WAIT_NS : TAKER_WAIT_NS);
		uint64_t now = clock_mono_ns();
		struct mark_reply reply;
		struct datagram d;
		if (receive(fd, &reply, sizeof(reply), &d)) {
			if (d.n != sizeof(reply) || reply.magic != ANSWER_MAGIC || !d.has_uid ||
			    (d.uid && d.uid != geteuid() && geteuid()))
				continue;
			a->nr_answers++;
			a->nr_taken += reply.is_taken == 1;
			continue;
		}
		if (now >= until)
			return;
		struct pollfd p = {.fd = fd, .events = POLLIN};
		(void)poll(&p, 1, (int)((until - now) / NS_PER_MS + 1));
	}
}

int mark_send(struct mark_answer *ret_a, const struct mark_request *request, struct err *err)
{
	struct mark_message msg = {
		.magic = MARK_MAGIC, .version = MARK_VERSION, .time_ns = clock_mono_ns()};
	size_t n = strlen(request->text);
	if (!n || n > MARK_TEXT_BYTES_MAX)
		return err_set(err, -EINVAL, "a mark's text has 1 to %d bytes",
			       MARK_TEXT_BYTES_MAX);
	if (request->nr_pids > MARK_PIDS_MAX)
		return err_set(err, -EINVAL, "%zu processes, more than %d", request->nr_pids,
			       MARK_PIDS_MAX);
	memcpy(msg.text, request->text, n);
	msg.nr_text_bytes = (uint16_t)n;
	if (request->nr_pids)
		memcpy(msg.pids, request->pids, request->nr_pids * sizeof(*msg.pids));
	msg.nr_pids = (uint32_t)request->nr_pids;
	CLEANUP(close_p) int fd = -1;
	int rc = open_socket(&fd, (struct sv){0}, err);
	struct mark_answer a = {0};
	if (!rc)
		rc = send_to_all(fd, &msg, &a.nr_captures, err);
	if (rc)
		return rc;
	count_answers(&a, fd);
	*ret_a = a;
	return 0;
}
