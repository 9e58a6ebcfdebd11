/* Reads the CPU time that bpf/cpu.bpf.h counts; see cputime.h. */
#include "base/base.h"
#include "capture/bpf/cputime.h"

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/mem.h"
#include "capture/bpf/engine.h"
#include "capture/bpf/skeleton.h"
#include "kernel_sample.h"

/* A CPU may add to its time while it is read: until two readings are equal. */
#define READINGS_MAX 8

void cputime_choose(struct engine *e, bool is_wanted)
{
	(void)bpf_program__set_autoload(engine_skel(e)->progs.cpu_switch, is_wanted);
}

void cputime_begin(struct engine *e)
{
	struct assay_bpf *skel = engine_skel(e);
	if (bpf_program__fd(skel->progs.cpu_switch) >= 0)
		skel->bss->cpu_from_ns = clock_mono_ns();
}

uint64_t cputime_ns(const struct engine *e)
{
	if (!e)
		return 0;
	const struct assay_bpf *skel = engine_skel(e);
	int nr = libbpf_num_possible_cpus();
	uint32_t key = 0;
	if (bpf_program__fd(skel->progs.cpu_switch) < 0 || nr <= 0)
		return 0;
	size_t nr_bytes = (size_t)nr * sizeof(struct kernel_cpu_time);
	CLEANUP(free_p) struct kernel_cpu_time *cpus = xcalloc(2, nr_bytes);
	struct kernel_cpu_time *again = cpus + nr;
	int fd = bpf_map__fd(skel->maps.cpu_times);
	uint64_t now = 0;
	for (unsigned i = 0; i < READINGS_MAX; i++) {
		if (bpf_map_lookup_elem(fd, &key, cpus))
			return 0;
		now = clock_mono_ns();
		if (bpf_map_lookup_elem(fd, &key, again) || !memcmp(cpus, again, nr_bytes))
			break;
	}
	uint64_t sum = 0;
	for (int i = 0; i < nr; i++)
		sum += cpus[i].sum_ns + (cpus[i].since_ns ? now - MIN(cpus[i].since_ns, now) : 0);
	return sum;
}
