/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What io_getevents() and io_uring_enter() wait for: with file requests in flight they wait for a
 * disk, else for an event.
 *
 * libaio has no tracepoints, and tracing a system call slows down every call of every program. So
 * it is computed when a thread blocks: the number of requests in flight from the counters of the
 * context (fs/aio.c: what is neither free nor completed), kind and file from a request that
 * completed before.
 *
 * Requests of io_uring for regular files and block devices are counted by ring from submission to
 * completion; the file is that of the last one submitted.
 */
#ifndef ASSAY_BPF_INFLIGHT_H
#define ASSAY_BPF_INFLIGHT_H

#include "uring.bpf.h"

/* ---- libaio -------------------------------------------------------------------------------- */

struct kioctx_cpu___aio {
	unsigned int reqs_available;
} CORE;

struct kioctx___aio {
	unsigned long user_id;
	struct kioctx_cpu___aio *cpu;
	unsigned int nr_events;
	struct {
		int counter;
	} reqs_available;
	unsigned int completed_events;
} CORE;

struct kioctx_table___aio {
	unsigned int nr;
	struct kioctx___aio *table[1];
} CORE;

struct mm_struct___aio {
	struct kioctx_table___aio *ioctx_table;
} CORE;

/* linux/aio_abi.h: a completed request, as io_getevents() stores it, and a request. */
struct aio_event {
	__u64 data;
	__u64 iocb;
	__s64 res;
	__s64 res2;
};

struct aio_iocb {
	__u64 data;
	__u32 key[2];
	__u16 opcode;
	__u16 prio;
	__s32 fd;
	__u64 buf;
	__u64 nr_bytes;
};

/* fs/aio.c: the ring of completions, at the address that is the context's id. */
struct aio_ring_head {
	__u32 id;
	__u32 nr;
	__u32 head;
	__u32 tail;
	__u32 magic;
	__u32 features[2];
	__u32 header_length;
};

#define AIO_MAGIC    0xa10a10a1u
#define AIO_CONTEXTS 64
#define AIO_CPUS     512

struct bpf_map_ops___aio {
	void *map_lookup_percpu_elem; /* the helper exists, since 5.19 */
} CORE;

struct bpf_array___aio {
	void *pptrs[1];
} CORE;

/*
 * The kernel's address of a CPU's copy of a variable is its per-CPU pointer plus an offset of that
 * CPU. No symbol for it exists on all kernels, but the elements of a per-CPU map have both: the
 * pointer in the map's own structure, which is copied into an element, and the addresses.
 */
#define AIO_MAP_BYTES 512
struct aio_map {
	__u8 bytes[AIO_MAP_BYTES];
};
DEFINE_MAP(PERCPU_ARRAY, wait_aio_map, 1, __u32, struct aio_map);

/* Returns the per-CPU pointer of element 0 of wait_aio_map, or 0. */
static __always_inline __u64 aio_map_pointer(void)
{
	struct bpf_array___aio *a = NULL;
	struct aio_map *m = single_elem(&wait_aio_map);
	if (!m || !bpf_core_field_exists(a->pptrs))
		return 0;
	__u64 at = bpf_core_field_offset(a->pptrs);
	asm volatile("" : "+r"(at)); /* else a load at the offset is relocated as a whole */
	if (at > AIO_MAP_BYTES - sizeof(__u64) ||
	    bpf_probe_read_kernel(m, at + sizeof(__u64), &wait_aio_map))
		return 0;
	return *(__u64 *)(m->bytes + at);
}

static __always_inline struct kioctx___aio *aio_context(__u64 user_id)
{
	struct mm_struct___aio *mm = (void *)bpf_get_current_task_btf()->mm;
	if (!mm || !bpf_core_field_exists(mm->ioctx_table))
		return NULL;
	struct kioctx_table___aio *t = BPF_CORE_READ(mm, ioctx_table);
	if (!t)
		return NULL;
	__u32 nr = BPF_CORE_READ(t, nr);
	void *slots = (void *)t + bpf_core_field_offset(t->table);
	for (__u32 i = 0; i < AIO_CONTEXTS && i < nr; i++) {
		struct kioctx___aio *ctx = NULL;
		bpf_probe_read_kernel(&ctx, sizeof(ctx), slots + i * sizeof(ctx));
		if (ctx && BPF_CORE_READ(ctx, user_id) == user_id)
			return ctx;
	}
	return NULL;
}

/* True if requests are in flight: fewer are free or completed than there are. */
static __always_inline bool aio_is_in_flight(struct kioctx___aio *ctx)
{
	void *cpu = BPF_CORE_READ(ctx, cpu);
	__u32 total = BPF_CORE_READ(ctx, nr_events) - 1;
	__u32 other = (__u32)BPF_CORE_READ(ctx, reqs_available.counter) +
		      BPF_CORE_READ(ctx, completed_events);
	struct bpf_map_ops___aio *ops = NULL;
	__u64 map = bpf_core_field_exists(ops->map_lookup_percpu_elem) ? aio_map_pointer() : 0;
	__u32 zero = 0;
	if (!map)
		return false;
	for (__u32 i = 0; i < AIO_CPUS; i++) {
		void *copy = bpf_map_lookup_percpu_elem(&wait_aio_map, &zero, i);
		struct kioctx_cpu___aio *own;
		__u64 address = 0;
		if (!copy)
			break;
		/* The verifier permits no arithmetic between the pointer and a number. */
		bpf_probe_read_kernel(&address, sizeof(address), &copy);
		own = cpu + (address - map);
		other += BPF_CORE_READ(own, reqs_available);
	}
	return other < total;
}

/* Returns the reason of a request, WAIT_POLL if it is for no file. */
static __always_inline __u8 aio_reason(const struct aio_iocb *r, __u32 mode)
{
	bool is_file = mode == MODE_FILE || mode == MODE_BLOCK;
	switch (r->opcode) {
	case 0: /* IOCB_CMD_PREAD */
	case 7: /* IOCB_CMD_PREADV */
		return is_file ? WAIT_FILE_READ : WAIT_POLL;
	case 1: /* IOCB_CMD_PWRITE */
	case 8: /* IOCB_CMD_PWRITEV */
		return is_file ? WAIT_FILE_WRITE : WAIT_POLL;
	case 2: /* IOCB_CMD_FSYNC */
	case 3: /* IOCB_CMD_FDSYNC */
		return WAIT_FSYNC;
	}
	return WAIT_POLL;
}

/* Reads a request that has completed; false if it is not what it was then. */
static __always_inline bool aio_read_request(struct aio_iocb *ret_r, __u64 event_at)
{
	struct aio_event event;
	if (bpf_probe_read_user(&event, sizeof(event), (void *)event_at) || !event.iocb ||
	    bpf_probe_read_user(ret_r, sizeof(*ret_r), (void *)event.iocb))
		return false;
	bool is_vector = ret_r->opcode == 7 || ret_r->opcode == 8;
	return event.data == ret_r->data && event.res >= 0 &&
	       (is_vector || (__u64)event.res <= ret_r->nr_bytes) && ret_r->opcode <= 8;
}

/* Returns the address of the last completion in the context's ring, 0 if it cannot be read. */
static __always_inline __u64 aio_last_event(__u64 user_id)
{
	struct aio_ring_head ring;
	if (bpf_probe_read_user(&ring, sizeof(ring), (void *)user_id) || ring.magic != AIO_MAGIC ||
	    !ring.nr || ring.tail >= ring.nr)
		return 0;
	__u32 at = (ring.tail ? ring.tail : ring.nr) - 1;
	return user_id + ring.header_length + at * sizeof(struct aio_event);
}

/*
 * Sets the reason, and the file where it is known, of a wait in io_getevents(). The kind of the
 * requests in flight is taken from the request that completed last: it is in the ring, which is in
 * the process's memory, once the program (libaio) has read it; else in the buffer of the previous
 * call, if the program uses the same one again. If that request is no longer what it was, the reason
 * is WAIT_FILE_OTHER.
 */
__noinline int aio_cause(struct wait_cause *c, __u64 user_id, __u64 events)
{
	struct aio_iocb r;
	__u32 mode = 0;
	if (!c)
		return 0;
	struct kioctx___aio *ctx = aio_context(user_id);
	if (!ctx || !aio_is_in_flight(ctx))
		return 0;
	c->reason = WAIT_FILE_OTHER;
	__u64 last = aio_last_event(user_id);
	if (!(last && aio_read_request(&r, last)) && !aio_read_request(&r, events))
		return 0;
	if (file_of(bpf_get_current_task_btf(), true, r.fd, c, &mode))
		c->reason = aio_reason(&r, mode);
	RETURN_NOTHING();
}

/* ---- io_uring ------------------------------------------------------------------------------ */

struct io_cqe___io {
	int fd;
} CORE;

struct io_ring_ctx___io;

struct io_kiocb___wait {
	__u64 flags;
	struct io_cqe___io cqe;
	void *ctx;
} CORE;

struct io_uring_task___io {
	struct file *registered_rings[1];
} CORE;

struct task_struct___io {
	struct io_uring_task___io *io_uring;
} CORE;

/* io_uring/io_uring.c, io_uring.h */
#define URING_REQ_FIXED_FILE        1u
#define URING_ENTER_REGISTERED_RING 16u
#define URING_REGISTERED_RINGS      16u

/* File requests of a ring. */
struct uring_ring {
	__u64 object;
	__u32 dev;
	__s32 fd;   /* of the last request */
	__u32 last; /* its kind: enum uring_kind */
	__s32 nr[4];
};

/* Kinds of requests, and the reason of waiting for them. */
enum uring_kind {
	URING_READ = 0,
	URING_WRITE = 1,
	URING_FSYNC = 2,
};

struct uring_request {
	__u64 ring;
	__u32 kind;
	__u32 pad;
};

DEFINE_MAP(LRU_HASH, wait_uring_rings, 4096, __u64, struct uring_ring);
DEFINE_MAP(LRU_HASH, wait_uring_requests, 16384, __u64, struct uring_request);

/* Returns a kind, or -1 for requests that are not counted. */
static __always_inline int uring_kind_of(__u8 opcode)
{
	switch (uring_what(opcode)) {
	case IO_READ:
		return URING_READ;
	case IO_WRITE:
		return URING_WRITE;
	case IO_FSYNC:
		return URING_FSYNC;
	}
	return -1;
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(wait_uring_begin, struct io_kiocb___io *req)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct io_kiocb___wait *r = (void *)req;
	__u64 key = (__u64)req;
	struct wait_cause file = {};
	__u32 mode = 0;
	int kind = uring_kind_of(BPF_CORE_READ(req, opcode));
	if (!wait_clock.start_ns || kind < 0 || !is_target(t))
		return 0;
	/* The file of a fixed descriptor is not known yet: such requests are not counted. */
	if (BPF_CORE_READ(r, flags) & URING_REQ_FIXED_FILE ||
	    !file_of(t, true, BPF_CORE_READ(r, cqe.fd), &file, &mode) ||
	    (mode != MODE_FILE && mode != MODE_BLOCK))
		return 0;
	struct uring_request v = {.ring = (__u64)BPF_CORE_READ(r, ctx), .kind = (__u32)kind};
	struct uring_ring *ring = bpf_map_lookup_elem(&wait_uring_rings, &v.ring);
	if (!ring) {
		struct uring_ring none = {};
		bpf_map_update_elem(&wait_uring_rings, &v.ring, &none, BPF_NOEXIST);
		ring = bpf_map_lookup_elem(&wait_uring_rings, &v.ring);
	}
	if (!ring || bpf_map_update_elem(&wait_uring_requests, &key, &v, BPF_ANY))
		return 0;
	ring->object = file.object;
	ring->dev = file.dev;
	ring->fd = file.fd;
	ring->last = v.kind;
	__sync_fetch_and_add(&ring->nr[kind & 3], 1);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(wait_uring_end, void *ring_ctx, struct io_kiocb___io *req)
{
	__u64 key = (__u64)req;
	struct uring_request *v = req ? bpf_map_lookup_elem(&wait_uring_requests, &key) : NULL;
	if (!v)
		return 0;
	struct uring_ring *ring = bpf_map_lookup_elem(&wait_uring_rings, &v->ring);
	if (ring)
		__sync_fetch_and_add(&ring->nr[v->kind & 3], -1);
	bpf_map_delete_elem(&wait_uring_requests, &key);
	return 0;
}

/* Returns the ring's file of a call of io_uring_enter(). */
static __always_inline struct file *uring_file(struct task_struct *t, __u32 fd, __u32 flags)
{
	struct file **slots = NULL;
	struct file *file = NULL;
	if (flags & URING_ENTER_REGISTERED_RING) {
		struct task_struct___io *own = (void *)t;
		struct io_uring_task___io *rings =
			bpf_core_field_exists(own->io_uring) ? BPF_CORE_READ(own, io_uring) : NULL;
		if (rings && fd < URING_REGISTERED_RINGS)
			slots = (void *)rings + bpf_core_field_offset(rings->registered_rings);
	} else {
		slots = files_of_current(t, fd);
	}
	if (!slots || bpf_probe_read_kernel(&file, sizeof(file), slots + fd))
		return NULL;
	return file;
}

/* Sets the reason and file of a wait in io_uring_enter() with requests for files in flight. */
__noinline int uring_cause(struct wait_cause *c, __u32 fd, __u32 flags)
{
	if (!c)
		return 0;
	struct file *file = uring_file(bpf_get_current_task_btf(), fd, flags);
	__u64 key = file ? (__u64)BPF_CORE_READ(file, private_data) : 0;
	struct uring_ring *r = key ? bpf_map_lookup_elem(&wait_uring_rings, &key) : NULL;
	if (!r)
		return 0;
	__u32 kind = r->last & 3;
	if (r->nr[kind] <= 0)
		kind = r->nr[URING_READ] > 0    ? URING_READ
		       : r->nr[URING_WRITE] > 0 ? URING_WRITE
						: URING_FSYNC;
	if (r->nr[kind] <= 0)
		return 0;
	c->reason = kind == URING_READ    ? WAIT_FILE_READ
		    : kind == URING_WRITE ? WAIT_FILE_WRITE
					  : WAIT_FSYNC;
	c->object_kind = OBJECT_FILE;
	c->object = r->object;
	c->dev = r->dev;
	c->fd = r->fd;
	RETURN_NOTHING();
}

#endif
