/*
 * /proc as this tool needs it: threads, names, mappings of a process. Text of the kernel; names
 * inside it are foreign. A process may vanish at any moment: functions then return -ESRCH or
 * -ENOENT and the caller carries on.
 */
#ifndef ASSAY_HOST_PROC_H
#define ASSAY_HOST_PROC_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"
#include "base/vec.h"

struct pid_list {
	VEC(int32_t) pids;
};

void pid_list_release(struct pid_list *l);
void pid_list_sort(struct pid_list *l);
bool pid_list_has(const struct pid_list *l, int32_t pid);

/* All processes, ascending. */
int proc_list(struct pid_list *ret_l, struct err *err);
/* Threads of a process, ascending. */
int proc_threads(struct pid_list *ret_l, int32_t pid, struct err *err);
/* The thread's name (at most 15 bytes), appended. */
int proc_comm(struct buf *to, int32_t pid, int32_t tid, struct err *err);
/* The command line, arguments separated by blanks, appended. */
int proc_cmdline(struct buf *to, int32_t pid, struct err *err);
/* Its first argument alone, which the program may have written over; appended. */
int proc_argv0(struct buf *to, int32_t pid, struct err *err);
/* Owner (real uid) of a process; the thread group of a thread. */
int proc_uid(int32_t pid, uint32_t *ret_uid, struct err *err);
int proc_tgid(int32_t tid, int32_t *ret_pid, struct err *err);
/* The process's parent; 0: it has none here. */
int proc_parent(int32_t pid, int32_t *ret_pid, struct err *err);
/* The pid, or tid, in its own (innermost) pid namespace. */
int proc_nspid(int32_t pid, int32_t *ret_nspid, struct err *err);
/*
 * A number that changes when the process executes a program, the same one or another: where the
 * kernel put it and its stack (auxv). 0: nothing is mapped, or it cannot be read.
 */
uint64_t proc_image(int32_t pid);

/* What /proc/PID/task/TID/status tells of a thread. */
struct proc_task {
	int32_t tracer;   /* 0: none */
	unsigned seccomp; /* 0 none, 1 strict, 2 filter */
	uint64_t ignored; /* bit n - 1: signal n */
	char state;       /* R S D T t Z X */
};
/* Any failure is -ESRCH. */
int proc_task(int32_t pid, int32_t tid, struct proc_task *ret_t);
/* The value after "Key:" in text of a status file, trimmed; empty: there is none. Borrowed. */
struct sv proc_status_field(const struct buf *text, const char *key);

/* Where a thread waits. */
struct proc_wait {
	int64_t nr; /* of the system call; -1: outside of one */
	uint64_t sp;
	uint64_t pc;
};
/* -EAGAIN: it runs. -ENOENT, -ESRCH: it has ended. Others: it may not be seen. */
int proc_wait(int32_t pid, int32_t tid, struct proc_wait *ret_w);
/* For tests: text of /proc/PID/task/TID/syscall; false: "running", or no such. */
bool proc_parse_wait(struct sv text, struct proc_wait *ret_w);

struct proc_reads {
	uint64_t disk_bytes; /* fetched from disks for it: by its calls, its faults, read-ahead */
	uint64_t call_bytes; /* what its system calls read, from anywhere */
	uint64_t nr_major;   /* major faults */
};
/* Of all threads since the process began. */
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
/* Every mapping in address order; stops at the first non-zero return and gives it back. */
int proc_maps(int32_t pid, proc_map_fn fn, void *ctx, struct err *err);
/*
 * A line of maps, or the head of a mapping in smaps. *ret_path: where the text has it; m->path is
 * left NULL.
 */
bool proc_parse_map(struct sv line, struct proc_map *ret_m, struct sv *ret_path);
/* Appends such a path as it is: the kernel writes newlines as \012. */
void proc_add_map_path(struct buf *to, struct sv path);

#endif
