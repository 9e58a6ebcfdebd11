/*
 * The event context-switches without rights and without BPF programs: what the kernel
 * counts of each thread for everybody (/proc/TID/status), read several times a second, seldom enough
 * to cost half a percent of a CPU. Every switch is in it, apart from those between a thread's last
 * reading and its end, and those of threads that lived between two readings; the recording's
 * accuracy says so. By thread, blocked and preempted, without stacks.
 *
 * Followed are the target's processes with what they fork, or single threads, or all processes.
 * Rows come as EVENT_AGGREGATE, with names of threads as EVENT_COMM before.
 */
#ifndef ASSAY_CAPTURE_EVENTS_TASKSWITCHES_H
#define ASSAY_CAPTURE_EVENTS_TASKSWITCHES_H

#include "capture/source.h"

extern const struct source taskswitches_source;

#endif
