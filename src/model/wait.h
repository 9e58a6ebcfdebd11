/*
 * Where a thread's wall time goes: on a CPU, in the run queue, or waiting for a reason. The
 * ledger of a thread is the sum over all of these, and it closes: it equals the wall time for
 * which the thread was watched.
 *
 * The kernel side tells reasons apart by the registers of the thread that leaves the CPU (which
 * system call, or none: a fault), by the kind of file behind its descriptor, and by the task's
 * flags. A futex wait alone does not say what it is for, so it is recorded as WAIT_SYNC with the
 * evidence that was there, and told apart when it is looked at: a lock, or a thread that waits
 * for work.
 */
#ifndef ASSAY_MODEL_WAIT_H
#define ASSAY_MODEL_WAIT_H

#include "base/base.h"
#include "base/sv.h"
#include "wait_reason.h"

/* Stable key ("run_queue", "file_read") for filters, JSON and CSV; a phrase for people. */
const char *wait_key(enum wait_reason r);
const char *wait_text(enum wait_reason r);
/* As a frame on top of a stack: "[lock]", "[run queue]"; NULL for rows that are no wait. */
const char *wait_frame(enum wait_reason r);
/* Waiting for something to do, rather than being kept from doing it. */
bool wait_is_idle(enum wait_reason r);
/* The reason of a key, or WAIT_NONE. */
enum wait_reason wait_from_key(struct sv key);

#endif
