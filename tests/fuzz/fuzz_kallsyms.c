/* /proc/kallsyms: any text; a symbol that is found starts at or before the address looked up. */
#include "base/base.h"

#include "base/buf.h"
#include "base/hash.h"
#include "symbol/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t sink;

static void find_all(const struct kallsyms *k)
{
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
}

/* The text as it is may be a damaged cache. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP(kallsyms_free_p) struct kallsyms *k = NULL;
	CLEANUP(buf_release) struct buf text = {0};
	if (!kallsyms_parse(&k, sv_from((const char *)data, n), NULL))
		find_all(k);
	buf_add(&text, data, n);
	CLEANUP(kallsyms_free_p) struct kallsyms *damaged = kallsyms_from_sorted(&text);
	find_all(damaged);
	return 0;
}
