/* format/heap/heaptrack_write.c: what sums per slice have is what heaptrack counts from the events. */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "madeheap.h"
#include "model/heap.h"
#include "model/tables.h"
#include "tap.h"

#define INFOS_MAX 64

/* heaptrack's own rules: a free of the number that was allocated last is temporary. */
struct counted {
	uint64_t nr_allocations;
	uint64_t nr_temporary;
	uint64_t peak_bytes;
	uint64_t live_bytes;
};

static struct counted count(struct profile *p)
{
	struct counted c = {0};
	struct format_output out = {0};
	const struct format_options none = {0};
	uint64_t bytes[INFOS_MAX] = {0};
	uint64_t nr_infos = 0;
	uint64_t last = UINT64_MAX;
	CHECK(!heaptrack_write(&out, p, &none, NULL));
	for (const char *line = buf_str(&out.buf); line; line = strchr(line, '\n')) {
		line += *line == '\n';
		uint64_t nr = line[0] ? strtoull(line + 1, NULL, 16) : 0;
		if (line[0] == 'a' && nr_infos < INFOS_MAX)
			bytes[nr_infos++] = nr;
		if (line[0] == '+') {
			c.nr_allocations++;
			c.live_bytes += bytes[nr % INFOS_MAX];
			c.peak_bytes = MAX(c.peak_bytes, c.live_bytes);
			last = nr;
		} else if (line[0] == '-') {
			c.live_bytes -= bytes[nr % INFOS_MAX];
			c.nr_temporary += nr == last;
			last = UINT64_MAX;
		}
	}
	buf_release(&out.buf);
	profile_free(p);
	return c;
}

static void slice(struct profile *p, const char *stack, unsigned second, uint64_t size,
		  int64_t nr_allocated, int64_t nr_temporary, int64_t nr_freed)
{
	struct madeheap row = {.table = TABLE_ALLOCATED,
			       .second = second,
			       .size = size,
			       .nr = nr_allocated,
			       .nr_temporary = nr_temporary,
			       .stack = stack};
	madeheap(p, &row);
	row.table = TABLE_FREED;
	row.nr = nr_freed;
	if (nr_freed)
		madeheap(p, &row);
}

TEST(heaptrack_temporary_blocks_that_are_live_between_slices_stay_temporary)
{
	struct profile *p = madeheap_new(3, 0);
	slice(p, "main;f", 0, 100, 10, 9, 9);
	slice(p, "main;f", 1, 100, 5, 6, 6);
	slice(p, "main;g", 1, 40, 2, 0, 0);
	profile_seal(p);
	struct counted c = count(p);
	CHECK_U64(c.nr_allocations, 17);
	CHECK_U64(c.nr_temporary, 15);
	CHECK_U64(c.live_bytes, 80);
}

TEST(heaptrack_a_temporary_block_that_is_the_peak_keeps_it)
{
	struct profile *p = madeheap_new(3, 0);
	slice(p, "main;f", 0, 100, 9, 9, 9);
	slice(p, "main;big", 0, 5000, 1, 0, 0);
	slice(p, "main;big", 2, 5000, 0, 1, 1);
	slice(p, "main;f", 2, 100, 3, 3, 3);
	madeheap(p, &(struct madeheap){.table = TABLE_PEAK,
				       .second = 0,
				       .size = 5000,
				       .nr = 1,
				       .stack = "main;big"});
	profile_seal(p);
	struct counted c = count(p);
	CHECK_U64(c.nr_allocations, 13);
	CHECK_U64(c.nr_temporary, 13);
	CHECK_U64(c.peak_bytes, 5000);
	CHECK_U64(c.live_bytes, 0);
}
