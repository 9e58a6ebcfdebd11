/* analyze/page: weights of the source lines of functions. */
#include "base/base.h"
#include "analyze/page/pagelines.h"
#include "tap.h"

#include <string.h>

#include "analyze/views.h"
#include "made.h"
#include "model/profile.h"

struct row {
	const char *function;
	uint32_t line;
};

/* A stack of frames, root first, all of one file. */
static stack_id stack_of(struct profile *p, const struct row *rows, size_t n)
{
	module_id module = profile_module(p, &(struct module){.kind = MODULE_ELF,
							      .path = profile_cstr(p, "/bin/x")});
	stack_id at = 0;
	for (size_t i = 0; i < n; i++) {
		const struct frame f = {
			.func = profile_function(
				p, &(struct function){.name = profile_cstr(p, rows[i].function),
						      .module = module}),
			.file = profile_cstr(p, "/src/x.c"),
			.line = rows[i].line};
		loc_id loc = profile_location(p, module, 16ull * rows[i].line + 1, 0);
		if (!p->locations.p[loc].nr_frames)
			profile_set_frames(p, loc, &f, 1, 0);
		at = profile_stack(p, at, loc);
	}
	return at;
}

static const struct page_line *line_of(const struct page_line *lines, size_t n, uint32_t line)
{
	for (size_t i = 0; i < n; i++)
		if (lines[i].line == line)
			return &lines[i];
	return NULL;
}

TEST(pagelines_add_up_self_and_total_and_count_recursion_once)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	uint32_t t = made_table(p, "cycles", 1);
	static const struct row first[] = {{"main", 3}, {"f", 10}, {"f", 11}};
	static const struct row second[] = {{"main", 3}, {"f", 10}, {"f", 10}, {"g", 20}};
	static const int64_t five[] = {5};
	static const int64_t seven[] = {7};
	task_id task = profile_task(p, 1, 1, profile_cstr(p, "x"), 0);
	profile_sample(p, t, 1, stack_of(p, first, ARRAY_LEN(first)), task, -1, five);
	profile_sample(p, t, 2, stack_of(p, second, ARRAY_LEN(second)), task, -1, seven);
	profile_seal(p);
	struct selection sel;
	const struct select_spec spec = {0};
	struct page_line *lines;
	CHECK(!views_select(&a, p, &spec, &sel, NULL));
	size_t n = pagelines_make(&a, &sel, NULL, &lines);
	CHECK_U64(n, 4);
	CHECK_U64(line_of(lines, n, 3)->total, 12);
	CHECK_U64(line_of(lines, n, 3)->self, 0);
	CHECK_U64(line_of(lines, n, 10)->total, 12); /* once in the stack that has it twice */
	CHECK_U64(line_of(lines, n, 10)->self, 0);
	CHECK_U64(line_of(lines, n, 11)->self, 5);
	CHECK_U64(line_of(lines, n, 20)->self, 7);
	CHECK_STR(line_of(lines, n, 20)->function, "g");
	CHECK_STR(line_of(lines, n, 20)->module, "x");
}
