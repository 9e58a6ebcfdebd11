/*
 * A child held at a gate: forked, waiting on a pipe, so that whoever measures it can attach first;
 * released, it executes the command. As root under sudo the child becomes the invoking user again
 * (SUDO_UID, SUDO_GID). Signals and descriptors are as a shell would leave them.
 */
#ifndef ASSAY_BASE_PROCESS_SPAWN_H
#define ASSAY_BASE_PROCESS_SPAWN_H

#include <sys/types.h>

#include "base/base.h"
#include "base/err.h"

struct spawn {
	pid_t pid;
	int gate_fd;   /* write end; -1 once released */
	int status_fd; /* read end: the errno of a failed exec */
	bool is_reaped;
	int wait_status;
};

int spawn_open(struct spawn *ret_s, char *const argv[], struct err *err);
/* Lets the command run. -ENOENT/-EACCES/...: it could not be executed (exit 127 or 126). */
int spawn_release_gate(struct spawn *s, const char *name, struct err *err);
/* Reaps without waiting; true once the child has ended. */
bool spawn_has_ended(struct spawn *s);
/* Waits for the end. Interrupted by signals that have handlers: returns false then. */
bool spawn_wait(struct spawn *s);
/* The exit code a shell would give: status, or 128 + signal. */
int spawn_exit_code(const struct spawn *s);
/* Kills a child that is still at the gate; leaves a running one alone. */
void spawn_release(struct spawn *s);

#endif
