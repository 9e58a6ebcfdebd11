/* host/bpfrights: refusals name their cause and the remedy. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/bpfrights.h"

static bool is_first_namespace(void)
{
	char text[64] = {0};
	return readlink("/proc/self/ns/pid", text, sizeof(text) - 1) > 0 &&
	       !strcmp(text, "pid:[4026531836]");
}

TEST(bpfrights_a_kernel_without_types_is_reported_as_such)
{
	struct err err = {0};
	if (!is_first_namespace())
		tap_skip("not in the first PID namespace");
	CHECK(host_bpf_rights("/no/such/btf", &err) == -ENOTSUP);
	CHECK(strstr(err_msg(&err), "/no/such/btf") != NULL);
	CHECK(err.hint && strstr(err.hint, "CONFIG_DEBUG_INFO_BTF"));
	err_release(&err);
}

TEST(bpfrights_without_capabilities_the_hint_names_them)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};
	struct err err = {0};
	if (!is_first_namespace())
		tap_skip("not in the first PID namespace");
	CHECK(!syscall(SYS_capset, &head, none));
	CHECK(host_bpf_rights("/dev/null", &err) == -EPERM);
	CHECK(err.hint && strstr(err.hint, "cap_bpf,cap_perfmon"));
	err_release(&err);
}
