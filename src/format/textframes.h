/*
 * Locations for text formats, whose frames have function names instead of addresses.
 *
 * A location created here belongs to a MODULE_NAMED module. Its offset is not an address but a
 * number made from the frame's function, with the top bit set to differ from any address, so the
 * same text yields the same location. An unsymbolized frame keeps its address as the offset.
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
	bool is_inferred;
};

/*
 * Finds or adds the location of one address. @frames: innermost inlined function first, the last
 * one is the containing function; nr >= 1. FUNC_KERNEL in the last one: kernel code.
 */
loc_id text_location(struct profile *p, const struct text_frame *frames, size_t nr);
/* Finds or adds the location of an unsymbolized address. */
loc_id text_unsymbolized(struct profile *p, uint64_t address, str_id path, unsigned func_flags);
/* Returns FUNC_KERNEL, FUNC_JIT or 0 for a module name as printed by perf. */
unsigned text_func_flags(struct sv module_path);

/*
 * Appends the text for an unsymbolized location: "[module]", or "[unknown]" if the module is
 * unknown. With TEXT_ADDRS: "[module <1a2b>]", "[unknown <1a2b>]".
 */
enum text_flags { TEXT_ADDRS = 1 << 0 };
void text_add_unsymbolized(struct buf *to, const struct profile *p, loc_id loc, unsigned flags);

#endif
