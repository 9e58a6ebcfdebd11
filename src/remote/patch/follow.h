/*
 * The threads of a launched command that assay traces: its main thread, so that each program that it
 * executes is stopped before its own code (launch.h); with HEAPFOLLOW_CHILDREN also its other threads
 * and its descendants, because any of them may fork. The kernel attaches to these itself, before their
 * first instruction:
 *
 *	fork            the child is stopped until heapfollow_continue
 *	vfork, spawn    the child shares its parent's memory and runs on until it executes a program
 *	execve          stopped as the command is
 *	new threads     run on
 *
 * A thread that gets many signals and neither forks nor executes is detached (launch.h).
 *
 * If assay dies, all of them run on. All calls by one thread.
 */
#ifndef ASSAY_REMOTE_PATCH_FOLLOW_H
#define ASSAY_REMOTE_PATCH_FOLLOW_H

#include "base/base.h"
#include "base/err.h"

struct heapfollow;

enum heapfollow_flags { HEAPFOLLOW_CHILDREN = 1 << 0 };

/* A process that is stopped until heapfollow_continue. */
struct heapfollow_held {
	int32_t pid;
	bool is_forked; /* just forked; else it has executed a program */
	uint64_t since_ns;
};

/* Seizes the child, which must wait on the pipe of spawn_open. */
int heapfollow_open(struct heapfollow **ret_f, int32_t child, unsigned flags, struct err *err);
/* Handles what ptrace reports. -ESRCH: no thread is traced any more. */
int heapfollow_poll(struct heapfollow *f);
/* The process held at @idx; false: there are not as many. */
bool heapfollow_held(const struct heapfollow *f, size_t idx, struct heapfollow_held *ret_h);
void heapfollow_continue(struct heapfollow *f, int32_t pid);
/* Instead of heapfollow_continue: it is held again at @addr, its main function. */
void heapfollow_run_to_main(struct heapfollow *f, int32_t pid, uint64_t addr);
/* Whether the main thread of @pid is traced: then it is held when it executes a program. */
bool heapfollow_has(const struct heapfollow *f, int32_t pid);
/* Detaches from all and frees. NULL is allowed. */
void heapfollow_free(struct heapfollow *f);
DEFINE_FREE_P(heapfollow, struct heapfollow)

#endif
