/* perf maps: any input; an entry that is found contains the address that was looked up. */
#include "base/base.h"

#include "base/hash.h"
#include "symbol/jitcode.h"
#include "symbol/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP(perfmap_free_p) struct perfmap *m = NULL;
	if (perfmap_parse(&m, sv_from((const char *)data, n), NULL))
		return 0;
	size_t nr_found = 0;
	for (uint64_t at = 0; at < 0x20000; at += 61) {
		struct sv name;
		struct sv file;
		uint64_t start;
		uint32_t line;
		if (!perfmap_find(m, at, 0, &name, &start, &file, &line))
			continue;
		ASSERT(start <= at && !file.n && !line);
		ASSERT(memmem(data, n, name.p,
			      name.n)); /* taken from the text, not from elsewhere */
		nr_found++;
	}
	ASSERT(!nr_found || m->ranges.n);
	return 0;
}
