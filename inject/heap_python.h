/*
 * Python frames of the calling thread (wire/kernel_python.h): a native stack in which the
 * interpreter's loop runs gets a second id, which stands for the native and the Python frames together.
 *
 * The thread is in an allocator function that its own code called, so the chain of its frames is
 * complete, and frames and code objects stay while they are read. Reads are checked all the same: a
 * page is read only if it was readable a millisecond ago or less, and no call of munmap was seen
 * since. Thread states of other threads may be freed at any time, so the search for the thread's own
 * state reads by a system call that reports what is not readable.
 *
 * Where the interpreter has its structures is in the tables (kspace.python), which assay fills; without
 * an interpreter there, an event costs the load of that word.
 */
#ifndef ASSAY_INJECT_HEAP_PYTHON_H
#define ASSAY_INJECT_HEAP_PYTHON_H

#include "heap_recorder.h"
#include "kernel_tables.h"

static inline uint64_t python_space(const struct heap_local *l)
{
	const struct ktables_head *tables = (const struct ktables_head *)l->tables;

	return tables ? __atomic_load_n(&tables->spaces[0].python, __ATOMIC_RELAXED) : 0;
}

/* Returns whether the interpreter's loop is in the thread's last stack, whose leaf is at @top. */
bool python_has_loop(const struct heap_ctx *x, uint32_t top);
/*
 * Returns the id of the native stack @stack_id with the thread's Python frames; writes records of what
 * is new. @stack_id itself: the frames could not be read.
 */
uint32_t python_stack_id(struct heap_ctx *x, uint32_t stack_id);

#endif
