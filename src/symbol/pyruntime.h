/*
 * Where the Python interpreter in a binary (python3, libpython3.so or a program that contains it)
 * keeps its thread states, frames and code objects (wire/kernel_python.h).
 *
 * An interpreter is recognized by its dynamic symbols, which stripped binaries keep. From 3.13 on it
 * describes its structures itself: _PyRuntime begins with "xdebugpy", version and a table of
 * offsets. For 3.11 and 3.12 the offsets are those of the public headers (Include/cpython,
 * Include/internal), which do not change within a minor version, on 64-bit machines.
 */
#ifndef ASSAY_SYMBOL_PYRUNTIME_H
#define ASSAY_SYMBOL_PYRUNTIME_H

#include "base/base.h"
#include "kernel_python.h"
#include "object/elf.h"

enum pyruntime_kind {
	PYRUNTIME_NONE = 0, /* not an interpreter */
	PYRUNTIME_KNOWN,
	PYRUNTIME_UNKNOWN, /* of a version or build whose structures are not known */
};

struct pyruntime {
	enum pyruntime_kind kind;
	uint32_t version;            /* as PY_VERSION_HEX; 0: not known */
	struct python_layout layout; /* with link-time addresses */
	uint64_t eval_from;          /* file offsets of _PyEval_EvalFrameDefault */
	uint64_t eval_to;
};

/* Fills all fields. A binary that cannot be read is PYRUNTIME_NONE. */
void pyruntime_find(struct pyruntime *ret_r, struct elf *e);

#endif
