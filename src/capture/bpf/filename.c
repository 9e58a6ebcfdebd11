/* Text for a file, pipe or socket that the BPF programs reported; see filename.h. */
#include "base/base.h"

#include "capture/bpf/filename.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* The components come leaf first: the path is built from the end of the record. */
static void add_path(struct buf *to, const char *names, size_t n, bool is_cut)
{
	if (is_cut)
		buf_add_str(to, "...");
	while (n) {
		size_t end = n;
		size_t start = end;
		if (!names[end - 1])
			end = --start;
		while (start && names[start - 1])
			start--;
		buf_add_ch(to, '/');
		buf_add(to, names + start, end - start);
		n = start;
	}
}

static bool has_address(const struct kernel_file *r)
{
	static const uint8_t none[16];
	return memcmp(r->remote, none, sizeof(none)) != 0;
}

static void add_address(struct buf *to, const struct kernel_file *r, unsigned port)
{
	char text[INET6_ADDRSTRLEN] = "";
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool is_v6 = r->family == AF_INET6 && memcmp(r->remote, mapped, sizeof(mapped)) != 0;
	const uint8_t *at = r->family == AF_INET6 && !is_v6 ? r->remote + 12 : r->remote;
	(void)inet_ntop(is_v6 ? AF_INET6 : AF_INET, at, text, sizeof(text));
	buf_addf(to, is_v6 && port ? "[%s]" : "%s", text);
	if (port)
		buf_addf(to, ":%u", port);
}

static const char *protocol_name(unsigned protocol)
{
	return protocol == IPPROTO_TCP    ? "tcp"
	       : protocol == IPPROTO_UDP  ? "udp"
	       : protocol == IPPROTO_ICMP ? "icmp"
					  : "ip";
}

static void add_unix(struct buf *to, const struct kernel_file *r, size_t n)
{
	const char *p = r->names;
	if (!n || (n == 1 && !p[0])) {
		buf_addf(to, "unix:[%" PRIu64 "]", r->inode);
		return;
	}
	buf_add_str(to, p[0] ? "unix " : "unix @");
	size_t skip = p[0] ? 0 : 1;
	/* a path ends at a NUL; an abstract name may contain NULs */
	size_t len = skip ? n - skip : strnlen(p, n);
	buf_add(to, p + skip, len);
}

static void add_socket(struct buf *to, const struct kernel_file *r, size_t n)
{
	if (r->family == AF_UNIX) {
		add_unix(to, r, n);
		return;
	}
	if (r->family != AF_INET && r->family != AF_INET6) {
		buf_addf(to, "socket:[%" PRIu64 "] of family %u", r->inode, r->family);
		return;
	}
	buf_add_str(to, protocol_name(r->protocol));
	if (r->local_port)
		buf_addf(to, " :%u", r->local_port);
	if (!has_address(r))
		return;
	buf_add_str(to, r->local_port ? " from " : " ");
	add_address(to, r, r->remote_port);
}

void filename_add(struct buf *to, const struct kernel_file *r)
{
	size_t n = MIN((size_t)r->nr_names, sizeof(r->names));
	if (r->kind == KFILE_SOCKET) {
		add_socket(to, r, n);
		return;
	}
	if (r->kind == KFILE_PIPE && !n) {
		buf_addf(to, "pipe:[%" PRIu64 "]", r->inode);
		return;
	}
	if (r->kind == KFILE_ANON) {
		buf_add(to, r->names, strnlen(r->names, n));
		return;
	}
	size_t before = to->n;
	if (!n && r->is_deleted) { /* not in a directory: made by the kernel for a mapping */
		buf_add_str(to, "[shared memory]");
		return;
	}
	add_path(to, r->names, n, r->is_cut != 0);
	if (to->n == before)
		buf_addf(to, "inode %" PRIu64 " of device %u:%u", r->inode, r->dev >> 20,
			 r->dev & 0xfffff);
	if (r->is_deleted)
		buf_add_str(to, " (deleted)");
}
