/* host/privileges: what is left of the rights after they are dropped. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "host/privileges.h"

TEST(dropped_capabilities_do_not_come_back)
{
	uint64_t keep = HOST_CAP_BIT(CAP_SYS_PTRACE);
	if (geteuid() || !host_has_cap(CAP_SETPCAP))
		tap_skip("needs root");
	host_drop(keep);
	CHECK_U64(host_effective_caps(), keep);
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHECK(prctl(PR_CAPBSET_READ, CAP_SYS_PTRACE, 0, 0, 0) == 0);
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	host_drop(keep | HOST_CAP_BIT(CAP_DAC_OVERRIDE));
	CHECK_U64(host_effective_caps(), keep);
	host_drop_all();
	CHECK_U64(host_effective_caps(), 0);
	CHECK(setresuid(1, 1, 1) == -1 && errno == EPERM);
}

static int effective_caps(void *ctx)
{
	*(uint64_t *)ctx = host_effective_caps();
	return -ENOENT;
}

TEST(without_caps_is_for_one_call)
{
	uint64_t before = host_effective_caps();
	uint64_t within = 1;
	CHECK(host_without_caps(effective_caps, &within) == -ENOENT);
	CHECK_U64(within, 0);
	CHECK_U64(host_effective_caps(), before);
}
