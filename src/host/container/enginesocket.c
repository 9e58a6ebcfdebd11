/* Asks container engines by their sockets; see enginesocket.h. */
#include "base/base.h"
#include "host/container/enginesocket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/container/containerstate.h"

#define DEADLINE_NS     NS_PER_SEC
#define REPLY_BYTES_MAX ((size_t)8 << 20)
#define VERSION_MAX     16u

/* ---- HTTP --------------------------------------------------------------------------------- */

static struct sv take_line(struct sv *left)
{
	struct sv line = sv_split(left, '\n');
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	return line;
}

static int malformed(struct err *err, const char *what)
{
	return err_set(err, -EPROTO, "the reply is not HTTP/1.1: %s", what);
}

/* The sizes are hexadecimal, before each chunk; the last one has size 0. */
static int add_chunks(struct buf *to, struct sv left, struct err *err)
{
	for (;;) {
		uint64_t n;
		struct sv line = take_line(&left);
		struct sv digits = sv_trim(sv_split(&line, ';'));
		if (!digits.n || !sv_to_hex(digits, &n))
			return malformed(err, "a chunk without a size");
		if (!n)
			return 0;
		if (n > left.n)
			return malformed(err, "a chunk is incomplete");
		buf_add(to, left.p, (size_t)n);
		left = sv_from_idx(left, (size_t)n);
		if (take_line(&left).n)
			return malformed(err, "a chunk is longer than its size");
	}
}

static bool is_header(struct sv name, const char *want)
{
	return name.n == strlen(want) && !strncasecmp(name.p, want, name.n);
}

int http_parse(struct http_reply *ret_r, struct sv text, struct err *err)
{
	struct http_reply r = {0};
	uint64_t status;
	uint64_t length = UINT64_MAX;
	bool is_chunked = false;
	struct sv line = take_line(&text);
	if (!sv_has_prefix(sv_split(&line, ' '), SV("HTTP/1.")) ||
	    !sv_to_u64(sv_split(&line, ' '), &status) || status > 999)
		return malformed(err, "no status line");
	r.status = (unsigned)status;
	while ((line = take_line(&text)).n) {
		struct sv name = sv_split(&line, ':');
		struct sv value = sv_trim(line);
		if (is_header(name, "Api-Version"))
			r.api_version = value;
		else if (is_header(name, "Transfer-Encoding"))
			is_chunked = is_header(value, "chunked");
		else if (is_header(name, "Content-Length") && !sv_to_u64(value, &length))
			return malformed(err, "Content-Length");
	}
	int rc = 0;
	if (is_chunked)
		rc = add_chunks(&r.body, text, err);
	else if (length != UINT64_MAX && length > text.n)
		rc = malformed(err, "the body is incomplete");
	else
		buf_add_sv(&r.body, sv_from(text.p, (size_t)MIN(length, (uint64_t)text.n)));
	if (rc)
		buf_release(&r.body);
	else
		*ret_r = r;
	return rc;
}

/* ---- the socket --------------------------------------------------------------------------- */

static int wait_for(int fd, short events, uint64_t until_ns, struct err *err)
{
	uint64_t now = clock_mono_ns();
	struct pollfd p = {.fd = fd, .events = events};
	int rc = now < until_ns ? poll(&p, 1, (int)((until_ns - now) / NS_PER_MS + 1)) : 0;
	if (rc > 0 || (rc < 0 && errno == EINTR))
		return 0;
	return rc ? err_sys(err, "cannot wait for it") : err_set(err, -ETIMEDOUT, "no answer");
}

static int connect_to(int *ret_fd, const char *path, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path))
		return err_set(err, -ENAMETOOLONG, "the path of the socket is too long");
	memcpy(address.sun_path, path, strlen(path));
	CLEANUP(close_p) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return err_sys(err, "cannot connect");
	*ret_fd = take_fd(&fd);
	return 0;
}

static int send_all(int fd, const struct buf *text, uint64_t until_ns, struct err *err)
{
	for (size_t at = 0; at < text->n;) {
		ssize_t n = send(fd, text->p + at, text->n - at, MSG_NOSIGNAL);
		if (n > 0)
			at += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			return err_sys(err, "cannot send the request");
		else
			TRY(wait_for(fd, POLLOUT, until_ns, err));
	}
	return 0;
}

/* Reads until the engine closes the connection, as the request asks it to. */
static int receive_all(struct buf *to, int fd, uint64_t until_ns, struct err *err)
{
	for (;;) {
		ssize_t n = recv(fd, buf_reserve(to, 1 << 16), 1 << 16, 0);
		if (!n)
			return 0;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return err_sys(err, "cannot receive the reply");
		to->n += n > 0 ? (size_t)n : 0;
		to->p[to->n] = 0;
		if (to->n > REPLY_BYTES_MAX)
			return err_set(err, -EFBIG, "the reply is too long");
		if (n < 0)
			TRY(wait_for(fd, POLLIN, until_ns, err));
	}
}

/* @text: holds what the reply borrows. */
static int get(struct http_reply *ret_r, struct buf *text, const char *socket_path, const char *url,
	       struct err *err)
{
	CLEANUP(close_p) int fd = -1;
	CLEANUP(buf_release) struct buf request = {0};
	uint64_t until_ns = clock_mono_ns() + DEADLINE_NS;
	TRY(connect_to(&fd, socket_path, err));
	buf_addf(&request, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", url);
	TRY(send_all(fd, &request, until_ns, err));
	TRY(receive_all(text, fd, until_ns, err));
	TRY(http_parse(ret_r, buf_sv(text), err));
	if (ret_r->status == 200)
		return 0;
	buf_release(&ret_r->body);
	return err_set(err, -EPROTO, "GET %s: status %u", url, ret_r->status);
}

/* It goes into a URL. */
static bool is_version(struct sv v)
{
	struct sv left = v;
	return v.n && v.n <= VERSION_MAX && sv_take(&left, "0123456789.").n == v.n;
}

static int ask(struct containers *l, const char *path, const char *engine, struct err *err)
{
	CLEANUP(buf_release) struct buf ping_text = {0};
	CLEANUP(buf_release) struct buf list_text = {0};
	struct http_reply ping;
	struct http_reply reply;
	TRY(get(&ping, &ping_text, path, "/_ping", err));
	buf_release(&ping.body);
	if (!is_version(ping.api_version))
		return err_set(err, -EPROTO, "it does not say which version of the API it has");
	CLEANUP(free_p)
	char *url = xasprintf("/v%.*s/containers/json", SV_ARGS(ping.api_version));
	TRY(get(&reply, &list_text, path, url, err));
	containerstate_list(l, buf_sv(&reply.body), engine);
	buf_release(&reply.body);
	return 0;
}

int enginesocket_ask(struct containers *l, const char *path, const char *engine, struct err *err)
{
	int rc = ask(l, path, engine, err);
	return rc ? err_wrap(err, "asking %s at '%s'", engine, path) : 0;
}

static bool has_engine(const struct containers *l, const char *engine)
{
	vec_foreach(c, &l->list)
		if (!strcmp(c->engine, engine) || (!*c->engine && !c->name))
			return true;
	return false;
}

static int ask_if_there(struct containers *l, const char *path, const char *engine, struct err *err)
{
	if (!has_engine(l, engine) || access(path, F_OK))
		return 0;
	return enginesocket_ask(l, path, engine, err);
}

int enginesocket_ask_all(struct containers *l, struct err *err)
{
	static const char unix_prefix[] = "unix://";
	const char *host = getenv("DOCKER_HOST");
	const char *runtime_dir = getenv("XDG_RUNTIME_DIR");
	CLEANUP(free_p)
	char *own = xasprintf("%s/podman/podman.sock", runtime_dir ?: "/run/user/0");
	if (host && *host && strncmp(host, unix_prefix, strlen(unix_prefix)) != 0)
		return err_set(err, -ENOTSUP, "DOCKER_HOST is '%s', which is no unix: address",
			       host);
	TRY(ask_if_there(l, host && *host ? host + strlen(unix_prefix) : "/var/run/docker.sock",
			 "docker", err));
	TRY(ask_if_there(l, "/run/podman/podman.sock", "podman", err));
	return ask_if_there(l, own, "podman", err);
}
