/* /proc/pressure/memory and a process's memory cgroup; see pressure.h. */
#include "base/base.h"
#include "host/memory/pressure.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "host/memory/cgroup.h"

#define TEXT_BYTES_MAX ((size_t)64 << 10)

struct mempressure_group {
	struct memgroup_tree tree;
	struct memgroup group;
};

static void mempressure_group_free(struct mempressure_group *g)
{
	if (!g)
		return;
	memgroup_release(&g->group);
	memgroup_tree_release(&g->tree);
	free(g);
}
DEFINE_FREE_P(mempressure_group, struct mempressure_group)

void mempressure_release(struct mempressure *m)
{
	mempressure_group_free(TAKE(m->group));
}

static struct mempressure_group *open_group(int32_t pid)
{
	CLEANUP(mempressure_group_free_p)
	struct mempressure_group *g = xcalloc(1, sizeof(*g));
	*g = (struct mempressure_group){MEMGROUP_TREE_INIT, MEMGROUP_INIT};
	if (!pid || memgroup_tree_open(&g->tree, "/", NULL) ||
	    memgroup_open(&g->group, &g->tree, pid, NULL))
		return NULL;
	return TAKE(g);
}

void mempressure_read(struct mempressure *ret_m, int32_t pid, const struct mempressure *before)
{
	struct mempressure m = {.group = before ? NULL : open_group(pid)};
	CLEANUP(buf_release) struct buf b = {0};
	if (!file_read(&b, "/proc/pressure/memory", TEXT_BYTES_MAX, NULL)) {
		m.has_psi = true;
		m.some_us = memgroup_stall_us(buf_sv(&b), "some");
		m.full_us = memgroup_stall_us(buf_sv(&b), "full");
	}
	struct mempressure_group *g = before ? before->group : m.group;
	/* the root cgroup of version 2 has no limit and no memory.events */
	m.has_group =
		g &&
		!faccessat(g->group.fd,
			   g->tree.version == MEMGROUP_V1 ? "memory.failcnt" : "memory.events",
			   R_OK, 0) &&
		!memgroup_read(&g->group, &g->tree, &m.numbers, NULL);
	*ret_m = m;
}

void mempressure_add_machine(struct buf *to, const struct mempressure *before,
			     const struct mempressure *after)
{
	if (!before->has_psi || !after->has_psi)
		return;
	uint64_t some_us = after->some_us - MIN(before->some_us, after->some_us);
	uint64_t full_us = after->full_us - MIN(before->full_us, after->full_us);
	buf_addf(to, "some threads stalled for %s, all threads for %s (whole machine)",
		 num_ns(some_us * NS_PER_US).s, num_ns(full_us * NS_PER_US).s);
}

void mempressure_add_group(struct buf *to, const struct mempressure *before,
			   const struct mempressure *after)
{
	if (!before->has_group || !after->has_group)
		return;
	struct memgroup_numbers n = memgroup_since(&before->numbers, &after->numbers);
	bool has_limit = n.limit_bytes != MEMGROUP_NO_LIMIT;
	buf_addf(to, "%s%s, times at a limit: %" PRIu64 ", pages refaulted: %" PRIu64,
		 has_limit ? "limit " : "no limit", has_limit ? num_bytes(n.limit_bytes).s : "",
		 n.nr_at_limit, n.nr_refault_anon + n.nr_refault_file);
}
