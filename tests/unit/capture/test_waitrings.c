#include "base/base.h"

#include <stdlib.h>

#include "capture/wait/waitrings.h"
#include "tap.h"
#include "wait_reason.h"

#define NR_RECORDS 8

struct rings {
	void *memory;
	struct waitrings *merge;
};

static void open_rings(struct rings *r, unsigned nr_rings)
{
	r->memory = calloc(nr_rings, waitrings_bytes(NR_RECORDS));
	r->merge = waitrings_new(r->memory, nr_rings, NR_RECORDS);
}

static void close_rings(struct rings *r)
{
	waitrings_free(r->merge);
	free(r->memory);
}

static struct wait_ring *ring_of(const struct rings *r, unsigned idx)
{
	return (void *)((char *)r->memory + idx * waitrings_bytes(NR_RECORDS));
}

/* As the BPF program does; false: the ring is full. */
static bool put(const struct rings *r, unsigned idx, int32_t tid, uint64_t off_ns,
		uint32_t blocked_ns, uint32_t queue_ns)
{
	struct wait_ring *ring = ring_of(r, idx);
	if (ring->head - ring->tail >= NR_RECORDS)
		return false;
	ring->records[ring->head & (NR_RECORDS - 1)] =
		(struct wait_record){.off_ns = off_ns,
				     .blocked_ns = blocked_ns,
				     .queue_ns = queue_ns,
				     .ran_ns = 5,
				     .run_ns = 4,
				     .tid = tid,
				     .fd = WAIT_NO_FD};
	ring->head++;
	return true;
}

/* Takes all records up to the horizon; checks that they are in order; returns how many. */
static unsigned take(const struct rings *r, uint64_t horizon_ns, int32_t *ret_tids)
{
	struct wait_run run;
	uint64_t last_ns = 0;
	unsigned nr = 0;
	waitrings_begin(r->merge, horizon_ns);
	while (waitrings_next(r->merge, &run)) {
		CHECK(run.interval.on_ns >= last_ns && run.interval.on_ns <= horizon_ns);
		last_ns = run.interval.on_ns;
		if (ret_tids)
			ret_tids[nr] = run.interval.tid;
		nr++;
	}
	waitrings_end(r->merge);
	return nr;
}

TEST(waitrings_merge_by_the_end_of_the_interval)
{
	struct rings r;
	int32_t tids[8];
	open_rings(&r, 3);
	put(&r, 0, 1, 100, 20, 0); /* ends at 120 */
	put(&r, 0, 2, 100, 50, 10);
	put(&r, 2, 3, 10, 100, 0); /* 110 */
	put(&r, 2, 4, 90, 0, 60);  /* 150 */
	CHECK_U64(take(&r, 1000, tids), 4);
	CHECK(tids[0] == 3 && tids[1] == 1 && tids[2] == 4 && tids[3] == 2);
	CHECK_U64(take(&r, 1000, NULL), 0);
	close_rings(&r);
}

TEST(waitrings_leave_what_ended_after_the_horizon)
{
	struct rings r;
	int32_t tids[8];
	open_rings(&r, 2);
	put(&r, 0, 1, 100, 20, 0);
	put(&r, 0, 2, 100, 100, 0);
	put(&r, 1, 3, 100, 150, 0);
	CHECK_U64(take(&r, 120, tids), 1);
	CHECK_U64(ring_of(&r, 0)->tail, 1);
	CHECK_U64(ring_of(&r, 1)->tail, 0);
	CHECK_U64(take(&r, 250, tids), 2);
	CHECK(tids[0] == 2 && tids[1] == 3);
	close_rings(&r);
}

TEST(waitrings_free_room_and_wrap_around)
{
	struct rings r;
	open_rings(&r, 1);
	uint64_t ns = 1000;
	unsigned nr = 0;
	for (int round = 0; round < 10; round++) {
		unsigned nr_put = 0;
		for (; put(&r, 0, 7, ns, 1, 1); ns += 10)
			nr_put++;
		CHECK_U64(nr_put, NR_RECORDS);
		nr += take(&r, UINT64_MAX - 1, NULL);
	}
	CHECK_U64(nr, 10 * NR_RECORDS);
	close_rings(&r);
}

TEST(waitrings_hold_records_in_their_order)
{
	struct rings r;
	int32_t tids[16];
	open_rings(&r, 2);
	for (int32_t i = 0; i < 7; i++)
		put(&r, 0, i, 100 + 10 * (uint64_t)i, 5, 0);
	put(&r, 1, 100, 112, 5, 0);
	waitrings_hold(r.merge);
	CHECK_U64(ring_of(&r, 0)->tail, 7);
	CHECK_U64(ring_of(&r, 1)->tail, 0); /* less than a quarter full */
	put(&r, 0, 7, 170, 5, 0);
	put(&r, 0, 8, 180, 5, 0);
	CHECK_U64(take(&r, 120, tids), 3);
	CHECK(tids[0] == 0 && tids[1] == 1 && tids[2] == 100);
	put(&r, 0, 9, 190, 5, 0);
	CHECK_U64(take(&r, 1000, tids), 8);
	for (int32_t i = 0; i < 8; i++)
		CHECK(tids[i] == i + 2);
	CHECK_U64(take(&r, 1000, NULL), 0);
	put(&r, 0, 10, 200, 5, 0);
	CHECK_U64(take(&r, 1000, NULL), 1);
	close_rings(&r);
}

TEST(waitrings_merge_records_of_the_common_ring)
{
	struct rings r;
	int32_t tids[8];
	open_rings(&r, 1);
	put(&r, 0, 1, 100, 20, 0);
	put(&r, 0, 2, 200, 20, 0);
	struct wait_single s = {.record = {.tid = 3, .off_ns = 50, .fd = WAIT_NO_FD},
				.blocked_ns = 100};
	waitrings_add(r.merge, &s);
	s.record.tid = 4;
	s.blocked_ns = 10ull << 32;
	waitrings_add(r.merge, &s);
	CHECK_U64(take(&r, 1000, tids), 3);
	CHECK(tids[0] == 1 && tids[1] == 3 && tids[2] == 2);
	CHECK_U64(take(&r, UINT64_MAX - 1, tids), 1);
	CHECK(tids[0] == 4);
	close_rings(&r);
}

TEST(waitrings_decode_owner_and_descriptor)
{
	struct rings r;
	struct wait_run run;
	open_rings(&r, 1);
	struct wait_single s = {
		.record = {.tid = 3, .off_ns = 50, .fd = 77, .object_kind = OBJECT_FUTEX}};
	waitrings_add(r.merge, &s);
	s.record.object_kind = OBJECT_FILE;
	s.record.off_ns = 60;
	waitrings_add(r.merge, &s);
	waitrings_begin(r.merge, 1000);
	CHECK(waitrings_next(r.merge, &run));
	CHECK(run.interval.owner_tid == 77 && run.interval.fd == WAIT_NO_FD);
	CHECK(waitrings_next(r.merge, &run));
	CHECK(run.interval.owner_tid == 0 && run.interval.fd == 77);
	CHECK(!waitrings_next(r.merge, &run));
	waitrings_end(r.merge);
	close_rings(&r);
}

TEST(waitrings_size_follows_the_number_of_cpus)
{
	CHECK(waitrings_choose(2) * waitrings_bytes(1) > 0);
	for (unsigned nr = 1; nr <= 1024; nr *= 2) {
		uint32_t n = waitrings_choose(nr);
		CHECK(n >= 1024 && !(n & (n - 1)));
		CHECK(nr <= 8 ? n >= 32768 : nr * waitrings_bytes(n) < (1ull << 30));
	}
}
