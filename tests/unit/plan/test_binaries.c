/* plan/binaries: the binaries of this process. */
#include "base/base.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/proc.h"
#include "plan/binaries.h"

#define BELOW 0x10000000ul /* of all that a program has mapped */

/* Maps the first page of this program, an ELF file, at @at from a memfd of this name. */
static void map_below(uint64_t at, const char *name)
{
	static char page[4096];
	int self CLEANUP(close_p) = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CHECK(read(self, page, sizeof(page)) == sizeof(page));
	int fd CLEANUP(close_p) = memfd_create(name, MFD_CLOEXEC);
	CHECK(write(fd, page, sizeof(page)) == sizeof(page));
	CHECK(mmap((void *)at, sizeof(page), PROT_READ | PROT_EXEC,
		   MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) == (void *)at);
}

TEST(binaries_begin_with_the_program_and_have_no_recorder)
{
	CLEANUP(binaries_release) struct binaries all;
	CLEANUP(free_p) char *exe = proc_exe(getpid());
	map_below(BELOW, "assay-heap");
	map_below(BELOW + 0x10000, "a library");
	CHECK(!binaries_read(&all, getpid(), NULL));
	CHECK_STR(all.list.p[0].path, exe);
	CHECK_STR(all.list.p[1].path, "/memfd:a library (deleted)");
	vec_foreach(b, &all.list)
		CHECK(!strstr(b->path, "assay-heap"));
}
