/* For architectures other than x86-64: every call fails with -ENOTSUP. */
#ifndef __x86_64__
#include "base/base.h"
#include "remote/ptrace/remote.h"

#include <errno.h>

#include "remote/patch/quiesce.h"

static int refuse(struct err *err)
{
	err_set(err, -ENOTSUP, "calls into running processes are for x86-64 only");
	err_hint(err, "--method growth works without such calls");
	return -ENOTSUP;
}

int remote_open(struct remote **ret_r UNUSED, int32_t pid UNUSED,
		const struct remote_options *options UNUSED, struct err *err)
{
	return refuse(err);
}

int remote_open_stopped(struct remote **ret_r, int32_t pid, int32_t tid UNUSED,
			const struct remote_options *options, struct err *err)
{
	return remote_open(ret_r, pid, options, err);
}

void remote_close(struct remote *r UNUSED)
{
}

void remote_close_p(struct remote **r)
{
	*r = NULL;
}

int remote_syscall(struct remote *r UNUSED, long nr UNUSED,
		   const uint64_t args[REMOTE_ARGS_MAX] UNUSED, int64_t *ret_result UNUSED,
		   struct err *err)
{
	return refuse(err);
}

int remote_call(struct remote *r UNUSED, uint64_t function UNUSED,
		const uint64_t args[REMOTE_ARGS_MAX] UNUSED, int32_t *ret_result UNUSED,
		struct err *err)
{
	return refuse(err);
}

int remote_scratch(struct remote *r UNUSED, size_t nr_bytes UNUSED, uint64_t *ret_addr UNUSED,
		   struct err *err)
{
	return refuse(err);
}

int remote_read(struct remote *r UNUSED, uint64_t addr UNUSED, void *to UNUSED, size_t n UNUSED,
		struct err *err)
{
	return refuse(err);
}

int remote_write(struct remote *r UNUSED, uint64_t addr UNUSED, const void *from UNUSED,
		 size_t n UNUSED, struct err *err)
{
	return refuse(err);
}

int remote_get_fd(struct remote *r UNUSED, int fd UNUSED, int *ret_fd UNUSED, struct err *err)
{
	return refuse(err);
}

int32_t remote_tid(const struct remote *r UNUSED)
{
	return 0;
}

uint64_t remote_thread_pointer(const struct remote *r UNUSED)
{
	return 0;
}

bool remote_has_filter(const struct remote *r UNUSED)
{
	return false;
}

void remote_keep_rights(void)
{
}

void remote_undo(int (*undo)(void *ctx) UNUSED, void *ctx UNUSED)
{
}

uint64_t remote_stopped_ns(const struct remote *r UNUSED)
{
	return 0;
}

int quiesce_threads(int32_t pid UNUSED, const struct heap_ranges *ranges UNUSED,
		    uint64_t deadline_ns UNUSED, uint64_t *ret_longest_ns UNUSED, struct err *err)
{
	return refuse(err);
}

int stop_all_threads(int32_t pid UNUSED, const struct heap_ranges *ranges UNUSED,
		     int (*change)(void *ctx, struct err *err) UNUSED, void *ctx UNUSED,
		     uint64_t *ret_longest_ns UNUSED, struct err *err)
{
	return refuse(err);
}

#endif
