/* Stop requests; see stop.h. */
#include "base/base.h"
#include "base/process/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE};

/* eventfd rather than signalfd: blocked signals would be inherited by every launched command. */
static struct {
	atomic_uint nr_stops;
	_Atomic int64_t last_stop_ns; /* 0 = none yet */
	atomic_int first_signal;
	atomic_int fd;
	struct sigaction old[ARRAY_LEN(signals)];
	bool is_installed;
} state = {.fd = -1};

static void wake(void)
{
	uint64_t one = 1;
	ssize_t put = write(state.fd, &one, sizeof(one));
	(void)put; /* on failure the counter is full and thus readable */
}

/*
 * timeout(1) signals its child and then the child's process group; on Ctrl-C the parent may send a
 * signal as well. Signals within this time are therefore one request.
 */
#define SAME_REQUEST_NS 250000000

static void note_request(int sig)
{
	int none = 0;
	atomic_compare_exchange_strong(&state.first_signal, &none, sig);
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail; safe in a handler */
	int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	int64_t last_ns = atomic_exchange(&state.last_stop_ns, now_ns);
	if (!last_ns || now_ns - last_ns >= SAME_REQUEST_NS)
		atomic_fetch_add(&state.nr_stops, 1);
}

static void on_signal(int sig)
{
	int saved = errno;
	if (sig != SIGCHLD)
		note_request(sig);
	wake();
	errno = saved;
}

int stop_install(struct err *err)
{
	if (state.is_installed)
		return 0;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return err_sys(err, "cannot create an eventfd");
	state.fd = fd;
	state.nr_stops = 0;
	state.last_stop_ns = 0;
	state.first_signal = 0;
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		struct sigaction sa = {.sa_flags = SA_RESTART};
		sigemptyset(&sa.sa_mask);
		sa.sa_handler = signals[i] == SIGPIPE ? SIG_IGN : on_signal;
		sigaction(signals[i], NULL, &state.old[i]);
		if (signals[i] == SIGHUP && state.old[i].sa_handler == SIG_IGN)
			continue;
		sigaction(signals[i], &sa, NULL);
	}
	state.is_installed = true;
	return 0;
}

void stop_uninstall(void)
{
	if (!state.is_installed)
		return;
	stop_reset_in_child();
	close(state.fd);
	state.fd = -1;
	state.nr_stops = 0;
	state.last_stop_ns = 0;
	state.first_signal = 0;
	state.is_installed = false;
}

int stop_fd(void)
{
	return state.fd;
}

void stop_drain(void)
{
	uint64_t v;
	while (state.fd >= 0 && read(state.fd, &v, sizeof(v)) > 0)
		;
}

unsigned stop_count(void)
{
	return state.nr_stops;
}

int stop_signal(void)
{
	return state.first_signal;
}

void stop_request(void)
{
	atomic_fetch_add(&state.nr_stops, 1);
	if (state.fd >= 0)
		wake();
}

void stop_reset_in_child(void)
{
	for (size_t i = 0; state.is_installed && i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &state.old[i], NULL);
}
