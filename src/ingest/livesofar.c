/* Live blocks of incomplete recordings; see livesofar.h. */
#include "base/base.h"
#include "ingest/livesofar.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/heap.h"
#include "model/tables.h"

struct net {
	stack_id stack;
	task_id task;
	uint32_t tag;
	int64_t values[HEAP_BLOCK_NR];
};

struct nets {
	VEC(struct net) rows;
	struct map index; /* hash of stack, task and tag -> index + 1 */
};

static struct net *net_at(struct nets *n, stack_id stack, task_id task, uint32_t tag)
{
	for (uint64_t hash = hash_mix((uint64_t)stack << 32 | task, tag);; hash++) {
		bool is_new;
		uint32_t *at = map_put(&n->index, hash, &is_new);
		if (is_new) {
			vec_push(&n->rows, (struct net){.stack = stack, .task = task, .tag = tag});
			*at = (uint32_t)n->rows.n;
			return vec_last(&n->rows);
		}
		struct net *known = &n->rows.p[*at - 1];
		if (known->stack == stack && known->task == task && known->tag == tag)
			return known;
	}
}

/* Blocks freed by the end of their process have a tag of their own. */
static uint32_t plain_tag(struct profile *p, const struct table *t, size_t i)
{
	struct tag tag = p->tags.p[t->tag[i]];
	if (!heap_is_freed_by_end(p, t, i))
		return t->tag[i];
	tag.detail = 0;
	return profile_tag(p, &tag);
}

/* The first columns of both tables are those of blocks. */
static void add_table(struct nets *n, struct profile *p, const struct table *t, int sign)
{
	uint32_t nr = t ? MIN(t->nr_columns, (uint32_t)HEAP_BLOCK_NR) : 0;
	for (size_t i = 0; t && t->has_tags && i < t->n; i++) {
		struct net *to = net_at(n, t->stack[i], t->task[i], plain_tag(p, t, i));
		for (uint32_t c = 0; c < nr; c++) {
			int64_t v = t->values[i * t->nr_columns + c];
			int64_t *sum = &to->values[c];
			if (__builtin_add_overflow(*sum, sign > 0 ? v : -MAX(v, -INT64_MAX), sum))
				*sum = sign > 0 ? INT64_MAX : 0;
		}
	}
}

void livesofar_add(struct profile *p)
{
	const struct table *allocated = tables_find_rows(p, TABLE_ALLOCATED);
	const struct table *live = tables_find_rows(p, TABLE_LIVE);
	CLEANUP(map_release) struct map ended = {0}; /* processes that have rows */
	struct nets n = {0};
	if (!allocated)
		return;
	for (size_t i = 0; live && i < live->n; i++)
		(void)map_put(&ended, (uint32_t)p->tasks.p[live->task[i]].pid, NULL);
	add_table(&n, p, allocated, 1);
	add_table(&n, p, tables_find_rows(p, TABLE_FREED), -1);
	const struct table *known = tables_find(p, TABLE_LIVE);
	uint32_t to = known ? (uint32_t)(known - p->tables.p) : tables_add(p, TABLE_LIVE, 0);
	vec_foreach(one, &n.rows) {
		bool is_live = one->values[HEAP_BLOCKS] > 0 && one->values[HEAP_BYTES] >= 0;
		if (!is_live || map_get(&ended, (uint32_t)p->tasks.p[one->task].pid))
			continue;
		one->values[HEAP_VARIANCE] = MAX(one->values[HEAP_VARIANCE], (int64_t)0);
		profile_tagged_sample(p, to, 0, one->stack, one->task, -1, one->tag, one->values);
	}
	vec_release(&n.rows);
	map_release(&n.index);
}
