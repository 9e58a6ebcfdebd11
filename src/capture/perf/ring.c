/* perf ring buffers; see ring.h. */
#include "base/base.h"
#include "capture/perf/ring.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

int ring_open(struct ring *ret_r, int fd, uint32_t nr_pages, struct err *err)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	ASSERT(nr_pages && !(nr_pages & (nr_pages - 1)));
	void *p =
		mmap(NULL, (nr_pages + 1) * page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_sys(err, "cannot map a ring of %u pages", nr_pages);
	*ret_r = (struct ring){.fd = fd,
			       .page = p,
			       .data = (const uint8_t *)p + page_bytes,
			       .nr_data_bytes = nr_pages * page_bytes};
	return 0;
}

void ring_release(struct ring *r)
{
	if (r->page) {
		size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
		munmap(r->page, page_bytes + r->nr_data_bytes);
	}
	free(r->scratch);
	*r = (struct ring){.fd = -1};
}

void ring_refresh(struct ring *r)
{
	/* Pairs with the kernel's barrier before it stores data_head. */
	r->head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

static const struct perf_event_header *unwrap(struct ring *r, uint64_t at, size_t n)
{
	if (r->nr_scratch < n) {
		r->scratch = xrealloc(r->scratch, n);
		r->nr_scratch = n;
	}
	size_t first = (size_t)(r->nr_data_bytes - at);
	memcpy(r->scratch, r->data + at, first);
	memcpy(r->scratch + first, r->data, n - first);
	return (const struct perf_event_header *)(const void *)r->scratch;
}

const struct perf_event_header *ring_peek(struct ring *r, bool *ret_is_bad)
{
	*ret_is_bad = false;
	uint64_t left = r->head - r->tail;
	if (!left)
		return NULL;
	uint64_t at = r->tail & (r->nr_data_bytes - 1);
	/* Headers are 8 bytes and 8-byte aligned, so a header itself never wraps. */
	const struct perf_event_header *h = (const void *)(r->data + at);
	size_t n = h->size;
	if (n < sizeof(*h) || n > left || (n & 7)) {
		*ret_is_bad = true;
		r->tail = r->head;
		return NULL;
	}
	return at + n <= r->nr_data_bytes ? h : unwrap(r, at, n);
}

void ring_consume(struct ring *r, uint16_t nr_bytes)
{
	r->tail += nr_bytes;
}

void ring_publish(struct ring *r)
{
	__atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}
