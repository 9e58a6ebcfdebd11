/* Reads the memory of another process; see procmem.h. */
#include "base/base.h"
#include "host/procmem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/mem.h"
#include "host/proc.h"

int host_open_mem(int32_t pid, int access)
{
	char *path CLEANUP(free_p) = xasprintf("/proc/%d/mem", pid);
	int fd = open(path, access | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int host_read_mem(int mem_fd, uint64_t addr, void *to, size_t n)
{
	if (addr > INT64_MAX - n)
		return -EFAULT;
	return file_pread(mem_fd, to, n, addr, NULL);
}

#define TRACER_POLLS  100
#define TRACER_GAP_US 5000

int host_find_tracer(int32_t pid, int32_t tid, int32_t *ret_tracer, unsigned *ret_seccomp)
{
	for (int i = 0;; i++) {
		struct proc_task t;
		int32_t tracer_pid = 0;
		TRY(proc_task(pid, tid, &t));
		*ret_seccomp = t.seccomp;
		bool is_other = t.tracer &&
				(proc_tgid(t.tracer, &tracer_pid, NULL) || tracer_pid != getpid());
		*ret_tracer = is_other ? t.tracer : 0;
		if (!is_other || i == TRACER_POLLS)
			return 0;
		(void)usleep(TRACER_GAP_US); /* polled again */
	}
}

void host_add_tracer(struct buf *to, int32_t tracer)
{
	if (proc_comm(to, tracer, tracer, NULL))
		buf_add_str(to, "a program that has ended");
	buf_addf(to, " (pid %d)", tracer);
}

int host_refuse_traced(int32_t pid, int32_t tracer, struct err *err)
{
	CLEANUP(buf_release) struct buf name = {0};
	host_add_tracer(&name, tracer);
	(void)err_set(err, -EPERM, "pid %d is traced by %s already", pid, buf_str(&name));
	return err_hint(err, "end that debugger or tracer first (a process can have one)");
}
