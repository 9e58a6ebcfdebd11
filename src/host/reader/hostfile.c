/*
 * Requests to file readers; see hostfile.h.
 *
 * There are few readers: a thread takes one that is idle, or has a new one started. So the thread
 * that drains rings does not wait for the one that reads debug information. A file is bound to the
 * reader that opened it.
 */
#include "base/base.h"
#include "host/reader/hostfile.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/process/fdpass.h"
#include "base/vec.h"
#include "host/proc.h"
#include "host/reader/reader_protocol.h"

#define READERS_MAX 16 /* started in all */
#define LIVE_MAX    4
/* Reads of up to SMALL_BYTES fetch a block, which serves those that follow. */
#define SMALL_BYTES ((size_t)16 << 10)
#define BLOCK_BYTES ((size_t)64 << 10)
#define BLOCK_ALIGN ((uint64_t)4096)
/* How long to wait at a time, and for how long in all for a reader that waits for a CPU. */
#define RUNNABLE_NS (20 * NS_PER_MS)
#define STARVED_NS  (10 * NS_PER_SEC)
#define DEADLINE_NS (HOSTFILE_DEADLINE_MS * NS_PER_MS)

struct reader {
	pthread_mutex_t lock; /* guards what follows */
	int fd;               /* -1: abandoned or dead */
	struct reader_head *head;
	const uint8_t *window;
	uint32_t last_seq;
	bool is_late;       /* its last request was given up by the thread that made it */
	uint64_t asked_ns;  /* when it got its last request */
	uint64_t seen_ns;   /* when its state was last read since then */
	uint64_t waited_ns; /* how long it waited for the file of that request, not for a CPU */
	uint64_t asked_dev; /* device of the file of that request, 0 = not known */
	char *asked_name;   /* owned; of the file of a request that was given up, or NULL */
	uint64_t asked_key; /* hash of that request, if it opens a file */
	int32_t cached;     /* handle whose bytes are in the window, or -1 */
	uint64_t cached_at; /* their file offset */
	uint64_t nr_cached;
	uint64_t cpu_ns;      /* of an abandoned one */
	VEC(int32_t) closing; /* handles to close; guarded by the lock of the pool */
};

/* The one mutable global of this folder: descriptors, so that no caller has to pass them along. */
static struct {
	pthread_mutex_t lock; /* guards what follows */
	int control;          /* socket of the file server; -1: not started */
	pid_t owner;          /* a forked child starts its own */
	unsigned nr_readers;
	unsigned nr_abandoned;
	unsigned nr_silent;
	struct buf names; /* of files that did not answer */
	uint64_t silent[READER_SILENT_MAX];
	struct reader readers[READERS_MAX];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .control = -1};

static __thread unsigned deadline_ms = HOSTFILE_DEADLINE_MS;

void hostfile_set_deadline(unsigned ms)
{
	deadline_ms = MIN(ms, HOSTFILE_DEADLINE_MS);
}

/* The error of a request that ended without an answer. */
static int no_answer(void)
{
	return deadline_ms == HOSTFILE_DEADLINE_MS ? -ETIMEDOUT : -EINPROGRESS;
}

/* The longest deadline is that of the reader: until it is overdue. */
static uint64_t deadline_from(uint64_t ns)
{
	return deadline_ms == HOSTFILE_DEADLINE_MS ? UINT64_MAX : ns + deadline_ms * NS_PER_MS;
}

/* ---- the file server ---------------------------------------------------------------------- */

/* The pool is locked. */
static void start_server(int argc, char **argv)
{
	pool.control = fileserver_start(argc, argv);
	pool.owner = getpid();
}

/* The pool is locked. Descriptors of a parent's readers are closed here, not there. */
static void forget_readers(void)
{
	for (unsigned i = 0; i < pool.nr_readers; i++) {
		close_p(&pool.readers[i].fd);
		vec_release(&pool.readers[i].closing);
	}
	close_p(&pool.control);
	pool.control = -1;
	pool.nr_readers = 0;
	pool.nr_abandoned = 0;
	pool.nr_silent = 0;
	buf_release(&pool.names);
}

static void forget_parents(void)
{
	if (pool.control >= 0 && pool.owner != getpid())
		forget_readers();
}

void hostfile_restart(void)
{
	pthread_mutex_lock(&pool.lock);
	forget_readers();
	pthread_mutex_unlock(&pool.lock);
}

void hostfile_start(int argc, char **argv)
{
	pthread_mutex_lock(&pool.lock);
	forget_parents();
	if (pool.control < 0)
		start_server(argc, argv);
	pthread_mutex_unlock(&pool.lock);
}

void hostfile_forget(void)
{
	pthread_mutex_lock(&pool.lock);
	forget_parents();
	pthread_mutex_unlock(&pool.lock);
}

/* The pool is locked. Returns the new reader, locked, or NULL. */
static struct reader *start_reader(void)
{
	char word = 1;
	int fds[2];
	struct iovec part = {&word, 1};
	if (pool.control < 0)
		start_server(0, NULL);
	if (pool.control < 0 || pool.nr_readers == READERS_MAX ||
	    pool.nr_abandoned >= HOSTFILE_ABANDONED_MAX ||
	    fdpass_send(pool.control, &part, 1, NULL, 0) ||
	    fdpass_receive(pool.control, &word, 1, fds, 2) != 1)
		return NULL;
	CLEANUP(close_p) int sock = fds[0];
	CLEANUP(close_p) int memory = fds[1];
	void *p = memory < 0 ? MAP_FAILED
			     : mmap(NULL, READER_HEAD_BYTES + READER_WINDOW_BYTES,
				    PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (p == MAP_FAILED)
		return NULL;
	struct reader *r = &pool.readers[pool.nr_readers];
	*r = (struct reader){.fd = take_fd(&sock),
			     .head = p,
			     .window = (uint8_t *)p + READER_HEAD_BYTES,
			     .cached = -1};
	pthread_mutex_init(&r->lock, NULL);
	/* Elsewhere pool.lock is taken last; this lock, which nobody else knows yet, is free. */
	(void)pthread_mutex_trylock(&r->lock);
	pool.nr_readers++;
	return r;
}

/* ---- readers that do not answer ----------------------------------------------------------- */

static void add_silent(uint64_t dev)
{
	for (unsigned i = 0; i < pool.nr_silent; i++)
		if (pool.silent[i] == dev)
			return;
	if (dev && pool.nr_silent < READER_SILENT_MAX)
		pool.silent[pool.nr_silent++] = dev;
}

static bool is_silent(uint64_t dev)
{
	bool is = false;
	pthread_mutex_lock(&pool.lock);
	for (unsigned i = 0; dev && i < pool.nr_silent; i++)
		is |= pool.silent[i] == dev;
	pthread_mutex_unlock(&pool.lock);
	return is;
}

static void drop_reader(struct reader *r)
{
	r->cpu_ns = r->head->cpu_ns;
	close_p(&r->fd);
	r->fd = -1;
	(void)munmap(r->head, READER_HEAD_BYTES + READER_WINDOW_BYTES);
	r->head = NULL;
}

/*
 * Gives up a reader that did not answer in time. It ends by itself if it ever gets on. Returns
 * -EAGAIN if it was still at an earlier request (a close), whose file is another one.
 */
static int abandon(struct reader *r, const char *name)
{
	bool is_last = __atomic_load_n(&r->head->seq, __ATOMIC_ACQUIRE) == r->last_seq;
	pthread_mutex_lock(&pool.lock);
	pool.nr_abandoned++;
	add_silent(r->head->dev);
	if (is_last)
		add_silent(r->asked_dev);
	if (is_last && !memmem(pool.names.p, pool.names.n, name, strlen(name)))
		buf_addf(&pool.names, "%s'%s'", pool.names.n ? ", " : "", name);
	pthread_mutex_unlock(&pool.lock);
	drop_reader(r);
	return is_last ? -ETIMEDOUT : -EAGAIN;
}

static void send_close(struct reader *r, int32_t handle)
{
	struct reader_request q = {.op = READER_CLOSE, .handle = handle};
	struct iovec part = {&q, sizeof(q)};
	if (r->cached == handle)
		r->cached = -1;
	(void)fdpass_send(r->fd, &part, 1, NULL, 0); /* a dead reader has nothing open */
}

/* The reader is locked and idle. */
static void send_closes(struct reader *r)
{
	pthread_mutex_lock(&pool.lock);
	vec_foreach(handle, &r->closing)
		send_close(r, *handle);
	vec_clear(&r->closing);
	pthread_mutex_unlock(&pool.lock);
}

/*
 * Returns whether the reader waits for a file, not for a CPU, and adds up for how long it did: on a busy
 * machine it may be late although the file answers. A hypervisor may take all CPUs away for seconds;
 * a moment of watching (until_ns: it was to end then) counts as no longer than intended.
 */
static bool note_wait(struct reader *r, uint64_t until_ns)
{
	struct proc_task t = {0};
	int32_t pid = r->head->pid;
	bool is_waiting = proc_task(pid, pid, &t) || t.state != 'R';
	uint64_t now = clock_mono_ns();
	uint64_t end_ns = MIN(now, MAX(until_ns, r->seen_ns));
	if (is_waiting)
		r->waited_ns += end_ns - r->seen_ns;
	r->seen_ns = now;
	return is_waiting;
}

static bool is_overdue(const struct reader *r)
{
	return r->waited_ns >= DEADLINE_NS || clock_mono_ns() - r->asked_ns >= STARVED_NS;
}

/*
 * Waits for the answer to the last request until @until_ns (0: not at all), and for longer while the
 * reader is runnable; at most until the reader is overdue.
 */
static int receive(struct reader *r, uint64_t until_ns, struct reader_answer *a, int *ret_fd)
{
	for (;;) {
		uint64_t now = clock_mono_ns();
		uint64_t wait_ns = now < until_ns ? MIN(until_ns - now, RUNNABLE_NS) : 0;
		struct pollfd p = {.fd = r->fd, .events = POLLIN};
		int n = poll(&p, 1, (int)((wait_ns + NS_PER_MS - 1) / NS_PER_MS));
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 && until_ns) {
			bool is_waiting = note_wait(r, now + wait_ns);
			bool is_early = clock_mono_ns() < until_ns;
			if (!is_early && !is_waiting)
				until_ns = clock_mono_ns() + RUNNABLE_NS;
			if (!is_overdue(r) && (is_early || !is_waiting))
				continue;
		}
		if (n == 0) /* it may have answered while its state was read */
			n = poll(&p, 1, 0);
		if (n <= 0)
			return -EINPROGRESS;
		if (fdpass_receive(r->fd, a, sizeof(*a), ret_fd, 1) != sizeof(*a)) {
			drop_reader(r);
			return -EIO;
		}
		if (a->seq == r->last_seq)
			return 0;
		close_p(ret_fd);
	}
}

/* Ends a request that its thread gave up. Returns 0: the reader is idle again. */
static int end_late(struct reader *r, uint64_t until_ns)
{
	struct reader_answer a;
	CLEANUP(close_p) int fd = -1;
	int rc = receive(r, until_ns, &a, &fd);
	if (rc == -EINPROGRESS && !until_ns)
		(void)note_wait(r, clock_mono_ns());
	if (rc == -EINPROGRESS && is_overdue(r))
		return abandon(r, r->asked_name);
	if (rc)
		return rc;
	r->is_late = false;
	r->cached = -1;
	if (a.handle >= 0)
		send_close(r, a.handle);
	return 0;
}

/* What take_reader found. */
struct found {
	struct reader *idle; /* locked */
	struct reader *busy; /* in use by another thread */
	unsigned nr_busy;
	unsigned nr_late;
	bool is_asked; /* a late one is at the same request, or at a file of that device */
};

static struct found find_reader(uint64_t key, uint64_t dev)
{
	struct found f = {0};
	pthread_mutex_lock(&pool.lock);
	forget_parents();
	unsigned nr = pool.nr_readers;
	pthread_mutex_unlock(&pool.lock);
	for (unsigned i = 0; i < nr; i++) {
		struct reader *r = &pool.readers[i];
		if (pthread_mutex_trylock(&r->lock)) {
			f.busy = r;
			f.nr_busy++;
			continue;
		}
		bool is_idle = r->fd >= 0 && (!r->is_late || !end_late(r, 0));
		if (is_idle && !f.idle) {
			f.idle = r;
			continue;
		}
		if (!is_idle && r->fd >= 0) {
			f.nr_late++;
			f.is_asked |= r->asked_key == key || (dev && r->asked_dev == dev);
		}
		pthread_mutex_unlock(&r->lock);
	}
	return f;
}

/*
 * Waits until the other thread has got its answer. (pthread_mutex_clocklock is unknown to
 * ThreadSanitizer, pthread_mutex_timedlock follows a clock that can be set.)
 */
static int wait_for_reader(struct reader *r)
{
	uint64_t max_ns =
		deadline_ms == HOSTFILE_DEADLINE_MS ? STARVED_NS : deadline_ms * NS_PER_MS;
	uint64_t until_ns = clock_mono_ns() + max_ns;
	const struct timespec pause = {.tv_nsec = 100000};
	while (pthread_mutex_trylock(&r->lock)) {
		if (clock_mono_ns() >= until_ns)
			return no_answer();
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

/* Returns an idle reader, locked; a new one if there is none. @key, @dev: of the request. */
static int take_reader(struct reader **ret_r, uint64_t key, uint64_t dev)
{
	struct found f = find_reader(key, dev);
	*ret_r = f.idle;
	if (f.is_asked && deadline_ms < HOSTFILE_DEADLINE_MS) {
		if (f.idle)
			pthread_mutex_unlock(&f.idle->lock);
		return -EINPROGRESS;
	}
	if (f.idle)
		return 0;
	if (f.nr_busy >= LIVE_MAX) {
		TRY(wait_for_reader(f.busy));
		*ret_r = f.busy;
		if (f.busy->fd >= 0 && !f.busy->is_late)
			return 0;
		pthread_mutex_unlock(&f.busy->lock);
		return no_answer();
	}
	pthread_mutex_lock(&pool.lock);
	if (pool.nr_abandoned + f.nr_late < HOSTFILE_ABANDONED_MAX)
		*ret_r = start_reader();
	pthread_mutex_unlock(&pool.lock);
	return *ret_r ? 0 : f.nr_late ? no_answer() : -ETIMEDOUT;
}

/* ---- requests ----------------------------------------------------------------------------- */

/* A request and its answer. The reader is locked and idle. @name: of the file that it is about. */
static int ask(struct reader *r, struct reader_request *q, const char *path, const char *name,
	       int root_fd, struct reader_answer *a, int *ret_fd)
{
	q->nr_path = (uint32_t)strlen(path);
	if (q->nr_path > READER_PATH_MAX)
		return -ENAMETOOLONG;
	send_closes(r);
	if (!++r->last_seq)
		++r->last_seq;
	q->seq = r->last_seq;
	struct iovec parts[] = {{q, sizeof(*q)}, {(void *)(uintptr_t)path, q->nr_path}};
	r->cached = -1;
	r->asked_ns = r->seen_ns = clock_mono_ns();
	r->waited_ns = 0;
	r->asked_dev = q->dev;
	r->asked_key = 0;
	if (fdpass_send(r->fd, parts, ARRAY_LEN(parts), &root_fd, root_fd >= 0 ? 1 : 0)) {
		drop_reader(r);
		return -EIO;
	}
	int rc = receive(r, deadline_from(r->asked_ns), a, ret_fd);
	if (rc == -EINPROGRESS && deadline_ms == HOSTFILE_DEADLINE_MS)
		return abandon(r, name);
	r->is_late = rc == -EINPROGRESS;
	if (r->is_late) {
		free(r->asked_name);
		r->asked_name = xstrdup(name);
	}
	return rc ? rc : a->rc;
}

static uint64_t key_of(const struct reader_request *q, const char *path)
{
	uint64_t h = hash_bytes(path, strlen(path));
	return hash_mix(h, hash_mix((uint64_t)q->op << 32 | (uint32_t)q->pid, q->start));
}

/* A request that names a file by path, to any reader; that reader stays locked if it succeeds. */
static int ask_any(struct reader **ret_r, struct reader_request *q, const char *path, int root_fd,
		   struct reader_answer *a, int *ret_fd)
{
	uint64_t key = key_of(q, path);
	int rc = -EAGAIN;
	/* -EAGAIN: the reader was abandoned because of an earlier request. */
	for (unsigned i = 0; rc == -EAGAIN && i < HOSTFILE_ABANDONED_MAX; i++) {
		struct reader *r;
		if (is_silent(q->dev))
			return -ETIMEDOUT;
		TRY(take_reader(&r, key, q->dev));
		pthread_mutex_lock(&pool.lock);
		q->nr_silent = pool.nr_silent;
		memcpy(q->silent, pool.silent, sizeof(q->silent));
		pthread_mutex_unlock(&pool.lock);
		rc = ask(r, q, path, path, root_fd, a, ret_fd);
		if (rc == -EINPROGRESS)
			r->asked_key = key;
		if (!rc)
			*ret_r = r;
		else
			pthread_mutex_unlock(&r->lock);
	}
	return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

/* ---- files -------------------------------------------------------------------------------- */

struct hostfile {
	struct reader *r;
	int32_t handle;
	bool can_reopen;
	struct reader_request how; /* with which it was opened */
	char *path;
	struct stat st;
};

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Opens the file again after its reader was abandoned because of another file. */
static int reopen(struct hostfile *f)
{
	struct reader_answer a;
	CLEANUP(close_p) int none = -1;
	if (!f->can_reopen)
		return -ETIMEDOUT;
	TRY(ask_any(&f->r, &f->how, f->path, -1, &a, &none));
	f->handle = a.handle;
	if (!is_same(&a.st, &f->st)) {
		send_close(f->r, a.handle);
		pthread_mutex_unlock(&f->r->lock);
		return -ESTALE;
	}
	return 0;
}

/* Locks the file's reader, idle. Returns 0 or -errno. */
static int lock_reader(struct hostfile *f)
{
	TRY(wait_for_reader(f->r));
	bool is_late = f->r->fd >= 0 && f->r->is_late;
	int rc = is_late ? end_late(f->r, deadline_from(clock_mono_ns())) : 0;
	if (f->r->fd >= 0 && !rc)
		return 0;
	bool is_gone = f->r->fd < 0;
	pthread_mutex_unlock(&f->r->lock);
	return is_gone ? reopen(f) : rc;
}

/* Gets bytes into the window: at least one byte of [offset, offset + n), or an error. */
static int fetch(struct hostfile *f, uint64_t offset, size_t n)
{
	struct reader *r = f->r;
	if (r->cached == f->handle && offset >= r->cached_at &&
	    offset - r->cached_at < r->nr_cached &&
	    (n > SMALL_BYTES || n <= r->nr_cached - (offset - r->cached_at)))
		return 0;
	bool is_small = n <= SMALL_BYTES && f->how.op != READER_OPEN_PROC;
	uint64_t at = is_small ? offset & ~(BLOCK_ALIGN - 1) : offset;
	struct reader_request q = {.op = READER_READ,
				   .handle = f->handle,
				   .offset = at,
				   .n = is_small ? BLOCK_BYTES : n,
				   .dev = f->how.dev};
	struct reader_answer a;
	CLEANUP(close_p) int none = -1;
	TRY(ask(r, &q, "", f->path, -1, &a, &none));
	if (a.n > READER_WINDOW_BYTES || at + a.n <= offset)
		return -ENODATA;
	if (f->how.op != READER_OPEN_PROC) { /* memory changes: not to be read twice */
		r->cached = f->handle;
	}
	r->cached_at = at;
	r->nr_cached = a.n;
	return 0;
}

/* Does @fn with the file's reader locked; again if that was abandoned because of another file. */
static int with_reader(struct hostfile *f, int (*fn)(struct hostfile *f, void *ctx), void *ctx)
{
	int rc = -EAGAIN;
	for (unsigned i = 0; rc == -EAGAIN && i < HOSTFILE_ABANDONED_MAX; i++) {
		rc = lock_reader(f);
		if (rc)
			continue;
		rc = fn(f, ctx);
		pthread_mutex_unlock(&f->r->lock);
	}
	return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

struct part {
	uint8_t *to;
	size_t n; /* wanted; then got */
	uint64_t offset;
};

static int read_part(struct hostfile *f, void *ctx)
{
	struct part *p = ctx;
	TRY(fetch(f, p->offset, p->n));
	uint64_t skip = p->offset - f->r->cached_at;
	p->n = (size_t)MIN((uint64_t)p->n, f->r->nr_cached - skip);
	memcpy(p->to, f->r->window + skip, p->n);
	return 0;
}

static int read_identity(struct hostfile *f, void *ctx)
{
	struct reader_request q = {.op = READER_IDENTIFY, .handle = f->handle, .dev = f->how.dev};
	struct reader_answer a;
	CLEANUP(close_p) int none = -1;
	TRY(ask(f->r, &q, "", f->path, -1, &a, &none));
	memcpy(ctx, f->r->window, sizeof(struct file_identity));
	return 0;
}

static int file_error(struct err *err, const struct hostfile *f, int rc, uint64_t offset)
{
	if (rc == -ETIMEDOUT || rc == -EINPROGRESS)
		return err_set(err, rc, "'%s' did not answer within %u s", f->path,
			       HOSTFILE_DEADLINE_MS / 1000);
	return err_set(err, rc, "cannot read '%s' at offset %" PRIu64 ": %s", f->path, offset,
		       strerror(-rc));
}

static int read_file(void *ctx, void *to, size_t n, uint64_t offset, struct err *err)
{
	struct hostfile *f = ctx;
	struct part p = {.to = to, .offset = offset};
	for (; n; n -= p.n) {
		p.n = n;
		int rc = with_reader(f, read_part, &p);
		if (rc)
			return file_error(err, f, rc, p.offset);
		p.to += p.n;
		p.offset += p.n;
	}
	return 0;
}

static int identify_file(void *ctx, struct file_identity *ret_i)
{
	struct file_identity now;
	TRY(with_reader(ctx, read_identity, &now));
	*ret_i = now;
	return 0;
}

static void close_file(void *ctx)
{
	struct hostfile *f = ctx;
	pthread_mutex_lock(&pool.lock);
	bool is_own = pool.owner == getpid();
	if (is_own)
		vec_push(&f->r->closing, f->handle);
	pthread_mutex_unlock(&pool.lock);
	/* A busy reader gets it before its next request. */
	if (is_own && !pthread_mutex_trylock(&f->r->lock)) {
		if (f->r->fd >= 0 && !f->r->is_late)
			send_closes(f->r);
		pthread_mutex_unlock(&f->r->lock);
	}
	free(f->path);
	free(f);
}

static const struct byte_source_ops file_ops = {read_file, identify_file, close_file};

static int open_file(struct byte_source *ret_s, bool *ret_is_exact, struct reader_request *q,
		     const char *path, int root_fd)
{
	struct reader_answer a;
	struct reader *r;
	CLEANUP(close_p) int none = -1;
	TRY(ask_any(&r, q, path, root_fd, &a, &none));
	if (q->op != READER_OPEN_PROC) {
		r->cached = a.handle;
		r->cached_at = 0;
		r->nr_cached = MIN(a.n, (uint64_t)READER_WINDOW_BYTES);
		q->dev = (uint64_t)major(a.st.st_dev) << 32 | minor(a.st.st_dev);
	}
	pthread_mutex_unlock(&r->lock);
	struct hostfile *f = xcalloc(1, sizeof(*f));
	*f = (struct hostfile){.r = r,
			       .handle = a.handle,
			       .can_reopen = root_fd < 0 && q->op != READER_OPEN_PROC,
			       .how = *q,
			       .path = xstrdup(path),
			       .st = a.st};
	if (ret_is_exact)
		*ret_is_exact = a.is_exact;
	*ret_s = (struct byte_source){.ops = &file_ops, .ctx = f, .st = a.st};
	return 0;
}

int hostfile_open_mapped(struct byte_source *ret_s, bool *ret_is_exact,
			 const struct hostfile_mapping *m)
{
	struct reader_request q = {.op = READER_OPEN_MAPPED,
				   .pid = m->pid,
				   .start = m->start,
				   .end = m->end,
				   .dev = (uint64_t)m->dev_major << 32 | m->dev_minor,
				   .inode = m->inode};
	return open_file(ret_s, ret_is_exact, &q, m->path, -1);
}

int hostfile_open_path(struct byte_source *ret_s, int root_fd, const char *path)
{
	struct reader_request q = {.op = READER_OPEN_PATH};
	CLEANUP(free_p) char *absolute = NULL;
	if (root_fd < 0 && path[0] != '/') { /* the reader's directory is another one */
		CLEANUP(free_p) char *here = getcwd(NULL, 0);
		absolute = xasprintf("%s/%s", here ? here : "", path);
	}
	return open_file(ret_s, NULL, &q, absolute ? absolute : path, root_fd);
}

int hostfile_open_proc(struct byte_source *ret_s, const char *path)
{
	struct reader_request q = {.op = READER_OPEN_PROC};
	return open_file(ret_s, NULL, &q, path, -1);
}

int hostfile_open_root(int32_t pid)
{
	struct reader_request q = {.op = READER_OPEN_ROOT, .pid = pid};
	struct reader_answer a;
	struct reader *r;
	CLEANUP(close_p) int fd = -1;
	TRY(ask_any(&r, &q, "", -1, &a, &fd));
	pthread_mutex_unlock(&r->lock);
	return fd < 0 ? -EIO : take_fd(&fd);
}

/* ---- whole files -------------------------------------------------------------------------- */

static int read_text(struct buf *to, const char *path, size_t limit, struct reader **ret_r)
{
	struct reader_request q = {.op = READER_TEXT};
	struct reader_answer a;
	CLEANUP(close_p) int none = -1;
	size_t start = to->n;
	TRY(ask_any(ret_r, &q, path, -1, &a, &none));
	for (;;) {
		buf_add(to, (*ret_r)->window, (size_t)MIN(a.n, (uint64_t)READER_WINDOW_BYTES));
		bool has_more = a.handle >= 0;
		if (has_more && to->n - start > limit)
			send_close(*ret_r, a.handle);
		if (!has_more || to->n - start > limit)
			return to->n - start > limit ? -EFBIG : 0;
		q = (struct reader_request){.op = READER_MORE, .handle = a.handle};
		TRY(ask(*ret_r, &q, "", path, -1, &a, &none));
	}
}

int hostfile_read_link(struct buf *to, struct stat *ret_st, const char *path)
{
	struct reader_request q = {.op = READER_LINK};
	struct reader_answer a;
	struct reader *r;
	CLEANUP(close_p) int none = -1;
	TRY(ask_any(&r, &q, path, -1, &a, &none));
	buf_add(to, r->window, (size_t)MIN(a.n, (uint64_t)PATH_MAX));
	pthread_mutex_unlock(&r->lock);
	*ret_st = a.st;
	return 0;
}

int hostfile_read_text(struct buf *to, const char *path, size_t limit, struct err *err)
{
	struct reader *r = NULL;
	int rc = read_text(to, path, limit, &r);
	if (r)
		pthread_mutex_unlock(&r->lock);
	if (rc == -ETIMEDOUT || rc == -EINPROGRESS)
		return err_set(err, rc, "'%s' did not answer within %u s", path,
			       HOSTFILE_DEADLINE_MS / 1000);
	if (rc)
		return err_set(err, rc, "cannot read '%s': %s", path, strerror(-rc));
	return 0;
}

static int get_name(struct hostfile *f, void *ctx)
{
	struct reader_request q = {.op = READER_NAME, .handle = f->handle, .dev = f->how.dev};
	struct reader_answer a;
	return ask(f->r, &q, "", f->path, -1, &a, ctx);
}

int hostfile_name(const struct byte_source *s)
{
	int fd = -1;
	TRY(with_reader(s->ctx, get_name, &fd));
	return fd < 0 ? -EIO : fd;
}

void hostfile_add_silent(struct buf *to)
{
	pthread_mutex_lock(&pool.lock);
	buf_add(to, pool.names.p, pool.names.n);
	pthread_mutex_unlock(&pool.lock);
}

int32_t hostfile_reader_pid(const struct byte_source *s)
{
	struct reader *r = ((const struct hostfile *)s->ctx)->r;
	pthread_mutex_lock(&r->lock);
	int32_t pid = r->head ? r->head->pid : 0;
	pthread_mutex_unlock(&r->lock);
	return pid;
}

uint64_t hostfile_cpu_ns(void)
{
	uint64_t sum = 0;
	pthread_mutex_lock(&pool.lock);
	unsigned nr = pool.owner == getpid() ? pool.nr_readers : 0;
	pthread_mutex_unlock(&pool.lock);
	for (unsigned i = 0; i < nr; i++) {
		struct reader *r = &pool.readers[i];
		if (pthread_mutex_trylock(&r->lock))
			continue;
		sum += r->head ? r->head->cpu_ns : r->cpu_ns;
		pthread_mutex_unlock(&r->lock);
	}
	return sum;
}
