/*
 * --jit-map: names of JIT code without a restart, and for launched commands without options.
 *
 *	running java	a helper process, forked while assay has its rights, waits for the end of the
 *			capture and then asks the virtual machine for its perf map (remote/jvmattach.h)
 *	launched	java and node get options through JAVA_TOOL_OPTIONS and NODE_OPTIONS
 *
 * A running node cannot be asked. What was done, or why nothing could be, is FACT_JIT_MAP.
 */
#ifndef ASSAY_SESSION_JITMAPS_H
#define ASSAY_SESSION_JITMAPS_H

#include "base/base.h"
#include "host/target.h"
#include "model/profile.h"

struct jitmaps; /* opaque */

/* Adds to the environment that a launched command inherits. */
void jitmaps_set_environment(void);
/*
 * Forks the helper for the java processes among the targets: before assay has threads or has dropped
 * rights. NULL: there are none.
 */
struct jitmaps *jitmaps_new(const struct target *t);
/* At the end of the capture: has the maps written, waits for it at most 10 s, sets the fact. */
void jitmaps_write(struct jitmaps *j, struct profile *p);
/* Ends the helper. NULL: nothing. */
void jitmaps_free(struct jitmaps *j);

#endif
