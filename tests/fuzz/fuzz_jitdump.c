/* jitdump: any input, lookups at any time; reads all bytes of names and files. */
#include "base/base.h"

#include "base/hash.h"
#include "symbol/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP(perfmap_free_p) struct perfmap *m = NULL;
	if (perfmap_parse_jitdump(&m, sv_from((const char *)data, n), NULL))
		return 0;
	for (uint64_t at = 0; at < 0x4000; at += 7) {
		for (uint64_t time_ns = 0; time_ns < 600; time_ns += 150) {
			struct sv name;
			struct sv file;
			uint64_t start;
			uint32_t line;
			if (!perfmap_find(m, at, time_ns, &name, &start, &file, &line))
				continue;
			ASSERT(start <= at);
			sink += hash_bytes(name.p, name.n) + hash_bytes(file.p, file.n) + line;
		}
	}
	return 0;
}
