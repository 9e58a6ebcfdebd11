/*
 * Source: counts the event context-switches without privileges and without BPF programs. It polls
 * the counters in /proc/TID/status ten times a second, less often (at least once a second) if that
 * would take more than 0.5 % of a CPU. Not counted are switches after a thread's last poll, and
 * those of threads that existed only between two polls; the recording's accuracy fact states this.
 * Rows are by thread, blocked or preempted, without stacks.
 *
 * Polls the target's processes and their children, or single threads, or all processes. Delivers
 * EVENT_AGGREGATE, preceded by EVENT_COMM with the names of threads.
 */
#ifndef ASSAY_CAPTURE_EVENTS_TASKSWITCHES_H
#define ASSAY_CAPTURE_EVENTS_TASKSWITCHES_H

#include "capture/source.h"

extern const struct source taskswitches_source;

#endif
