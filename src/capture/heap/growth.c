/* Attaches the programs of method GROWTH; see growth.h. */
#include "base/base.h"
#include "capture/heap/growth.h"

#include <bpf/libbpf.h>
#include <linux/perf_event.h>

#include "base/mem.h"
#include "base/vec.h"
#include "capture/bpf/btfhas.h"
#include "capture/bpf/deferclose.h"
#include "capture/io/faults.h"
#include "capture/bpf/skeleton.h"
#include "capture/bpf/syscallprobe.h"
#include "host/tracefs.h"
#include "kernel_io.h"

struct heapgrowth {
	struct bpf_links links;
	struct err no_calls; /* why mapping calls are not recorded */
};

/* Programs at the start of a fault and at its allocation; both are needed. */
static const char *const exact[] = {"page_fault_user", "page_fault_kernel", "mm_page_alloc", NULL};

bool heapgrowth_choose(struct assay_bpf *skel, const struct btf *types, unsigned flags)
{
	bool is_wanted = flags & HEAPGROWTH_FAULTS;
	bool has_calls = flags & HEAPGROWTH_CALLS;
	bool is_exact = is_wanted && btf_has_tracepoints(types, exact);
	(void)bpf_program__set_autoload(skel->progs.io_growth_fault, is_wanted);
	(void)bpf_program__set_autoload(skel->progs.io_map_enter, has_calls);
	(void)bpf_program__set_autoload(skel->progs.io_map_exit, has_calls);
	(void)bpf_program__set_autoload(skel->progs.io_growth_page, is_exact);
	(void)bpf_program__set_autoload(skel->progs.io_growth_user, is_exact);
	(void)bpf_program__set_autoload(skel->progs.io_growth_kernel, is_exact);
	return is_exact;
}

static int attach_faults(struct heapgrowth *g, const struct bpf_program *p, uint64_t config,
			 int cpu, struct err *err)
{
	struct bpf_link *link;
	int rc = faults_attach_event(&link, p, config, cpu, err);
	if (link)
		vec_push(&g->links.list, link);
	return rc;
}

static int attach_calls(struct heapgrowth *g, struct assay_bpf *skel, struct err *err)
{
	static const struct {
		const char *name;
		unsigned what;
	} calls[] = {
		{"mmap", IO_MMAP}, {"munmap", IO_MUNMAP}, {"mremap", IO_MREMAP}, {"brk", IO_BRK}};
	CLEANUP(close_p) int tracefs_fd = -1;
	TRY(tracefs_open(&tracefs_fd, err));
	/* Exits before entries: an entry without its exit would match the next exit. */
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		TRY(syscallprobe_attach(&g->links, tracefs_fd, skel->progs.io_map_exit,
					SYSCALLPROBE_EXIT, calls[i].name, calls[i].what, err));
		TRY(syscallprobe_attach(&g->links, tracefs_fd, skel->progs.io_map_enter,
					SYSCALLPROBE_ENTER, calls[i].name, calls[i].what, err));
	}
	return 0;
}

int heapgrowth_attach(struct heapgrowth **ret_g, struct assay_bpf *skel, unsigned flags,
		      struct err *err)
{
	struct heapgrowth *g = xcalloc(1, sizeof(*g));
	const struct bpf_program *p = skel->progs.io_growth_fault;
	int nr_cpus = libbpf_num_possible_cpus();
	*ret_g = g;
	for (int cpu = 0; cpu < nr_cpus; cpu++) {
		TRY(attach_faults(g, p, PERF_COUNT_SW_PAGE_FAULTS_MAJ, cpu, err));
		TRY(attach_faults(g, p, PERF_COUNT_SW_PAGE_FAULTS_MIN, cpu, err));
	}
	/* Calls need tracefs, faults do not. */
	if (flags & HEAPGROWTH_CALLS)
		(void)attach_calls(g, skel, &g->no_calls);
	return 0;
}

const char *heapgrowth_no_calls(const struct heapgrowth *g)
{
	return g && g->no_calls.code ? err_msg(&g->no_calls) : NULL;
}

void heapgrowth_free(struct heapgrowth *g)
{
	if (!g)
		return;
	err_release(&g->no_calls);
	bpf_links_detach(&g->links); /* closing tracepoints is slow in the kernel */
	free_p(&g);
}
