/* May we load programs; see bpfrights.h. */
#include "base/base.h"
#include "host/bpfrights.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/limits.h"

#define CAP_NR_PERFMON 38
#define CAP_NR_BPF     39
/* linux/proc_ns.h, PROC_PID_INIT_INO: the inode of the namespace that the kernel starts with. */
#define FIRST_PID_NAMESPACE 0xeffffffcu

static uint64_t effective_caps(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	if (syscall(SYS_capget, &head, data))
		return 0;
	return (uint64_t)data[1].effective << 32 | data[0].effective;
}

static bool has_cap(uint64_t have, unsigned cap)
{
	return have >> cap & 1 || have >> CAP_SYS_ADMIN & 1;
}

int host_bpf_rights(const char *btf_path, struct err *err)
{
	struct stat st;
	if (stat("/proc/self/ns/pid", &st) || st.st_ino != FIRST_PID_NAMESPACE) {
		err_set(err, -ENOTSUP,
			"programs in the kernel see other process numbers than this "
			"container does");
		return err_hint(err, "run assay on the host, or in a container that shares its "
				     "processes (docker run --pid=host)");
	}
	if (access(btf_path, R_OK)) {
		err_set(err, -ENOTSUP, "this kernel does not describe its types ('%s' is missing)",
			btf_path);
		return err_hint(err, "it needs CONFIG_DEBUG_INFO_BTF (in a container: mount /sys)");
	}
	uint64_t have = effective_caps();
	if (has_cap(have, CAP_NR_BPF) && has_cap(have, CAP_NR_PERFMON))
		return 0;
	err_set(err, -EPERM,
		"programs for the kernel need the capabilities CAP_BPF and "
		"CAP_PERFMON");
	return err_hint(err,
			"run with sudo, or: sudo setcap cap_bpf,cap_perfmon+ep assay; in a "
			"container add --cap-add BPF --cap-add PERFMON "
			"(kernel.unprivileged_bpf_disabled is %" PRId64 ")",
			host_sysctl("unprivileged_bpf_disabled", -1));
}
