/*
 * What the BPF programs count of input and output, block requests, page faults and
 * reclaim: rows of a pair of maps (bpf/io.bpf.h), of which one is filled while user space reads the
 * other; and the names of files, sent once each through the ring.
 */
#ifndef ASSAY_WIRE_KERNEL_IO_H
#define ASSAY_WIRE_KERNEL_IO_H

#include "kernel_record.h"

enum io_table {
	IO_TABLE_CALLS = 1,   /* system calls that read, write or sync */
	IO_TABLE_BLOCK = 2,   /* requests of block devices */
	IO_TABLE_FAULTS = 3,  /* page faults */
	IO_TABLE_RECLAIM = 4, /* memory that had to be freed first */
	IO_TABLE_GROWTH = 5,  /* memory touched for the first time */
	IO_TABLE_MAPPED = 6,  /* mmap, munmap, mremap, brk */
};

enum io_what {
	IO_NONE = 0,
	IO_READ = 1,
	IO_WRITE = 2,
	IO_COPY = 3,    /* from descriptor to descriptor: sendfile, splice, copy_file_range */
	IO_FSYNC = 4,   /* the family of fsync */
	IO_BATCH = 5,   /* a call that hands in or reaps others: io_uring_enter, sendmmsg */
	IO_FLUSH = 6,   /* block: a device's cache is written out */
	IO_DISCARD = 7, /* block: discard, secure erase, write zeroes */
	IO_OTHER = 8,   /* block: anything else */
	IO_MAJOR = 9,
	IO_MINOR = 10,
	IO_DIRECT = 11, /* reclaim for want of memory in the machine */
	IO_MEMCG = 12,  /* at the limit of a memory cgroup */
	IO_NODE = 13,   /* of one NUMA node, or asked for */
	IO_KSWAPD = 14, /* the machine's background reclaimer woke up */
	IO_MMAP = 15,
	IO_MMAP_FILE = 16,
	IO_MUNMAP = 17,
	IO_MREMAP = 18,
	IO_BRK = 19,
	IO_FAILED = 0x80, /* a bit: the call returned an error */
};

/* Objects that are no file, below IO_OBJECT_FIRST_FILE. */
enum io_object {
	IO_OBJECT_NONE = 0,
	IO_OBJECT_HEAP = 1,
	IO_OBJECT_STACK = 2,
	IO_OBJECT_ANON = 3,
	IO_OBJECT_UNKNOWN = 4,   /* no mapping was found at the address, or the map was busy */
	IO_OBJECT_WRITEBACK = 5, /* written later by the kernel, for a file that is not known */
	IO_OBJECT_METADATA = 6,  /* a file system's own blocks */
	IO_OBJECT_BAD_FD = 7,
	IO_OBJECT_VDSO = 8,
	IO_OBJECT_FIRST_FILE = 4096,
};

struct io_key {
	wire_u64 stack;  /* user stack reference */
	wire_u64 object; /* enum io_object, or the id of a struct kernel_file */
	wire_u32 slice;  /* second since the capture's start */
	wire_s32 tgid;
	wire_s32 pid;
	wire_u32 dev; /* block: the kernel's number of the device */
	wire_s16 syscall;
	wire_u8 table; /* enum io_table */
	wire_u8 what;  /* enum io_what */
	wire_u8 log2_ns;
	wire_u8 pad[3];
};

struct io_sum {
	wire_u64 nr;
	wire_u64 bytes; /* reclaim: pages */
	wire_u64 ns;    /* mapped: bytes unmapped */
	wire_u64 longest_ns;
};

/* By system call number: what it does, and which argument is the descriptor. */
#define IO_CALLS_MAX 512
struct io_call {
	wire_u8 what;   /* enum io_what, IO_NONE = not looked at */
	wire_u8 fd_arg; /* the argument's number (0, 2) or IO_FD_NONE */
};
#define IO_FD_NONE 0xff

enum kernel_file_kind {
	KFILE_PATH = 0,   /* a name in a file system */
	KFILE_PIPE = 1,   /* a pipe without a name */
	KFILE_SOCKET = 2, /* family, addresses, ports */
	KFILE_ANON = 3,   /* [eventfd] and such: one name */
};

#define KERNEL_FILE_NAMES 1280

/* RECORD_FILE, in a ring of its own (io_names): told once for each id, before its first row. */
struct kernel_file {
	struct kernel_record head;
	wire_u64 id;
	wire_u64 inode;
	wire_u32 dev;
	wire_u16 mode;
	wire_u8 kind;       /* enum kernel_file_kind */
	wire_u8 is_deleted; /* had no link any more */
	wire_u16 family;
	wire_u16 local_port;
	wire_u16 remote_port;
	wire_u8 protocol; /* IPPROTO_* */
	wire_u8 is_cut;   /* the path is longer than what is here */
	wire_u8 remote[16];
	wire_u16 nr_names; /* bytes of names */
	wire_u16 pad[3];
	/* The path's parts, leaf first, each ended by NUL. A Unix socket: its path or, after a
	 * NUL, its abstract name. */
	char names[KERNEL_FILE_NAMES]; /* a record holds nr_names of them */
};

/* What was not counted as it should; every one of them is a number in a report. */
struct io_counts {
	wire_u64 nr_rows_full;     /* added up without stack and file, for want of rows */
	wire_u64 nr_lost;          /* not even that */
	wire_u64 nr_no_start;      /* calls that were under way when the capture began */
	wire_u64 nr_no_issue;      /* block requests completed whose issue was not seen */
	wire_u64 nr_requests_full; /* block requests not followed, for want of room */
	wire_u64 nr_files_lost;    /* names of files that did not fit into the ring */
	wire_u64 nr_busy_maps;     /* faults whose mapping could not be looked at */
	wire_s64 nr_inflight;      /* block requests issued and not completed */
	wire_s64 max_inflight;
};

#ifndef __bpf__
_Static_assert(sizeof(struct io_key) == 40, "io row key");
_Static_assert(sizeof(struct io_sum) == 32, "io row");
_Static_assert(sizeof(struct kernel_file) == 24 + 56 + KERNEL_FILE_NAMES, "file record");
#endif

#endif
