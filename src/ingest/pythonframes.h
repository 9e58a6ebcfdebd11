/*
 * Puts the frames of Python code among the native frames of a stack.
 *
 * All Python code runs in one C function, _PyEval_EvalFrameDefault. Each of its frames is replaced
 * by the Python frames that this call of it ran:
 *
 *	native                      Python                 stack
 *	poll                                               poll
 *	_PyEval_EvalFrameDefault    f, g | entry           f, g
 *	list_sort                                          list_sort
 *	_PyEval_EvalFrameDefault    h, <module> | entry    h, <module>
 *	main                                               main
 *
 * Calls are matched from the innermost one outwards; calls of other interpreters, further out, are
 * left. A call that is beginning or ending has no Python frame: it stays under its own name. Frames of code that Python has not sent
 * or that cannot be read are named "[python]".
 *
 * A Python function is named "file.py:LINE function": its file without folders, the line at which
 * it is defined, and its qualified name. Its location has the whole path and the line that runs.
 */
#ifndef ASSAY_INGEST_PYTHONFRAMES_H
#define ASSAY_INGEST_PYTHONFRAMES_H

#include "base/base.h"
#include "ingest/modules.h"
#include "kernel_python.h"
#include "model/profile.h"

struct pythonframes;

/* Borrows both. */
struct pythonframes *pythonframes_new(struct profile *p, struct modules *modules);
void pythonframes_free(struct pythonframes *f); /* or NULL */
/* Adds a code object, or a part of its line table. */
void pythonframes_add_code(struct pythonframes *f, const struct kernel_pycode *c);
/*
 * Merges Python frames with the native stack @native. *ret_has_leaf: @native lacks the leaf, which the
 * result has; it is a call of the C function.
 */
stack_id pythonframes_merge(struct pythonframes *f, const struct kernel_pystack *s, stack_id native,
			    bool *ret_has_leaf);

#endif
