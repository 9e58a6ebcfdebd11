/*
 * Starts a command in two steps, so that events and probes can be attached to the process before
 * it runs: spawn_open forks a child that blocks on a pipe; spawn_exec lets it execute the command.
 * As root under sudo the child becomes the invoking user again (SUDO_UID, SUDO_GID). The command
 * gets the signal handling that assay was started with and none of assay's descriptors.
 */
#ifndef ASSAY_BASE_PROCESS_SPAWN_H
#define ASSAY_BASE_PROCESS_SPAWN_H

#include <sys/types.h>

#include "base/base.h"
#include "base/err.h"

struct spawn {
	pid_t pid;
	int start_fd;  /* write end of the pipe that the child waits on; -1 after spawn_exec */
	int status_fd; /* read end of a pipe with the errno of a failed exec */
	bool is_reaped;
	int wait_status;
};

int spawn_open(struct spawn *ret_s, char *const argv[], struct err *err);
/* Lets the child execute the command. -ENOENT, -EACCES, ...: exec failed (exit 127 or 126). */
int spawn_exec(struct spawn *s, const char *name, struct err *err);
/* Returns whether the child has ended, and reaps it then. Does not block. */
bool spawn_has_ended(struct spawn *s);
/* Waits for the child to end. Returns false if interrupted by a signal that has a handler. */
bool spawn_wait(struct spawn *s);
/* Returns the exit status as a shell reports it: status, or 128 + signal. */
int spawn_exit_code(const struct spawn *s);
/* Closes the pipes. A child that did not execute the command yet exits; a running one goes on. */
void spawn_release(struct spawn *s);

#endif
