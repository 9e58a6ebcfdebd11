/* analyze/stacks: weights of instructions, their table and their place in the page. */
#include "base/base.h"
#include "analyze/stacks/annotate.h"
#include "tap.h"

#include <errno.h>
#include <string.h>

#include "analyze/page/pagedata.h"
#include "analyze/stacks/hotcode.h"
#include "analyze/views.h"
#include "made.h"
#include "model/profile.h"

#define START          0x1000u
#define NR             12u /* instructions of a function, each of 4 bytes */
#define COLUMN_SAMPLES 2

static void read_made(void *ctx, struct arena *a, const struct profile *p, struct code_function *f,
		      size_t n)
{
	(void)p;
	*(size_t *)ctx += n;
	for (size_t i = 0; i < n; i++) {
		uint64_t start = f[i].offsets[0] & ~0xfffull;
		f[i].missing = start == START ? NULL : "no file";
		if (f[i].missing)
			continue;
		f[i].insns = arena_calloc(a, NR, sizeof(*f[i].insns));
		f[i].nr_insns = NR;
		for (size_t k = 0; k < NR; k++)
			f[i].insns[k] = (struct code_insn){.offset = start + 4 * k,
							   .vaddr = 0x400000 + start + 4 * k,
							   .text = arena_fmt(a, "nop %zu", k)};
	}
}

static const char *line_made(void *ctx, struct arena *a, const char *file, uint32_t line)
{
	(void)ctx;
	return arena_fmt(a, "text of %s %u", file, line);
}

/* A leaf in @function at @offset; with code of "inner" inlined there if @is_inlined. */
static stack_id leaf(struct profile *p, const char *function, uint64_t offset, bool is_inlined)
{
	module_id module = profile_module(p, &(struct module){.kind = MODULE_ELF,
							      .path = profile_cstr(p, "/bin/x")});
	const struct function own = {.name = profile_cstr(p, function), .module = module};
	const struct function inner = {.name = profile_cstr(p, "inner"), .module = module};
	const struct frame frames[] = {{.func = profile_function(p, &inner),
					.file = profile_cstr(p, "/src/i.h"),
					.line = 7,
					.is_inlined = true},
				       {.func = profile_function(p, &own),
					.file = profile_cstr(p, "/src/x.c"),
					.line = 3}};
	loc_id loc = profile_location(p, module, offset, 0);
	profile_set_frames(p, loc, frames + !is_inlined, is_inlined ? 2 : 1, 0);
	return profile_stack(p, 0, loc);
}

static struct profile *made(void)
{
	struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 1);
	task_id task = profile_task(p, 1, 1, profile_cstr(p, "x"), 0);
	static const struct {
		const char *function;
		uint64_t offset;
		bool is_inlined;
		int64_t n;
	} rows[] = {{"hot", START, false, 2},
		    {"hot", START + 16, true, 5},
		    {"hot", START + 17, false, 1}, /* within an instruction */
		    {"gone", 0x5000, false, 3}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		profile_sample(p, t, 1 + i,
			       leaf(p, rows[i].function, rows[i].offset, rows[i].is_inlined), task,
			       -1, &rows[i].n);
	profile_seal(p);
	return p;
}

static struct report *annotated(const struct profile *p, const char *pattern, uint64_t max_rows,
				const struct code_access *code, int *ret_rc)
{
	CLEANUP(arena_release) struct arena a = {0};
	const struct select_spec spec = {0};
	const struct view_limits limits = {.max_rows = max_rows};
	struct report *r = report_new();
	struct selection sel;
	CHECK(!views_select(&a, p, &spec, &sel, NULL));
	*ret_rc = annotate_report(r, &sel, pattern, code, &limits, NULL);
	return r;
}

static const union cell *row_of(const struct report *r, size_t row)
{
	const struct report_table *t = &r->tables.p[0];
	return &t->cells[row * t->nr_columns];
}

TEST(annotate_has_each_instruction_with_its_samples_and_line)
{
	CLEANUP(profile_free_p) struct profile *p = made();
	size_t nr_read = 0;
	int rc;
	const struct code_access code = {.read = read_made, .line = line_made, .ctx = &nr_read};
	CLEANUP(report_free_p) struct report *r = annotated(p, "^hot$", 0, &code, &rc);
	CHECK(!rc);
	CHECK_U64(nr_read, 1);
	CHECK_U64(r->tables.n, 1);
	CHECK_U64(r->tables.p[0].nr_rows, NR + 1);
	CHECK_U64(row_of(r, 0)[COLUMN_SAMPLES].u, 2);
	CHECK_STR(row_of(r, 0)[3].text, "401000");
	CHECK_STR(row_of(r, 0)[5].text, "x.c:3");
	CHECK_U64(row_of(r, 1)[COLUMN_SAMPLES].u, 0);
	CHECK_STR(row_of(r, 4)[4].text, "nop 4");
	CHECK_U64(row_of(r, 4)[COLUMN_SAMPLES].u, 5);
	CHECK(row_of(r, 4)[0].d > 62.4 && row_of(r, 4)[0].d < 62.6); /* 5 of 8 */
	CHECK_STR(row_of(r, 4)[5].text, "i.h:7 inner");
	CHECK_STR(row_of(r, 4)[6].text, "text of /src/i.h 7");
	CHECK_U64(row_of(r, NR)[COLUMN_SAMPLES].u, 1); /* the address that is no instruction */
}

TEST(annotate_closes_runs_without_samples_and_keeps_the_sum)
{
	CLEANUP(profile_free_p) struct profile *p = made();
	size_t nr_read = 0;
	int rc;
	const struct code_access code = {.read = read_made, .ctx = &nr_read};
	CLEANUP(report_free_p) struct report *r = annotated(p, "^hot$", 1, &code, &rc);
	uint64_t sum = 0;
	CHECK(!rc);
	/* 2 before, 5 around the hottest, 5 after, 1 outside */
	CHECK_U64(r->tables.p[0].nr_rows, 1 + 5 + 1 + 1);
	for (size_t i = 0; i < r->tables.p[0].nr_rows; i++)
		sum += row_of(r, i)[COLUMN_SAMPLES].u;
	CHECK_U64(sum, 8);
	CHECK_STR(row_of(r, 0)[4].text, "... 2 instructions");
}

TEST(annotate_of_inlined_code_is_that_of_its_function)
{
	CLEANUP(profile_free_p) struct profile *p = made();
	size_t nr_read = 0;
	int rc;
	const struct code_access code = {.read = read_made, .ctx = &nr_read};
	CLEANUP(report_free_p) struct report *r = annotated(p, "^inner$", 0, &code, &rc);
	CHECK(!rc);
	CHECK(strstr(r->tables.p[0].title, "instructions of hot in x") != NULL);
}

TEST(annotate_says_why_there_is_no_code_and_has_the_samples)
{
	CLEANUP(profile_free_p) struct profile *p = made();
	size_t nr_read = 0;
	int rc;
	const struct code_access code = {.read = read_made, .ctx = &nr_read};
	CLEANUP(report_free_p) struct report *r = annotated(p, "^gone$", 0, &code, &rc);
	CHECK(!rc);
	CHECK_U64(r->notes.n, 1);
	CHECK_STR(r->notes.p[0], "no assembly of gone: no file");
	CHECK_U64(r->tables.p[0].nr_rows, 1);
	CHECK_U64(row_of(r, 0)[COLUMN_SAMPLES].u, 3);
	CLEANUP(report_free_p) struct report *none = annotated(p, "^nothing$", 0, &code, &rc);
	CHECK(rc == -ENOENT);
}

TEST(pagecode_numbers_the_sampled_instructions_of_rows)
{
	CLEANUP(profile_free_p) struct profile *p = made();
	size_t nr_read = 0;
	const struct code_access code = {.read = read_made, .ctx = &nr_read};
	struct page page = {0};
	CHECK(!page_make(&page, p, "x", &code, NULL, NULL));
	CHECK_U64(page.code.n, 2);
	CHECK_STR(page.code.functions[0].name, "hot");
	CHECK_STR(page.code.functions[1].missing, "no file");
	const struct page_insn *insns = page.code.functions[0].insns;
	const struct page_stream *s = &page.streams.p[0];
	uint64_t at[NR] = {0};
	uint64_t outside = 0;
	CHECK(s->flags & PAGE_HAS_PLACES);
	for (size_t i = 0; i < s->n; i++) {
		size_t k = 0;
		while (k < NR && (!s->place[i] || insns[k].place != s->place[i]))
			k++;
		*(k < NR ? &at[k] : &outside) += s->weight[i];
	}
	CHECK_U64(at[0], 2);
	CHECK_U64(at[4], 5);
	CHECK_U64(outside, 4); /* within an instruction, and "gone" */
	page_release(&page);
	CHECK(!page_make(&page, p, "x", NULL, NULL, NULL)); /* nothing is opened */
	CHECK_U64(page.code.n, 0);
	CHECK(!page.streams.p[0].place);
	page_release(&page);
}
