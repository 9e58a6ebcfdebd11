/* Compares spaces with a plain array of pages. */
#include "base/base.h"
#include "tap.h"
#include "unwind/space.h"

static struct unwind_module modules[8];

static void add(struct spaces *s, struct space *sp, uint64_t start, uint64_t end, unsigned m)
{
	struct space_map map = {
		.start = start, .end = end, .pgoff = start * 2, .bias = 7, .module = &modules[m]};
	space_add(s, sp, &map);
}

TEST(space_equals_an_array_of_pages_after_random_maps)
{
	enum { NR_PAGES = 64 };
	struct spaces s = {0};
	struct space *sp = spaces_get(&s, 1);
	const struct unwind_module *truth[NR_PAGES] = {0};
	uint64_t seed = 12345;

	for (int i = 0; i < 5000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		uint64_t from = seed >> 33 & (NR_PAGES - 1);
		uint64_t to = MIN(from + 1 + (seed >> 41 & 15), NR_PAGES);
		unsigned m = seed >> 50 & 7;
		add(&s, sp, from << 12, to << 12, m);
		for (uint64_t p = from; p < to; p++)
			truth[p] = &modules[m];
		for (uint64_t p = 0; p < NR_PAGES; p++) {
			const struct space_map *map = space_find(sp, (p << 12) + 5);
			CHECK((map ? map->module : NULL) == truth[p]);
		}
		for (size_t k = 1; k < sp->maps.n; k++)
			CHECK(sp->maps.p[k - 1].end <= sp->maps.p[k].start);
	}
	spaces_release(&s);
}

TEST(space_split_mapping_keeps_file_offsets)
{
	struct spaces s = {0};
	struct space *sp = spaces_get(&s, 1);
	struct space_map m = {.start = 0x1000, .end = 0x9000, .pgoff = 0x100000};

	space_add(&s, sp, &m);
	add(&s, sp, 0x3000, 0x5000, 1);
	CHECK_U64(sp->maps.n, 3);
	CHECK_U64(space_find(sp, 0x2fff)->pgoff, 0x100000);
	CHECK_U64(space_find(sp, 0x5000)->pgoff, 0x104000);
	CHECK(space_find(sp, 0x4000)->module == &modules[1]);
	spaces_release(&s);
}

TEST(space_of_a_fork_changes_independently)
{
	struct spaces s = {0};
	struct space *parent = spaces_get(&s, 1);

	add(&s, parent, 0x1000, 0x2000, 1);
	spaces_fork(&s, 2, 1);
	struct space *child = spaces_find(&s, 2);
	CHECK(child && child != parent);
	CHECK_U64(child->generation, parent->generation);
	CHECK(space_find(child, 0x1800)->module == &modules[1]);
	add(&s, child, 0x1000, 0x2000, 2);
	CHECK(space_find(child, 0x1800)->module == &modules[2]);
	CHECK(space_find(parent, 0x1800)->module == &modules[1]);
	CHECK(child->generation != parent->generation);
	spaces_fork(&s, 3, 1);
	add(&s, parent, 0x5000, 0x6000, 3);
	CHECK(!space_find(spaces_find(&s, 3), 0x5800));
	spaces_exit(&s, 1);
	CHECK(!spaces_find(&s, 1));
	CHECK(space_find(spaces_find(&s, 3), 0x1800)->module == &modules[1]);
	spaces_release(&s);
}

TEST(space_is_empty_after_exec_and_for_a_reused_pid)
{
	struct spaces s = {0};

	add(&s, spaces_get(&s, 9), 0x1000, 0x2000, 1);
	uint32_t before = spaces_get(&s, 9)->generation;
	spaces_exec(&s, 9);
	CHECK(!space_find(spaces_get(&s, 9), 0x1000));
	CHECK(spaces_get(&s, 9)->generation != before);
	add(&s, spaces_get(&s, 9), 0x1000, 0x2000, 1);
	spaces_fork(&s, 9, 77); /* the parent is not known */
	CHECK(!space_find(spaces_get(&s, 9), 0x1000));
	spaces_release(&s);
}

TEST(space_reported_the_same_mapping_twice_keeps_its_generation)
{
	struct spaces s = {0};
	struct space *sp = spaces_get(&s, 1);

	add(&s, sp, 0x1000, 0x2000, 1);
	uint32_t before = sp->generation;
	add(&s, sp, 0x1000, 0x2000, 1);
	CHECK_U64(sp->generation, before);
	spaces_release(&s);
}

TEST(space_thousands_of_forks_share_one_list)
{
	struct spaces s = {0};

	for (uint64_t i = 0; i < 100; i++)
		add(&s, spaces_get(&s, 1), i << 20, (i << 20) + 4096, i & 7);
	for (int pid = 2; pid < 5000; pid++)
		spaces_fork(&s, pid, pid - 1);
	CHECK(spaces_find(&s, 4999)->maps.p == spaces_find(&s, 1)->maps.p);
	for (int pid = 1; pid < 5000; pid++)
		spaces_exit(&s, pid);
	CHECK_U64(s.free_slots.n, s.list.n);
	spaces_release(&s);
}
