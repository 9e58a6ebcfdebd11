/* Closes descriptors in a child process; see deferclose.h. */
#include "base/base.h"
#include "capture/bpf/deferclose.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

static int by_value(const void *a, const void *b)
{
	int x = *(const int *)a;
	int y = *(const int *)b;
	return (x > y) - (x < y);
}

/* Closes all descriptors except @fds, which is sorted. Runs in a child: no malloc, no locks. */
static void keep_only(const int *fds, size_t nr_fds)
{
	unsigned next = 0;
	for (size_t i = 0; i < nr_fds; i++) {
		if (fds[i] < 0)
			continue;
		if ((unsigned)fds[i] > next)
			(void)close_range(next, (unsigned)fds[i] - 1, 0);
		next = (unsigned)fds[i] + 1;
	}
	(void)close_range(next, ~0u, 0);
}

void deferclose(const int *fds, size_t nr_fds)
{
	if (!nr_fds)
		return;
	int *sorted = xmemdup(fds, nr_fds * sizeof(*fds));
	qsort(sorted, nr_fds, sizeof(*sorted), by_value);
	pid_t pid = fork();
	if (!pid) {
		/* fork again, so that no process has to wait for the child */
		if (!fork()) {
			(void)prctl(PR_SET_NAME, "assay-detach", 0, 0, 0);
			(void)setsid();
			keep_only(sorted, nr_fds);
		}
		_exit(0);
	}
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	free_p(&sorted);
}

void bpf_links_detach(struct bpf_links *l)
{
	VEC(int) fds = {0};
	vec_foreach(link, &l->list)
		vec_push(&fds, bpf_link__fd(*link));
	deferclose(fds.p, fds.n);
	vec_release(&fds);
	vec_foreach(link, &l->list)
		(void)bpf_link__destroy(*link); /* the descriptor is closed in any case */
	vec_release(&l->list);
}
