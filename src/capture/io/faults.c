/*
 * Per CPU one software event for major and one for minor faults, period 1: the kernel calls the BPF
 * program at each fault; nothing is sampled and nothing is written to a ring buffer.
 */
#include "base/base.h"
#include "capture/io/faults.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "capture/bpf/btfhas.h"
#include "capture/bpf/skeleton.h"

struct faults {
	VEC(struct bpf_link *) links;
};

/* Tracepoints of x86 only. */
static const char *const begins[] = {"page_fault_user", "page_fault_kernel", NULL};

void faults_choose(struct assay_bpf *skel, const struct btf *types, enum faults_which which)
{
	bool has_begin = which && btf_has_tracepoints(types, begins);
	(void)bpf_program__set_autoload(skel->progs.io_fault_major, which != FAULTS_NONE);
	(void)bpf_program__set_autoload(skel->progs.io_fault_minor, which == FAULTS_ALL);
	(void)bpf_program__set_autoload(skel->progs.io_fault_user, has_begin);
	(void)bpf_program__set_autoload(skel->progs.io_fault_kernel, has_begin);
}

int faults_attach_event(struct bpf_link **ret_link, const struct bpf_program *p, uint64_t config,
			int cpu, struct err *err)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.sample_period = 1,
	};
	*ret_link = NULL;
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno == ENODEV ? 0
				       : err_sys(err, "cannot count page faults on CPU %d", cpu);
	*ret_link = bpf_program__attach_perf_event(p, fd);
	if (*ret_link)
		return 0;
	int rc = err_sys(err, "cannot attach BPF program to page faults on CPU %d", cpu);
	close(fd);
	return rc;
}

static int attach_one(struct faults *f, const struct bpf_program *p, uint64_t config, int cpu,
		      struct err *err)
{
	struct bpf_link *link;
	int rc = faults_attach_event(&link, p, config, cpu, err);
	if (link)
		vec_push(&f->links, link);
	return rc;
}

int faults_attach(struct faults **ret_f, struct assay_bpf *skel, enum faults_which which,
		  struct err *err)
{
	struct faults *f = xcalloc(1, sizeof(*f));
	int nr_cpus = libbpf_num_possible_cpus();
	*ret_f = f;
	for (int cpu = 0; cpu < nr_cpus; cpu++) {
		TRY(attach_one(f, skel->progs.io_fault_major, PERF_COUNT_SW_PAGE_FAULTS_MAJ, cpu,
			       err));
		if (which == FAULTS_ALL)
			TRY(attach_one(f, skel->progs.io_fault_minor, PERF_COUNT_SW_PAGE_FAULTS_MIN,
				       cpu, err));
	}
	return 0;
}

void faults_free(struct faults *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->links.n; i++)
		bpf_link__destroy(f->links.p[i]);
	vec_release(&f->links);
	free_p(&f);
}
