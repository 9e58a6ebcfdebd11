/*
 * Starts a command in two steps, so that events and probes can be attached to the process before
 * it runs: spawn_open forks a child that blocks on a pipe; spawn_exec lets it execute the command.
 * The command gets the signal handling that assay was started with, and of assay's descriptors only
 * standard input, output and error.
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
	uint64_t peak_rss_bytes; /* once reaped; also before its exec */
	bool peak_is_own;        /* else it may be that of a child that it waited for */
	uint64_t
		cpu_ns; /* once reaped: its CPU time, with that of the children that it waited for */
	uint64_t system_ns; /* the part of it in the kernel */
};

/*
 * The caller calls spawn_release also if it does not call spawn_exec. @before_exec, if any, is called
 * in the child, just before execve; it returns 0 or the -errno with which the child fails.
 */
int spawn_open(struct spawn *ret_s, char *const argv[], int (*before_exec)(void), struct err *err);
/*
 * Lets the child execute the command. @name: for messages. If execve fails, returns its -errno; the
 * child has then exited with 127 (ENOENT) or 126 (other errors), and is reaped.
 */
int spawn_exec(struct spawn *s, const char *name, struct err *err);
/* Returns whether the child has ended; if so, reaps it. Does not block. */
bool spawn_has_ended(struct spawn *s);
/* Waits for the child to end. Returns false if interrupted by a signal that has a handler. */
bool spawn_wait(struct spawn *s);
/* Returns the exit status as a shell reports it: status, or 128 + signal. */
int spawn_exit_code(const struct spawn *s);
/* Closes the pipes. A child that waits for spawn_exec exits. A running command continues. */
void spawn_release(struct spawn *s);

#endif
