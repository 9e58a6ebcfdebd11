/* session/kernelsyms: the copy of the kernel's symbols is believed only for this boot. */
#include "base/base.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "session/kernelsyms.h"

TEST(kernelsyms_without_a_directory_or_a_file_keeps_nothing)
{
	CLEANUP(buf_release) struct buf b = {0};
	CHECK(kernelsyms_load(&b, NULL) < 0);
	CHECK(kernelsyms_load(&b, "/nonexistent") < 0);
	CHECK_U64(b.n, 0);
}

TEST(kernelsyms_gives_back_functions_of_this_boot_only)
{
	char dir[] = "/tmp/assay-kernelsyms-XXXXXX";
	CHECK(mkdtemp(dir) != NULL);
	CLEANUP(free_p) char *path = xasprintf("%s/kallsyms", dir);
	CLEANUP(buf_release) struct buf all = {0};
	CLEANUP(buf_release) struct buf kept = {0};
	CHECK(!kernelsyms_read(&all, dir));
	if (access(path, F_OK)) /* addresses are hidden from us */
		return (void)rmdir(dir);
	CHECK(!kernelsyms_load(&kept, dir));
	CHECK(kept.n && kept.n <= all.n);
	CHECK(strchr("tTwW", kept.p[17]) != NULL);
	CHECK(!memmem(kept.p, kept.n, "\t[bpf", 5));
	uint64_t last = 0;
	for (const char *p = kept.p, *end = p + kept.n; p < end; p = strchr(p, '\n') + 1) {
		uint64_t addr = strtoull(p, NULL, 16);
		CHECK(addr >= last);
		last = addr;
	}

	CHECK(!chmod(path, 0620)); /* somebody else may have written it */
	CHECK(kernelsyms_load(&kept, dir) < 0);
	CHECK(!chmod(path, 0600));

	CLEANUP(buf_release) struct buf copy = {0};
	CHECK(!file_read(&copy, path, SIZE_MAX, NULL));
	copy.p[strlen("assay-kallsyms-1 ")] ^= 1; /* another boot's */
	CLEANUP(out_release) struct out o = {.fd = -1};
	CHECK(!out_open(&o, path, 0600, NULL) && !out_write(&o, copy.p, copy.n, NULL) &&
	      !out_commit(&o, NULL));
	CHECK(kernelsyms_load(&kept, dir) < 0);
	CHECK(!unlink(path) && !rmdir(dir));
}
