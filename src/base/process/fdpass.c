/* Messages with descriptors; see fdpass.h. */
#include "base/base.h"
#include "base/process/fdpass.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

union control { /* aligned for struct cmsghdr */
	struct cmsghdr align;
	char bytes[CMSG_SPACE(FDPASS_MAX * sizeof(int))];
};

int fdpass_send(int sock, const struct iovec *parts, size_t nr_parts, const int *fds, size_t nr)
{
	ASSERT(nr <= FDPASS_MAX);
	union control control = {0};
	struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = nr_parts};
	if (nr) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(nr * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nr * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nr * sizeof(int));
	}
	ssize_t n;
	do
		n = sendmsg(sock, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static void take_fds(struct msghdr *m, int *fds, size_t nr)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return;
	size_t nr_got = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int got[FDPASS_MAX];
	memcpy(got, CMSG_DATA(c), MIN(nr_got, (size_t)FDPASS_MAX) * sizeof(int));
	for (size_t i = 0; i < MIN(nr_got, (size_t)FDPASS_MAX); i++) {
		if (i < nr)
			fds[i] = got[i];
		else
			(void)close(got[i]);
	}
}

ssize_t fdpass_receive(int sock, void *to, size_t n, int *fds, size_t nr)
{
	union control control = {0};
	struct iovec part = {to, n};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	for (size_t i = 0; i < nr; i++)
		fds[i] = -1;
	ssize_t got;
	do
		got = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	take_fds(&m, fds, nr);
	return m.msg_flags & MSG_TRUNC ? -EMSGSIZE : got;
}
