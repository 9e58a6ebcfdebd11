/*
 * The user-space stack walker: sampled registers and copied stack bytes in, return addresses out.
 * It uses the rows of unwind/table.h or frame pointers, whichever the module has. It does not
 * symbolize.
 *
 * Frame 0 is the sampled pc. Each further frame is a return address (is_call), except the frame
 * under a signal frame, which was interrupted. Results include the mapping, so that the caller need
 * not look it up again. No allocation while walking. A walker is used by one thread.
 *
 * The end is WALK_ROOT only where the thread's start is known to be reached:
 *	- the CFI says that the return address is undefined (_start, clone, clone3 of glibc)
 *	- it is the first function of a goroutine or thread of Go (object/gopclntab.h)
 *	- the frame is the binary's entry point, or a call whose result goes to exit(2) by syscall
 *	  (musl's __clone), in code without CFI (unwind/nocfi.h)
 *	- the return address is 0 (pushed by makecontext and by custom thread starts)
 *	- in code without CFI a chain of frame pointers ended in 0, which is how the psABI marks
 *	  the deepest frame: JIT code called from assembly. A frame pointer
 *	  that is 0 without such a chain proves nothing: musl starts with 0 and uses the register
 *	  for other purposes
 *
 * Code without CFI is unwound by frame pointers: the pointer must lie in the copied stack above sp,
 * be aligned, point to a higher frame, and the return address must be in an executable mapping. In
 * a gap of a binary that has CFI, or in a binary without CFI, the sampled pc may also be in a
 * function that has not touched the stack (hand-written leaf). The word at sp is then taken as the
 * return address, but only if it points to code with rules, and these rules lead to another
 * executable address or to a thread's start.
 */
#ifndef ASSAY_UNWIND_WALK_H
#define ASSAY_UNWIND_WALK_H

#include "base/base.h"
#include "unwind/space.h"
#include "walk_end.h"

#define WALK_DEPTH_MAX 4096

struct walk_frame {
	uint64_t addr; /* run-time address: sampled pc, or the return address itself */
	const struct space_map *map; /* NULL: in no mapping; valid until the space changes */
	bool is_call;
};

struct walk_input {
	struct space *space;
	const uint64_t *regs; /* as sampled, in the order of the bits in regs_mask */
	uint64_t regs_mask;
	const uint8_t *stack; /* copied from the sampled stack pointer upwards */
	uint64_t nr_stack;    /* bytes */
};

struct walker; /* holds the pc -> rule cache and frame buffer */

struct walker *walker_new(void);
void walker_free(struct walker *w);
/*
 * Unwinds one sample. Frames are leaf first, borrowed until the next walk. A sample without
 * instruction or stack pointer gives no frames and WALK_NO_MAP.
 */
enum walk_end walker_walk(struct walker *w, const struct walk_input *in,
			  const struct walk_frame **ret_frames, uint32_t *ret_nr);

#endif
