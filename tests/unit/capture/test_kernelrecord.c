/* capture/bpf: decoding of BPF records, valid and with wrong lengths; bpfring; recordqueue. */
#include "base/base.h"
#include "tap.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "arch.h"
#include "base/mem.h"
#include "capture/bpf/bpfring.h"
#include "capture/bpf/kernelrecord.h"
#include "capture/bpf/recordqueue.h"
#include "kernel_sample.h"
#include "kernel_stack.h"

TEST(kernelrecord_stack_with_more_frames_than_bytes_is_refused)
{
	uint64_t bytes[16] = {0};
	struct kernel_stack *s = (void *)bytes;
	s->head = (struct kernel_record){
		.kind = RECORD_STACK, .nr_bytes = sizeof(*s) + 16, .time_ns = 1, .tgid = 7};
	s->nr_frames = 2;
	s->end = WALK_NO_MAP;
	s->head.flags = KSTACK_CALLERS;
	CHECK(kernelrecord_is_sane(&s->head, sizeof(*s) + 16));
	CHECK(!kernelrecord_is_sane(&s->head, sizeof(*s) + 8));
	struct kernelrecord_scratch scratch;
	struct event ev;
	CHECK(kernelrecord_decode(&s->head, &scratch, &ev));
	CHECK_U64(ev.kind, EVENT_STACK);
	CHECK_U64(ev.stack.nr_chain, 2);
	CHECK_U64(ev.stack.loss, LOSS_TRUNC_NO_MAP);
	CHECK(ev.stack.is_callers && !ev.stack.is_kernel);
	s->nr_frames = 3;
	CHECK(!kernelrecord_is_sane(&s->head, sizeof(bytes)));
	s->nr_frames = UINT32_MAX;
	CHECK(!kernelrecord_is_sane(&s->head, sizeof(bytes)));
}

TEST(kernelrecord_puts_the_outer_half_of_a_deep_stack_in_order)
{
	const uint32_t nr_bytes = sizeof(struct kernel_stack) + KSTACK_FRAMES_MAX * 8;
	struct kernel_stack *s = xcalloc(1, nr_bytes);
	struct kernelrecord_scratch *scratch = xcalloc(1, sizeof(*scratch));
	struct event ev;
	s->head = (struct kernel_record){.kind = RECORD_STACK, .nr_bytes = nr_bytes, .time_ns = 1};
	s->nr_frames = KSTACK_FRAMES_MAX;
	s->gap_log2 = 12;
	s->gap_end = KSTACK_LEAF_FRAMES + 5;
	/* The frame at index i of the stack has the value i + 1; the ring begins at gap_end. */
	for (uint32_t i = 0; i < KSTACK_LEAF_FRAMES; i++) {
		s->frames[i] = i + 1;
		s->frames[KSTACK_LEAF_FRAMES + (5 + i) % KSTACK_LEAF_FRAMES] =
			KSTACK_LEAF_FRAMES + i + 1;
	}
	CHECK(kernelrecord_is_sane(&s->head, nr_bytes));
	CHECK(kernelrecord_decode(&s->head, scratch, &ev));
	CHECK_U64(ev.stack.nr_inner, KSTACK_LEAF_FRAMES);
	CHECK_U64(ev.stack.nr_gap_min, 2048);
	for (uint32_t i = 0; i < KSTACK_FRAMES_MAX; i++)
		CHECK_U64(ev.stack.chain[i], i + 1);
	s->gap_end = KSTACK_FRAMES_MAX;
	CHECK(!kernelrecord_is_sane(&s->head, nr_bytes));
	s->gap_end = KSTACK_LEAF_FRAMES;
	s->nr_frames--;
	CHECK(!kernelrecord_is_sane(&s->head, nr_bytes));
	free(scratch);
	free(s);
}

TEST(kernelrecord_converts_registers_from_dwarf_to_perf_order)
{
	struct kernel_copy *c = xcalloc(1, sizeof(*c) + 64);
	c->head = (struct kernel_record){
		.kind = RECORD_COPY, .nr_bytes = sizeof(*c) + 64, .time_ns = 1, .pid = 9};
	c->nr_stack = 64;
	for (uint64_t i = 0; i < ARCH_NR_DWARF_REG; i++)
		c->regs[i] = 100 + i;
	CHECK(kernelrecord_is_sane(&c->head, c->head.nr_bytes));
	struct kernelrecord_scratch scratch;
	struct event ev;
	CHECK(kernelrecord_decode(&c->head, &scratch, &ev));
	static const uint8_t perf_of[ARCH_NR_DWARF_REG] = ARCH_PERF_FROM_DWARF;
	CHECK_U64(__builtin_popcountll(ev.stack.regs_mask), ARCH_NR_DWARF_REG);
	for (unsigned reg = 0; reg < ARCH_NR_DWARF_REG; reg++) {
		unsigned at = 0;
		for (unsigned bit = 0; bit < perf_of[reg]; bit++)
			at += ev.stack.regs_mask >> bit & 1;
		CHECK_U64(ev.stack.regs[at], 100 + reg);
	}
	CHECK_U64(ev.stack.nr_stack, 64);
	c->nr_stack = 65;
	CHECK(!kernelrecord_is_sane(&c->head, c->head.nr_bytes));
	free(c);
}

TEST(kernelrecord_of_another_kind_is_not_decoded)
{
	struct kernel_record r = {.kind = RECORD_WAIT, .nr_bytes = sizeof(r), .time_ns = 5};
	struct kernelrecord_scratch scratch;
	struct event ev;
	CHECK(kernelrecord_is_sane(&r, sizeof(r)));
	CHECK(!kernelrecord_decode(&r, &scratch, &ev));
	r.time_ns = 0;
	CHECK(!kernelrecord_is_sane(&r, sizeof(r)));
}

/* ---- bpfring on a file with the layout of a ring; nothing wraps around ---- */

#define RING_BYTES 4096u

struct fake {
	struct bpfring ring;
	int fd;
	uint8_t *bytes; /* of the whole file */
	size_t page_bytes;
};

static void fake_open(struct fake *f)
{
	f->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t n = 2 * f->page_bytes + 2 * RING_BYTES;
	f->fd = memfd_create("ring", 0);
	CHECK(f->fd >= 0 && !ftruncate(f->fd, (off_t)n));
	f->bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	CHECK(f->bytes != MAP_FAILED);
	CHECK(!bpfring_open(&f->ring, f->fd, RING_BYTES, NULL));
}

static void put(struct fake *f, uint32_t head, uint64_t value)
{
	uint64_t *producer = (void *)(f->bytes + f->page_bytes);
	uint32_t *at = (void *)(f->bytes + 2 * f->page_bytes + *producer);
	at[0] = head;
	memcpy(at + 2, &value, sizeof(value));
	*producer += 16;
}

#define BUSY    0x80000000u
#define DISCARD 0x40000000u

TEST(bpfring_returns_records_in_order_and_skips_discarded_ones)
{
	struct fake f;
	fake_open(&f);
	const void *p = NULL;
	uint32_t n = 0;
	CHECK_U64(bpfring_peek(&f.ring, &p, &n), BPFRING_EMPTY);
	put(&f, 8, 11);
	put(&f, 8 | DISCARD, 12);
	put(&f, 5, 13);
	put(&f, 8 | BUSY, 14);
	CHECK_U64(bpfring_peek(&f.ring, &p, &n), BPFRING_RECORD);
	CHECK_U64(n, 8);
	CHECK_U64(*(const uint64_t *)p, 11);
	bpfring_consume(&f.ring);
	CHECK_U64(bpfring_peek(&f.ring, &p, &n), BPFRING_RECORD);
	CHECK_U64(n, 5);
	CHECK_U64(*(const uint64_t *)p, 13);
	bpfring_consume(&f.ring);
	CHECK_U64(bpfring_peek(&f.ring, &p, &n), BPFRING_BUSY);
	CHECK_U64(*(uint64_t *)(void *)f.bytes, 0);
	bpfring_publish(&f.ring);
	CHECK_U64(*(uint64_t *)(void *)f.bytes, 48);
	bpfring_release(&f.ring);
}

TEST(bpfring_drops_all_records_at_a_length_past_the_end)
{
	struct fake f;
	fake_open(&f);
	const void *p;
	uint32_t n;
	put(&f, 9, 1);
	CHECK_U64(bpfring_peek(&f.ring, &p, &n), BPFRING_BAD);
	CHECK_U64(bpfring_peek(&f.ring, &p, &n), BPFRING_EMPTY);
	put(&f, 8, 2);
	CHECK_U64(bpfring_peek(&f.ring, &p, &n), BPFRING_RECORD);
	bpfring_release(&f.ring);
}

static void wait_until_moved(const struct fake *f, uint64_t to)
{
	const uint64_t *consumer = (const void *)f->bytes;
	struct timespec ms = {.tv_nsec = 1000000};
	for (int i = 0; i < 5000 && __atomic_load_n(consumer, __ATOMIC_ACQUIRE) < to; i++)
		(void)nanosleep(&ms, NULL);
	CHECK_U64(__atomic_load_n(consumer, __ATOMIC_ACQUIRE), to);
}

TEST(recordqueue_moves_unread_records_to_memory_in_order)
{
	struct fake f;
	fake_open(&f);
	struct recordqueue *q = NULL;
	CHECK(!recordqueue_open(&q, f.fd, RING_BYTES, 1 << 20, NULL));
	const uint64_t nr = 100; /* 1,600 of 4,096 bytes */
	for (uint64_t i = 0; i < nr; i++)
		put(&f, i == 7 ? 8 | DISCARD : 8, i);
	wait_until_moved(&f, nr * 16);
	put(&f, 8, nr);
	put(&f, 8 | BUSY, 0);
	const void *p = NULL;
	uint32_t n = 0;
	uint64_t nr_bad = 0;
	for (uint64_t i = 0; i <= nr; i++) {
		if (i == 7)
			continue;
		CHECK_U64(recordqueue_next(q, &p, &n, &nr_bad), RECORDQUEUE_RECORD);
		CHECK_U64(n, 8);
		CHECK_U64(*(const uint64_t *)p, i);
	}
	CHECK_U64(recordqueue_next(q, &p, &n, &nr_bad), RECORDQUEUE_BUSY);
	CHECK_U64(nr_bad, 0);
	CHECK(recordqueue_max_held(q) >= (nr - 1) * 16);
	recordqueue_free(q);
}
