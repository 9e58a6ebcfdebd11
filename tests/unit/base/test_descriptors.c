/* base/process/descriptors: what a process that goes on without its parent keeps open. */
#include "base/base.h"
#include "base/process/descriptors.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static size_t nr_open(void)
{
	size_t nr = 0;
	for (int fd = 0; fd < 1024; fd++)
		nr += is_open(fd);
	return nr;
}

/* In a child, whose descriptors are not those of the test; 0: as expected. */
static int child(void)
{
	struct stat a;
	struct stat b;
	const int keep[] = {700, -1, 40, 2, 0, 1};
	if (dup2(0, 40) < 0 || dup2(0, 41) < 0 || dup2(0, 700) < 0 || dup2(0, 701) < 0)
		return 1;
	descriptors_use_null();
	if (fstat(0, &a) || fstat(2, &b) || a.st_rdev != b.st_rdev || !S_ISCHR(a.st_mode))
		return 2;
	descriptors_keep_only(keep, ARRAY_LEN(keep));
	if (!is_open(40) || !is_open(700) || is_open(41) || is_open(701) || nr_open() != 5)
		return 3;
	descriptors_keep_only(NULL, 0);
	if (nr_open())
		return 4;
	descriptors_fill_standard();
	return nr_open() == 3 && is_open(2) ? 0 : 5;
}

TEST(descriptors_that_are_not_kept_are_closed)
{
	int status = 0;
	pid_t pid = fork();
	if (!pid)
		_exit(child());
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK_U64((unsigned)WEXITSTATUS(status), 0);
}
