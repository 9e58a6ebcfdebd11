/*
 * Stopping on request: SIGINT, SIGTERM and SIGHUP ask a capture to end and write everything; a
 * second one (not within the same moment) skips the pictures, never the recording. SIGCHLD wakes
 * whoever waits for a launched command. SIGPIPE is ignored, so that a closed pipe cannot take the
 * recording with it.
 *
 * Signals belong to the process, so this state does too. stop_fd is for poll: readable after any
 * of these signals until stop_drain. SIGHUP stays ignored under nohup.
 *
 *	stop_install(&err);
 *	while (!stop_count()) { poll({stop_fd(), ...}); stop_drain(); ... }
 */
#ifndef ASSAY_BASE_PROCESS_STOP_H
#define ASSAY_BASE_PROCESS_STOP_H

#include "base/base.h"
#include "base/err.h"

int stop_install(struct err *err);
/* Back to what was there before (tests, several captures in one process). */
void stop_uninstall(void);
int stop_fd(void); /* -1 before stop_install */
void stop_drain(void);
/* Stop requests so far: 0 go on, 1 end and write everything, more: skip the pictures. */
unsigned stop_count(void);
/* The first signal that asked, 0 = none (or stop_request). */
int stop_signal(void);
/* As if a signal had come. Any thread. */
void stop_request(void);
/* In a forked child before exec: the dispositions that our parent gave us. */
void stop_reset_in_child(void);

#endif
