/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Block requests of the whole machine: bytes, time from issue to completion, and which thread and
 * file they are for. They complete in interrupts, in the context of an unrelated thread. So a
 * request is tracked by its address from its creation, which happens in the thread that makes it
 * (block_io_start, since 6.5), or else from its issue.
 *
 * The file is that of the page that is written or read. Anonymous pages (O_DIRECT) have none: then
 * it is the file of the system call that the thread is in, if that call is counted. A flush that
 * belongs to a write (REQ_PREFLUSH, REQ_FUA) has no issue event; only its completion is seen.
 */
#ifndef ASSAY_BPF_BLOCK_H
#define ASSAY_BPF_BLOCK_H

#include "io.bpf.h"

struct address_space___io {
	struct inode *host;
} CORE;

struct page___io {
	unsigned long compound_head; /* bit 0: tail page; other bits: the head page */
	struct address_space___io *mapping;
} CORE;

struct bio_vec___io {
	struct page___io *bv_page;
} CORE;

struct bvec_iter___io {
	unsigned int bi_idx;
} CORE;

struct bio___io {
	struct bvec_iter___io bi_iter;
	struct bio_vec___io *bi_io_vec;
} CORE;

struct block_device___io {
	__u32 bd_dev;
} CORE;

struct gendisk___io {
	int major;
	int first_minor;
} CORE;

struct request_queue___io {
	struct gendisk___io *disk;
} CORE;

struct request___io {
	struct request_queue___io *q;
	__u32 cmd_flags;
	unsigned int __data_len;
	struct bio___io *bio;
	struct block_device___io *part;
} CORE;

/* linux/blk_types.h, enum req_op. */
enum block_op {
	BLOCK_READ = 0,
	BLOCK_WRITE = 1,
	BLOCK_FLUSH = 2,
	BLOCK_DISCARD = 3,
	BLOCK_SECURE_ERASE = 5,
	BLOCK_ZONE_APPEND = 7,
	BLOCK_WRITE_ZEROES = 9,
};
#define BLOCK_OP_MASK     0xffu
#define BDEVFS_MAGIC___io 0x62646576
#define PAGE_MAPPING_BITS 3ul /* set for anonymous and other pages that are not of a file */

/* A request that is not completed. Fields without a comment are those of struct io_key. */
struct block_request {
	__u64 issue_ns; /* 0 = not issued yet */
	__u64 stack;
	__u64 object;
	__s32 tgid;
	__s32 pid;
	__u32 dev;
	__u32 left_bytes; /* not yet completed */
	__u32 bytes;      /* size of the request */
	__u32 what;
};

DEFINE_MAP(HASH, io_requests, IO_REQUESTS, __u64, struct block_request);

static __always_inline __u32 block_what(const struct request___io *rq)
{
	__u32 op = BPF_CORE_READ(rq, cmd_flags) & BLOCK_OP_MASK;
	switch (op) {
	case BLOCK_READ:
		return IO_READ;
	case BLOCK_WRITE:
	case BLOCK_ZONE_APPEND:
		return IO_WRITE;
	case BLOCK_FLUSH:
		return IO_FLUSH;
	case BLOCK_DISCARD:
	case BLOCK_SECURE_ERASE:
	case BLOCK_WRITE_ZEROES:
		return IO_DISCARD;
	default:
		return IO_OTHER;
	}
}

static __always_inline __u32 block_dev(const struct request___io *rq)
{
	struct block_device___io *part = BPF_CORE_READ(rq, part);
	if (part)
		return BPF_CORE_READ(part, bd_dev);
	struct gendisk___io *disk = BPF_CORE_READ(rq, q, disk);
	return disk ? (__u32)BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor)
		    : 0;
}

/* Returns the id of the file of the request's first page. Sends its path if it was not sent yet. */
static __noinline __u64 block_object(struct request___io *rq)
{
	struct bio___io *bio = BPF_CORE_READ(rq, bio);
	struct bio_vec___io *vec = bio ? BPF_CORE_READ(bio, bi_io_vec) : NULL;
	if (!vec)
		return IO_OBJECT_NONE;
	__u32 idx = BPF_CORE_READ(bio, bi_iter.bi_idx);
	vec = (void *)vec + (__u64)idx * bpf_core_type_size(struct bio_vec___io);
	struct page___io *page = BPF_CORE_READ(vec, bv_page);
	if (!page)
		return IO_OBJECT_NONE;
	unsigned long head = BPF_CORE_READ(page, compound_head);
	if (head & 1)
		page = (void *)(head - 1);
	unsigned long mapping = (unsigned long)BPF_CORE_READ(page, mapping);
	if (!mapping || mapping & PAGE_MAPPING_BITS)
		return IO_OBJECT_NONE;
	struct inode *inode = BPF_CORE_READ((struct address_space___io *)mapping, host);
	if (!inode)
		return IO_OBJECT_NONE;
	if (BPF_CORE_READ(inode, i_sb, s_magic) == BDEVFS_MAGIC___io)
		return IO_OBJECT_METADATA;
	__u64 id = inode_id(inode);
	if (is_file_reported(id))
		return id;
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
	struct kernel_file *r = single_elem(&io_scratch);
	if (!alias || !r)
		return IO_OBJECT_NONE;
	file_clear(r, inode);
	r->kind = KFILE_PATH;
	emit_path(r, (void *)alias - bpf_core_field_offset(struct dentry, d_u.d_alias), NULL);
	emit_file(r, id);
	return id;
}

/* Sets the thread, stack and file of a request that the current thread makes or issues. */
static __always_inline void block_attribute(struct block_request *b, struct request___io *rq)
{
	struct task_struct *t = bpf_get_current_task_btf();
	b->tgid = t->tgid;
	b->pid = t->pid;
	b->object = block_object(rq);
	struct task_state *state = is_target(t) ? state_of(t, false) : NULL;
	if (state)
		b->stack = user_stack(IO_STACK_MAX);
	if (!b->object && state && state->io.enter_ns)
		b->object = state->io.object;
	if (!b->object && t->flags & PF_KTHREAD)
		b->object = IO_OBJECT_WRITEBACK;
}

static __always_inline int block_started(struct request___io *rq)
{
	__u64 key = (__u64)rq;
	struct block_request b = {};
	if (!io_epoch_ns)
		return 0;
	block_attribute(&b, rq);
	if (bpf_map_update_elem(&io_requests, &key, &b, BPF_ANY))
		__sync_fetch_and_add(&io_counts.nr_requests_full, 1);
	return 0;
}

static __always_inline int block_issued(struct request___io *rq)
{
	__u64 key = (__u64)rq;
	if (!io_epoch_ns)
		return 0;
	struct block_request *b = bpf_map_lookup_elem(&io_requests, &key);
	if (!b) { /* created before the capture, or this kernel has no block_io_start */
		struct block_request fresh = {};
		block_attribute(&fresh, rq);
		bpf_map_update_elem(&io_requests, &key, &fresh, BPF_ANY);
		b = bpf_map_lookup_elem(&io_requests, &key);
	}
	if (!b) {
		__sync_fetch_and_add(&io_counts.nr_requests_full, 1);
		return 0;
	}
	b->dev = block_dev(rq);
	b->what = block_what(rq);
	b->bytes = BPF_CORE_READ(rq, __data_len);
	b->left_bytes = b->bytes;
	bool is_again = b->issue_ns != 0; /* the device was busy, and the request was requeued */
	b->issue_ns = bpf_ktime_get_ns();
	if (is_again)
		return 0;
	__sync_fetch_and_add(&io_counts.nr_inflight, 1);
	__s64 now = io_counts.nr_inflight;
	if (now > io_counts.max_inflight)
		io_counts.max_inflight = now;
	return 0;
}

/* A completion without an issue event. A flush that belongs to a write is counted here. */
static __always_inline int block_completed_unissued(struct request___io *rq, unsigned int nr_bytes)
{
	struct io_key key = {
		.dev = block_dev(rq),
		.syscall = -1,
		.table = IO_TABLE_BLOCK,
		.what = block_what(rq),
	};
	if (key.what == IO_FLUSH)
		return io_account_one(&key, 0, 0);
	/* An empty write that asks for a flush is not issued: the flush is a request of its own. */
	if (!nr_bytes)
		return 0;
	__sync_fetch_and_add(&io_counts.nr_no_issue, 1);
	return 0;
}

static __always_inline struct io_key request_key(const struct block_request *b, bool has_failed)
{
	return (struct io_key){
		.stack = b->stack,
		.object = b->object,
		.tgid = b->tgid,
		.pid = b->pid,
		.dev = b->dev,
		.syscall = -1,
		.table = IO_TABLE_BLOCK,
		.what = b->what | (has_failed ? IO_FAILED : 0),
	};
}

static __always_inline int block_completed(struct request___io *rq, int error,
					   unsigned int nr_bytes)
{
	__u64 id = (__u64)rq;
	if (!io_epoch_ns)
		return 0;
	struct block_request *b = bpf_map_lookup_elem(&io_requests, &id);
	if (!b || !b->issue_ns)
		return block_completed_unissued(rq, nr_bytes);
	if (nr_bytes < b->left_bytes) {
		b->left_bytes -= nr_bytes;
		return 0;
	}
	__u64 ns = bpf_ktime_get_ns() - b->issue_ns;
	__u64 bytes = b->bytes;
	struct io_key key = request_key(b, error);
	bpf_map_delete_elem(&io_requests, &id);
	__sync_fetch_and_add(&io_counts.nr_inflight, -1);
	return io_account_one(&key, bytes, ns);
}

SEC("tp_btf/block_io_start")
int BPF_PROG(io_block_start, struct request___io *rq)
{
	return COSTED(COST_BLOCK, block_started(rq));
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(io_block_issue, struct request___io *rq)
{
	return COSTED(COST_BLOCK, block_issued(rq));
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(io_block_complete, struct request___io *rq, int error, unsigned int nr_bytes)
{
	return COSTED(COST_BLOCK, block_completed(rq, error, nr_bytes));
}

#endif
