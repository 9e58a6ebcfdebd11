/*
 * What BPF programs count of I/O system calls, block requests, page faults and memory reclaim
 * (bpf/io.bpf.h): rows in two sets of maps. The programs write to one set while user space reads
 * the other. The name of each file is sent once, through a ring.
 */
#ifndef ASSAY_WIRE_KERNEL_IO_H
#define ASSAY_WIRE_KERNEL_IO_H

#include "kernel_record.h"

/* What a row is about. */
enum io_table {
	IO_TABLE_CALLS = 1,   /* system calls that read, write or sync */
	IO_TABLE_BLOCK = 2,   /* requests of block devices */
	IO_TABLE_FAULTS = 3,  /* page faults */
	IO_TABLE_RECLAIM = 4, /* reclaim by threads of the target; wake-ups of kswapd */
	IO_TABLE_GROWTH = 5,  /* anonymous memory at its first touch */
	IO_TABLE_MAPPED = 6,  /* mmap, munmap, mremap, brk */
};

/* The operation of a row. */
enum io_what {
	IO_NONE = 0,
	IO_READ = 1,
	IO_WRITE = 2,
	IO_COPY = 3,    /* from descriptor to descriptor: sendfile, splice, copy_file_range */
	IO_FSYNC = 4,   /* fsync, fdatasync, msync, sync and similar calls */
	IO_BATCH = 5,   /* a call that submits or reaps several: io_uring_enter, sendmmsg */
	IO_FLUSH = 6,   /* block: the device's write cache is flushed */
	IO_DISCARD = 7, /* block: discard, secure erase, write zeroes */
	IO_OTHER = 8,   /* block: anything else */
	IO_MAJOR = 9,   /* page fault with I/O */
	IO_MINOR = 10,  /* page fault without I/O */
	IO_DIRECT = 11, /* direct reclaim: the machine is short of memory */
	IO_MEMCG = 12,  /* reclaim at the limit of a memory cgroup */
	IO_NODE = 13,   /* reclaim of one NUMA node, or on request */
	IO_KSWAPD = 14, /* kswapd was woken */
	IO_MMAP = 15,
	IO_MMAP_FILE = 16,
	IO_MUNMAP = 17,
	IO_MREMAP = 18,
	IO_BRK = 19,
	IO_FAILED = 0x80, /* a bit: the call returned an error */
};

/* Objects that are not files; ids of files are IO_OBJECT_FIRST_FILE and more. */
enum io_object {
	IO_OBJECT_NONE = 0,      /* the operation has no object, or it is not known */
	IO_OBJECT_HEAP = 1,      /* the mapping of brk */
	IO_OBJECT_STACK = 2,     /* a thread's stack */
	IO_OBJECT_ANON = 3,      /* other anonymous memory */
	IO_OBJECT_UNKNOWN = 4,   /* no mapping at the address, or mmap_lock was contended */
	IO_OBJECT_WRITEBACK = 5, /* writeback by the kernel, of an unknown file */
	IO_OBJECT_METADATA = 6,  /* metadata of a file system */
	IO_OBJECT_BAD_FD = 7,    /* the descriptor was not open */
	IO_OBJECT_VDSO = 8,
	IO_OBJECT_FIRST_FILE = 4096,
};

struct io_key {
	wire_u64 stack;      /* user stack reference */
	wire_u64 object;     /* enum io_object, or the id of a struct kernel_file */
	wire_u32 second_idx; /* second in which it ended, from the capture's start */
	wire_s32 tgid;       /* process */
	wire_s32 pid;        /* thread (task_struct.pid) */
	wire_u32 dev;        /* block: the kernel's dev_t of the device */
	wire_s16 syscall;    /* its number, -1 = none */
	wire_u8 table;       /* enum io_table */
	wire_u8 what;        /* enum io_what; IO_FAILED is or-ed in */
	wire_u8 log2_ns;     /* duration bucket: log2 of the duration, 0xff = none */
	wire_u8 pad[3];
};

struct io_sum {
	wire_u64 nr;         /* of operations */
	wire_u64 bytes;      /* IO_TABLE_RECLAIM: pages */
	wire_u64 ns;         /* total duration; IO_TABLE_MAPPED: bytes unmapped */
	wire_u64 longest_ns; /* duration of the longest one */
};

/* Array by system call number: what the call does, and which argument is the descriptor. */
#define IO_CALLS_MAX 512
struct io_call {
	wire_u8 what;   /* enum io_what, IO_NONE = not counted */
	wire_u8 fd_arg; /* the argument's number (0, 2) or IO_FD_NONE */
};
#define IO_FD_NONE 0xff

enum kernel_file_kind {
	KFILE_PATH = 0,   /* names: the path */
	KFILE_PIPE = 1,   /* an anonymous pipe or a FIFO */
	KFILE_SOCKET = 2, /* family, address and ports */
	KFILE_ANON = 3,   /* an anonymous inode such as [eventfd]: one name */
};

#define KERNEL_FILE_NAMES 1280

/* RECORD_FILE, in a ring of its own (io_names): sent once for each id, before its first row. */
struct kernel_file {
	struct kernel_record head;
	wire_u64 id; /* as in io_key.object */
	wire_u64 inode;
	wire_u32 dev;         /* dev_t of the file system */
	wire_u16 mode;        /* i_mode: file type and permissions */
	wire_u8 kind;         /* enum kernel_file_kind */
	wire_u8 is_deleted;   /* no link is left */
	wire_u16 family;      /* AF_* of a socket */
	wire_u16 local_port;  /* host byte order, 0 = not known or ephemeral */
	wire_u16 remote_port; /* host byte order, 0 = not known or ephemeral */
	wire_u8 protocol;     /* IPPROTO_* */
	wire_u8 is_cut;       /* the path is longer than names */
	wire_u8 remote[16];   /* IPv4 (4 bytes) or IPv6 address of the peer */
	wire_u16 nr_names;    /* bytes of names */
	wire_u16 pad[3];
	/* The components of the path, leaf first, each terminated by NUL. A Unix socket: its path
	 * or, after a NUL, its abstract name. */
	char names[KERNEL_FILE_NAMES]; /* a record holds nr_names of them */
};

/* Rows, names and requests that were lost or are incomplete; reports show each of these. */
struct io_counts {
	wire_u64 nr_rows_full; /* operations counted without stack and object: map of rows full */
	wire_u64 nr_lost;      /* operations not counted: the overflow map was full too */
	wire_u64 nr_no_start;  /* calls that were under way when the capture began */
	wire_u64 nr_no_issue;  /* completed block requests whose issue was not seen */
	wire_u64 nr_requests_full; /* block requests not tracked: the map was full */
	wire_u64 nr_files_lost;    /* names of files not sent: the ring was full */
	wire_u64 nr_busy_maps;     /* faults whose mapping could not be found */
	wire_s64 nr_inflight;      /* block requests issued and not completed */
	wire_s64 max_inflight;     /* maximum of nr_inflight */
};

#ifndef __bpf__
_Static_assert(sizeof(struct io_key) == 40, "io row key");
_Static_assert(sizeof(struct io_sum) == 32, "io row");
_Static_assert(sizeof(struct kernel_file) == 24 + 56 + KERNEL_FILE_NAMES, "file record");
#endif

#endif
