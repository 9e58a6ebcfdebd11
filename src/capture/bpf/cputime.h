/*
 * The CPU time of the targets, counted by a BPF program from context switch to context switch; interrupts
 * and stolen time are part of it. It costs about 0.1 us a switch. A counter of perf on each thread, which
 * has to be switched with it, costs some ten times that, and took 6 % of the time of a database.
 */
#ifndef ASSAY_CAPTURE_BPF_CPUTIME_H
#define ASSAY_CAPTURE_BPF_CPUTIME_H

#include "base/base.h"

struct engine;

/* Between engine_open and engine_load: whether the program is loaded. */
void cputime_choose(struct engine *e, bool is_wanted);
/* After the programs were attached: threads that run since then count from now on. */
void cputime_begin(struct engine *e);
/*
 * The ns since the program was attached, of all targets and their children, also of ended ones;
 * 0: it is not loaded, or @e is NULL.
 */
uint64_t cputime_ns(const struct engine *e);

#endif
