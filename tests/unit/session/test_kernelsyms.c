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

TEST(a_kernel_at_another_address_is_not_that_of_the_recording)
{
	const struct sv text = SV("0000000000000000 A fixed\nffffffff9a000000 T _text\n"
				  "ffffffff9a000000 T _stext\nffffffff9a000100 t do_one\t[mod]\n"
				  "ffffffff9a000200 T my_text\n");
	static const struct {
		struct kernel_identity of;
		bool is_elsewhere;
	} cases[] = {{{"_text", 0xffffffff9a000000, {0}, 0}, false},
		     {{"_text", 0xffffffff81000000, {0}, 0}, true},
		     {{"_stext", 0xffffffff81000000, {0}, 0}, true},
		     {{"_stext", 0xffffffff9a000000, {0}, 0}, false},
		     {{"_text", 0, {0}, 0}, false},             /* not recorded */
		     {{"", 0xffffffff81000000, {0}, 0}, false}, /* as other programs write it */
		     {{"absent", 0xffffffff81000000, {0}, 0}, false}, /* cannot be compared */
		     {{"fixed", 0xffffffff81000000, {0}, 0}, false}}; /* hidden from this user */
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_U64(kernelsyms_is_elsewhere(text, &cases[i].of), cases[i].is_elsewhere);
}

TEST(a_kernel_with_another_build_id_is_not_that_of_the_recording)
{
	static const char notes[] = "\6\0\0\0\1\0\0\0\0\1\0\0Linux\0\0\0L\0\0\0"
				    "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0abcd";
	const struct sv all = sv_from(notes, sizeof(notes) - 1);
	const struct kernel_identity same = {.build_id = "abcd", .nr_build_id = 4};
	const struct kernel_identity other = {.build_id = "abce", .nr_build_id = 4};
	const struct kernel_identity none = {.nr_build_id = 0};
	CHECK(!kernelsyms_is_other_build(all, &same));
	CHECK(kernelsyms_is_other_build(all, &other));
	CHECK(!kernelsyms_is_other_build(all, &none));
	for (size_t n = 0; n < all.n; n++) /* cut off: it has none */
		CHECK(!kernelsyms_is_other_build(sv_from(all.p, n), &other));
	CLEANUP(buf_release) struct buf here = {0};
	kernelsyms_notes(&here);
	CHECK(!here.n || kernelsyms_is_other_build(buf_sv(&here), &other));
}
