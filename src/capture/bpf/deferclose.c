/* Closes descriptors in a child process; see deferclose.h. */
#include "base/base.h"
#include "capture/bpf/deferclose.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/process/descriptors.h"

void deferclose(const int *fds, size_t nr_fds)
{
	if (!nr_fds)
		return;
	pid_t pid = fork();
	if (!pid) {
		/* fork again, so that no process has to wait for the child */
		if (!fork()) {
			(void)prctl(PR_SET_NAME, "assay-detach", 0, 0, 0);
			(void)setsid();
			descriptors_keep_only(fds, nr_fds);
		}
		_exit(0);
	}
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
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
