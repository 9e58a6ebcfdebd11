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
 * Calls are matched from the innermost one outwards. A call that is beginning or ending has no
 * Python frame: it stays in the stack under its own name. Frames of code that Python has not sent
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
 * Merges Python frames with the native stack *@stack, which is @is_whole.
 *
 * The stack of a CPU sample lacks its leaf, which may be a call of the C function. If so, the stack
 * is *ret_leaf_stack, which includes the leaf's Python frames; else the leaf comes on top of *@stack.
 * Either is 0 if it is impossible.
 */
void pythonframes_merge(struct pythonframes *f, const struct kernel_pystack *s, bool is_whole,
			stack_id *stack, stack_id *ret_leaf_stack);
/* Returns whether the location is in the C function that runs Python code. */
bool pythonframes_is_eval(const struct pythonframes *f, loc_id loc);

#endif
