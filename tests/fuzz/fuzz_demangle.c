/* The demangler: any input gives a name of limited length, the same each time, never empty. */
#include "base/base.h"

#include "base/buf.h"
#include "symbol/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sv name = sv_from((const char *)data, n);
	for (unsigned flags = 0; flags < 4; flags++) {
		CLEANUP(buf_release) struct buf once = {0};
		CLEANUP(buf_release) struct buf twice = {0};
		buf_add_str(&once, "before ");
		demangle(&once, name, flags);
		demangle(&twice, name, flags);
		ASSERT(once.n == twice.n + 7);
		ASSERT(!twice.n || !memcmp(once.p + 7, twice.p, twice.n));
		/* 64 kB, and a suffix of at most 16 kB of which each part may become a clone */
		ASSERT(twice.n <= ((size_t)64 << 10) + 16 * n);
		ASSERT(!n || twice.n || (flags & DEMANGLE_HASHES) == 0);
	}
	return 0;
}
