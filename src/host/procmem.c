/* Memory of another process; see procmem.h. */
#include "base/base.h"
#include "host/procmem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/sv.h"

#define STATUS_BYTES_MAX ((size_t)64 << 10)

int host_open_mem(int32_t pid)
{
	char *path CLEANUP(free_p) = xasprintf("/proc/%d/mem", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
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
	CLEANUP(buf_release) struct buf text = {0};
	char *path CLEANUP(free_p) = xasprintf("/proc/%d/status", pid);
	TRY(file_read(&text, path, STATUS_BYTES_MAX, NULL));
	uint64_t tracer = 0;
	uint64_t seccomp = 0;
	struct sv left = buf_sv(&text);
	while (left.n) {
		struct sv line = sv_split(&left, '\n');
		struct sv key = sv_split(&line, ':');
		if (sv_eq(key, SV("TracerPid")))
			(void)sv_to_u64(sv_trim(line), &tracer);
		else if (sv_eq(key, SV("Seccomp")))
			(void)sv_to_u64(sv_trim(line), &seccomp);
	}
	*ret_tracer = (int32_t)tracer;
	*ret_seccomp = (unsigned)seccomp;
	return 0;
}
