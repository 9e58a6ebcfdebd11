/* build: gcc -O2 -g */
/*
 * A FUSE file system that stops answering, as a network file system does whose server is gone:
 *
 *	hangfs MOUNTPOINT FILE...
 *
 * mounts the files, whose contents it read before, below their base names, prints "mounted" and
 * serves them read-only. After SIGUSR1 it reads all further requests and answers none: whoever made
 * one waits and cannot be killed. It prints "silent" then, and "asked" when it has read the first of
 * these requests. At its end (SIGTERM, or its death) the kernel answers them all with errors; the
 * mount point is to be unmounted by `umount -l`. It exits with 77 if /dev/fuse cannot be used.
 *
 * Attributes and names are valid for no time, so each stat makes a request. The page cache is kept:
 * programs that run from these files go on. Protocol: <linux/fuse.h>, version 7.31.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REQUEST_BYTES (1 << 18)

struct file {
	const char *name;
	char *bytes;
	uint64_t nr_bytes;
};

static struct file files[16];
static unsigned nr_files;
static volatile sig_atomic_t is_silent;
static volatile sig_atomic_t is_ending;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		is_silent = 1;
	else
		is_ending = 1;
}

static int load(const char *path)
{
	struct file *f = &files[nr_files];
	struct stat st;
	int fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		return -1;
	f->nr_bytes = (uint64_t)st.st_size;
	f->bytes = malloc((size_t)st.st_size + 1);
	if (!f->bytes || read(fd, f->bytes, (size_t)st.st_size) != st.st_size)
		return -1;
	f->name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	nr_files++;
	return close(fd);
}

static void answer(int fd, uint64_t unique, int error, const void *p, size_t n)
{
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + n), .error = error, .unique = unique};
	struct iovec parts[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)p, n}};
	(void)!writev(fd, parts, 2); /* fails if the request was interrupted */
}

/* Node 1 is the root folder, node 2 + i the file i. */
static int attributes(uint64_t node, struct fuse_attr *ret_a)
{
	if (node > nr_files + 1)
		return -ENOENT;
	*ret_a = (struct fuse_attr){.ino = node,
				    .mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0755,
				    .nlink = 1,
				    .size = node == 1 ? 0 : files[node - 2].nr_bytes,
				    .blksize = 4096};
	return 0;
}

static void on_lookup(int fd, const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = {.generation = 1};
	int rc = -ENOENT;
	for (unsigned i = 0; i < nr_files; i++) {
		if (strcmp(files[i].name, name))
			continue;
		out.nodeid = i + 2;
		rc = attributes(out.nodeid, &out.attr);
	}
	answer(fd, in->unique, rc, &out, rc ? 0 : sizeof(out));
}

static void on_read(int fd, const struct fuse_in_header *in, const struct fuse_read_in *r)
{
	if (in->nodeid < 2 || in->nodeid > nr_files + 1) {
		answer(fd, in->unique, -EISDIR, NULL, 0);
		return;
	}
	const struct file *f = &files[in->nodeid - 2];
	uint64_t at = r->offset < f->nr_bytes ? r->offset : f->nr_bytes;
	uint64_t n = f->nr_bytes - at < r->size ? f->nr_bytes - at : r->size;
	answer(fd, in->unique, 0, f->bytes + at, n);
}

static void on_request(int fd, const struct fuse_in_header *in, const void *arg)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = 31,
				     .max_readahead = 1 << 17,
				     .max_background = 16,
				     .congestion_threshold = 12,
				     .max_write = 4096,
				     .time_gran = 1};
	struct fuse_open_out opened = {.open_flags = FOPEN_KEEP_CACHE};
	struct fuse_attr_out attr = {0};
	struct fuse_statfs_out space = {.st = {.bsize = 4096, .namelen = 255}};
	int rc;
	switch (in->opcode) {
	case FUSE_INIT:
		answer(fd, in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		on_lookup(fd, in, arg);
		break;
	case FUSE_GETATTR:
		rc = attributes(in->nodeid, &attr.attr);
		answer(fd, in->unique, rc, &attr, rc ? 0 : sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(fd, in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		on_read(fd, in, arg);
		break;
	case FUSE_STATFS:
		answer(fd, in->unique, 0, &space, sizeof(space));
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_READDIR:
		answer(fd, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break; /* have no answer */
	default:
		answer(fd, in->unique, -ENOSYS, NULL, 0);
	}
}

static void serve(int fd)
{
	char *request = malloc(REQUEST_BYTES);
	int nr_unanswered = -1;
	while (request && !is_ending) {
		ssize_t n = read(fd, request, REQUEST_BYTES);
		if (is_silent && nr_unanswered < 0) {
			nr_unanswered = 0;
			puts("silent");
		}
		const struct fuse_in_header *in = (const void *)request;
		if (n >= (ssize_t)sizeof(*in) && !is_silent)
			on_request(fd, in, in + 1);
		else if (n >= (ssize_t)sizeof(*in) && !nr_unanswered++)
			puts("asked");
		else if (n < 0 && errno != EINTR && errno != ENOENT)
			break;
	}
	free(request);
}

int main(int argc, char **argv)
{
	char options[128];
	struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART: ends the read */
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 2; i < argc && nr_files < sizeof(files) / sizeof(files[0]); i++) {
		if (load(argv[i])) {
			perror(argv[i]);
			return 1;
		}
	}
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	(void)snprintf(options, sizeof(options),
		       "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
	if (argc < 3 || fd < 0 || mount("hangfs", argv[1], "fuse", MS_NODEV, options)) {
		perror("cannot mount a FUSE file system");
		return 77;
	}
	(void)sigaction(SIGUSR1, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGINT, &action, NULL);
	puts("mounted");
	serve(fd);
	return close(fd);
}
