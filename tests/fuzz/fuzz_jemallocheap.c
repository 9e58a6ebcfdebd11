/* Heap dumps of jemalloc; live bytes are kept in heaptrack files; see heapfile.h. */
#include "base/base.h"
#include "heapfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	fuzz_heapfile("jemalloc", data, n, true);
	return 0;
}
