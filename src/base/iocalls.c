/* Table of the system calls for I/O; see iocalls.h. */
#include "base/base.h"

#include "base/iocalls.h"

#include <sys/syscall.h>

#ifndef SYS_preadv2
#define SYS_preadv2 -1
#endif
#ifndef SYS_pwritev2
#define SYS_pwritev2 -1
#endif

/*
 * recvmmsg and sendmmsg return numbers of messages, io_uring_enter and io_submit of requests: calls
 * and time are counted for them, bytes are unknown.
 */
static const struct iocall calls[] = {
	{SYS_read, "read", IO_READ, 0},
	{SYS_pread64, "pread64", IO_READ, 0},
	{SYS_readv, "readv", IO_READ, 0},
	{SYS_preadv, "preadv", IO_READ, 0},
	{SYS_preadv2, "preadv2", IO_READ, 0},
	{SYS_recvfrom, "recvfrom", IO_READ, 0},
	{SYS_recvmsg, "recvmsg", IO_READ, 0},
	{SYS_write, "write", IO_WRITE, 0},
	{SYS_pwrite64, "pwrite64", IO_WRITE, 0},
	{SYS_writev, "writev", IO_WRITE, 0},
	{SYS_pwritev, "pwritev", IO_WRITE, 0},
	{SYS_pwritev2, "pwritev2", IO_WRITE, 0},
	{SYS_sendto, "sendto", IO_WRITE, 0},
	{SYS_sendmsg, "sendmsg", IO_WRITE, 0},
	{SYS_sendfile, "sendfile64", IO_COPY, 0},
	{SYS_splice, "splice", IO_COPY, 2},
	{SYS_copy_file_range, "copy_file_range", IO_COPY, 2},
	{SYS_fsync, "fsync", IO_FSYNC, 0},
	{SYS_fdatasync, "fdatasync", IO_FSYNC, 0},
	{SYS_sync_file_range, "sync_file_range", IO_FSYNC, 0},
	{SYS_msync, "msync", IO_FSYNC, IO_FD_NONE},
	{SYS_sync, "sync", IO_FSYNC, IO_FD_NONE},
	{SYS_syncfs, "syncfs", IO_FSYNC, 0},
	{SYS_recvmmsg, "recvmmsg", IO_BATCH, 0},
	{SYS_sendmmsg, "sendmmsg", IO_BATCH, 0},
	{SYS_io_uring_enter, "io_uring_enter", IO_BATCH, 0},
	{SYS_io_submit, "io_submit", IO_BATCH, IO_FD_NONE},
	{SYS_io_getevents, "io_getevents", IO_BATCH, IO_FD_NONE},
};

const struct iocall *iocall_at(size_t i)
{
	return i < ARRAY_LEN(calls) ? &calls[i] : NULL;
}

const char *iocall_name(int syscall)
{
	for (size_t i = 0; syscall >= 0 && i < ARRAY_LEN(calls); i++)
		if (calls[i].syscall == syscall)
			return calls[i].name;
	return NULL;
}
