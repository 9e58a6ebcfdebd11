/*
 * Stops a launched command when all its binaries are mapped and relocated and none of its own code
 * has run: a dynamic program when the dynamic linker reports a consistent list of objects, before
 * constructors; a static one at its entry point. From there it can be run up to its main function, in
 * whose place its C library is initialized and its functions may be called. The recorder can then be attached to a process
 * with one thread. Used with base/process/spawn.h: between spawn_open and spawn_exec the child
 * waits on a pipe ("gate") and is seized.
 *
 * If the command executes another program (a shell script's `exec`), it is stopped again at each
 * exec. With HEAPLAUNCH_CHILDREN the kernel attaches to its threads and children as well; follow.h
 * has an object of this kind for each. While the command is traced each of its signals is delivered
 * by the next heaplaunch_poll; this is slow, so a process that gets many signals is detached, unless
 * it forks between them.
 *
 * If assay dies while the command is stopped, the kernel resumes the command. If assay dies while
 * the dynamic linker or the program's constructors run towards a breakpoint (milliseconds), SIGTRAP
 * kills the command.
 *
 * ptrace: all calls by one thread. That thread may use sessions of remote/ptrace/remote.h on the
 * command, stopped or running.
 */
#ifndef ASSAY_REMOTE_PATCH_LAUNCH_H
#define ASSAY_REMOTE_PATCH_LAUNCH_H

#include "base/base.h"
#include "base/err.h"

struct heaplaunch;

enum heaplaunch_flags { HEAPLAUNCH_CHILDREN = 1 << 0 };

/* Seizes the child, which must wait on the pipe of spawn_open. */
int heaplaunch_open(struct heaplaunch **ret_l, int32_t pid, unsigned flags, struct err *err);
/*
 * For a thread to which the kernel has attached, at its first stop. A process with memory of its own
 * stays there, and *ret_is_held is set; a thread (@is_process is false) and a child that shares its
 * parent's memory run on. -ESRCH: it has ended.
 */
int heaplaunch_adopt(struct heaplaunch **ret_l, int32_t tid, bool is_process, bool *ret_is_held);
/*
 * Handles ptrace events; to be called repeatedly after spawn_exec. Sets *ret_is_held when
 * the command is stopped as described above. Blocks for at most @timeout_ms, or 10 ms while the
 * dynamic linker runs. -ESRCH: the command has ended (its status is not reaped) or was detached.
 */
int heaplaunch_poll(struct heaplaunch *l, int timeout_ms, bool *ret_is_held, struct err *err);
/*
 * Resumes the stopped command up to @addr, its main function, where heaplaunch_poll stops it again. If
 * it never gets there, it runs on.
 */
int heaplaunch_run_to_main(struct heaplaunch *l, uint64_t addr, struct err *err);
/* Resumes the stopped command. It stays traced, so that it stops at its next exec. */
int heaplaunch_continue(struct heaplaunch *l, struct err *err);
/* Detaches and frees. NULL is allowed. */
void heaplaunch_free(struct heaplaunch *l);
DEFINE_FREE_P(heaplaunch, struct heaplaunch)

#endif
