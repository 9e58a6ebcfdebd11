/*
 * Names of descriptors; see fdname.h.
 *
 * The target of the link /proc/PID/fd/N shows the kind: a path, "socket:[INODE]", "pipe:[INODE]",
 * "anon_inode:[eventfd]". A socket's addresses are in the tables of its network namespace,
 * /proc/PID/net/tcp and so on, one line per socket with its inode near the end (net/ipv4/tcp_ipv4.c
 * get_tcp4_sock, net/unix/af_unix.c unix_seq_show). The tables are read again when an inode is
 * unknown, but at most four times a second per process.
 */
#include "base/base.h"
#include "host/fdname.h"

#include <arpa/inet.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/text/lines.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sv.h"
#include "host/reader/hostfile.h"

#define TABLE_LIMIT    ((size_t)64 << 20)
#define REREAD_NS      (250 * NS_PER_MS)
#define TCP_LISTEN     0x0a
#define IPV6_HEX       32
#define SOCKET_COLUMNS 10
/* Reading one name takes some 0.1 ms of two processes. */
#define READS_PER_S   100
#define READS_AT_ONCE 500

struct fdnames {
	struct intern texts;
	struct map known;   /* (process, descriptor, inode, device) -> text */
	struct map sockets; /* inode -> text */
	struct map read_ms; /* process -> when its socket tables were read, ms */
	struct buf table;
	struct buf text;
	uint64_t earned_ns; /* up to when reads are counted in nr_reads */
	uint32_t nr_reads;  /* that may be done now */
};

struct fdnames *fdnames_new(void)
{
	struct fdnames *f = xcalloc(1, sizeof(*f));
	f->earned_ns = clock_mono_ns();
	f->nr_reads = READS_AT_ONCE;
	return f;
}

void fdnames_free(struct fdnames *f)
{
	if (!f)
		return;
	intern_release(&f->texts);
	map_release(&f->known);
	map_release(&f->sockets);
	map_release(&f->read_ms);
	buf_release(&f->table);
	buf_release(&f->text);
	free(f);
}

/* ---- tables of sockets ------------------------------------------------------------------- */

/* Splits off the next word of a line; words are separated by blanks. */
static struct sv next_word(struct sv *line)
{
	while (line->n && line->p[0] == ' ')
		*line = sv_from_idx(*line, 1);
	return sv_split(line, ' ');
}

static bool hex_value(struct sv s, uint32_t *ret_v)
{
	uint64_t v;
	if (s.n > 8 || !sv_to_hex(s, &v))
		return false;
	*ret_v = (uint32_t)v;
	return true;
}

/* Parses "0100007F:18EB": the address as words in host byte order, the port as a number. */
static bool add_address(struct buf *to, struct sv s, bool *ret_is_any)
{
	uint32_t word[4] = {0};
	uint32_t port;
	char text[INET6_ADDRSTRLEN];
	const char *colon = memchr(s.p, ':', s.n);
	if (!colon)
		return false;
	size_t n = (size_t)(colon - s.p);
	if ((n != 8 && n != IPV6_HEX) || !hex_value(sv_from(colon + 1, s.n - n - 1), &port))
		return false;
	for (size_t i = 0; i * 8 < n; i++)
		if (!hex_value(sv_from(s.p + i * 8, 8), &word[i]))
			return false;
	bool is_mapped = n == IPV6_HEX && !word[0] && !word[1] && word[2] == htonl(0xffff);
	if (n == 8 || is_mapped)
		inet_ntop(AF_INET, n == 8 ? &word[0] : &word[3], text, sizeof(text));
	else
		inet_ntop(AF_INET6, word, text, sizeof(text));
	buf_addf(to, n == 8 || is_mapped ? "%s:%u" : "[%s]:%u", text, port);
	*ret_is_any = !word[0] && !word[1] && !word[2] && !word[3] && !port;
	return true;
}

static void keep_socket(struct fdnames *f, uint64_t inode)
{
	if (inode)
		*map_put(&f->sockets, inode, NULL) = intern_add(&f->texts, f->text.p, f->text.n);
}

/* sl local remote state queues timer retransmissions uid timeout inode */
static void read_inet_line(struct fdnames *f, const char *kind, struct sv line)
{
	struct sv words[SOCKET_COLUMNS];
	for (size_t i = 0; i < SOCKET_COLUMNS; i++)
		words[i] = next_word(&line);
	uint64_t inode;
	uint32_t state;
	bool is_any;
	buf_clear(&f->text);
	buf_addf(&f->text, "%s ", kind);
	if (!sv_to_u64(words[9], &inode) || !hex_value(words[3], &state) ||
	    !add_address(&f->text, words[1], &is_any))
		return;
	size_t mark = f->text.n;
	buf_add_str(&f->text, " -> ");
	if (!add_address(&f->text, words[2], &is_any))
		return;
	if (is_any) {
		f->text.n = mark;
		if (kind[0] == 't' && state == TCP_LISTEN)
			buf_add_str(&f->text, " listening");
	}
	keep_socket(f, inode);
}

/* address: references protocol flags type state inode [path] */
static void read_unix_line(struct fdnames *f, struct sv line)
{
	struct sv word = {0};
	uint64_t inode;
	for (size_t i = 0; i < 7; i++)
		word = next_word(&line);
	if (!sv_to_u64(word, &inode))
		return;
	while (line.n && line.p[0] == ' ')
		line = sv_from_idx(line, 1);
	buf_clear(&f->text);
	if (line.n)
		buf_addf(&f->text, "unix %.*s", SV_ARGS(line));
	else
		buf_addf(&f->text, "unix:[%" PRIu64 "]", inode);
	keep_socket(f, inode);
}

static void read_socket_table(struct fdnames *f, int32_t pid, const char *table)
{
	CLEANUP(buf_release) struct buf path = {0};
	buf_addf(&path, "/proc/%d/net/%s", pid, table);
	buf_clear(&f->table);
	/* The process has exited, or the kernel lacks the protocol. */
	if (file_read(&f->table, buf_str(&path), TABLE_LIMIT, NULL))
		return;
	struct lines in = lines_from(f->table.p, f->table.n);
	struct sv line;
	(void)lines_next(&in, &line); /* column titles */
	while (lines_next(&in, &line)) {
		if (table[0] == 'u' && table[1] == 'n')
			read_unix_line(f, line);
		else
			read_inet_line(f, table[0] == 't' ? "tcp" : "udp", line);
	}
}

static uint32_t socket_text(struct fdnames *f, int32_t pid, uint64_t inode)
{
	static const char *const tables[] = {"tcp", "tcp6", "udp", "udp6", "unix"};
	uint32_t *text = map_get(&f->sockets, inode);
	if (text)
		return *text;
	uint32_t now_ms = (uint32_t)(clock_mono_ns() / NS_PER_MS);
	bool is_new;
	uint32_t *read_ms = map_put(&f->read_ms, (uint64_t)(uint32_t)pid, &is_new);
	if (!is_new && now_ms - *read_ms < REREAD_NS / NS_PER_MS)
		return 0;
	*read_ms = now_ms;
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		read_socket_table(f, pid, tables[i]);
	text = map_get(&f->sockets, inode);
	return text ? *text : 0;
}

/* ---- descriptors ------------------------------------------------------------------------- */

/* Takes one of the reads that the limits allow. */
static bool take_read(struct fdnames *f)
{
	uint64_t nr = (clock_mono_ns() - f->earned_ns) / (NS_PER_SEC / READS_PER_S);
	f->earned_ns += nr * (NS_PER_SEC / READS_PER_S);
	f->nr_reads = (uint32_t)MIN(f->nr_reads + nr, READS_AT_ONCE);
	if (!f->nr_reads)
		return false;
	f->nr_reads--;
	return true;
}

/* Returns 0 if the descriptor is closed or has another inode. *ret_is_final: may be cached. */
static uint32_t read_name(struct fdnames *f, int32_t pid, int32_t fd, uint64_t inode,
			  bool *ret_is_final)
{
	char path[64];
	struct stat st;
	CLEANUP(buf_release) struct buf link = {0};
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	*ret_is_final = true;
	if (hostfile_read_link(&link, &st, path) || (inode && st.st_ino != inode))
		return 0;
	struct sv text = buf_sv(&link);
	if (S_ISSOCK(st.st_mode)) {
		uint32_t socket = socket_text(f, pid, st.st_ino);
		if (socket)
			return socket;
		*ret_is_final = false;
		buf_clear(&f->text);
		buf_addf(&f->text, "socket:[%" PRIu64 "]", (uint64_t)st.st_ino);
		return intern_add(&f->texts, f->text.p, f->text.n);
	}
	buf_clear(&f->text);
	if (S_ISFIFO(st.st_mode) && sv_has_prefix(text, SV("pipe:")))
		buf_addf(&f->text, "pipe:[%" PRIu64 "]", (uint64_t)st.st_ino);
	else if (sv_has_prefix(text, SV("anon_inode:[")) && text.n > 13)
		buf_addf(&f->text, "%.*s", (int)text.n - 13, text.p + 12);
	else if (sv_has_prefix(text, SV("anon_inode:")))
		buf_addf(&f->text, "%.*s", (int)text.n - 11, text.p + 11);
	else if (S_ISCHR(st.st_mode) &&
		 (sv_has_prefix(text, SV("/dev/pts/")) || sv_has_prefix(text, SV("/dev/tty"))))
		buf_addf(&f->text, "terminal %.*s", SV_ARGS(text));
	else
		buf_add_sv(&f->text, text);
	return intern_add(&f->texts, f->text.p, f->text.n);
}

const char *fdnames_get(struct fdnames *f, int32_t pid, int32_t fd, uint64_t inode, uint32_t dev,
			const char *kind)
{
	uint64_t key = hash_mix(hash_mix((uint64_t)(uint32_t)pid << 32 | (uint32_t)fd, inode), dev);
	uint32_t *known = map_get(&f->known, key);
	if (known)
		return intern_str(&f->texts, *known);
	bool is_final;
	uint32_t text = take_read(f) ? read_name(f, pid, fd, inode, &is_final) : 0;
	if (text) {
		if (is_final)
			*map_put(&f->known, key, NULL) = text;
		return intern_str(&f->texts, text);
	}
	/* dev is a kernel dev_t: 12 bits major, 20 bits minor. */
	buf_clear(&f->text);
	if (kind[0] == 'f')
		buf_addf(&f->text, "file [%u:%u:%" PRIu64 "]", dev >> 20, dev & 0xfffff, inode);
	else
		buf_addf(&f->text, "%s:[%" PRIu64 "]", kind, inode);
	return buf_str(&f->text);
}
