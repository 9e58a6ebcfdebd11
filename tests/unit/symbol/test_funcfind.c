/* symbol/funcfind: finds functions of this test's own binary. */
#include "base/base.h"

#include "symbol/funcfind.h"

#include "tap.h"
#include "elf_path.h"

__attribute__((noinline)) int funcfind_example_one(int x);
__attribute__((noinline)) int funcfind_example_two(int x);

int funcfind_example_one(int x)
{
	return x + 1;
}
int funcfind_example_two(int x)
{
	return funcfind_example_one(x) * 2;
}

static void funcs_found_release(struct funcs_found *f)
{
	vec_foreach(one, &f->list)
		free_p(&one->name);
	vec_release(&f->list);
}

static size_t count(const char *pattern, size_t max, size_t *ret_more)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CLEANUP(funcs_found_release) struct funcs_found f = {0};
	if (elf_open_path(&e, "/proc/self/exe", &err) ||
	    func_find(&f, e, NULL, pattern, max, ret_more, &err)) {
		printf("# %s\n", err_msg(&err));
		return 999;
	}
	return f.list.n;
}

TEST(funcfind_finds_by_name_and_by_pattern)
{
	CHECK(funcfind_example_two(1) == 4);
	size_t more = 0;
	CHECK(count("funcfind_example_one", 10, &more) == 1 && !more);
	CHECK(count("funcfind_example_*", 10, &more) == 2 && !more);
	CHECK(count("funcfind_example_*", 1, &more) == 1 && more == 1);
	CHECK(count("funcfind_exampl", 10, NULL) == 0);
}

TEST(funcfind_ignores_data_symbols)
{
	CHECK(count("environ", 10, NULL) == 0 && count("_end", 10, NULL) == 0);
}

TEST(funcfind_patterns_match_like_globs)
{
	CHECK(func_matches("a::b", "a::b") && !func_matches("a::b", "a::bc"));
	CHECK(func_matches("engine::*", "engine::Db::commit"));
	CHECK(func_matches("*::poll", "x::y::poll") && !func_matches("*::poll", "poll"));
	/* names may contain brackets, so [...] is not special */
	CHECK(func_matches("<T as U>::f", "<T as U>::f"));
}
