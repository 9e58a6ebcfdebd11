/*
 * What assay and its file readers say to each other (hostfile.c asks, fileserver.c answers): one
 * request and one answer at a time through a SOCK_SEQPACKET socket; bytes of files go through memory
 * that both map.
 */
#ifndef ASSAY_HOST_READER_READER_PROTOCOL_H
#define ASSAY_HOST_READER_READER_PROTOCOL_H

#include <sys/stat.h>

#include "base/base.h"

#define READER_WINDOW_BYTES ((size_t)1 << 20)
#define READER_HEAD_BYTES   ((size_t)4096)
/* Opening a file also reads its first bytes: whoever opens a binary reads its header. */
#define READER_FIRST_BYTES ((size_t)64 << 10)
#define READER_PATH_MAX    4096
#define READER_SILENT_MAX  8

enum reader_op {
	READER_OPEN_MAPPED, /* the file of a mapping; answer: handle, stat, first bytes */
	READER_OPEN_PATH, /* a regular file by path, in the root directory passed if there is one */
	READER_OPEN_PROC, /* a file of /proc by path, to be read at offsets (mem, pagemap) */
	READER_OPEN_ROOT, /* answer: a descriptor of a process's root directory, O_PATH */
	READER_READ,      /* @n bytes at @offset of @handle; answer: as many as there are */
	READER_TEXT,      /* a file of /proc by path, from its start to its end; if it does not */
	READER_MORE,      /* fit, the answer has a handle, with which to ask for MORE */
	READER_IDENTIFY,  /* answer in the window: the struct file_identity of @handle */
	READER_NAME,      /* answer: a descriptor of @handle's file, O_PATH */
	READER_LINK,      /* a link of /proc by path; answer: its text, and the stat of its file */
	READER_CLOSE,     /* has no answer */
};

struct reader_request {
	uint32_t seq;
	uint32_t op; /* enum reader_op */
	int32_t handle;
	int32_t pid; /* OPEN_MAPPED, OPEN_ROOT */
	uint64_t offset;
	uint64_t n;
	uint64_t start; /* the mapping */
	uint64_t end;
	uint64_t dev; /* of the mapping: major << 32 | minor; 0 and inode 0 = unknown */
	uint64_t inode;
	uint64_t silent[READER_SILENT_MAX]; /* devices that do not answer: not to be touched */
	uint32_t nr_silent;
	uint32_t nr_path; /* bytes of the path, which follows, without NUL */
};

struct reader_answer {
	uint32_t seq;
	int32_t rc;     /* 0 or -errno */
	int32_t handle; /* of a file that was opened or has more bytes, else -1 */
	uint32_t is_exact;
	uint64_t n; /* bytes in the window */
	struct stat st;
};

/* The first page of the memory; the window follows. Written by the reader. */
struct reader_head {
	uint32_t seq;    /* of the request that it is at; 0: none */
	int32_t pid;     /* of the reader */
	uint64_t dev;    /* device of the file that it waits for, 0 = not known */
	uint64_t cpu_ns; /* CPU time of the reader so far */
};

/*
 * Runs the process that forks readers, which is single-threaded and opens no file of a target. Each
 * byte that comes through @control asks for a reader: the answer is a byte with two descriptors, the
 * reader's socket and its memory. Ends when @control is closed at the other end. Readers end when
 * their sockets are closed; nobody waits for one.
 */
void fileserver_run(int control) __attribute__((noreturn));
/*
 * Starts that process. Returns the other end of @control, or -1. @argv: overwritten in it; may be NULL
 * if @argc is 0.
 */
int fileserver_start(int argc, char **argv);

#endif
