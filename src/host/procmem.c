/* Reads the memory of another process; see procmem.h. */
#include "base/base.h"
#include "host/procmem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

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

int host_trace_state(int32_t pid, int32_t *ret_tracer, unsigned *ret_seccomp)
{
	struct proc_task t;
	TRY(proc_task(pid, pid, &t));
	*ret_tracer = t.tracer;
	*ret_seccomp = t.seccomp;
	return 0;
}
