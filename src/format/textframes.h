/*
 * Frames as text formats know them: names instead of addresses, inlined functions marked.
 *
 * A location made here belongs to a MODULE_NAMED module and its offset is no address but a number
 * made from what the frame says, with the top bit set so that it is none of a real address:
 * the same text gives the same location. A frame without a name keeps its address as offset.
 */
#ifndef ASSAY_FORMAT_TEXTFRAMES_H
#define ASSAY_FORMAT_TEXTFRAMES_H

#include "base/base.h"
#include "base/buf.h"
#include "model/profile.h"

struct text_frame {
	str_id name; /* 0 = unknown */
	str_id path; /* module, 0 = unknown */
	str_id file; /* source, 0 = unknown */
	uint32_t line;
	unsigned func_flags; /* enum func_flags */
	bool is_inlined;
};

/* frames: innermost first, the last one physical; nr >= 1. FUNC_KERNEL there makes kernel code. */
loc_id text_location(struct profile *p, const struct text_frame *frames, size_t nr);
/* An address without a name. */
loc_id text_unnamed(struct profile *p, uint64_t address, str_id path, unsigned func_flags);
/* FUNC_KERNEL, FUNC_JIT or 0, from the name that perf gives a module. */
unsigned text_func_flags(struct sv module_path);

/*
 * The name that a location without one is shown by: "[module]", or "[unknown]" where the module
 * is not known either. With TEXT_ADDRS "[module <1a2b>]", "[unknown <1a2b>]".
 */
enum text_flags { TEXT_ADDRS = 1 << 0 };
void text_add_unnamed(struct buf *to, const struct profile *p, loc_id loc, unsigned flags);

#endif
