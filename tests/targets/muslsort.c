/* build: musl-gcc -O2 -static -s */
/* A static, stripped musl program: sorts for the given number of CPU seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int values[20000];

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static __attribute__((noinline)) int sort_once(unsigned seed)
{
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		values[i] = (int)((seed = seed * 1103515245 + 12345) >> 8);
	qsort(values, sizeof(values) / sizeof(*values), sizeof(*values), compare);
	return values[100];
}

int main(int argc, char **argv)
{
	clock_t end = clock() + (clock_t)((argc > 1 ? atof(argv[1]) : 1) * CLOCKS_PER_SEC);
	int sum = 0;
	for (unsigned i = 0; clock() < end; i++)
		sum += sort_once(i);
	printf("%d\n", sum);
	return 0;
}
