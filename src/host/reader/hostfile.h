/*
 * Files of targets, read by another process: binaries, debug files, perf maps, and files of /proc
 * whose reading takes a lock of the target's memory (maps, smaps, cmdline, mem, ...). Any of them
 * may never answer: a FUSE or network file system whose server is gone, or a target that waits for
 * such a file with its lock held. Whoever waits there cannot be killed, so assay itself never opens,
 * reads or maps these files. It holds O_PATH descriptors only: of root directories, and of binaries
 * to be probed.
 *
 * The file server forks file readers (reader_protocol.h). It is forked first of all in captures, and
 * after rights are dropped in the commands that read profiles. A reader opens and
 * reads, and assay gets bytes, through memory that both map. A reader that does not answer is
 * abandoned and never waited for; its other files are opened again by another reader, and the device
 * that did not answer is not tried again. After HOSTFILE_ABANDONED_MAX readers no more are started.
 *
 * A request that waits HOSTFILE_DEADLINE_MS for a file returns -ETIMEDOUT. Time does not count while
 * the reader is runnable, up to ten seconds in all, nor while the hypervisor has the CPUs: it waits for
 * a CPU then. A thread that has set a shorter deadline (hostfile_set_deadline) gets -EINPROGRESS at that
 * one, and may ask again; later if the reader is runnable then. Other errors are those of the file, or -EIO: the reader has died.
 *
 * All functions may be called by any thread. A source (base/file/bytesource.h) may be used by any
 * thread, one at a time.
 */
#ifndef ASSAY_HOST_READER_HOSTFILE_H
#define ASSAY_HOST_READER_HOSTFILE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file/bytesource.h"

#define HOSTFILE_DEADLINE_MS   2000u
#define HOSTFILE_ABANDONED_MAX 4u

/*
 * Starts the file server, if it is not running. It becomes the user who ran sudo, keeps only the
 * rights that reading needs (host_caps_of_files), and has a filter of system calls. To be called
 * before threads start, rights are dropped and much memory is used; else it starts with the first
 * request. @argv: overwritten in the server, so that no search for a command line finds it; may be
 * NULL.
 */
void hostfile_start(int argc, char **argv);
/* In a forked child, before it closes descriptors: closes those of its parent's readers. */
void hostfile_forget(void);
/*
 * Starts anew, without the readers that were abandoned, for what has to be done even if files did not
 * answer before. No file may be open, and no other thread may use files.
 */
void hostfile_restart(void);
/* How long requests of this thread wait: at most, and at first, HOSTFILE_DEADLINE_MS. */
void hostfile_set_deadline(unsigned ms);

struct hostfile_mapping {
	int32_t pid;
	uint64_t start;
	uint64_t end;
	const char *path; /* as in /proc/PID/maps */
	uint32_t dev_major;
	uint32_t dev_minor;
	uint64_t inode; /* 0: device and inode are not known */
};

/*
 * Opens the file of a mapping: through /proc/PID/map_files (exactly that inode, even if it was
 * deleted or replaced), else by path in the target's root, else by path in assay's root. Regular
 * files only. *ret_is_exact: device and inode are those of the mapping; else the caller verifies the
 * file by its build-id.
 */
int hostfile_open_mapped(struct byte_source *ret_s, bool *ret_is_exact,
			 const struct hostfile_mapping *m);
/* Opens a regular file by path in the root directory @root_fd (-1: assay's own). */
int hostfile_open_path(struct byte_source *ret_s, int root_fd, const char *path);
/* Opens a file of /proc that is read at offsets: "/proc/PID/mem", "/proc/PID/pagemap". */
int hostfile_open_proc(struct byte_source *ret_s, const char *path);
/*
 * Opens a process's root directory, as a name for it only (O_PATH), to be passed to the function
 * above. Returns a descriptor that the caller closes, or -errno.
 */
int hostfile_open_root(int32_t pid);
/* Appends the text of a file of /proc. Fails beyond @limit bytes. */
int hostfile_read_text(struct buf *to, const char *path, size_t limit, struct err *err);
/*
 * Appends the text of a link of /proc, such as /proc/PID/fd/N. @ret_st: kind, device and inode of what
 * it leads to.
 */
int hostfile_read_link(struct buf *to, struct stat *ret_st, const char *path);
/*
 * Returns a descriptor that names an open file (O_PATH), for what the kernel opens by path, or
 * -errno; the caller closes it. The file has answered a moment ago.
 */
int hostfile_name(const struct byte_source *s);
/* Appends the files that did not answer in time: "'/mnt/a', '/proc/7/maps'"; nothing: none. */
void hostfile_add_silent(struct buf *to);
/* Returns the process that reads an open file; 0: it was abandoned. */
int32_t hostfile_reader_pid(const struct byte_source *s);
/* CPU time of all file readers so far. */
uint64_t hostfile_cpu_ns(void);

#endif
