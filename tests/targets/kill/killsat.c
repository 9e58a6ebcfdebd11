/* build: gcc -O2 -shared -fPIC */
/*
 * A library to preload into assay: kills it by SIGKILL at its Nth access to another process (ptrace,
 * or pwrite, by which the target's memory is written).
 *
 *	KILLSAT=N        just before access N; N,after: just after it
 *	KILLSAT=0        never
 *	KILLSAT_NR=FILE  at the end, writes how many accesses there were to FILE
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static long nr_accesses;
static long kill_at;
static int is_after;

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("KILLSAT");
	kill_at = at ? strtol(at, NULL, 10) : 0;
	is_after = at && strstr(at, "after");
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("KILLSAT_NR");
	FILE *f = path ? fopen(path, "we") : NULL;
	if (!f)
		return;
	fprintf(f, "%ld\n", nr_accesses);
	fclose(f);
}

static void die_if(int is_now)
{
	if (!is_now)
		return;
	syscall(SYS_tgkill, getpid(), gettid(), SIGKILL); /* kill is not permitted in each phase */
	for (;;)
		pause();
}

static int count(void)
{
	int is_now = __atomic_add_fetch(&nr_accesses, 1, __ATOMIC_SEQ_CST) == kill_at;
	die_if(is_now && !is_after);
	return is_now;
}

long ptrace(int request, ...)
{
	long args[3];
	va_list ap;
	va_start(ap, request);
	for (int i = 0; i < 3; i++)
		args[i] = va_arg(ap, long);
	va_end(ap);
	int is_now = count();
	long rc = syscall(SYS_ptrace, request, args[0], args[1], args[2]);
	int saved = errno;
	die_if(is_now);
	errno = saved;
	return rc;
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
	int is_now = count();
	ssize_t rc = syscall(SYS_pwrite64, fd, from, n, at);
	int saved = errno;
	die_if(is_now);
	errno = saved;
	return rc;
}

ssize_t pwrite64(int fd, const void *from, size_t n, off_t at)
{
	return pwrite(fd, from, n, at);
}
