/*
 * Drops capabilities that are no longer needed: each stage keeps those that it and later stages
 * use, the others are dropped for good. Applies to the calling thread and to threads that it
 * creates later, not to a command that was launched before. Does nothing without capabilities.
 */
#ifndef ASSAY_HOST_CAPS_H
#define ASSAY_HOST_CAPS_H

#include "base/base.h"
#include "model/rights.h"

enum host_stage {
	HOST_CAPTURING,   /* perf events, /proc of other users, their files */
	HOST_SYMBOLIZING, /* reading binaries and kernel symbols */
	HOST_WRITING,     /* writing results into other users' folders (sudo) */
};

/* Drops all capabilities but those that @stage and later ones need. */
void host_keep_caps(enum host_stage stage);

#endif
