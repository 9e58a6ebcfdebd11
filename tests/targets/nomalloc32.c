/* build: gcc -m32 -O2 -g -static -nostdlib -fno-stack-protector -fno-builtin -fno-pie -no-pie */
/*
 * A 32-bit program that needs no 32-bit library: sleeps 0.3 s, maps 16 MiB, touches all of it, and
 * exits with status 7.
 */

enum { SYS_EXIT = 1, SYS_NANOSLEEP = 162, SYS_MMAP2 = 192, PAGE = 4096, NR_BYTES = 16 << 20 };

static long call(long nr, const long a[6])
{
	long ret;
	__asm__ volatile("push %%ebp\n\t"
			 "push %%ebx\n\t"
			 "mov 0(%%edi), %%ebx\n\t"
			 "mov 4(%%edi), %%ecx\n\t"
			 "mov 8(%%edi), %%edx\n\t"
			 "mov 12(%%edi), %%esi\n\t"
			 "mov 20(%%edi), %%ebp\n\t"
			 "mov 16(%%edi), %%edi\n\t"
			 "int $0x80\n\t"
			 "pop %%ebx\n\t"
			 "pop %%ebp\n\t"
			 : "=a"(ret), "+D"(a)
			 : "a"(nr)
			 : "ecx", "edx", "esi", "memory");
	return ret;
}

void _start(void)
{
	static const long ringwait[2] = {0, 300000000};
	const long sleeps[6] = {(long)ringwait};
	const long maps[6] = {0, NR_BYTES, 3 /* rw */, 0x22 /* private, anonymous */, -1, 0};
	const long ends[6] = {7};
	(void)call(SYS_NANOSLEEP, sleeps);
	volatile char *p = (volatile char *)call(SYS_MMAP2, maps);
	for (long i = 0; i < NR_BYTES; i += PAGE)
		p[i] = 1;
	(void)call(SYS_EXIT, ends);
	__builtin_unreachable();
}
