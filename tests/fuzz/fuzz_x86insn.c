/*
 * The decoder of instructions: any bytes as code. An instruction is inside the bytes, at most 15 long,
 * and the same if more bytes follow it.
 */
#include "base/base.h"

#include "object/x86insn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	for (size_t at = 0; at < n; at++) {
		struct x86_insn all = {0};
		struct x86_insn alone = {0};
		if (!x86_decode(data + at, n - at, &all))
			continue;
		ASSERT(all.nr_bytes >= 1 && all.nr_bytes <= 15 && all.nr_bytes <= n - at);
		ASSERT(all.disp_at < all.nr_bytes);
		ASSERT(x86_decode(data + at, all.nr_bytes, &alone));
		ASSERT(alone.nr_bytes == all.nr_bytes && alone.opcode == all.opcode &&
		       alone.map == all.map && alone.disp == all.disp && alone.imm == all.imm);
		ASSERT(!x86_decode(data + at, all.nr_bytes - 1u, &alone));
	}
	return 0;
}
