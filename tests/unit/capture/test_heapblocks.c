/* The table of live blocks against a plain list. */
#include "base/base.h"
#include "tap.h"

#include "capture/heap/blocks.h"

#define NR 4096

struct model {
	struct heapblocks table;
	uint64_t bytes[NR]; /* by address; 0 = not there */
	uint64_t n;
	uint64_t rng;
};

static uint64_t draw(struct model *m, uint64_t below)
{
	m->rng = m->rng * 6364136223846793005u + 1442695040888963407u;
	return (m->rng >> 33) % below;
}

static uint64_t addr_of(uint64_t i)
{
	return 0x7f0000000000 + i * 16;
}

static bool put(struct model *m, uint64_t i, uint64_t nr_bytes)
{
	uint64_t hash = heapblocks_hash(&m->table, addr_of(i));
	bool is_new = false;
	struct heapblock *b = heapblocks_put(&m->table, addr_of(i), hash, &is_new);
	CHECK(is_new == !m->bytes[i]);
	if (!b)
		return false;
	heapblock_set(b, addr_of(i), nr_bytes, 0x12345 + (uint32_t)i);
	b->site = (uint32_t)i;
	m->n += is_new;
	m->bytes[i] = nr_bytes;
	return true;
}

static void take(struct model *m, uint64_t i)
{
	uint64_t hash = heapblocks_hash(&m->table, addr_of(i));
	struct heapblock *b = heapblocks_find(&m->table, addr_of(i), hash);
	CHECK(!b == !m->bytes[i]);
	if (!b)
		return;
	heapblocks_remove(&m->table, b, hash);
	m->bytes[i] = 0;
	m->n--;
}

static void check_all(struct model *m)
{
	uint64_t it = 0, n = 0;
	const struct heapblock *b;
	CHECK_U64(m->table.n, m->n);
	while ((b = heapblocks_next(&m->table, &it))) {
		uint64_t i = (heapblock_addr(b) - addr_of(0)) / 16;
		CHECK(i < NR && b->site == i);
		CHECK_U64(heapblock_bytes(b), m->bytes[i]);
		CHECK_U64(heapblock_tick(b), 0x12345 + i);
		n++;
	}
	CHECK_U64(n, m->n);
	for (uint64_t i = 0; i < NR; i++)
		CHECK(!heapblocks_find(&m->table, addr_of(i),
				       heapblocks_hash(&m->table, addr_of(i))) == !m->bytes[i]);
}

TEST(heapblocks_holds_what_was_put_and_not_taken)
{
	static struct model m = {.rng = 1};
	heapblocks_init(&m.table, UINT64_MAX, 77);
	for (uint64_t round = 0; round < 40; round++) {
		uint64_t range = round % 4 == 3 ? 64 : NR; /* few addresses again and again */
		for (int i = 0; i < 5000; i++) {
			if (draw(&m, 100) < 30 + round % 5 * 10)
				CHECK(put(&m, draw(&m, range), 1 + draw(&m, 1u << 20)));
			else
				take(&m, draw(&m, range));
		}
		check_all(&m);
	}
	heapblocks_release(&m.table);
}

TEST(heapblocks_forgets_addresses_that_stay_away)
{
	static struct heapblocks t;
	heapblocks_init(&t, UINT64_MAX, 77);
	uint64_t most = 0;
	for (uint64_t i = 0; i < 2000000; i++) {
		uint64_t hash = heapblocks_hash(&t, addr_of(i));
		bool is_new;
		struct heapblock *b = heapblocks_put(&t, addr_of(i), hash, &is_new);
		heapblock_set(b, addr_of(i), 1, 0);
		b->site = 1;
		if (i >= 10000) {
			hash = heapblocks_hash(&t, addr_of(i - 10000));
			heapblocks_remove(&t, heapblocks_find(&t, addr_of(i - 10000), hash), hash);
		}
		most = MAX(most, t.nr_bytes);
	}
	CHECK_U64(t.n, 10000);
	CHECK(most <= 10000 * 24 * 5);
	heapblocks_release(&t);
}

TEST(heapblocks_stays_within_its_memory)
{
	static struct model m = {.rng = 3};
	heapblocks_init(&m.table, 16 * 24 * 200, 77); /* 200 parts of the smallest size */
	uint64_t nr_refused = 0;
	for (int i = 0; i < 200000; i++) {
		if (draw(&m, 100) < 70)
			nr_refused += !put(&m, draw(&m, NR), 1);
		else
			take(&m, draw(&m, NR));
		CHECK(m.table.nr_bytes <= m.table.max_bytes);
	}
	check_all(&m);
	CHECK(nr_refused > 0 && m.n > 300);
	heapblocks_release(&m.table);
}
