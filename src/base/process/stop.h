/*
 * Stop requests by signal: after SIGINT, SIGTERM or SIGHUP a capture ends and writes all of its
 * files; after a second signal it writes the recording without flame graphs. SIGCHLD wakes a poll that waits for a
 * launched command. SIGPIPE is ignored, so that writing to a closed pipe does not kill assay before
 * the recording is complete.
 *
 * The state is global, as signal handlers are. stop_fd is for poll: readable after any of these
 * signals until stop_drain. SIGHUP stays ignored under nohup.
 *
 *	stop_install(&err);
 *	while (!stop_count()) { poll({stop_fd(), ...}); stop_drain(); ... }
 */
#ifndef ASSAY_BASE_PROCESS_STOP_H
#define ASSAY_BASE_PROCESS_STOP_H

#include "base/base.h"
#include "base/err.h"

/* Installs the signal handlers and opens the descriptor of stop_fd. */
int stop_install(struct err *err);
/* Restores the previous signal handling (for tests, and several captures in one process). */
void stop_uninstall(void);
int stop_fd(void); /* -1 before stop_install */
/* Makes stop_fd unreadable until the next signal; the number of requests stays. */
void stop_drain(void);
/* Number of stop requests: 0 continue, 1 end and write everything, 2 or more: no flame graphs. */
unsigned stop_count(void);
/* The first signal that requested a stop; 0: none, or stop_request did. */
int stop_signal(void);
/* Requests a stop like a signal. Any thread. */
void stop_request(void);
/* For a forked child before exec: restores the signal handling that assay was started with. */
void stop_reset_in_child(void);

#endif
