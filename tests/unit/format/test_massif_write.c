/* format/heap/massif_write.c: the snapshots of short and of long recordings. */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/format.h"
#include "madeheap.h"
#include "model/heap.h"
#include "model/tables.h"
#include "tap.h"

static size_t count(const char *text, const char *what)
{
	size_t nr = 0;
	for (const char *at = text; (at = strstr(at, what)); at++)
		nr++;
	return nr;
}

static void add_level(struct profile *p, uint64_t ns, int64_t bytes, int32_t pid)
{
	const struct tag none = {.log2_ns = LOG2_NONE, .syscall = -1};
	const int64_t values[] = {1, bytes};
	uint32_t table = (uint32_t)(tables_find(p, TABLE_HEAP_LEVEL) - p->tables.p);
	profile_tagged_sample(p, table, p->start_ns + ns, 0, profile_task(p, pid, pid, 0, 0), -1,
			      profile_tag(p, &none), values);
}

/* A program of 20 ms in one slice, which allocates, and frees half; its level at @nr instants. */
static struct profile *short_program(int nr, int32_t second_pid)
{
	struct profile *p = madeheap_new(1, 0);
	p->end_ns = p->start_ns + 20 * NS_PER_MS;
	tables_add(p, TABLE_HEAP_LEVEL, 0);
	madeheap_block(p, &(struct madeheap){.size = 1000, .nr = 500, .stack = "main a;f a"}, 0);
	madeheap_block(p, &(struct madeheap){.size = 1000, .nr = 500, .stack = "main a;g a"},
		       MADEHEAP_NEVER);
	for (int i = 0; i < nr; i++)
		add_level(p, (uint64_t)i * 20 * NS_PER_MS / (uint64_t)nr,
			  (i < nr / 2 ? i : nr - i) * (1200000 / nr), i % 2 ? second_pid : 1);
	profile_seal(p);
	return p;
}

static size_t snapshots(struct profile *p, uint64_t *ret_most)
{
	struct format_output out = {0};
	const struct format_options none = {0};
	CHECK(!massif_write(&out, p, &none, NULL));
	const char *text = buf_str(&out.buf);
	*ret_most = 0;
	for (const char *at = text; (at = strstr(at, "mem_heap_B=")); at++)
		*ret_most = MAX(*ret_most, strtoull(at + strlen("mem_heap_B="), NULL, 10));
	size_t nr = count(text, "snapshot=");
	buf_release(&out.buf);
	profile_free(p);
	return nr;
}

TEST(massif_of_a_program_of_milliseconds_has_as_many_snapshots_as_massif)
{
	uint64_t most;
	CHECK(snapshots(short_program(60, 1), &most) >= 60);
	CHECK_U64(most, 600000); /* between the ends of slices */
	CHECK_U64(snapshots(short_program(5000, 1), &most), 100);
	CHECK(most >= 590000); /* the nearest are dropped, not the highest part */
}

TEST(massif_has_the_ends_of_slices_only_where_levels_are_of_several_processes)
{
	uint64_t most;
	CHECK(snapshots(short_program(60, 2), &most) <= 3);
}
