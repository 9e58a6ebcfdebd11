/* Synthetic heap recordings; see madeheap.h. */
#include "base/base.h"
#include "madeheap.h"

#include <string.h>

#include "base/clock.h"
#include "made.h"
#include "model/heap.h"

struct profile *madeheap_new(unsigned seconds, unsigned flags)
{
	bool is_sampled = flags & MADEHEAP_SAMPLED;
	struct profile *p = profile_new();
	p->start_ns = MADEHEAP_START_NS;
	p->end_ns = p->start_ns + seconds * NS_PER_SEC;
	p->wall_start_ns = 1700000000000000000;
	static const enum table_id ids[] = {TABLE_ALLOCATED, TABLE_FREED, TABLE_FREED_PREEXISTING,
					    TABLE_LIVE,      TABLE_PEAK,  TABLE_MAPPED,
					    TABLE_GROWTH};
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		tables_add(p, ids[i], is_sampled && ids[i] != TABLE_GROWTH ? TABLES_ESTIMATE : 0);
	profile_fact(p, FACT_HEAP_ALLOCATOR, "jemalloc 5.3.0, static, prefix _rjem_");
	profile_fact(p, FACT_HEAP_METHOD, "hooks: jemalloc 5.3.0 without profiling");
	profile_fact(p, FACT_HEAP_SAMPLING, is_sampled ? "524288" : "every allocation");
	profile_fact(p, FACT_HEAP_ATTACHED, flags & MADEHEAP_ATTACHED ? "attach" : "launch");
	task_id task = profile_task(p, 1, 1, profile_cstr(p, "server"), p->start_ns);
	if (flags & MADEHEAP_ENDED)
		p->tasks.p[task].end_ns = p->end_ns - 1;
	return p;
}

void madeheap(struct profile *p, const struct madeheap *m)
{
	uint64_t ns = p->start_ns + m->second * NS_PER_SEC;
	int32_t pid = m->pid ? m->pid : 1;
	task_id task = profile_task(p, pid, m->tid ? m->tid : pid,
				    profile_cstr(p, m->comm ? m->comm : "server"), ns);
	struct tag tag = {.log2_ns = LOG2_NONE,
			  .syscall = -1,
			  .size_class = m->size ? heap_size_class(m->size) : 0,
			  .detail = m->detail ? profile_cstr(p, m->detail) : 0};
	int64_t bytes = m->bytes ? m->bytes : m->nr * (int64_t)m->size;
	int64_t values[TABLE_COLUMNS_MAX] = {
		m->nr,       bytes,           m->samples ? m->samples : m->nr,
		m->variance, m->nr_temporary, m->nr_temporary * (int64_t)m->size};
	profile_tagged_sample(p, (uint32_t)(tables_find(p, m->table) - p->tables.p), ns,
			      made_stack(p, m->stack), task, -1, profile_tag(p, &tag), values);
}

void madeheap_block(struct profile *p, const struct madeheap *m, unsigned freed_second)
{
	struct madeheap row = *m;
	row.table = TABLE_ALLOCATED;
	madeheap(p, &row);
	row.table = freed_second == MADEHEAP_NEVER ? TABLE_LIVE : TABLE_FREED;
	row.second = freed_second == MADEHEAP_NEVER ? m->second : freed_second;
	madeheap(p, &row);
}

struct profile *madeheap_server(unsigned flags)
{
	struct profile *p = madeheap_new(10, flags);
	int64_t variance = flags & MADEHEAP_SAMPLED ? 2 * (int64_t)524288 * 524288 : 0;
	int64_t samples = flags & MADEHEAP_SAMPLED ? 2 : 0;
	for (unsigned s = 0; s < 10; s++) {
		struct madeheap leak = {
			.second = s,
			.size = 4096,
			.nr = 256,
			.samples = samples,
			.variance = variance,
			.stack = "main server;serve server;Cache::insert server;"
				 "std::vector::push_back server;_Znwm libstdc++.so.6;"
				 "malloc libc.so.6"};
		struct madeheap buffer = {.second = s,
					  .size = 512,
					  .nr = 20000,
					  .samples = samples,
					  .variance = variance,
					  .nr_temporary = 19000,
					  .comm = "worker-1",
					  .tid = 11,
					  .stack = "start_thread libc.so.6;work server;"
						   "read_request server;malloc libc.so.6"};
		madeheap_block(p, &leak, MADEHEAP_NEVER);
		madeheap_block(p, &buffer, s);
	}
	struct madeheap once = {.second = 0,
				.size = 65536,
				.nr = 32,
				.samples = samples ? 4 : 0,
				.variance = variance,
				.stack = "main server;load_table server;zmalloc server;"
					 "malloc libc.so.6"};
	madeheap_block(p, &once, MADEHEAP_NEVER);
	once.table = TABLE_PEAK;
	once.second = 9;
	madeheap(p, &once);
	madeheap(p, &(struct madeheap){.table = TABLE_PEAK,
				       .second = 9,
				       .size = 4096,
				       .nr = 2560,
				       .samples = samples ? 20 : 0,
				       .variance = 10 * variance,
				       .stack = "main server;serve server;Cache::insert server;"
						"std::vector::push_back server;"
						"_Znwm libstdc++.so.6;malloc libc.so.6"});
	madeheap(p, &(struct madeheap){.table = TABLE_FREED_PREEXISTING, .second = 3, .nr = 77});
	profile_seal(p);
	return p;
}
