/* /proc/kallsyms: any text; a symbol that is found starts at or before the address looked up. */
#include "base/base.h"

#include "base/hash.h"
#include "symbol/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP(kallsyms_free_p) struct kallsyms *k = NULL;
	if (kallsyms_parse(&k, sv_from((const char *)data, n), NULL))
		return 0;
	for (uint64_t i = 0; i < 4096; i++) {
		struct sv name;
		struct sv module;
		uint64_t start;
		uint64_t addr = (i & 1 ? 0xffffffff81000000 : 0) + i * 8;
		if (!kallsyms_find(k, addr, &name, &module, &start))
			continue;
		ASSERT(start <= addr);
		sink += hash_bytes(name.p, name.n) + hash_bytes(module.p, module.n);
	}
	return 0;
}
