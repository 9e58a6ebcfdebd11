/* Closes descriptors; see descriptors.h. */
#include "base/base.h"
#include "base/process/descriptors.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Closes the descriptors from @first to @last. */
static void close_from_to(unsigned first, unsigned last)
{
	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
	long max = sysconf(_SC_OPEN_MAX); /* before Linux 5.9 */
	for (unsigned fd = first; fd <= last && fd < (unsigned)MAX(max, 0L); fd++)
		(void)close((int)fd);
}

void descriptors_keep_only(const int *keep, size_t nr)
{
	unsigned next = 0;
	for (;;) {
		unsigned least = UINT_MAX; /* of those to keep that are not below @next */
		for (size_t i = 0; i < nr; i++)
			if (keep[i] >= 0 && (unsigned)keep[i] >= next)
				least = MIN(least, (unsigned)keep[i]);
		if (least == UINT_MAX)
			break;
		if (least)
			close_from_to(next, least - 1);
		next = least + 1;
	}
	close_from_to(next, UINT_MAX);
}

static int open_null(int mode)
{
	int fd = open("/dev/null", mode | O_CLOEXEC);
	return fd < 0 ? memfd_create("null", MFD_CLOEXEC) : fd; /* an empty root directory */
}

void descriptors_fill_standard(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open_null(fd ? O_RDONLY : O_WRONLY); /* becomes @fd, the lowest one */
}

void descriptors_use_null(void)
{
	int null = open_null(O_RDWR);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		if (fd != null)
			(void)dup2(null, fd);
	if (null > 2)
		(void)close(null);
}
