/* Runs a fuzzer over every file of its corpus: the driver of `make fuzz-replay`. */
#include "base/base.h"

#include <dirent.h>

#include "base/file/file.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int main(int argc, char **argv)
{
	size_t nr = 0;
	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		if (!dir)
			continue;
		for (struct dirent *e; (e = readdir(dir));) {
			CLEANUP(free_p) char *path = xasprintf("%s/%s", argv[i], e->d_name);
			CLEANUP(buf_release) struct buf bytes = {0};
			if (e->d_name[0] == '.' || file_read(&bytes, path, FILE_LIMIT, NULL))
				continue;
			(void)LLVMFuzzerTestOneInput((const uint8_t *)buf_str(&bytes), bytes.n);
			nr++;
		}
		(void)closedir(dir);
	}
	(void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	printf("%s: %zu inputs\n", argv[0], nr);
	return nr || argc < 2 ? 0 : 1;
}
