/*
 * Machine code for the target. Each patched function has a stub, which loads the site number into
 * r11 and jumps to the entry of the injected code ("the image") for functions with these arguments
 * (enum heap_shape in heap_wire.h), and a trampoline: the displaced instructions elsewhere, and
 * then a jump behind the original ones. The batch routine executes a list of system calls and
 * stores.
 *
 *	function:    (pushes ...)  jump to the stub  (next instruction)
 *	stub:        (undo the pushes)  mov r11d, site  jump to the entry
 *	trampoline:  (pushes ...)  the replaced instruction  jump to the next one
 *
 * The jump may replace a later instruction than the first (remote/patch/patch.h). The instructions
 * before it, such as pushes, stay and are executed; the stub undoes them, the trampoline executes
 * them again. The displaced instructions are these and the replaced one.
 *
 * x86-64. Instructions: Intel SDM volume 2.
 */
#ifndef ASSAY_REMOTE_PATCH_STUBCODE_H
#define ASSAY_REMOTE_PATCH_STUBCODE_H

#include "base/base.h"
#include "base/vec.h"

#define HEAPCODE_STUB_BYTES    128u /* stub and trampoline */
#define HEAPCODE_TRAMPOLINE    56u  /* offset of the trampoline */
#define HEAPCODE_DISPLACED_MAX 48u
#define HEAPCODE_UNDO_MAX      32u
#define HEAPCODE_BATCH_BYTES   128u

struct heapcode_stub {
	uint64_t at;    /* its address */
	uint64_t entry; /* address in the image for the function's enum heap_shape */
	uint32_t site;
	uint64_t function; /* address of the first displaced byte */
	uint8_t displaced[HEAPCODE_DISPLACED_MAX];
	size_t nr_displaced;
	/* Code that undoes the displaced instructions executed before the jump. */
	uint8_t undo[HEAPCODE_UNDO_MAX];
	size_t nr_undo;
};

/* Makes stub and trampoline; @to has HEAPCODE_STUB_BYTES. False: an instruction cannot be moved. */
bool heapcode_stub(const struct heapcode_stub *s, uint8_t *to);
/*
 * Copies instructions from @from_addr to @to_addr and adjusts pc-relative operands. *ret_n: size of
 * the result. False: not possible (call, loop, int3, out of range, invalid instruction).
 */
bool heapcode_move(const uint8_t *from, size_t n, uint64_t from_addr, uint8_t *to, size_t cap,
		   uint64_t to_addr, size_t *ret_n);
/* Makes a jmp rel32 (e9) at address @at; false: out of range. */
bool heapcode_jump(uint8_t to[5], uint64_t at, uint64_t target);

/*
 * The batch routine: long batch(struct heapcode_op *ops, uint64_t n) executes the ops in order
 * until one fails, and returns how many succeeded. The code is position independent.
 */
#define HEAPCODE_STORE (~0ull) /* as nr: the store *(uint64_t *)args[0] = args[1] */
struct heapcode_op {
	uint64_t nr;
	uint64_t args[6];
	int64_t result;
};
struct heapcode_ops {
	VEC(struct heapcode_op) v;
};
/* Its code; *ret_n <= HEAPCODE_BATCH_BYTES. */
const uint8_t *heapcode_batch(size_t *ret_n);

#endif
