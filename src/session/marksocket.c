/* Marks over Unix sockets; see marksocket.h. */
#include "base/base.h"
#include "session/marksocket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
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
 * Time to wait for replies: a capture that gets no CPU replies late, but stores the time at which the
 * mark was sent.
 */
#define ANSWER_WAIT_NS    (1 * NS_PER_SEC)
#define UNIX_LIST_MAX     ((size_t)16 << 20) /* /proc/net/unix */
#define CAPTURES_MAX      256
#define BACKLOG           64
#define ACCEPTS_PER_DRAIN 64 /* so that a flood of connections does not delay ring draining */
#define SENDERS_MAX       16 /* connected, message not arrived yet */
#define SENDER_TIMEOUT_NS (2 * NS_PER_SEC)

enum { MARK_MAGIC = 0x6b72614d, ANSWER_MAGIC = 0x6b6f614d, MARK_VERSION = 2 };

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

/* @name without the leading NUL. */
static socklen_t abstract_name(struct sockaddr_un *ret, struct sv name)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	size_t n = MIN(name.n, sizeof(ret->sun_path) - 1);
	memcpy(ret->sun_path + 1, name.p, n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

/*
 * A socket of connections: the kernel then says who listens and who connected (SO_PEERCRED), and
 * what a busy capture has not read yet is kept.
 */
static int open_socket(struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd < 0 ? err_sys(err, "cannot open a socket for marks") : fd;
}

static bool get_peer(int fd, struct ucred *ret_c)
{
	socklen_t n = sizeof(*ret_c);
	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret_c, &n) && n == sizeof(*ret_c);
}

/* The user who ran sudo; @uid if that was not root. */
static uint32_t invoking_uid(uint32_t uid)
{
	const char *text = uid ? NULL : getenv("SUDO_UID");
	uint64_t v;
	return text && sv_to_u64(sv_from_str(text), &v) && v < UINT32_MAX ? (uint32_t)v : uid;
}

/* Returns whether messages of this user may be believed, and given marks. */
static bool is_trusted(uint32_t uid)
{
	return !uid || uid == geteuid() || uid == invoking_uid(geteuid());
}

/* ---- the capture --------------------------------------------------------------------------- */

struct sender {
	int fd;
	uint64_t since_ns;
};

struct marksocket {
	int fd;
	struct sender senders[SENDERS_MAX];
	size_t nr_senders;
};

int marksocket_open(struct marksocket **ret_m, struct err *err)
{
	CLEANUP(buf_release) struct buf name = {0};
	struct sockaddr_un addr;
	uint64_t nonce;
	CLEANUP(close_p) int fd = open_socket(err);
	if (fd < 0)
		return fd;
	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return err_sys(err, "cannot get a random number");
	buf_addf(&name, NAME_PREFIX "%u/%d/%016" PRIx64, geteuid(), getpid(), nonce);
	socklen_t n = abstract_name(&addr, buf_sv(&name));
	if (bind(fd, (const struct sockaddr *)&addr, n) || listen(fd, BACKLOG))
		return err_sys(err, "cannot bind the socket for marks");
	struct marksocket *m = xcalloc(1, sizeof(*m));
	m->fd = take_fd(&fd);
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
	for (size_t i = 0; i < m->nr_senders; i++)
		close(m->senders[i].fd);
	close(m->fd);
	free(m);
}

bool marksocket_has_senders(const struct marksocket *m)
{
	return m->nr_senders;
}

static void accept_senders(struct marksocket *m)
{
	for (int i = 0; i < ACCEPTS_PER_DRAIN && m->nr_senders < SENDERS_MAX; i++) {
		CLEANUP(close_p) int fd = accept4(m->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct ucred who;
		if (fd < 0)
			return;
		if (get_peer(fd, &who) && is_trusted(who.uid))
			m->senders[m->nr_senders++] =
				(struct sender){take_fd(&fd), clock_mono_ns()};
	}
}

static bool is_valid(const struct mark_message *msg, ssize_t n)
{
	return n == sizeof(*msg) && msg->magic == MARK_MAGIC && msg->version == MARK_VERSION &&
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

/* Receives a message, as long as it was sent; negative: none is pending. */
static ssize_t receive(int fd, void *to, size_t size)
{
	ssize_t n;
	do
		n = recv(fd, to, size, MSG_DONTWAIT | MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	return n;
}

int marksocket_drain(struct marksocket *m, uint64_t start_ns, marksocket_has_pid_fn has_pid,
		     void *ctx, const struct event_sink *sink, struct err *err)
{
	int rc = 0;
	accept_senders(m);
	size_t nr_left = 0;
	for (size_t i = 0; i < m->nr_senders; i++) {
		struct sender s = m->senders[i];
		struct mark_message msg;
		ssize_t n = rc ? -1 : receive(s.fd, &msg, sizeof(msg));
		bool is_late = clock_mono_ns() - s.since_ns > SENDER_TIMEOUT_NS;
		if (n < 0 && !is_late) {
			m->senders[nr_left++] = s;
			continue;
		}
		if (is_valid(&msg, n)) {
			bool is_ours = !msg.nr_pids;
			for (uint32_t k = 0; !is_ours && k < msg.nr_pids; k++)
				is_ours = has_pid(ctx, msg.pids[k]);
			rc = is_ours ? deliver_mark(&msg, start_ns, sink, err) : 0;
			struct mark_reply reply = {ANSWER_MAGIC, is_ours};
			/* the sender may have exited */
			(void)send(s.fd, &reply, sizeof(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
		}
		close(s.fd);
	}
	m->nr_senders = nr_left;
	return rc;
}

/* ---- the sender ---------------------------------------------------------------------------- */

struct receivers {
	struct pollfd p[CAPTURES_MAX];
	struct ucred of[CAPTURES_MAX];
	size_t nr;
};

static void receivers_release(struct receivers *r)
{
	for (size_t i = 0; i < r->nr; i++)
		close_p(&r->p[i].fd);
}

/* Parses "assay-mark/UID/PID/NONCE". */
static bool parse_name(struct sv name, uint64_t *ret_uid, uint64_t *ret_pid)
{
	struct sv rest = sv_from_idx(name, strlen(NAME_PREFIX));
	return sv_to_u64(sv_split(&rest, '/'), ret_uid) && sv_to_u64(sv_split(&rest, '/'), ret_pid);
}

/* Returns whether all processes of the request belong to a user, whose capture may know the mark. */
static bool owns_all(uint32_t uid, const struct mark_message *msg)
{
	uint32_t owner;
	for (uint32_t i = 0; i < msg->nr_pids; i++)
		if (proc_uid(msg->pids[i], &owner, NULL) || owner != uid)
			return false;
	return msg->nr_pids > 0;
}

/* Sends the mark to the capture of that name if it is who it says. */
static void send_to(struct receivers *r, struct sv name, const struct mark_message *msg,
		    struct mark_answer *a)
{
	struct sockaddr_un addr;
	struct ucred who;
	uint64_t uid;
	uint64_t pid;
	socklen_t n = abstract_name(&addr, name);
	CLEANUP(close_p) int fd = open_socket(NULL);
	if (fd < 0 || !parse_name(name, &uid, &pid) ||
	    connect(fd, (const struct sockaddr *)&addr, n) || !get_peer(fd, &who))
		return;
	bool is_genuine = who.uid == uid && (uint64_t)who.pid == pid;
	if (!is_genuine || (!is_trusted(who.uid) && (geteuid() || !owns_all(who.uid, msg)))) {
		a->nr_refused++;
		return;
	}
	if (send(fd, msg, sizeof(*msg), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(*msg))
		return;
	r->of[r->nr] = who;
	r->p[r->nr++] = (struct pollfd){.fd = take_fd(&fd), .events = POLLIN};
}

/* Sends the mark to every capture in the kernel's list of sockets. */
static int send_to_all(struct receivers *r, const struct mark_message *msg, struct mark_answer *a,
		       struct err *err)
{
	CLEANUP(buf_release) struct buf list = {0};
	TRY(file_read(&list, "/proc/net/unix", UNIX_LIST_MAX, err));
	struct sv rest = buf_sv(&list);
	while (rest.n && r->nr < CAPTURES_MAX) {
		struct sv line = sv_split(&rest, '\n');
		ssize_t at = sv_rindex(line, ' ');
		struct sv name = sv_from_idx(line, (size_t)(at + 1));
		/* "Num: RefCount Protocol Flags ... @NAME"; accepted sockets have the name as well */
		bool is_listening = memmem(line.p, line.n, " 00010000 ", 10) != NULL;
		if (is_listening && sv_has_prefix(name, SV("@" NAME_PREFIX)))
			send_to(r, sv_from_idx(name, 1), msg, a);
	}
	a->nr_captures = r->nr;
	return 0;
}

/* Reads the reply of a capture; a closed connection is a refusal. */
static void take_reply(struct mark_answer *a, struct pollfd *p)
{
	struct mark_reply reply = {0};
	ssize_t n = receive(p->fd, &reply, sizeof(reply));
	if (n < 0)
		return;
	a->nr_answers++;
	a->nr_taken += n == sizeof(reply) && reply.magic == ANSWER_MAGIC && reply.is_taken == 1;
	close_p(&p->fd); /* poll skips negative descriptors */
}

/* Whether a capture has not answered whose answer matters: of this user, or if none added the mark. */
static bool is_waiting(const struct mark_answer *a, const struct receivers *r)
{
	for (size_t i = 0; i < r->nr; i++) {
		uint32_t uid = r->of[i].uid;
		bool is_own = uid == geteuid() || uid == invoking_uid(geteuid());
		if (r->p[i].fd >= 0 && (is_own || !a->nr_taken))
			return true;
	}
	return false;
}

static void count_answers(struct mark_answer *a, struct receivers *r)
{
	uint64_t until = clock_mono_ns() + ANSWER_WAIT_NS;
	for (uint64_t now; is_waiting(a, r) && (now = clock_mono_ns()) < until;) {
		if (poll(r->p, r->nr, (int)((until - now) / NS_PER_MS + 1)) <= 0)
			continue;
		for (size_t i = 0; i < r->nr; i++)
			if (r->p[i].fd >= 0 && r->p[i].revents)
				take_reply(a, &r->p[i]);
	}
	for (size_t i = 0; i < r->nr && a->nr_late < MARK_LATE_MAX; i++)
		if (r->p[i].fd >= 0)
			a->late_pids[a->nr_late++] = r->of[i].pid;
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
	CLEANUP(receivers_release) struct receivers r = {0};
	struct mark_answer a = {0};
	TRY(send_to_all(&r, &msg, &a, err));
	count_answers(&a, &r);
	*ret_a = a;
	return 0;
}
