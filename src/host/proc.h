/*
 * Reads /proc: a process's threads, names, status and mappings. Names and paths are chosen by the
 * process and may hold any bytes. A process may exit at any time: functions then return -ESRCH or
 * -ENOENT, which callers must not treat as a failure of the capture. Files whose reading takes a lock
 * of the process's memory, or needs permission to trace it, are read by a file reader
 * (reader/hostfile.h) and may fail with its -ETIMEDOUT and -EINPROGRESS.
 */
#ifndef ASSAY_HOST_PROC_H
#define ASSAY_HOST_PROC_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file/bytesource.h"
#include "base/sv.h"
#include "base/vec.h"

struct pid_list {
	VEC(int32_t) pids;
};

void pid_list_release(struct pid_list *l);
void pid_list_sort(struct pid_list *l);
bool pid_list_has(const struct pid_list *l, int32_t pid);

/* Lists all processes, ascending. */
int proc_list(struct pid_list *ret_l, struct err *err);
/* The same of a folder that is like /proc, for tests. */
int proc_list_in(struct pid_list *ret_l, const char *dir_path, struct err *err);
/* Lists the threads of a process, ascending. */
int proc_threads(struct pid_list *ret_l, int32_t pid, struct err *err);
/* Appends the thread's name (at most 15 bytes). */
int proc_comm(struct buf *to, int32_t pid, int32_t tid, struct err *err);
/* Appends the command line, arguments separated by blanks. */
int proc_cmdline(struct buf *to, int32_t pid, struct err *err);
/* Appends the first argument alone. The program may have overwritten it. */
int proc_argv0(struct buf *to, int32_t pid, struct err *err);
/* Returns the real uid of a process. */
int proc_uid(int32_t pid, uint32_t *ret_uid, struct err *err);
/* Returns the process (thread group) of a thread. */
int proc_tgid(int32_t tid, int32_t *ret_pid, struct err *err);
/* A number of the text of /proc/PID/stat; @field as in proc(5), 4 or more. False: it has none. */
bool proc_stat_field(const struct buf *stat, unsigned field, uint64_t *ret_nr);
/* Returns the process's parent; 0: none in this PID namespace. */
int proc_parent(int32_t pid, int32_t *ret_pid, struct err *err);
/* Returns the pid, or tid, in its own (innermost) PID namespace. */
int proc_nspid(int32_t pid, int32_t *ret_nspid, struct err *err);
/*
 * Returns a number that changes when the process calls execve, also for the same program: a hash of
 * auxv, which holds the randomized addresses of program and stack. 0: no program is mapped yet, or
 * auxv cannot be read.
 */
uint64_t proc_exec_id(int32_t pid);
/*
 * 0: the process still runs the program whose proc_exec_id was @id, or @id is 0. -ESRCH: it has ended or
 * executed another program. Other errors: it could not be read, which says nothing about the process.
 */
int proc_check_exec(int32_t pid, uint64_t id, struct err *err);
/* Whether the process runs a 32-bit program. False if that is not known. */
bool proc_is_32bit(int32_t pid);
/* When the process was started, in clock ticks after boot; 0: it has ended, or that is not known. */
uint64_t proc_start_ticks(int32_t pid);
/* The time of now in the same unit. */
uint64_t proc_now_ticks(void);
/*
 * CPU time of a process with that of its ended threads, in ns, and of the children that it waited for,
 * in clock ticks. 0: not known.
 */
uint64_t proc_cpu_ns(int32_t pid);

/*
 * Gets the status that a zombie's parent will get from wait. The kernel shows 0 to those who may not trace
 * the process. False: it is no zombie.
 */
bool proc_zombie_status(int32_t pid, uint64_t *ret_status);

/* Fields of /proc/PID/task/TID/status. */
struct proc_task {
	int32_t tracer;   /* pid of the process that traces it; 0: none */
	unsigned seccomp; /* 0 none, 1 strict, 2 filter */
	uint64_t caught;  /* signals that have a handler: bit n - 1 is signal n */
	int32_t ns_tid;   /* its id in its own PID namespace */
	char state;       /* R S D T t Z X */
};
/* Reads the status of a thread. Returns -ESRCH for any failure. */
int proc_task(int32_t pid, int32_t tid, struct proc_task *ret_t);
/* Whether all threads of the process have ended; it may still be a zombie. */
bool proc_has_ended(int32_t pid);
/*
 * Returns the value after "Key:" in the text of a status file, trimmed; empty if missing. Borrowed.
 */
struct sv proc_status_field(const struct buf *text, const char *key);

/* Where a thread is blocked: /proc/PID/task/TID/syscall. */
struct proc_wait {
	int64_t nr; /* of the system call; -1: outside a call */
	uint64_t sp;
	uint64_t pc;
};
/* -EAGAIN: the thread is running. -ENOENT, -ESRCH: it has exited. Others: no permission. */
int proc_wait(int32_t pid, int32_t tid, struct proc_wait *ret_w);
/* Parses the text of that file; false: "running", or malformed. Public for tests. */
bool proc_parse_wait(struct sv text, struct proc_wait *ret_w);

struct proc_reads {
	uint64_t disk_bytes;    /* read from disk by its calls, page faults and read-ahead */
	uint64_t call_bytes;    /* returned by its read calls, also from the page cache */
	uint64_t written_bytes; /* passed to its write calls */
	uint64_t nr_major;      /* major faults */
	uint64_t nr_minor;
	uint64_t nr_calls;      /* read and write calls */
	uint64_t dirtied_bytes; /* pages of files on block devices that it made dirty */
};
/* Reads the sums over all threads since the process started. */
int proc_reads(int32_t pid, struct proc_reads *ret_r, struct err *err);

struct proc_map {
	uint64_t start;
	uint64_t end;
	uint64_t pgoff;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint64_t inode;
	bool is_read;
	bool is_write;
	bool is_exec;
	bool is_shared;
	const char *path; /* "" for anonymous memory; borrowed during the callback */
};

typedef int (*proc_map_fn)(void *ctx, const struct proc_map *m, struct err *err);
/* Calls @fn for every mapping in address order; stops at and returns its first non-zero result. */
int proc_maps(int32_t pid, proc_map_fn fn, void *ctx, struct err *err);
/* Whether the path of a mapping is one of the heap recorder of assay; some stay after a detach. */
bool proc_is_recorder(const char *path);
/* The path of the program that the process executes, as in its mappings. The caller frees; NULL: unknown. */
char *proc_exe(int32_t pid);
/* Opens the file of a mapping (hostfile_open_mapped). */
int proc_open_mapped(struct byte_source *ret_s, int32_t pid, const struct proc_map *m);
/*
 * Parses a line of maps, or the first line of a mapping in smaps. *ret_path points into the line;
 * ret_m->path is NULL.
 */
bool proc_parse_map(struct sv line, struct proc_map *ret_m, struct sv *ret_path);
/* Appends a path of a maps line (ret_path) with \012, as the kernel writes newlines, replaced. */
void proc_add_map_path(struct buf *to, struct sv path);

#endif
