/*
 * Ids: dense 32-bit indices into the arrays of one profile, passed between modules instead of
 * pointers. 0 means "none" (each array has a dummy element 0).
 */
#ifndef ASSAY_MODEL_IDS_H
#define ASSAY_MODEL_IDS_H

#include <stdint.h>

typedef uint32_t str_id;    /* interned string; 0 = "" */
typedef uint32_t module_id; /* a binary, the kernel, JIT code of a process, ... */
typedef uint32_t func_id;   /* a named function of a module */
typedef uint32_t loc_id;    /* a code address: (module, offset) */
typedef uint32_t stack_id;  /* a node of the prefix tree of stacks; 0 = the empty stack */
typedef uint32_t task_id;   /* a thread with one name (comm) */

#endif
