/* Checks for loading BPF programs; see bpfrights.h. */
#include "base/base.h"
#include "host/bpfrights.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/privileges.h"
#include "host/limits.h"

/* linux/proc_ns.h, PROC_PID_INIT_INO: the inode of the initial PID namespace. */
#define FIRST_PID_NAMESPACE 0xeffffffcu

bool host_is_first_pidns(void)
{
	struct stat st;
	return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_PID_NAMESPACE;
}

int host_bpf_rights(const char *btf_path, struct err *err)
{
	if (!host_is_first_pidns()) {
		err_set(err, -ENOTSUP,
			"BPF programs do not see the pids of this container's PID "
			"namespace");
		return err_hint(err, "run assay on the host, or in a container that shares its "
				     "processes (docker run --pid=host)");
	}
	if (access(btf_path, R_OK)) {
		err_set(err, -ENOTSUP, "this kernel has no BTF type information ('%s' is missing)",
			btf_path);
		return err_hint(err, "BPF programs need a kernel with CONFIG_DEBUG_INFO_BTF (in a "
				     "container: mount /sys)");
	}
	if (host_has_cap(HOST_CAP_BPF) && host_has_cap(HOST_CAP_PERFMON))
		return 0;
	err_set(err, -EPERM, "BPF programs need the capabilities CAP_BPF and CAP_PERFMON");
	return err_hint(
		err,
		"run with sudo, or: sudo setcap cap_bpf,cap_perfmon,cap_syslog+ep assay; in a "
		"container add --cap-add BPF --cap-add PERFMON "
		"(kernel.unprivileged_bpf_disabled is %" PRId64 ")",
		host_sysctl("unprivileged_bpf_disabled", -1));
}
