/*
 * Parsers of /proc files about memory: any text is accepted, mappings have a length and a kind, and
 * any stack pointer can be looked up.
 */
#include "base/base.h"

#include "host/memory/cgroup.h"
#include "host/memory/maps.h"
#include "host/memory/memstat.h"
#include "host/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sv text = sv_from((const char *)data, n);
	struct memstat m = {0};
	(void)memstat_parse_status(&m, text);
	(void)memstat_parse_statm(&m, text, 4096);
	(void)memstat_parse_stat(&m, text);
	(void)memstat_parse_rollup(&m, text);
	CLEANUP(memmaps_release) struct memmaps maps = {0};
	CLEANUP(memstacks_release) struct memstacks stacks = {0};
	struct proc_wait w = {0};
	size_t nr = 1 + proc_parse_wait(text, &w);
	uint64_t sps[2] = {0x7f0000800f00, w.sp};
	memmaps_parse(&maps, text);
	vec_foreach(one, &maps.list) {
		ASSERT(one->end > one->start && one->kind < MEMMAP_KIND_NR);
		(void)memmaps_path(&maps, one);
	}
	memmaps_mark_stacks(&maps, &stacks, sps, nr);
	memmaps_mark_stacks(&maps, &stacks, NULL, 0);
	ASSERT(stacks.starts.n <= maps.list.n);
	struct sv path;
	struct proc_map map;
	for (int v = MEMGROUP_V1; v <= MEMGROUP_V2; v++)
		if (memgroup_path_of(text, (enum memgroup_version)v, &path))
			ASSERT(path.p >= text.p && path.p + path.n <= text.p + n);
	if (proc_parse_map(text, &map, &path))
		ASSERT(map.end >= map.start);
	(void)memgroup_value(text, "oom_kill");
	(void)memgroup_stall_us(text, "some");
	return 0;
}
