/*
 * Shared by the tests of code that is injected into other processes: child processes that run until
 * the test ends them, and plans of the C library's functions. Include it in one file per test.
 */
#ifndef ASSAY_TESTS_LIB_HEAPCHILD_H
#define ASSAY_TESTS_LIB_HEAPCHILD_H

#include "base/base.h"
#include "tap.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "plan/heapplan.h"

#define MUST(call)                                                                         \
	do {                                                                               \
		struct err must_err = {0};                                                 \
		int must_rc = (call);                                                      \
		if (must_rc)                                                               \
			tap_fail(__FILE__, __LINE__, "%s: %s", #call, err_msg(&must_err)); \
		err_release(&must_err);                                                    \
	} while (0)

/* The first member of the memory that a child shares with its test. */
struct child_flags {
	volatile int is_ready; /* by the child */
	volatile int is_over;  /* by the test */
};

/* Allocates memory shared with children. */
static inline void *child_memory(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

/* Forks a child that runs @fn, and waits until @fn sets is_ready. It dies with the test. */
static inline pid_t child_start(struct child_flags *flags, int (*fn)(void))
{
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fn());
	}
	while (!flags->is_ready)
		sched_yield();
	return pid;
}

/* Asks the child to end. Returns its exit code, 1000 + its signal, or -1 if it hangs. */
static inline int child_finish(struct child_flags *flags, pid_t pid)
{
	int status = 0;
	flags->is_over = 1;
	for (int i = 0; i < 10000; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
		usleep(1000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -1;
}

/* Adds a function of the test program, which a forked child has at the same address. */
static inline void child_add_site(struct heap_plan *p, const char *name, enum heap_shape shape)
{
	Dl_info info;
	ElfW(Sym) *sym = NULL;
	void *addr = dlsym(RTLD_DEFAULT, name);
	CHECK(addr && dladdr1(addr, &info, (void **)&sym, RTLD_DL_SYMENT) && sym);
	uint64_t at = (uint64_t)(uintptr_t)addr;
	vec_push(&p->functions, (struct heap_function){.addr = at,
						       .end = at + sym->st_size,
						       .shape = shape,
						       .name = xstrdup(name),
						       .path = xstrdup(info.dli_fname)});
}

#endif
