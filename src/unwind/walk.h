/*
 * The user-space stack walker: registers + copied stack bytes -> return addresses, by the rows
 * of unwind/table.h, per module by CFI or frame pointers, whichever is there. Knows no names.
 *
 * Frame 0 is the sampled pc. Each later frame is a return address (is_call), except the frame
 * under a signal frame, which was interrupted. Results carry the module so that the caller need
 * not search again. No allocation while walking. A walker is used by one thread.
 *
 * WALK_ROOT is said only where the thread's start is known to be reached:
 *	- the CFI says that the return address is undefined (_start, clone, clone3 of glibc)
 *	- the frame is the binary's entry point, or a call whose result goes to exit(2) by syscall
 *	  (musl's __clone), in code without CFI (unwind/gapcode.h)
 *	- the return address is 0 (makecontext and own thread starts push it)
 *	- in code without CFI a chain of frame pointers ended in 0, which is how the psABI marks
 *	  the deepest frame: Go's goexit and rt0, JIT code called from assembly. A frame pointer
 *	  that merely is 0 says nothing: musl starts with it and uses it as any register
 *
 * Code without CFI is followed by frame pointers: the pointer must lie in the copied stack above
 * sp, be aligned, lead upwards and to a return address in an executable mapping. In a gap of a
 * binary that has CFI, or a binary without, the sampled pc may also be in a function that has not
 * touched the stack (hand-written leaf): the word at sp counts as the return address only if it
 * is followed by rules, and those lead to another executable address or to a thread's start.
 */
#ifndef ASSAY_UNWIND_WALK_H
#define ASSAY_UNWIND_WALK_H

#include "base/base.h"
#include "unwind/space.h"
#include "walk_end.h"

#define WALK_DEPTH_MAX 4096

struct walk_frame {
	uint64_t addr;               /* runtime address as found: sampled pc or return address */
	const struct space_map *map; /* NULL when in no mapping; valid until the space changes */
	bool is_call;
};

struct walk_input {
	struct space *space;
	const uint64_t *regs; /* as sampled, in the order of the bits in regs_mask */
	uint64_t regs_mask;
	const uint8_t *stack; /* copied from the sampled stack pointer upwards */
	uint64_t nr_stack;
};

struct walker; /* holds the pc -> rule cache and frame buffer */

struct walker *walker_new(void);
void walker_free(struct walker *w);
/*
 * Frames leaf first, borrowed until the next walk. A sample without instruction or stack pointer
 * gives no frames and WALK_NO_MAP.
 */
enum walk_end walker_walk(struct walker *w, const struct walk_input *in,
			  const struct walk_frame **ret_frames, uint32_t *ret_nr);

#endif
