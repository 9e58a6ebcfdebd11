/*
 * Kernel functions that enable interrupts. Without a hardware counter samples are taken by a timer's
 * interrupt. If it is due while the kernel runs with interrupts disabled, it is taken in the function
 * that enables them, which so gets the time of the code before it (docs/accuracy.md).
 */
#ifndef ASSAY_ANALYZE_STACKS_SKID_H
#define ASSAY_ANALYZE_STACKS_SKID_H

#include "analyze/report.h"
#include "analyze/select/select.h"
#include "base/base.h"

/* Adds a note that names these functions, if they have at least 5 % of the time sampled by a timer. */
void skid_note(struct report *r, const struct selection *sel);

#endif
