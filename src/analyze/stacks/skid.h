/*
 * Kernel functions whose time is not that of the program's own work.
 *
 * Skid: without a hardware counter samples are taken by a timer's interrupt. If it is due while the
 * kernel runs with interrupts disabled, it is taken in the function that enables them, which so gets
 * the time of the code before it (docs/accuracy.md).
 *
 * Cost of measuring: what the kernel does for perf events, tracepoints and probes, of assay or of
 * another profiler, takes time of the thread that causes the event.
 */
#ifndef ASSAY_ANALYZE_STACKS_SKID_H
#define ASSAY_ANALYZE_STACKS_SKID_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "base/base.h"

/* Adds a note that names these functions, if they have at least 5 % of the time sampled by a timer. */
void skid_note(struct report *r, const struct selection *sel);
/*
 * Adds a note with the share of CPU time that is cost of measuring, by its functions, if it is 2 % or
 * more; with 20 % or more a finding, unless the program is mostly idle.
 */
void skid_note_cost(struct report *r, const struct selection *sel);

#endif
