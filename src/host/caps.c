/* Drops capabilities; see caps.h. Numbers: linux/capability.h. */
#include "base/base.h"
#include "host/caps.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) ((uint64_t)1 << (cap))

static const uint64_t keep_writing = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER);
static const uint64_t keep_symbolizing = BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_SYSLOG);
/* CAP_SYS_ADMIN is what CAP_PERFMON and CAP_CHECKPOINT_RESTORE were before Linux 5.8 and 5.9. */
static const uint64_t keep_capturing = BIT(HOST_CAP_PERFMON) | BIT(HOST_CAP_BPF) |
				       BIT(HOST_CAP_CHECKPOINT_RESTORE) | BIT(CAP_SYS_PTRACE) |
				       BIT(CAP_KILL) | BIT(CAP_IPC_LOCK);

static uint64_t kept(enum host_stage stage, uint64_t have)
{
	uint64_t keep = keep_writing;
	if (stage != HOST_WRITING)
		keep |= keep_symbolizing;
	if (stage == HOST_CAPTURING) {
		keep |= keep_capturing;
		if (!(have & BIT(HOST_CAP_CHECKPOINT_RESTORE)))
			keep |= BIT(CAP_SYS_ADMIN);
	}
	return keep;
}

void host_keep_caps(enum host_stage stage)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	if (syscall(SYS_capget, &head, data))
		return;
	uint64_t have = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	uint64_t keep = have & kept(stage, have);
	for (int i = 0; i < 2; i++) {
		uint32_t part = (uint32_t)(keep >> (32 * i));
		data[i].permitted = part;
		data[i].effective &= part;
		data[i].inheritable &= part;
	}
	(void)syscall(SYS_capset, &head, data); /* dropping is always permitted */
}
