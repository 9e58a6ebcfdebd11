/* symbol/funcfind: finds functions of this test's own binary. */
#include "base/base.h"

#include "symbol/funcfind.h"

#include "base/buf.h"
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

/* "a, b": the names similar to @word that are offered from a list. */
static void near_names(struct buf *to, const char *word, const char *const *names)
{
	CLEANUP(funcs_near_release) struct funcs_near near = funcs_near_of(word);
	for (; *names; names++)
		funcs_near_offer(&near, *names);
	buf_clear(to);
	for (size_t i = 0; i < near.n; i++)
		buf_addf(to, "%s%s", i ? ", " : "", near.best[i].name);
}

TEST(funcfind_names_what_was_meant)
{
	static const char *const names[] = {"op_sleep", "op_mixed",     "app::db::Table::commit",
					    "op_sleep", "op_sleep_all", "x",
					    NULL};
	static const char *const many[] = {"commit_1", "commit_2",  "commit_33", "commit_4",
					   "commit_5", "commit_66", "commi",     NULL};
	CLEANUP(buf_release) struct buf near = {0};
	near_names(&near, "op_slep", names);
	CHECK_STR(buf_str(&near), "op_sleep");
	near_names(&near, "op_sleep", names); /* itself is none */
	CHECK_STR(buf_str(&near), "op_sleep_all");
	near_names(&near, "Table::comit", names);
	CHECK_STR(buf_str(&near), "app::db::Table::commit");
	near_names(&near, "*mixd*", names);
	CHECK_STR(buf_str(&near), "");
	near_names(&near, "y", names);
	CHECK_STR(buf_str(&near), "");
	near_names(&near, "**", names);
	CHECK_STR(buf_str(&near), "");
	near_names(&near, "commit", many);
	CHECK_STR(buf_str(&near), "commi, commit_1, commit_2, commit_4, commit_5");
}

TEST(funcfind_offers_functions_of_a_binary)
{
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CLEANUP(funcs_near_release)
	struct funcs_near near = funcs_near_of("funcfind_exmple_one");
	if (elf_open_path(&e, "/proc/self/exe", NULL))
		return;
	CHECK(!func_find_near(&near, e, NULL, NULL) && near.n == 2);
	CHECK_STR(near.best[0].name, "funcfind_example_one");
}

TEST(funcfind_patterns_match_like_globs)
{
	CHECK(func_matches("a::b", "a::b") && !func_matches("a::b", "a::bc"));
	CHECK(func_matches("engine::*", "engine::Db::commit"));
	CHECK(func_matches("*::poll", "x::y::poll") && !func_matches("*::poll", "poll"));
	/* names may contain brackets, so [...] is not special */
	CHECK(func_matches("<T as U>::f", "<T as U>::f"));
}
