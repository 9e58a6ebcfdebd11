/*
 * A launched command held at the moment when everything is mapped and relocated and no code of its
 * own has run: for a dynamic program when the dynamic linker reports a consistent list of objects
 * before constructors run, for a static one at its entry point. There the recorder is put in place
 * with nobody to disturb. Used with base/spawn.h: the child is traced from its gate on.
 *
 * Commands that execute another program (a shell script's `exec`) are held again at each exec, for
 * as long as the launch is followed; forked children are not held.
 *
 * ptrace: all calls by one thread.
 */
#ifndef ASSAY_CAPTURE_HEAPLAUNCH_H
#define ASSAY_CAPTURE_HEAPLAUNCH_H

#include "base/base.h"
#include "base/err.h"

struct heaplaunch;

/* The child waits at its gate. */
int heaplaunch_open(struct heaplaunch **ret_l, int32_t pid, struct err *err);
/*
 * After the gate was opened, and again later: *ret_is_held when it stands at the point. Never
 * blocks longer than @timeout_ms. -ESRCH: it has ended (its status is left to be reaped by its
 * parent).
 */
int heaplaunch_poll(struct heaplaunch *l, int timeout_ms, bool *ret_is_held, struct err *err);
/* Lets it run; traced further only for its execs. */
int heaplaunch_continue(struct heaplaunch *l, struct err *err);
void heaplaunch_free(struct heaplaunch *l);
void heaplaunch_free_p(struct heaplaunch **l);

#endif
