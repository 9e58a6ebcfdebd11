/*
 * Code that is put into a target next to the recorder's image: for each patched function a stub
 * (site number into r11, jump to the image's entry for its shape) and a trampoline (the displaced
 * instructions at another place, jump behind them); and the routine that makes a list of system
 * calls and stores in one go.
 *
 *	function:    (pushes ...)  jump to the stub  (next instruction)
 *	stub:        (pushes undone)  mov r11d, site  jump to the entry
 *	trampoline:  (pushes ...)  the replaced instruction  jump to the next one
 *
 * x86-64. Instructions: Intel SDM volume 2.
 */
#ifndef ASSAY_REMOTE_PATCH_STUBCODE_H
#define ASSAY_REMOTE_PATCH_STUBCODE_H

#include "base/base.h"
#include "base/vec.h"

#define HEAPCODE_STUB_BYTES    128u /* of a stub with its trampoline */
#define HEAPCODE_TRAMPOLINE    56u  /* where in it */
#define HEAPCODE_DISPLACED_MAX 48u
#define HEAPCODE_UNDO_MAX      32u
#define HEAPCODE_BATCH_BYTES   128u

struct heapcode_stub {
	uint64_t at;    /* address it will have */
	uint64_t entry; /* of the image, for the function's shape */
	uint32_t site;
	uint64_t function; /* address of the first displaced byte */
	uint8_t displaced[HEAPCODE_DISPLACED_MAX];
	size_t nr_displaced;
	/* Code that takes back what of these has run when the stub is reached. */
	uint8_t undo[HEAPCODE_UNDO_MAX];
	size_t nr_undo;
};

/* False: an instruction cannot be moved there. @to: HEAPCODE_STUB_BYTES. */
bool heapcode_stub(const struct heapcode_stub *s, uint8_t *to);
/*
 * Moves the instructions of @from, which lie at @from_addr, to @to at @to_addr; operands relative
 * to the pc are adjusted. *ret_n: bytes made. False: cannot be moved (calls, loops, out of reach,
 * breakpoints, what is no instruction).
 */
bool heapcode_move(const uint8_t *from, size_t n, uint64_t from_addr, uint8_t *to, size_t cap,
		   uint64_t to_addr, size_t *ret_n);
/* e9 rel32 at @at; false if out of reach. */
bool heapcode_jump(uint8_t to[5], uint64_t at, uint64_t target);

/*
 * long batch(struct heapcode_op *ops, uint64_t n): in order, until one fails; how many were done.
 * Position independent; *ret_n <= HEAPCODE_BATCH_BYTES.
 */
#define HEAPCODE_STORE (~0ull) /* as nr: *(uint64_t *)args[0] = args[1], one store */
struct heapcode_op {
	uint64_t nr;
	uint64_t args[6];
	int64_t result;
};
struct heapcode_ops {
	VEC(struct heapcode_op) v;
};
const uint8_t *heapcode_batch(size_t *ret_n);

#endif
