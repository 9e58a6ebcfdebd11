/* Heap profiles of gperftools; see heapfile.h. */
#include "base/base.h"
#include "heapfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	fuzz_heapfile("gperftools", data, n, false);
	return 0;
}
