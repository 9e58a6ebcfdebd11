/* Architectures on which nothing is called in other processes: every try says so. */
#ifndef __x86_64__
#include "base/base.h"
#include "remote/remote.h"

#include <errno.h>

#include "remote/heapsettle.h"
#include "remote/heapstop.h"

static int refuse(struct err *err)
{
	err_set(err, -ENOTSUP, "calls into running processes are for x86-64 only");
	err_hint(err, "--tier growth needs none");
	return -ENOTSUP;
}

int remote_open(struct remote **ret_r, int32_t pid, const struct remote_options *options,
		struct err *err)
{
	(void)ret_r;
	(void)pid;
	(void)options;
	return refuse(err);
}

int remote_adopt(struct remote **ret_r, int32_t pid, int32_t tid,
		 const struct remote_options *options, struct err *err)
{
	(void)tid;
	return remote_open(ret_r, pid, options, err);
}

void remote_close(struct remote *r)
{
	(void)r;
}

void remote_close_p(struct remote **r)
{
	*r = NULL;
}

int remote_syscall(struct remote *r, long nr, const uint64_t args[REMOTE_ARGS_MAX],
		   int64_t *ret_result, struct err *err)
{
	(void)r;
	(void)nr;
	(void)args;
	(void)ret_result;
	return refuse(err);
}

int remote_call(struct remote *r, uint64_t function, const uint64_t args[REMOTE_ARGS_MAX],
		uint64_t *ret_result, struct err *err)
{
	(void)r;
	(void)function;
	(void)args;
	(void)ret_result;
	return refuse(err);
}

int remote_scratch(struct remote *r, size_t nr_bytes, uint64_t *ret_addr, struct err *err)
{
	(void)r;
	(void)nr_bytes;
	(void)ret_addr;
	return refuse(err);
}

int remote_read(struct remote *r, uint64_t addr, void *to, size_t n, struct err *err)
{
	(void)r;
	(void)addr;
	(void)to;
	(void)n;
	return refuse(err);
}

int remote_write(struct remote *r, uint64_t addr, const void *from, size_t n, struct err *err)
{
	(void)r;
	(void)addr;
	(void)from;
	(void)n;
	return refuse(err);
}

int remote_get_fd(struct remote *r, int fd, int *ret_fd, struct err *err)
{
	(void)r;
	(void)fd;
	(void)ret_fd;
	return refuse(err);
}

int32_t remote_tid(const struct remote *r)
{
	(void)r;
	return 0;
}

uint64_t remote_thread_pointer(const struct remote *r)
{
	(void)r;
	return 0;
}

bool remote_has_filter(const struct remote *r)
{
	(void)r;
	return false;
}

uint64_t remote_stopped_ns(const struct remote *r)
{
	(void)r;
	return 0;
}

int heapsettle(int32_t pid, const struct heap_range *ranges, size_t nr_ranges, uint64_t deadline_ns,
	       uint64_t *ret_longest_ns, struct err *err)
{
	(void)pid;
	(void)ranges;
	(void)nr_ranges;
	(void)deadline_ns;
	(void)ret_longest_ns;
	return refuse(err);
}

int heapstop_all(int32_t pid, const struct heap_range *ranges, size_t nr_ranges,
		 int (*change)(void *ctx, struct err *err), void *ctx, uint64_t *ret_longest_ns,
		 struct err *err)
{
	(void)pid;
	(void)ranges;
	(void)nr_ranges;
	(void)change;
	(void)ctx;
	(void)ret_longest_ns;
	return refuse(err);
}

#endif
