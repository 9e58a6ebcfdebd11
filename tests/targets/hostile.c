/* build: gcc -O2 -fomit-frame-pointer -pthread */
/* Threads that use CPU time, with names that contain markup and terminal control characters. */
#include <pthread.h>
#include <stdint.h>
#include <sys/prctl.h>

static volatile uint64_t sink;

static void *hostile_burn(void *name)
{
	prctl(PR_SET_NAME, name);
	for (;;)
		for (int i = 0; i < 100000; i++)
			sink = sink * 3 + 1;
	return name;
}

int main(void)
{
	static char names[][16] = {"\033[31mRED\a;\n&<", "</title><svg/x", "a;b c\t\"'\\",
				   "\xff\xfe\033]0;x\a"};
	for (int i = 1; i < 4; i++) {
		pthread_t t;
		pthread_create(&t, 0, hostile_burn, names[i]);
	}
	hostile_burn(names[0]);
}
