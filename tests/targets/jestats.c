/* build: gcc -O2 -g -pthread -lrjem -lm */
/*
 * A static jemalloc (prefix _rjem_) with known contents. holds_blocks allocates 80,000 blocks of
 * 320 bytes, of which seven of eight are freed, so their slabs are one eighth full; 20 blocks of 1
 * MiB stay. Prints jemalloc's statistics as NAME=VALUE words on one line, then waits for a line on
 * standard input and exits.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void *_rjem_malloc(size_t n);
void _rjem_free(void *p);
int _rjem_mallctl(const char *name, void *old, size_t *old_n, void *new, size_t new_n);

#define NR_BLOCKS 80000

static void *blocks[NR_BLOCKS];
static void *large[20];

static __attribute__((noinline)) void holds_blocks(void)
{
	for (int i = 0; i < NR_BLOCKS; i++)
		memset(blocks[i] = _rjem_malloc(320), 1, 320);
	for (int i = 0; i < NR_BLOCKS; i++)
		if (i % 8)
			_rjem_free(blocks[i]);
}

static __attribute__((noinline)) void holds_large(void)
{
	for (int i = 0; i < 20; i++)
		memset(large[i] = _rjem_malloc(1 << 20), 1, 1 << 20);
}

int main(void)
{
	static const char *const names[] = {"allocated", "active", "metadata",
					    "resident",  "mapped", "retained"};
	holds_blocks();
	holds_large();
	uint64_t epoch = 1;
	_rjem_mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
	for (int i = 0; i < 6; i++) {
		char name[64];
		size_t value = 0;
		size_t n = sizeof(value);
		snprintf(name, sizeof(name), "stats.%s", names[i]);
		_rjem_mallctl(name, &value, &n, NULL, 0);
		printf("%s=%zu ", names[i], value);
	}
	puts("ready=1");
	fflush(stdout);
	getchar();
	return 0;
}
