/* Consumer side of a BPF ring buffer; see bpfring.h. */
#include "base/base.h"
#include "capture/bpf/bpfring.h"

#include <sys/mman.h>
#include <unistd.h>

/* linux/bpf.h: BPF_RINGBUF_BUSY_BIT, BPF_RINGBUF_DISCARD_BIT, BPF_RINGBUF_HDR_SZ. */
#define HEAD_BUSY    (1u << 31)
#define HEAD_DISCARD (1u << 30)
#define HEAD_BYTES   8u

int bpfring_open(struct bpfring *ret_r, int fd, uint64_t nr_bytes, struct err *err)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	ASSERT(nr_bytes && !(nr_bytes & (nr_bytes - 1)));
	void *consumer = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (consumer == MAP_FAILED)
		return err_sys(err, "cannot map the position of the kernel's ring");
	void *rest =
		mmap(NULL, page_bytes + 2 * nr_bytes, PROT_READ, MAP_SHARED, fd, (off_t)page_bytes);
	if (rest == MAP_FAILED) {
		int rc =
			err_sys(err, "cannot map the kernel's ring of %" PRIu64 " bytes", nr_bytes);
		munmap(consumer, page_bytes);
		return rc;
	}
	*ret_r = (struct bpfring){.fd = fd,
				  .consumer = consumer,
				  .producer = rest,
				  .data = (const uint8_t *)rest + page_bytes,
				  .nr_data_bytes = nr_bytes};
	ret_r->tail = __atomic_load_n(ret_r->consumer, __ATOMIC_RELAXED);
	return 0;
}

void bpfring_release(struct bpfring *r)
{
	if (r->consumer) {
		size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
		munmap(r->consumer, page_bytes);
		munmap((void *)(uintptr_t)r->producer, page_bytes + 2 * r->nr_data_bytes);
	}
	*r = (struct bpfring){.fd = -1};
}

static uint64_t record_bytes(uint32_t nr_bytes)
{
	return ((uint64_t)nr_bytes + HEAD_BYTES + 7) & ~(uint64_t)7;
}

static uint32_t read_head(const struct bpfring *r)
{
	const uint8_t *at = r->data + (r->tail & (r->nr_data_bytes - 1));
	/* Pairs with the kernel's exchange of the head when the record is submitted. */
	return __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

enum bpfring_state bpfring_peek(struct bpfring *r, const void **ret_record, uint32_t *ret_nr_bytes)
{
	uint64_t head = __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
	while (r->tail != head) {
		uint32_t len = read_head(r);
		if (len & HEAD_BUSY)
			return BPFRING_BUSY;
		uint32_t nr_bytes = len & ~(HEAD_BUSY | HEAD_DISCARD);
		uint64_t left = head - r->tail;
		if (left > r->nr_data_bytes || record_bytes(nr_bytes) > left) {
			r->tail = head;
			return BPFRING_BAD;
		}
		if (!(len & HEAD_DISCARD)) {
			*ret_record = r->data + (r->tail & (r->nr_data_bytes - 1)) + HEAD_BYTES;
			*ret_nr_bytes = nr_bytes;
			return BPFRING_RECORD;
		}
		r->tail += record_bytes(nr_bytes);
	}
	return BPFRING_EMPTY;
}

uint64_t bpfring_used(const struct bpfring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE) - r->tail;
}

void bpfring_consume(struct bpfring *r)
{
	r->tail += record_bytes(read_head(r) & ~(HEAD_BUSY | HEAD_DISCARD));
}

void bpfring_publish(struct bpfring *r)
{
	__atomic_store_n(r->consumer, r->tail, __ATOMIC_RELEASE);
}
