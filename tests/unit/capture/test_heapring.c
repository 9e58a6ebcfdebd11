/* Rings of a recorder that may be anything. */
#include "base/base.h"
#include "fake_recorder.h"
#include "tap.h"

#include <pthread.h>
#include <sched.h>

#include "kernel_python.h"
#include "model/tables.h"

#define START FAKE_RECORDER_START

TEST(heapring_emits_stacks_ahead)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	uint64_t words[4] = {HEAP_RECORD_STACK | (START + 90) << HEAP_TSC_SHIFT,
			     7 | (uint64_t)2 << 32, 0x401000, 0x402000};
	CHECK(fake_recorder_put(&w, 0, words, 4));
	fake_recorder_pass(&w, START + 50);
	CHECK_U64(w.stacks.n, 1);
	CHECK_U64(w.stacks.p[0], 7);
	CHECK_U64(w.slots[0].tail, 32);
	fake_recorder_release(&w);
}

/* Frames that refer to records of other rings: only when those are written. */
TEST(heapring_takes_python_frames_by_their_time)
{
	struct fake_recorder w;
	static uint64_t code[2 + sizeof(struct kernel_pycode) / 8] = {HEAP_RECORD_PYCODE,
								      sizeof(struct kernel_pycode)};
	uint64_t frames[5] = {HEAP_RECORD_PYSTACK | (START + 30) << HEAP_TSC_SHIFT,
			      8 | (uint64_t)7 << 32, 1, 99, 4};
	fake_recorder_init(&w, 0, 1);
	code[2 + offsetof(struct kernel_pycode, key) / 8] = 99;
	CHECK(fake_recorder_put(&w, 0, code, ARRAY_LEN(code)));
	CHECK(fake_recorder_put(&w, 0, frames, ARRAY_LEN(frames)));
	fake_recorder_pass(&w, START + 20);
	CHECK_U64(w.pythons.n, 1);
	CHECK_U64(w.pythons.p[0], 99);
	CHECK_U64(w.slots[0].tail, sizeof(code));
	fake_recorder_pass(&w, START + 30);
	CHECK_U64(w.pythons.n, 2);
	CHECK_U64(w.pythons.p[1], 8);
	CHECK_U64(w.slots[0].tail, w.slots[0].head);
	fake_recorder_release(&w);
}

TEST(heapring_leaves_what_is_younger_than_the_pass)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	CHECK(fake_recorder_alloc(&w, 0, START + 10, 0x1000, 16, 1));
	CHECK(fake_recorder_alloc(&w, 0, START + 30, 0x2000, 16, 1));
	fake_recorder_pass(&w, START + 20);
	CHECK_U64(w.slots[0].tail, 24);
	CHECK_U64(heapaccount_info(w.account).nr_live, 1);
	fake_recorder_pass(&w, START + 30);
	CHECK_U64(w.slots[0].tail, 48);
	CHECK_U64(heapaccount_info(w.account).nr_live, 2);
	CHECK_U64(w.shared.alive_tsc, START + 30);
	fake_recorder_release(&w);
}

/* Nothing is read twice, nothing is waited for, the other rings are as they were. */
static void check_broken(struct fake_recorder *w, unsigned slot)
{
	CHECK(fake_recorder_alloc(w, 1, START + 10, 0x1000, 16, 1));
	fake_recorder_pass(w, START + 20);
	CHECK_U64(heapring_counts(&w->ring).nr_broken, 1);
	CHECK_U64(w->slots[slot].tail, w->slots[slot].head);
	CHECK_U64(heapaccount_info(w->account).nr_live, 1);
	w->slots[slot].head += 8;
	fake_recorder_pass(w, START + 30);
	CHECK_U64(heapring_counts(&w->ring).nr_broken, 1);
	CHECK_U64(w->slots[slot].tail, w->slots[slot].head);
	fake_recorder_release(w);
}

TEST(heapring_gives_up_a_ring_with_an_impossible_head)
{
	static const uint64_t heads[] = {FAKE_RECORDER_RING_BYTES + 8, 12, UINT64_MAX - 7};
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		struct fake_recorder w;
		fake_recorder_init(&w, 0, 1);
		w.slots[0].head = heads[i];
		check_broken(&w, 0);
	}
}

TEST(heapring_gives_up_a_ring_with_impossible_records)
{
	static const uint64_t records[][2] = {
		{15, 0},                                               /* no such kind */
		{HEAP_RECORD_ALLOC | START << HEAP_TSC_SHIFT, 0x1000}, /* cut */
		{HEAP_RECORD_STACK, (uint64_t)600 << 32},              /* too deep */
		{HEAP_RECORD_STACK, (uint64_t)5 << 32},                /* frames missing */
		{HEAP_RECORD_STACK, (uint64_t)WALK_END_NR << 48},
		{HEAP_RECORD_PYCODE, 64},      /* shorter than its head */
		{HEAP_RECORD_PYCODE, 1600},    /* cut */
		{HEAP_RECORD_PYCODE, 1 << 20}, /* too long */
		{HEAP_RECORD_PYSTACK, 0},      /* cut */
		{HEAP_RECORD_FREE | (START + ((uint64_t)1 << 40)) << HEAP_TSC_SHIFT, 8}, /* ahead */
		{HEAP_RECORD_PAD, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(records); i++) {
		struct fake_recorder w;
		fake_recorder_init(&w, 0, 1);
		CHECK(fake_recorder_put(&w, 0, records[i], 2));
		check_broken(&w, 0);
	}
}

/* Each stack that is reported takes memory of ours. */
TEST(heapring_gives_up_a_ring_of_endless_stacks)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	for (uint64_t i = 1; i <= (uint64_t)3 << 20; i++) {
		uint64_t words[2] = {HEAP_RECORD_STACK, i & UINT32_MAX};
		while (!fake_recorder_put(&w, 0, words, 2))
			fake_recorder_pass(&w, START);
	}
	fake_recorder_pass(&w, START);
	CHECK_U64(w.stacks.n, (uint64_t)2 << 20);
	check_broken(&w, 0);
}

TEST(heapring_gives_up_a_ring_of_endless_frames)
{
	static uint64_t words[2 + 256];
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	for (uint64_t i = 1; i <= (1u << 18) + 10; i++) {
		words[0] = HEAP_RECORD_STACK;
		words[1] = i | (uint64_t)256 << 32;
		while (!fake_recorder_put(&w, 0, words, ARRAY_LEN(words)))
			fake_recorder_pass(&w, START);
	}
	fake_recorder_pass(&w, START);
	CHECK_U64(w.stacks.n, 1u << 18);
	check_broken(&w, 0);
}

TEST(heapring_survives_any_bytes)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct fake_recorder w;
		fake_recorder_init(&w, seed % 2 ? 0 : 4096, seed);
		for (unsigned pass = 0; pass < 30; pass++) {
			for (unsigned s = 0; s < FAKE_RECORDER_SLOTS; s++) {
				for (unsigned i = 0; i < FAKE_RECORDER_RING_BYTES / 8; i++) {
					uint64_t kind = fake_recorder_random(&w, 9);
					w.rings[s][i] =
						fake_recorder_random(&w, UINT64_MAX) << 12 | kind;
				}
				w.slots[s].head += 8 * fake_recorder_random(&w, 600);
				w.slots[s].tid = (uint32_t)fake_recorder_random(&w, 1000);
				w.slots[s].classes[3].nr = fake_recorder_random(&w, UINT64_MAX);
			}
			fake_recorder_pass(&w, START + pass * 1000000);
		}
		heapaccount_end(w.account);
		for (unsigned s = 0; s < FAKE_RECORDER_SLOTS; s++)
			CHECK(w.slots[s].head - w.slots[s].tail <= FAKE_RECORDER_RING_BYTES);
		fake_recorder_release(&w);
	}
}

static bool is_not_101(void *ctx, int32_t tid)
{
	(void)ctx;
	return tid != 101;
}

TEST(heapring_hands_a_slot_on_when_its_thread_has_ended)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	CHECK(fake_recorder_alloc(&w, 1, START + 10, 0x1000, 16, 1));
	CHECK(fake_recorder_alloc(&w, 1, START + 30, 0x2000, 16, 1));
	w.slots[1].classes[0].nr = 2;
	fake_recorder_pass(&w, START + 20);
	uint64_t owner = w.slots[1].owner;
	heapring_retire(&w.ring, 10, is_not_101, NULL);
	CHECK_U64(w.slots[1].owner, owner); /* not empty yet */
	fake_recorder_pass(&w, START + 40);
	heapring_retire(&w.ring, 20, is_not_101, NULL);
	CHECK_U64(w.slots[1].owner, owner | 1);
	CHECK_U64(w.slots[2].owner & 1, 0);

	w.slots[1].owner = owner; /* the next thread with the same thread pointer takes it */
	w.slots[1].tid = 555;
	w.slots[1].classes[0].nr = 1;
	CHECK(fake_recorder_alloc(&w, 1, START + 50, 0x3000, 100, 2));
	fake_recorder_pass(&w, START + 60);
	heapaccount_end(w.account);
	CHECK_U64(fake_recorder_sum(&w, TABLE_ALLOCATED, -1, 101, 0), 2);
	CHECK_U64(fake_recorder_sum(&w, TABLE_ALLOCATED, -1, 555, 1), 100);
	CHECK_U64(heapring_counts(&w.ring).nr_allocs, 3);
	fake_recorder_release(&w);
}

TEST(heapring_gives_a_slot_to_anybody_after_a_while)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	CHECK(fake_recorder_alloc(&w, 1, START + 10, 0x1000, 16, 1));
	fake_recorder_pass(&w, START + 20);
	struct heap_slot *s = &w.slots[1];
	uint64_t owner = s->owner;
	heapring_thread_ended(&w.ring, 10, 101);
	CHECK_U64(s->owner, owner | 1);
	heapring_retire(&w.ring, 9 + HEAP_RETIRE_NS, is_not_101, NULL);
	CHECK_U64(s->owner, owner | 1); /* too early */

	s->is_inside = 1;
	heapring_retire(&w.ring, 10 + HEAP_RETIRE_NS, is_not_101, NULL);
	CHECK_U64(s->owner, owner | 1);
	s->is_inside = 0;
	CHECK(fake_recorder_alloc(&w, 1, START + 30, 0x2000, 16, 1));
	heapring_retire(&w.ring, 10 + HEAP_RETIRE_NS, is_not_101, NULL);
	CHECK_U64(s->owner, owner | 1); /* something was written */
	fake_recorder_pass(&w, START + 40);

	s->owner = owner; /* it came back */
	heapring_retire(&w.ring, 10 + HEAP_RETIRE_NS, is_not_101, NULL);
	CHECK_U64(s->owner, owner);
	heapring_retire(&w.ring, 20 + HEAP_RETIRE_NS, is_not_101, NULL);
	CHECK_U64(s->owner, owner | 1); /* and has ended, which takes its time again */
	heapring_retire(&w.ring, 19 + 2 * (uint64_t)HEAP_RETIRE_NS, is_not_101, NULL);
	CHECK_U64(s->owner, owner | 1);
	heapring_retire(&w.ring, 20 + 2 * (uint64_t)HEAP_RETIRE_NS, is_not_101, NULL);
	CHECK_U64(s->owner, HEAP_OWNER_FREE);
	heapring_retire(&w.ring, 30 + 3 * (uint64_t)HEAP_RETIRE_NS, is_not_101, NULL);
	CHECK_U64(s->owner, HEAP_OWNER_FREE);

	s->owner = 0x9000;
	s->tid = 777;
	CHECK(fake_recorder_alloc(&w, 1, START + 50, 0x3000, 100, 2));
	fake_recorder_pass(&w, START + 60);
	heapaccount_end(w.account);
	CHECK_U64(fake_recorder_sum(&w, TABLE_ALLOCATED, -1, 101, 0), 2);
	CHECK_U64(fake_recorder_sum(&w, TABLE_ALLOCATED, -1, 777, 1), 100);
	CHECK_U64(heapring_counts(&w.ring).nr_broken, 0);
	fake_recorder_release(&w);
}

#define NR_WRITTEN 20000

static void *write_allocs(void *ctx)
{
	for (uint64_t i = 0; i < NR_WRITTEN; i++)
		while (!fake_recorder_alloc(ctx, 0, START + i, 0x10000 + 16 * i, 16, 1))
			sched_yield();
	return NULL;
}

/* Run under ThreadSanitizer as well. */
TEST(heapring_reads_what_a_thread_writes_meanwhile)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	pthread_t writer;
	CHECK(pthread_create(&writer, NULL, write_allocs, &w) == 0);
	while (heapring_counts(&w.ring).nr_events < NR_WRITTEN &&
	       !heapring_counts(&w.ring).nr_broken)
		fake_recorder_pass(&w, START + NR_WRITTEN);
	CHECK_U64(heapring_counts(&w.ring).nr_broken, 0);
	pthread_join(writer, NULL);
	CHECK_U64(heapaccount_info(w.account).nr_live, NR_WRITTEN);
	CHECK_U64(heapaccount_info(w.account).nr_late, 0);
	fake_recorder_release(&w);
}

TEST(heapring_counts_what_was_dropped)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	CHECK(fake_recorder_alloc(&w, 1, START + 10, 0x1000, 16, 1));
	w.slots[1].nr_dropped = 5;
	w.slots[1].dropped_bytes = 500;
	w.shared.nr_no_slot = 2;
	fake_recorder_pass(&w, START + 20);
	struct heapring_counts c = heapring_counts(&w.ring);
	CHECK_U64(c.nr_dropped, 7);
	CHECK_U64(c.dropped_bytes, 500);
	CHECK_U64(heapring_counts(&w.ring).nr_dropped, 7);
	fake_recorder_release(&w);
}

/* What the recorder counts is in memory of the target. */
TEST(heapring_ignores_impossible_counters)
{
	static const struct {
		uint64_t nr_allocs, nr_bytes, nr_no_slot, nr_no_stack;
	} bad[] = {
		{UINT64_MAX, 0, 0, 0},
		{1, UINT64_MAX, 0, 0},
		{0, 0, 1532201064171987404, 0},
		{0, 0, 0, UINT64_MAX / 2},
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct fake_recorder w;
		fake_recorder_init(&w, 0, 1);
		CHECK(fake_recorder_alloc(&w, 1, START + 10, 0x1000, 16, 1));
		fake_recorder_pass(&w, START + 20);
		w.slots[1].classes[2].nr = bad[i].nr_allocs;
		w.slots[1].classes[2].nr_bytes = bad[i].nr_bytes;
		w.shared.nr_no_slot = bad[i].nr_no_slot;
		w.shared.nr_no_stack = bad[i].nr_no_stack;
		struct heapring_counts c = heapring_counts(&w.ring);
		CHECK(c.has_implausible);
		CHECK_U64(c.nr_allocs + c.nr_bytes + c.nr_dropped + c.nr_no_stack, 0);
		fake_recorder_release(&w);
	}
}

TEST(heapring_adds_wrapping_counters_without_overflow)
{
	struct fake_recorder w;
	fake_recorder_init(&w, 0, 1);
	CHECK(fake_recorder_alloc(&w, 1, START + 10, 0x1000, 16, 1));
	fake_recorder_pass(&w, START + 20);
	w.slots[1].classes[2].nr = 5;
	CHECK(!heapring_counts(&w.ring).has_implausible);
	w.slots[1].classes[2].nr = 3; /* restarted */
	CHECK_U64(heapring_counts(&w.ring).nr_allocs, 8);
	static const uint64_t values[] = {UINT64_MAX, 0, UINT64_MAX, 1, 8};
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		w.slots[1].classes[2].nr = values[i];
		struct heapring_counts c = heapring_counts(&w.ring);
		CHECK(c.has_implausible);
		CHECK_U64(c.nr_allocs, 0);
	}
	fake_recorder_release(&w);
}
