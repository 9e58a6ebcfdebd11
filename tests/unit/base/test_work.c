/* The worker pool: every item once, by a worker that exists, in as many runs as wanted. */
#include "base/base.h"
#include "tap.h"

#include "base/mem.h"
#include "base/process/work.h"

#define NR_ITEMS 5000

struct ctx {
	unsigned char nr_done[NR_ITEMS];
	unsigned worker_of[NR_ITEMS];
};

static void count_item(void *ctx, size_t item, unsigned worker)
{
	struct ctx *c = ctx;
	c->nr_done[item]++;
	c->worker_of[item] = worker;
}

TEST(work_runs_each_item_once)
{
	for (unsigned nr_threads = 1; nr_threads <= 8; nr_threads++) {
		struct work_pool *p = work_new(nr_threads);
		unsigned nr_workers = work_threads_wanted(nr_threads);
		struct ctx *c = xcalloc(1, sizeof(*c));
		for (unsigned run = 1; run <= 20; run++) {
			work_run(p, NR_ITEMS, count_item, c);
			for (size_t i = 0; i < NR_ITEMS; i++) {
				if (c->nr_done[i] != run || c->worker_of[i] >= nr_workers) {
					CHECK_U64(c->nr_done[i], run);
					CHECK(c->worker_of[i] < nr_workers);
					break;
				}
			}
		}
		work_free(p);
		free(c);
	}
}

TEST(work_without_items_or_runs_ends)
{
	struct work_pool *p = work_new(0);
	work_run(p, 0, count_item, NULL);
	work_free(p);
	work_free(work_new(4));
	work_free(NULL);
}
