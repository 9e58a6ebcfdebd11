/*
 * Source: the event context-switches without privileges and without BPF programs, from the counters
 * in /proc/TID/status, which are polled several times a second, but so rarely that polling takes at
 * most half a percent of a CPU. All switches are counted, apart from those after a thread's last
 * poll, and those of threads that existed only between two polls; the recording's accuracy fact
 * says so. Rows are by thread, blocked or preempted, without stacks.
 *
 * Polls the target's processes and their children, or single threads, or all processes. Delivers
 * EVENT_AGGREGATE, preceded by EVENT_COMM with the names of threads.
 */
#ifndef ASSAY_CAPTURE_EVENTS_TASKSWITCHES_H
#define ASSAY_CAPTURE_EVENTS_TASKSWITCHES_H

#include "capture/source.h"

extern const struct source taskswitches_source;

#endif
