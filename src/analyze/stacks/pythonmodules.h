/*
 * Files of the Python interpreter. In profiles whose stacks have Python frames, the interpreter's own
 * functions work for the Python function that called them.
 */
#ifndef ASSAY_ANALYZE_STACKS_PYTHONMODULES_H
#define ASSAY_ANALYZE_STACKS_PYTHONMODULES_H

#include "base/base.h"
#include "model/profile.h"

/* Whether the profile has Python frames. */
bool python_is_seen(const struct profile *p);
/* Whether @module (its short name) is the interpreter or an extension of its library. */
bool python_is_module(const char *module);

#endif
