/* symbol/kallsyms: symbolization of kernel addresses. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>

#include "base/buf.h"
#include "symbol/kallsyms.h"

static struct kallsyms *parse(const char *text)
{
	struct kallsyms *k = NULL;
	CHECK(!kallsyms_parse(&k, sv_from_str(text), NULL));
	return k;
}

static const char *at(const struct kallsyms *k, uint64_t addr)
{
	static char shown[128]; /* tests are forked */
	struct sv name;
	struct sv module;
	uint64_t start;
	if (!kallsyms_find(k, addr, &name, &module, &start))
		return "-";
	CHECK(start <= addr);
	(void)snprintf(shown, sizeof(shown), "%.*s[%.*s]+%" PRIu64, SV_ARGS(name), SV_ARGS(module),
		       addr - start);
	return shown;
}

TEST(kallsyms_functions_end_at_the_next_in_their_module)
{
	CLEANUP(kallsyms_free_p)
	struct kallsyms *k = parse("ffffffff81000000 T first\n"
				   "ffffffff81000100 D data\n"
				   "ffffffff81000200 t second\n"
				   "ffffffffc0002010 t in_two\t[two]\n"
				   "ffffffffc0001000 t in_one\t[one]\n"
				   "ffffffffc0009000 t bpf_prog_6deef7357e7b4530_sd_fw\t[bpf]");
	CHECK_STR(at(k, 0xffffffff80ffffff), "-");
	CHECK_STR(at(k, 0xffffffff810001ff), "first[]+511");
	CHECK_STR(at(k, 0xffffffff81000200), "second[]+0");
	CHECK_STR(at(k, 0xffffffff81001000), "-"); /* past the page of the kernel's last */
	CHECK_STR(at(k, 0xffffffffc0001fff), "in_one[one]+4095");
	CHECK_STR(at(k, 0xffffffffc0002000), "-");
	CHECK_STR(at(k, 0xffffffffc0002020), "in_two[two]+16");
	CHECK_STR(at(k, 0xffffffffc0009008), "bpf_prog_6deef7357e7b4530_sd_fw[bpf]+8");
}

TEST(kallsyms_alias_choice_does_not_depend_on_order)
{
	static const char *const texts[] = {
		"ffffffff81000000 t local\nffffffff81000000 T __memcpy\nffffffff81000000 W memcpy\n",
		"ffffffff81000000 W memcpy\nffffffff81000000 t local\nffffffff81000000 T __memcpy\n",
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CLEANUP(kallsyms_free_p) struct kallsyms *k = parse(texts[i]);
		CHECK_STR(at(k, 0xffffffff81000000), "memcpy[]+0");
	}
}

TEST(kallsyms_in_order_are_found_without_parsing)
{
	CLEANUP(buf_release) struct buf lines = {0};
	for (unsigned i = 0; i < 1000; i++)
		buf_addf(&lines, "ffffffff81%06x t f%u\nffffffff81%06x T _f%u\n", i * 64, i, i * 64,
			 i);
	CLEANUP(kallsyms_free_p) struct kallsyms *k = kallsyms_from_sorted(&lines);
	CHECK(!lines.p);
	for (unsigned i = 0; i < 1000; i++) {
		CLEANUP(buf_release) struct buf want = {0};
		buf_addf(&want, "_f%u[]+63", i);
		CHECK_STR(at(k, 0xffffffff81000000 + i * 64 + 63), buf_str(&want));
	}
	CHECK_STR(at(k, 0xffffffff80ffffff), "-");
	CHECK_STR(at(k, 0xffffffff81000000 + 1000 * 64), "_f999[]+64"); /* its page goes on */
}

TEST(kallsyms_hidden_addresses_give_eacces_not_enodata)
{
	struct kallsyms *k = NULL;
	CHECK(kallsyms_parse(&k, SV("0000000000000000 T a\n0000000000000000 t b\n"), NULL) ==
	      -EACCES);
	CHECK(kallsyms_parse(&k, SV(""), NULL) == -ENODATA);
	CHECK(kallsyms_parse(&k, SV("ffffffff81000000 D d\n"), NULL) == -ENODATA);
}

TEST(kallsyms_malformed_lines_are_skipped)
{
	CLEANUP(kallsyms_free_p)
	struct kallsyms *k =
		parse("\n\n \nzz\nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \n"
		      "fffffffffffffffff81000000 T long\n0 t zero\nffffffff81000000 t  \t[x]\n"
		      "ffffffffffffffff T last\t[\nfffffffff1000000 T ok");
	CHECK_STR(at(k, 0xffffffffffffffff), "-");
	CHECK_STR(at(k, 0xfffffffff1000001), "ok[]+1");
}

TEST(kallsyms_truncated_at_any_byte_does_not_crash)
{
	static const char text[] = "ffffffff81000000 T first\nffffffffc0001000 t in_one\t[one]\n";
	for (size_t n = 0; n < sizeof(text); n++) {
		struct kallsyms *k = NULL;
		CLEANUP(buf_release) struct buf copy = {0};
		buf_add(&copy, text, n);
		(void)kallsyms_parse(&k, buf_sv(&copy), NULL);
		kallsyms_free(k);
	}
}
