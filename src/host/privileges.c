/* Changes the user and drops capabilities; see privileges.h. Numbers: linux/capability.h. */
#include "base/base.h"
#include "host/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sv.h"

#define CAPS_MAX 64

struct caps {
	uint64_t effective;
	uint64_t permitted;
};

static struct caps get_caps(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	if (syscall(SYS_capget, &head, data))
		return (struct caps){0};
	return (struct caps){.effective = (uint64_t)data[1].effective << 32 | data[0].effective,
			     .permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted};
}

/* Inheritable capabilities are given up: nothing that assay executes gets any. */
static void set_caps(uint64_t effective, uint64_t permitted)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	for (int i = 0; i < 2; i++)
		data[i] = (struct __user_cap_data_struct){
			.effective = (uint32_t)(effective >> (32 * i)),
			.permitted = (uint32_t)(permitted >> (32 * i))};
	(void)syscall(SYS_capset, &head, data); /* reducing them is always permitted */
}

uint64_t host_effective_caps(void)
{
	return get_caps().effective;
}

bool host_has_cap(unsigned cap)
{
	return rights_permit(host_effective_caps(), cap);
}

/* ---- users -------------------------------------------------------------------------------- */

struct user {
	uid_t uid;
	gid_t gid;
};

static bool env_id(const char *name, uint32_t *ret_id)
{
	uint64_t v;
	const char *text = getenv(name);
	if (!text || !sv_to_u64(sv_from_str(text), &v) || v >= UINT32_MAX)
		return false;
	*ret_id = (uint32_t)v;
	return true;
}

static bool can_change_user(void)
{
	uint64_t need = HOST_CAP_BIT(CAP_SETUID) | HOST_CAP_BIT(CAP_SETGID);
	return (host_effective_caps() & need) == need;
}

/* The user who ran sudo; false without sudo, or if root ran it. */
static bool invoker(struct user *ret_u)
{
	struct user u;
	if (!env_id("SUDO_UID", &u.uid) || !env_id("SUDO_GID", &u.gid) || !u.uid)
		return false;
	*ret_u = u;
	return true;
}

/* The capabilities stay: the kernel would drop them when uid 0 is given up. 0 or -errno. */
static int become(const struct user *u, const struct passwd *pw)
{
	uint64_t permitted = get_caps().permitted;
	if (pw ? initgroups(pw->pw_name, u->gid) : setgroups(0, NULL))
		return -errno;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || setresgid(u->gid, u->gid, u->gid) ||
	    setresuid(u->uid, u->uid, u->uid))
		return -errno;
	(void)prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	set_caps(permitted, permitted);
	/* Other processes of this user must not attach to one that has capabilities. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return 0;
}

int host_become_invoker(struct err *err)
{
	struct user u;
	if (!can_change_user() || !invoker(&u) || u.uid == geteuid())
		return 0;
	const struct passwd *pw = getpwuid(u.uid);
	int rc = become(&u, pw);
	if (rc)
		return err_set(err, rc, "cannot become user %u, who ran sudo: %s", u.uid,
			       strerror(-rc));
	if (pw) {
		(void)setenv("HOME", pw->pw_dir, 1);
		(void)setenv("USER", pw->pw_name, 1);
		(void)setenv("LOGNAME", pw->pw_name, 1);
	}
	return 0;
}

int host_become_command_user(void)
{
	/* Without sudo: the user by whom assay was started. */
	struct user u = {(uid_t)getauxval(AT_UID), (gid_t)getauxval(AT_GID)};
	if (!can_change_user())
		return 0;
	(void)invoker(&u);
	return u.uid == geteuid() ? 0 : become(&u, getpwuid(u.uid));
}

int host_without_caps(int (*fn)(void *ctx), void *ctx)
{
	struct caps had = get_caps();
	set_caps(0, had.permitted);
	int rc = fn(ctx);
	set_caps(had.effective, had.permitted);
	return rc;
}

struct folder_use {
	int dirfd;
	int mode;
};

static int may_use(void *ctx)
{
	const struct folder_use *use = ctx;
	return faccessat(use->dirfd, ".", use->mode, AT_EACCESS) ? -errno : 0;
}

int host_use_folder(int dirfd, int mode, bool *ret_is_other, struct err *err)
{
	struct folder_use use = {dirfd, mode};
	struct stat st;
	if (!can_change_user() || !host_without_caps(may_use, &use))
		return 0;
	if (fstat(dirfd, &st))
		return err_sys(err, "cannot stat the folder");
	if (st.st_uid == geteuid())
		return 0; /* the folder is read-only: the next call says so */
	const struct user u = {st.st_uid, st.st_gid};
	int rc = become(&u, getpwuid(u.uid));
	if (rc)
		return err_set(err, rc, "cannot become user %u, the owner of the folder: %s", u.uid,
			       strerror(-rc));
	if (ret_is_other)
		*ret_is_other = true;
	return 0;
}

/* ---- dropping ----------------------------------------------------------------------------- */

void host_drop(uint64_t keep)
{
	struct caps had = get_caps();
	keep &= had.permitted;
	bool may_bound = had.effective >> CAP_SETPCAP & 1;
	for (unsigned cap = 0; may_bound && cap < CAPS_MAX; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); /* fails beyond the last one */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	set_caps(had.effective & keep, keep);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (had.permitted)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

uint64_t host_caps_of_files(void)
{
	uint64_t had = host_effective_caps();
	uint64_t caps = HOST_CAP_BIT(HOST_CAP_CHECKPOINT_RESTORE) | HOST_CAP_BIT(CAP_SYS_PTRACE) |
			HOST_CAP_BIT(CAP_DAC_READ_SEARCH);
	if (!(had & HOST_CAP_BIT(HOST_CAP_CHECKPOINT_RESTORE))) /* before Linux 5.9 */
		caps |= HOST_CAP_BIT(CAP_SYS_ADMIN);
	if (!(had & HOST_CAP_BIT(CAP_SYS_PTRACE))) /* newer kernels let it read mappings */
		caps |= HOST_CAP_BIT(HOST_CAP_PERFMON);
	return caps & had;
}

void host_drop_all(void)
{
	host_drop(0);
}
