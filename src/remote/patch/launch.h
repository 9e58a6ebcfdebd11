/*
 * A launched command held at the moment when everything is mapped and relocated and no code of its
 * own has run: for a dynamic program when the dynamic linker reports a consistent list of objects
 * before constructors run, for a static one at its entry point. There the recorder is put in place
 * with nobody to disturb. Used with base/process/spawn.h: the child is traced from its gate on.
 *
 * Commands that execute another program (a shell script's `exec`) are held again at each exec, as
 * long as the launch is followed; forked children are not held. While it is followed each signal
 * waits for the next heaplaunch_poll, so a process that gets many is followed no more.
 *
 * If assay dies while the command is held the kernel lets it go on. Only in the milliseconds in
 * which the dynamic linker runs towards the point would it end by the trap that is meant for us.
 *
 * ptrace: all calls by one thread. Sessions of remote/ptrace/remote.h by the same thread work while a
 * launch is followed: held or running.
 */
#ifndef ASSAY_REMOTE_PATCH_LAUNCH_H
#define ASSAY_REMOTE_PATCH_LAUNCH_H

#include "base/base.h"
#include "base/err.h"

struct heaplaunch;

/* The child waits at its gate. */
int heaplaunch_open(struct heaplaunch **ret_l, int32_t pid, struct err *err);
/*
 * After the gate was opened, and again later: *ret_is_held when it stands at the point. Never
 * blocks longer than @timeout_ms, or than 10 ms while the dynamic linker runs. -ESRCH: it has ended
 * (its status is left to be reaped by its parent), or is followed no more.
 */
int heaplaunch_poll(struct heaplaunch *l, int timeout_ms, bool *ret_is_held, struct err *err);
/* Lets it run; traced further only for its execs. */
int heaplaunch_continue(struct heaplaunch *l, struct err *err);
void heaplaunch_free(struct heaplaunch *l);
DEFINE_FREE_P(heaplaunch, struct heaplaunch)

#endif
