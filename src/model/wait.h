/*
 * Wait reasons: names of the states that a thread's wall-clock time is divided into (on CPU, run
 * queue, waiting for a reason). Per thread the times of all states add up to the time during which
 * the thread was recorded.
 *
 * The BPF programs determine the reason when a thread is switched out: from its registers (which
 * system call; none: a page fault), the type of the file behind the descriptor, and the task's
 * flags. A futex wait alone does not show its purpose, so it is recorded as WAIT_SYNC with
 * evidence; the analysis then decides between a lock (WAIT_LOCK), waiting for work (WAIT_PARK) and
 * waiting for another thread (WAIT_BACKPRESSURE, WAIT_JOIN, WAIT_PERMIT). Only waiting for work,
 * for events or for time is idle.
 */
#ifndef ASSAY_MODEL_WAIT_H
#define ASSAY_MODEL_WAIT_H

#include "base/base.h"
#include "base/sv.h"
#include "wait_reason.h"

/* Stable key for filters, JSON and CSV: "run_queue", "file_read". */
const char *wait_key(enum wait_reason r);
/* Text for users: "run queue", "file read". */
const char *wait_text(enum wait_reason r);
/* Name of the leaf frame added to a stack: "[lock]", "[run queue]"; NULL if it is not a wait. */
const char *wait_frame(enum wait_reason r);
/* Whether the thread is idle (waits for work: poll, sleep, park), as opposed to blocked. */
bool wait_is_idle(enum wait_reason r);
/* Whether these waits are recorded as WAIT_SYNC and classified by their frames. */
bool wait_is_of_futex(enum wait_reason r);
/* Returns the reason with a key, or WAIT_NONE. */
enum wait_reason wait_from_key(struct sv key);
/* Returns the reason with a leaf frame, with or without its brackets, or WAIT_NONE. */
enum wait_reason wait_from_frame(struct sv name);

#endif
