/* session/marksocket: marks reach the captures of the process that they name, and no others. */
#include "base/base.h"
#include "tap.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "session/marksocket.h"

struct heard {
	struct marksocket *box;
	size_t nr;
	uint64_t time_ns;
	char text[MARK_TEXT_BYTES_MAX + 1];
	uint64_t start_ns;
	bool is_over;     /* the sender has its answers */
	unsigned busy_ms; /* before it looks */
};

static int on_event(void *ctx, const struct event *ev, struct err *err)
{
	struct heard *h = ctx;
	(void)err;
	if (ev->kind != EVENT_MARK)
		return 0;
	h->nr++;
	h->time_ns = ev->time_ns;
	(void)snprintf(h->text, sizeof(h->text), "%s", ev->mark.text);
	return 0;
}

/* Not a made-up number: marks of other runs of this test reach our box, too. */
static bool is_own(void *ctx, int32_t pid)
{
	(void)ctx;
	return pid == getpid();
}

static void *serve(void *arg)
{
	struct heard *h = arg;
	struct event_sink sink = {on_event, h};
	usleep(h->busy_ms * 1000);
	do {
		struct pollfd p = {.fd = marksocket_fd(h->box), .events = POLLIN};
		(void)poll(&p, 1, 20);
		(void)marksocket_drain(h->box, h->start_ns, is_own, NULL, &sink, NULL);
	} while (!__atomic_load_n(&h->is_over, __ATOMIC_ACQUIRE));
	return NULL;
}

/* Sends one mark while a box of ours is served. */
static struct mark_answer send_one(struct heard *h, const int32_t *pids, size_t nr,
				   const char *text)
{
	struct mark_answer a = {0};
	pthread_t t;
	CHECK(!marksocket_open(&h->box, NULL));
	CHECK(!pthread_create(&t, NULL, serve, h));
	CHECK(!mark_send(&a, &(struct mark_request){pids, nr, text}, NULL));
	__atomic_store_n(&h->is_over, true, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	marksocket_free(h->box);
	return a;
}

TEST(marksocket_takes_a_mark_for_its_process)
{
	struct heard h = {0};
	int32_t pids[] = {7, getpid()};
	uint64_t before = clock_mono_ns();
	struct mark_answer a = send_one(&h, pids, 2, "load starts");
	CHECK(a.nr_taken >= 1 && a.nr_captures >= 1);
	CHECK_U64(h.nr, 1);
	CHECK_STR(h.text, "load starts");
	CHECK(h.time_ns >= before && h.time_ns <= clock_mono_ns());
}

TEST(marksocket_sender_waits_a_second_and_names_a_capture_that_has_no_time)
{
	struct heard h = {.busy_ms = 1500};
	int32_t pid = getpid();
	struct mark_answer a = send_one(&h, &pid, 1, "text");
	bool is_named = a.nr_late == MARK_LATE_MAX;
	for (size_t i = 0; i < a.nr_late; i++)
		is_named |= a.late_pids[i] == pid;
	CHECK(is_named && a.nr_answers < a.nr_captures);
	CHECK_U64(h.nr, 1); /* it adds the mark when it looks */
}

TEST(marksocket_leaves_marks_of_other_processes)
{
	struct heard h = {0};
	int32_t pid = 7;
	(void)send_one(&h, &pid, 1, "text");
	CHECK_U64(h.nr, 0);
}

TEST(marksocket_mark_is_never_before_the_start)
{
	struct heard h = {.start_ns = UINT64_MAX - 1};
	int32_t pid = getpid();
	(void)send_one(&h, &pid, 1, "text");
	CHECK(h.time_ns == UINT64_MAX - 1);
}

TEST(marksocket_drops_nonsense)
{
	struct heard h = {0};
	struct event_sink sink = {on_event, &h};
	CHECK(!marksocket_open(&h.box, NULL));
	struct sockaddr_un addr;
	socklen_t n = sizeof(addr);
	CHECK(!getsockname(marksocket_fd(h.box), (struct sockaddr *)&addr, &n));
	static const char junk[2048] = "Mark";
	for (size_t bytes = 0; bytes <= sizeof(junk); bytes += 64) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		CHECK(!connect(fd, (struct sockaddr *)&addr, n));
		(void)send(fd, junk, bytes, MSG_DONTWAIT);
		close(fd);
		CHECK(!marksocket_drain(h.box, 0, is_own, NULL, &sink, NULL));
	}
	CHECK_U64(h.nr, 0);
	marksocket_free(h.box);
}

/* Runs @fn as nobody in a child and waits until it wrote a byte; the child then waits for SIGKILL. */
static pid_t run_as_nobody(bool (*fn)(void *ctx), void *ctx)
{
	int ready[2];
	char c = 0;
	CHECK(!pipe(ready));
	pid_t pid = fork();
	if (!pid) {
		c = !setgid(65534) && !setuid(65534) && fn(ctx) ? 'y' : 'n';
		(void)!write(ready[1], &c, 1);
		for (;;)
			pause();
	}
	CHECK(read(ready[0], &c, 1) == 1 && c == 'y');
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* Binds the name of a capture of root, and one of itself. */
static bool pose_as_capture(void *ctx)
{
	(void)ctx;
	for (int i = 0; i < 2; i++) {
		struct sockaddr_un addr = {.sun_family = AF_UNIX};
		int n = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1,
				 "assay-mark/%d/%d/posing", i ? 65534 : 0,
				 i ? getpid() : getppid());
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		socklen_t nr = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
		if (bind(fd, (struct sockaddr *)&addr, nr) || listen(fd, 8))
			return false;
	}
	return true;
}

TEST(marksocket_gives_no_mark_to_an_impostor)
{
	if (geteuid())
		tap_skip("needs root");
	pid_t nobody = run_as_nobody(pose_as_capture, NULL);
	struct heard h = {0};
	int32_t pid = getpid();
	struct mark_answer a = send_one(&h, &pid, 1, "secret");
	CHECK(a.nr_refused >= 2 && a.nr_taken >= 1);
	CHECK_U64(h.nr, 1);
	(void)kill(nobody, SIGKILL);
	CHECK(waitpid(nobody, NULL, 0) == nobody);
}

static bool send_marks(void *ctx)
{
	struct sockaddr_un *addr = ctx;
	struct mark_answer a;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(addr->sun_family) + 1 + (socklen_t)strlen(addr->sun_path + 1);
	/* connections that never send, and a proper mark */
	return !connect(fd, (struct sockaddr *)addr, n) &&
	       !mark_send(&a, &(struct mark_request){.text = "not wanted"}, NULL);
}

TEST(marksocket_takes_no_mark_of_another_user)
{
	if (geteuid())
		tap_skip("needs root");
	struct heard h = {0};
	struct event_sink sink = {on_event, &h};
	struct sockaddr_un addr = {0};
	socklen_t n = sizeof(addr);
	CHECK(!marksocket_open(&h.box, NULL));
	CHECK(!getsockname(marksocket_fd(h.box), (struct sockaddr *)&addr, &n));
	pid_t nobody = run_as_nobody(send_marks, &addr);
	CHECK(!marksocket_drain(h.box, 0, is_own, NULL, &sink, NULL));
	CHECK_U64(h.nr, 0);
	marksocket_free(h.box);
	(void)kill(nobody, SIGKILL);
	CHECK(waitpid(nobody, NULL, 0) == nobody);
}

TEST(marksocket_refuses_empty_and_long_texts)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct mark_answer a;
	buf_add_repeat(&text, 'x', MARK_TEXT_BYTES_MAX + 1);
	CHECK(mark_send(&a, &(struct mark_request){NULL, 0, ""}, NULL) < 0);
	CHECK(mark_send(&a, &(struct mark_request){NULL, 0, buf_str(&text)}, NULL) < 0);
}
