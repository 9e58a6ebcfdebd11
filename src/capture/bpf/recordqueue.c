/*
 * A queue of records in memory and in the ring; see recordqueue.h. In order of age:
 *
 *	chunks (memory)   oldest ... newest  |  ring: consumer ... producer
 *
 * A record is copied under the lock, so the thread may move all later ones at any time.
 * In a chunk: a 32-bit length, padding to 8 bytes, the record, padding to 8 bytes.
 */
#include "base/base.h"
#include "capture/bpf/recordqueue.h"

#include <pthread.h>
#include <time.h>

#include "base/mem.h"
#include "base/vec.h"
#include "capture/bpf/bpfring.h"
#include "host/privileges.h"

/* Between two polls of the thread. */
#define POLL_NS       40000000
#define CHUNK_BYTES   (1u << 20)
#define PUBLISH_EVERY 256

struct chunk {
	uint8_t *bytes;
	size_t n;
	size_t cap;
};

struct recordqueue {
	struct bpfring ring;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* protects the following fields and the ring */
	pthread_cond_t stops;
	bool is_stopping;
	bool is_resting; /* the reader waits for records itself */
	void (*on_poll)(void *ctx);
	void *on_poll_ctx;
	VEC(struct chunk) chunks;
	size_t first; /* index of the chunk that is read */
	size_t at;    /* offset in it */
	size_t nr_held;
	size_t max_held;
	size_t held_limit;
	uint64_t nr_taken;
	uint64_t nr_bad;
	uint8_t *scratch; /* the record that the reader has; used by the reader only */
	size_t nr_scratch;
};

static size_t padded(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* ---- moving ------------------------------------------------------------------------------- */

static struct chunk *chunk_for(struct recordqueue *q, size_t n)
{
	struct chunk *last = q->chunks.n ? vec_last(&q->chunks) : NULL;
	if (last && last->n + n <= last->cap)
		return last;
	struct chunk *c = vec_add(&q->chunks);
	c->cap = MAX((size_t)CHUNK_BYTES, n);
	c->bytes = xmalloc(c->cap);
	return c;
}

static void append_record(struct recordqueue *q, const void *record, uint32_t nr_bytes)
{
	size_t n = 8 + padded(nr_bytes);
	struct chunk *c = chunk_for(q, n);
	memcpy(c->bytes + c->n, &nr_bytes, sizeof(nr_bytes));
	memcpy(c->bytes + c->n + 8, record, nr_bytes);
	c->n += n;
	q->nr_held += n;
	q->max_held = MAX(q->max_held, q->nr_held);
}

static void move_to_memory(struct recordqueue *q)
{
	const void *record;
	uint32_t nr_bytes;
	enum bpfring_state state;
	while (q->nr_held < q->held_limit &&
	       (state = bpfring_peek(&q->ring, &record, &nr_bytes)) != BPFRING_EMPTY &&
	       state != BPFRING_BUSY) {
		if (state == BPFRING_BAD) {
			q->nr_bad++;
			continue;
		}
		append_record(q, record, nr_bytes);
		bpfring_consume(&q->ring);
	}
	bpfring_publish(&q->ring);
}

static void wait_for_poll(struct recordqueue *q)
{
	struct timespec until;
	(void)clock_gettime(CLOCK_MONOTONIC, &until); /* cannot fail */
	until.tv_nsec += POLL_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	(void)pthread_cond_timedwait(&q->stops, &q->lock, &until);
}

static void *drain_thread(void *arg)
{
	struct recordqueue *q = arg;
	host_drop_all();
	pthread_mutex_lock(&q->lock);
	while (!q->is_stopping) {
		if (q->is_resting) {
			(void)pthread_cond_wait(&q->stops, &q->lock);
			continue;
		}
		wait_for_poll(q);
		if (q->is_resting || q->is_stopping)
			continue;
		if (bpfring_used(&q->ring) > q->ring.nr_data_bytes / 4)
			move_to_memory(q);
		if (q->on_poll)
			q->on_poll(q->on_poll_ctx);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

/* ---- life --------------------------------------------------------------------------------- */

int recordqueue_open(struct recordqueue **ret_q, int fd, uint64_t nr_bytes, size_t held_max,
		     struct err *err)
{
	CLEANUP(recordqueue_free_p) struct recordqueue *q = xcalloc(1, sizeof(*q));
	q->held_limit = held_max;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->stops, &attr);
	pthread_condattr_destroy(&attr);
	TRY(bpfring_open(&q->ring, fd, nr_bytes, err));
	/* Without the thread records may be lost while the reader is busy; losses are counted. */
	q->has_thread = !pthread_create(&q->thread, NULL, drain_thread, q);
	*ret_q = TAKE(q);
	return 0;
}

void recordqueue_free(struct recordqueue *q)
{
	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	q->is_stopping = true;
	pthread_cond_signal(&q->stops);
	pthread_mutex_unlock(&q->lock);
	if (q->has_thread)
		pthread_join(q->thread, NULL);
	vec_foreach(c, &q->chunks)
		free(c->bytes);
	vec_release(&q->chunks);
	free(q->scratch);
	bpfring_release(&q->ring);
	pthread_cond_destroy(&q->stops);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

void recordqueue_free_p(struct recordqueue **q)
{
	recordqueue_free(*q);
}

/* ---- reading ------------------------------------------------------------------------------ */

static void copy_to_scratch(struct recordqueue *q, const void *record, uint32_t nr_bytes)
{
	if (q->nr_scratch < nr_bytes) {
		free(q->scratch);
		q->nr_scratch = MAX(2 * q->nr_scratch, padded(nr_bytes));
		q->scratch = xmalloc(q->nr_scratch);
	}
	memcpy(q->scratch, record, nr_bytes);
}

static void drop_chunks(struct recordqueue *q)
{
	vec_foreach(c, &q->chunks)
		free(c->bytes);
	vec_clear(&q->chunks);
	q->first = q->at = q->nr_held = 0;
}

static bool next_in_memory(struct recordqueue *q, uint32_t *ret_nr_bytes)
{
	while (q->first < q->chunks.n && q->at == q->chunks.p[q->first].n) {
		struct chunk *c = &q->chunks.p[q->first++];
		q->nr_held -= c->n;
		free(TAKE(c->bytes));
		c->n = c->cap = 0;
		q->at = 0;
	}
	if (q->first == q->chunks.n) {
		drop_chunks(q);
		return false;
	}
	const struct chunk *c = &q->chunks.p[q->first];
	memcpy(ret_nr_bytes, c->bytes + q->at, sizeof(*ret_nr_bytes));
	copy_to_scratch(q, c->bytes + q->at + 8, *ret_nr_bytes);
	q->at += 8 + padded(*ret_nr_bytes);
	return true;
}

static enum recordqueue_state next_in_ring(struct recordqueue *q, uint32_t *ret_nr_bytes)
{
	const void *record;
	enum bpfring_state state;
	while ((state = bpfring_peek(&q->ring, &record, ret_nr_bytes)) == BPFRING_BAD)
		q->nr_bad++;
	if (state == BPFRING_EMPTY)
		return RECORDQUEUE_EMPTY;
	if (state == BPFRING_BUSY)
		return RECORDQUEUE_BUSY;
	copy_to_scratch(q, record, *ret_nr_bytes);
	bpfring_consume(&q->ring);
	if (++q->nr_taken % PUBLISH_EVERY == 0)
		bpfring_publish(&q->ring);
	return RECORDQUEUE_RECORD;
}

enum recordqueue_state recordqueue_next(struct recordqueue *q, const void **ret_record,
					uint32_t *ret_nr_bytes, uint64_t *nr_bad)
{
	pthread_mutex_lock(&q->lock);
	enum recordqueue_state state = next_in_memory(q, ret_nr_bytes)
					       ? RECORDQUEUE_RECORD
					       : next_in_ring(q, ret_nr_bytes);
	*nr_bad += q->nr_bad;
	q->nr_bad = 0;
	pthread_mutex_unlock(&q->lock);
	*ret_record = q->scratch;
	return state;
}

void recordqueue_publish(struct recordqueue *q)
{
	pthread_mutex_lock(&q->lock);
	bpfring_publish(&q->ring);
	pthread_mutex_unlock(&q->lock);
}

void recordqueue_on_poll(struct recordqueue *q, void (*fn)(void *ctx), void *ctx)
{
	pthread_mutex_lock(&q->lock);
	q->on_poll = fn;
	q->on_poll_ctx = ctx;
	pthread_mutex_unlock(&q->lock);
}

void recordqueue_rest(struct recordqueue *q, bool is_resting)
{
	pthread_mutex_lock(&q->lock);
	q->is_resting = is_resting;
	if (!is_resting)
		pthread_cond_signal(&q->stops);
	pthread_mutex_unlock(&q->lock);
}

size_t recordqueue_max_held(struct recordqueue *q)
{
	pthread_mutex_lock(&q->lock);
	size_t n = q->max_held;
	pthread_mutex_unlock(&q->lock);
	return n;
}
