/*
 * The end of a capture of waits: flame graphs, folded stacks, the ledger on the terminal, the last
 * lines. Also of CPU time and waits together.
 */
#ifndef ASSAY_CMD_WAIT_OUTPUTS_H
#define ASSAY_CMD_WAIT_OUTPUTS_H

#include "base/base.h"
#include "cmd/outputs.h"

enum wait_outputs_flags {
	WAIT_OUTPUTS_BY_REASON = 1 << 0, /* a picture a reason, too */
	WAIT_OUTPUTS_IDLE = 1 << 1,      /* idle time is in the pictures */
	WAIT_OUTPUTS_NO_BPF = 1 << 2,    /* the user wants it so: no word about it */
};

/* Returns the exit status. @flags: enum wait_outputs_flags. */
int wait_outputs_finish(struct outputs *o, const struct capture_result *r, unsigned flags);

/* Why there are no programs in the kernel, what that costs, and what would help. */
void wait_outputs_say_accuracy(const struct capture_result *r);

#endif
