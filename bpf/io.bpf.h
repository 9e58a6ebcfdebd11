/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * I/O, aggregated in the kernel: system calls that read, write and sync; block requests
 * (block.bpf.h); io_uring requests (uring.bpf.h). Each system call has its own pair of tracepoints
 * (sys_enter_X and sys_exit_X), so other calls run no BPF program.
 *
 * There are two sets of maps, a and b; each has a map of rows and one for the overflow of that map.
 * Programs write to the set that io_active_map selects. User space switches io_active_map, waits
 * until no program can still write to the other set, then reads and empties the other set. So no
 * row is lost between reading and removing it. Each row's key contains the second in which its
 * operations ended.
 *
 * An object is what an operation acts on: a file, pipe or socket; for a page fault the mapped file,
 * or heap, stack or other anonymous memory (struct io_key).
 *
 * The id of a file is a hash of its device, inode and generation. Its path is sent once, found by
 * walking its directory entries at the first use. So files that are open only for a moment have
 * paths, too.
 */
#ifndef ASSAY_BPF_IO_H
#define ASSAY_BPF_IO_H

#include "kernel_io.h"

#define IO_ROWS          32768
#define IO_OVERFLOW_ROWS 4096
#define IO_FILES         16384
#define IO_REQUESTS      8192
#define IO_PATH_PARTS    64
#define IO_NAME_MAX      256
#define IO_STACK_MAX     256
#define SECOND_NS        1000000000ull

/* ---- kernel types: only the fields that are read here ---- */

struct mount___io {
	struct mount___io *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
} CORE;

struct in6_addr___io {
	union {
		__u8 u6_addr8[16];
	} in6_u;
} CORE;

struct sock_common___io {
	__u32 skc_daddr;
	__u16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	struct in6_addr___io skc_v6_daddr;
} CORE;

struct sock___io {
	struct sock_common___io __sk_common;
	__u16 sk_protocol;
} CORE;

struct socket___io {
	struct sock___io *sk;
} CORE;

struct sockaddr_un___io {
	char sun_path[108];
} CORE;

struct unix_address___io {
	int len;
	struct sockaddr_un___io name[0];
} CORE;

struct unix_sock___io {
	struct unix_address___io *addr;
	struct unix_sock___io *peer;
} CORE;

#define S_IFMT___io    0170000
#define S_IFSOCK___io  0140000
#define S_IFIFO___io   0010000
#define AF_UNIX___io   1
#define AF_INET___io   2
#define AF_INET6___io  10
#define PORT_EPHEMERAL 32768 /* lower bound of Linux's default range of ephemeral ports */

/* ---- maps ---- */

DEFINE_MAP(HASH, io_rows_a, IO_ROWS, struct io_key, struct io_sum);
DEFINE_MAP(HASH, io_rows_b, IO_ROWS, struct io_key, struct io_sum);

/* Sums of the rows for which io_rows_a and io_rows_b had no room: stack and object are 0. */
DEFINE_MAP(HASH, io_overflow_a, IO_OVERFLOW_ROWS, struct io_key, struct io_sum);
DEFINE_MAP(HASH, io_overflow_b, IO_OVERFLOW_ROWS, struct io_key, struct io_sum);

/* Ids of files whose names were sent. */
DEFINE_MAP(LRU_HASH, io_files, IO_FILES, __u64, __u64);

DEFINE_MAP(ARRAY, io_calls, IO_CALLS_MAX, __u32, struct io_call);

/* Paths of files. In a separate ring, because user space needs them before the rows. */
DEFINE_RING(io_names, 1 << 20);

volatile __u32 io_active_map = 0; /* 0: io_rows_a and io_overflow_a; 1: the _b maps */
volatile __u64 io_epoch_ns = 0;   /* start of second 0; 0 = nothing is counted yet */
volatile __u64 io_stop_ns = 0;    /* operations that end later are not counted; 0 = no end yet */
struct io_counts io_counts = {};

/* ---- rows ---- */

static __always_inline void io_sum_add(struct io_sum *to, const struct io_sum *v)
{
	__sync_fetch_and_add(&to->nr, v->nr);
	__sync_fetch_and_add(&to->bytes, v->bytes);
	__sync_fetch_and_add(&to->ns, v->ns);
	raise_to(&to->longest_ns, v->longest_ns);
}

static __always_inline int io_row_add(void *map, const struct io_key *key, const struct io_sum *v)
{
	struct io_sum *s = bpf_map_lookup_elem(map, key);
	if (!s) {
		if (!bpf_map_update_elem(map, key, v, BPF_NOEXIST))
			return 0;
		s = bpf_map_lookup_elem(map, key); /* another CPU added it first */
		if (!s)
			return -1;
	}
	io_sum_add(s, v);
	return 0;
}

/*
 * Adds @v to the row of @key. Sets key->second_idx (seconds since io_epoch_ns) and key->log2_ns
 * (log2 of v->longest_ns; 0xff if that is 0: the duration is unknown).
 */
static __noinline int io_account(struct io_key *key, struct io_sum *v)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 epoch = io_epoch_ns; /* read once: user space may set it to 0 meanwhile */
	if (!key || !v || !epoch || now < epoch || (io_stop_ns && now >= io_stop_ns))
		return 0;
	key->second_idx = (now - epoch) / SECOND_NS;
	key->log2_ns = v->longest_ns ? log2_of(v->longest_ns) : 0xff;
	bool is_b = io_active_map & 1;
	if (!(is_b ? io_row_add(&io_rows_b, key, v) : io_row_add(&io_rows_a, key, v)))
		return 0;
	__sync_fetch_and_add(&io_counts.nr_rows_full, v->nr);
	struct io_key rest = *key;
	rest.stack = 0;
	rest.object = 0;
	if (is_b ? io_row_add(&io_overflow_b, &rest, v) : io_row_add(&io_overflow_a, &rest, v))
		__sync_fetch_and_add(&io_counts.nr_lost, v->nr);
	return 0;
}

/*
 * Adds one operation to the row of @key. @amount: bytes; for IO_TABLE_RECLAIM pages. @ns: duration,
 * 0 = unknown.
 */
static __always_inline int io_account_one(struct io_key *key, __u64 amount, __u64 ns)
{
	struct io_sum v = {.nr = 1, .bytes = amount, .ns = ns, .longest_ns = ns};
	return io_account(key, &v);
}

/* Returns a key without system call, stack and object. */
static __always_inline struct io_key io_key_of(struct task_struct *t, __u8 table, __u8 what)
{
	return (struct io_key){
		.tgid = t->tgid, .pid = t->pid, .syscall = -1, .table = table, .what = what};
}

/* Returns the I/O state of a target thread; NULL: not a target, or nothing is counted yet. */
static __always_inline struct io_state *io_state_of(struct task_struct *t)
{
	struct task_state *state = io_epoch_ns ? target_state(t) : NULL;
	return state ? &state->io : NULL;
}

/* ---- files ---- */

static __always_inline __u64 io_mix(__u64 h)
{
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15ull;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ull;
	return h ^ h >> 32;
}

static __always_inline __u64 io_id(__u64 h)
{
	h = io_mix(h);
	return h < IO_OBJECT_FIRST_FILE ? h + IO_OBJECT_FIRST_FILE : h;
}

static __always_inline __u64 inode_id(struct inode *inode)
{
	__u64 dev = BPF_CORE_READ(inode, i_sb, s_dev);
	__u64 generation = BPF_CORE_READ(inode, i_generation);
	return io_id(io_mix(dev << 32 | generation) ^ BPF_CORE_READ(inode, i_ino));
}

/* Scratch buffer for a record: 1.4 KB do not fit into the stack of a BPF program. */
DEFINE_MAP(PERCPU_ARRAY, io_scratch, 1, __u32, struct kernel_file);

struct path_walk {
	struct dentry *dentry;
	struct mount___io *mount; /* NULL: unknown, the path ends at the file system's root */
	__u32 n;                  /* bytes of kernel_file.names written so far */
	bool is_whole;            /* the walk reached the root */
};

static __always_inline struct mount___io *mount_of(struct vfsmount *mnt)
{
	if (!mnt)
		return NULL;
	return (void *)mnt - bpf_core_field_offset(struct mount___io, mnt);
}

/* bpf_loop callback: appends one component of a path, from the leaf towards the root. */
static long path_part(__u32 i, void *ctx)
{
	struct path_walk *w = ctx;
	struct mount___io *mount = w->mount;
	struct dentry *dentry = w->dentry;
	struct dentry *root = mount ? BPF_CORE_READ(mount, mnt.mnt_root) : NULL;
	struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
	if (dentry == root || dentry == parent) {
		struct mount___io *up = mount ? BPF_CORE_READ(mount, mnt_parent) : NULL;
		if (!up || up == mount || dentry != root) {
			w->is_whole = true;
			return 1;
		}
		w->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		w->mount = up;
		return 0;
	}
	struct kernel_file *r = single_elem(&io_scratch);
	__u32 n = w->n;
	if (!r || n > KERNEL_FILE_NAMES - IO_NAME_MAX)
		return 1;
	const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
	long len = bpf_probe_read_kernel_str(r->names + n, IO_NAME_MAX, name);
	if (len <= 0)
		return 1;
	w->n = n + (len & (IO_NAME_MAX * 2 - 1));
	w->dentry = parent;
	return 0;
}

static __always_inline void emit_path(struct kernel_file *r, struct dentry *dentry,
				      struct mount___io *mount)
{
	struct path_walk w = {.dentry = dentry, .mount = mount};
	bpf_loop(IO_PATH_PARTS, path_part, &w, 0);
	r->nr_names = w.n;
	r->is_cut = !w.is_whole;
}

/*
 * Fills in the address of a socket. An ephemeral port is left out, so that all connections between
 * a client and a service are one object.
 */
static __always_inline bool socket_of(struct kernel_file *r, struct sock___io *sk)
{
	if (!sk)
		return false;
	r->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	r->protocol = BPF_CORE_READ(sk, sk_protocol);
	if (r->family == AF_INET___io) {
		__u32 a = BPF_CORE_READ(sk, __sk_common.skc_daddr);
		__builtin_memcpy(r->remote, &a, sizeof(a));
	} else if (r->family == AF_INET6___io) {
		bpf_core_read(r->remote, 16, &sk->__sk_common.skc_v6_daddr);
	} else {
		return r->family == AF_UNIX___io;
	}
	__u16 local = BPF_CORE_READ(sk, __sk_common.skc_num);
	__u16 remote = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	/* an ephemeral port says nothing about the service */
	bool is_local_service = local < PORT_EPHEMERAL && remote >= PORT_EPHEMERAL;
	r->local_port = is_local_service || !remote ? local : 0;
	r->remote_port = is_local_service ? 0 : remote;
	return true;
}

static __always_inline void emit_unix(struct kernel_file *r, struct sock___io *sk)
{
	struct unix_sock___io *u = (void *)sk;
	struct unix_address___io *addr = BPF_CORE_READ(u, addr);
	struct unix_sock___io *peer = BPF_CORE_READ(u, peer);
	if (!addr && peer)
		addr = BPF_CORE_READ(peer, addr);
	if (!addr)
		return;
	/* without the family; the mask gives the verifier a bound */
	__u32 len = (BPF_CORE_READ(addr, len) - 2) & 127;
	if (bpf_probe_read_kernel(r->names, len, &addr->name[0].sun_path))
		return;
	r->nr_names = len;
}

static __always_inline __u64 socket_id(const struct kernel_file *r, __u64 inode)
{
	if (r->family == AF_UNIX___io)
		return inode;
	const __u64 *half = (const void *)r->remote;
	__u64 h = (__u64)r->family << 48 | (__u64)r->protocol << 32 | (__u32)r->local_port << 16 |
		  r->remote_port;
	return io_id(io_mix(io_mix(h) ^ half[0]) ^ half[1]);
}

static __always_inline bool is_file_reported(__u64 id)
{
	return bpf_map_lookup_elem(&io_files, &id) != NULL;
}

static __always_inline void emit_file(struct kernel_file *r, __u64 id)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 who = bpf_get_current_pid_tgid();
	__u32 n = r->nr_names;
	if (n > KERNEL_FILE_NAMES)
		return;
	n += __builtin_offsetof(struct kernel_file, names);
	r->id = id;
	record_head_at(&r->head, RECORD_FILE, n, now, who >> 32, (__u32)who);
	if (bpf_ringbuf_output(&io_names, r, n, BPF_RB_NO_WAKEUP)) {
		__sync_fetch_and_add(&io_counts.nr_files_lost, 1);
		return;
	}
	bpf_map_update_elem(&io_files, &id, &now, BPF_ANY);
}

static __always_inline void file_clear(struct kernel_file *r, struct inode *inode)
{
	__builtin_memset(r, 0, __builtin_offsetof(struct kernel_file, names));
	r->mode = BPF_CORE_READ(inode, i_mode);
	r->inode = BPF_CORE_READ(inode, i_ino);
	r->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	r->is_deleted = BPF_CORE_READ(inode, i_nlink) == 0;
}

/* Returns the id of an open file. Sends its path if it was not sent yet. */
static __noinline __u64 file_object(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	if (!inode)
		return IO_OBJECT_UNKNOWN;
	__u64 id = inode_id(inode);
	__u32 type = BPF_CORE_READ(inode, i_mode) & S_IFMT___io;
	if (type != S_IFSOCK___io && is_file_reported(id))
		return id;
	struct kernel_file *r = single_elem(&io_scratch);
	if (!r)
		return IO_OBJECT_UNKNOWN;
	file_clear(r, inode);
	struct path path;
	path.dentry = BPF_CORE_READ(file, f_path.dentry);
	path.mnt = BPF_CORE_READ(file, f_path.mnt);
	if (type == S_IFSOCK___io) {
		struct socket___io *socket = BPF_CORE_READ(file, private_data);
		struct sock___io *sk = BPF_CORE_READ(socket, sk);
		r->kind = KFILE_SOCKET;
		if (socket_of(r, sk))
			id = socket_id(r, id);
		if (is_file_reported(id))
			return id;
		if (r->family == AF_UNIX___io)
			emit_unix(r, sk);
	} else {
		r->kind = type == S_IFIFO___io ? KFILE_PIPE : type ? KFILE_PATH : KFILE_ANON;
		emit_path(r, path.dentry, mount_of(path.mnt));
	}
	emit_file(r, id);
	return id;
}

static __always_inline __u64 fd_object(struct task_struct *t, __u32 fd)
{
	struct files_struct *files = (void *)BPF_CORE_READ(t, files);
	struct fdtable *fdt = BPF_CORE_READ(files, fdt);
	if (!fdt || fd >= BPF_CORE_READ(fdt, max_fds))
		return IO_OBJECT_BAD_FD;
	struct file **slot = BPF_CORE_READ(fdt, fd);
	struct file *file = NULL;
	bpf_probe_read_kernel(&file, sizeof(file), slot + fd);
	return file ? file_object(file) : IO_OBJECT_BAD_FD;
}

/* ---- system calls ---- */

/* Context of programs on sys_enter_X and sys_exit_X: stable since 4.7. */
struct call_enter {
	__u64 regs;
	__s32 syscall;
	__u32 pad;
	unsigned long args[6];
};

struct call_exit {
	__u64 regs;
	__s32 syscall;
	__u32 pad;
	long ret;
};

/*
 * Returns the call's file descriptor (argument 0 or 2). It is read from the registers, because the
 * kernel refuses a program that reads more arguments than its tracepoint has. With registers, one
 * program works for all calls.
 */
static __always_inline __u32 call_fd(struct task_struct *t, __u32 fd_arg)
{
	struct pt_regs___kernel *regs = regs_of(t);
	return fd_arg == 2 ? REGS_ARG_2(regs) : REGS_ARG_0(regs);
}

static __always_inline int call_begin(__u32 nr)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct io_state *s = io_state_of(t);
	struct io_call *call = bpf_map_lookup_elem(&io_calls, &nr);
	if (!s || !call || call->what == IO_NONE)
		return 0;
	s->object = call->fd_arg == IO_FD_NONE ? IO_OBJECT_NONE
					       : fd_object(t, call_fd(t, call->fd_arg));
	s->stack = user_stack(IO_STACK_MAX);
	s->syscall = nr;
	s->what = call->what;
	s->enter_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tracepoint")
int io_enter(struct call_enter *ctx)
{
	return COSTED(COST_IO, call_begin(ctx->syscall));
}

static __always_inline int call_end(struct call_exit *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct io_state *s = io_state_of(t);
	if (!s)
		return 0;
	if (!s->enter_ns || s->syscall != ctx->syscall) {
		__sync_fetch_and_add(&io_counts.nr_no_start, 1);
		return 0;
	}
	__u64 ns = bpf_ktime_get_ns() - s->enter_ns;
	bool has_bytes = s->what == IO_READ || s->what == IO_WRITE || s->what == IO_COPY;
	struct io_key key = io_key_of(t, IO_TABLE_CALLS, s->what | (ctx->ret < 0 ? IO_FAILED : 0));
	key.stack = s->stack;
	key.object = s->object;
	key.syscall = ctx->syscall;
	s->enter_ns = 0;
	return io_account_one(&key, has_bytes && ctx->ret > 0 ? ctx->ret : 0, ns);
}

SEC("tracepoint")
int io_exit(struct call_exit *ctx)
{
	return COSTED(COST_IO, call_end(ctx));
}

#endif
