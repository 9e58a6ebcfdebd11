/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * io_uring requests, tracked by the address of struct io_kiocb from submission to completion. The
 * submitting thread and its stack are taken at submission, file and bytes at completion. Requests
 * are counted in the table of system calls, as calls of io_uring_enter.
 */
#ifndef ASSAY_BPF_URING_H
#define ASSAY_BPF_URING_H

#include "block.bpf.h"

struct io_kiocb___io {
	struct file *file;
	__u8 opcode;
} CORE;

struct io_uring_cqe___io {
	__s32 res;
} CORE;

#define URING_SYSCALL 426 /* io_uring_enter, on every architecture */

/* Returns the kind of I/O (IO_READ, ...) of an opcode: linux/io_uring.h, enum io_uring_op. */
static __always_inline __u32 uring_what(__u8 opcode)
{
	switch (opcode) {
	case 1:  /* READV */
	case 4:  /* READ_FIXED */
	case 10: /* RECVMSG */
	case 22: /* READ */
	case 27: /* RECV */
	case 49: /* READ_MULTISHOT */
		return IO_READ;
	case 2:  /* WRITEV */
	case 5:  /* WRITE_FIXED */
	case 9:  /* SENDMSG */
	case 23: /* WRITE */
	case 26: /* SEND */
	case 47: /* SEND_ZC */
		return IO_WRITE;
	case 3: /* FSYNC */
	case 8: /* SYNC_FILE_RANGE */
		return IO_FSYNC;
	case 30: /* SPLICE */
	case 33: /* TEE */
		return IO_COPY;
	default:
		return IO_NONE;
	}
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(io_uring_begin, struct io_kiocb___io *req)
{
	struct task_struct *t = bpf_get_current_task_btf();
	__u64 key = (__u64)req;
	if (!io_epoch_ns || !is_target(t))
		return 0;
	struct block_request b = {.what = uring_what(BPF_CORE_READ(req, opcode))};
	if (b.what == IO_NONE)
		return 0;
	b.tgid = t->tgid;
	b.pid = t->pid;
	b.stack = user_stack(IO_STACK_MAX);
	b.issue_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&io_requests, &key, &b, BPF_ANY))
		__sync_fetch_and_add(&io_counts.nr_requests_full, 1);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(io_uring_end, void *ring_ctx, struct io_kiocb___io *req, struct io_uring_cqe___io *cqe)
{
	__u64 id = (__u64)req;
	struct block_request *b = bpf_map_lookup_elem(&io_requests, &id);
	if (!io_epoch_ns || !req || !b)
		return 0;
	__s32 res = BPF_CORE_READ(cqe, res);
	struct file *file = BPF_CORE_READ(req, file);
	__u64 ns = bpf_ktime_get_ns() - b->issue_ns;
	__u64 bytes = res > 0 && b->what != IO_FSYNC ? res : 0;
	struct io_key key = request_key(b, res < 0);
	key.object = file ? file_object(file) : IO_OBJECT_NONE;
	key.syscall = URING_SYSCALL;
	key.table = IO_TABLE_CALLS;
	bpf_map_delete_elem(&io_requests, &id);
	return io_account_one(&key, bytes, ns);
}

#endif
