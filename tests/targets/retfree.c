/* build: gcc -O1 -g -rdynamic -fno-builtin */
/*
 * Defines its own malloc, whose free is one instruction, directly followed by another function:
 * there is no room to patch in a jump.
 */
#include <stddef.h>

static char pool[1 << 24];
static size_t at;

__attribute__((noinline)) void *malloc(size_t n)
{
	at = (at + 15) & ~(size_t)15;
	if (n > sizeof(pool) - at)
		return NULL;
	at += n;
	return pool + at - n;
}

__asm__(".text\n.globl free\n.type free,@function\nfree: ret\n.size free,.-free\n"
	"retfree_next: ret\n");
extern void free(void *block);

int main(void)
{
	for (int i = 0; i < 1000; i++)
		free(malloc(100));
	return 0;
}
