/* render/page: one well-formed file without references, the same bytes for the same input. */
#include "base/base.h"
#include "render/page/pagehtml.h"
#include "tap.h"

#include <string.h>

#include "made.h"
#include "model/profile.h"
#include "render/page/pagepack.h"

static void write_page(struct buf *to, const char *stack, const char *input, const char *text)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	uint32_t t = made_table(p, "cycles", 2);
	made_sample(p, t, &(struct made){.stack = stack, .ns = 1000000, .weight = 5});
	profile_seal(p);
	struct page page;
	CHECK(!page_make(&page, p, input, NULL, NULL, NULL));
	CLEANUP(buf_release) struct buf data = {0};
	pagehtml_add_data(&data, &page, input);
	pagehtml_write(to, &page,
		       &(struct pagehtml_parts){.text = sv_from_str(text), .data = buf_sv(&data)});
	page_release(&page);
}

TEST(pagehtml_is_the_same_for_the_same_input)
{
	CLEANUP(buf_release) struct buf a = {0};
	CLEANUP(buf_release) struct buf b = {0};
	write_page(&a, "main;f", "x.assay", "text");
	write_page(&b, "main;f", "x.assay", "text");
	CHECK(a.n == b.n && !memcmp(a.p, b.p, a.n));
}

TEST(pagehtml_refers_to_no_other_file)
{
	CLEANUP(buf_release) struct buf b = {0};
	write_page(&b, "main;f", NULL, "text");
	const char *s = buf_str(&b);
	CHECK(strstr(s, "default-src 'none'"));
	CHECK(strstr(s, "script-src 'sha256-"));
	CHECK(!strstr(s, "http://") && !strstr(s, "https://") && !strstr(s, "<link"));
	CHECK(!strstr(s, "src=\""));
	CHECK(b.n < 150 * 1024);
}

TEST(pagehtml_escapes_names_and_texts)
{
	CLEANUP(buf_release) struct buf b = {0};
	write_page(&b, "main;</script><script>alert(1)", "a\"><script>.assay",
		   "</pre><script>alert(1)</script>");
	const char *s = buf_str(&b);
	CHECK(!strstr(s, "alert(1)</script>"));
	CHECK(!strstr(s, "\"><script>.assay"));
	CHECK(strstr(s, "&lt;/pre&gt;&lt;script&gt;alert(1)"));
}

TEST(pagehtml_keeps_the_lines_of_its_text)
{
	CLEANUP(buf_release) struct buf b = {0};
	write_page(&b, "main;f", NULL, "memory\n\n  f\x01 <b>\n");
	CHECK(strstr(buf_str(&b), "<pre>memory\n\n  f\\x01 &lt;b&gt;\n</pre>"));
}

TEST(pagepack_has_one_value_for_a_column_of_equal_ones)
{
	CLEANUP(buf_release) struct buf few = {0};
	CLEANUP(buf_release) struct buf many = {0};
	for (int k = 0; k < 2; k++) {
		CLEANUP(profile_free_p) struct profile *p = profile_new();
		uint32_t t = made_table(p, "cycles", 2);
		for (int i = 0; i < (k ? 2000 : 1000); i++)
			made_sample(p, t, &(struct made){.stack = "main;f", .ns = 1, .weight = 5});
		profile_seal(p);
		struct page page;
		CHECK(!page_make(&page, p, NULL, NULL, NULL, NULL));
		pagepack_write(k ? &many : &few, &page);
		page_release(&page);
	}
	CHECK(!memcmp(few.p, PAGE_MAGIC, strlen(PAGE_MAGIC)));
	CHECK(many.n < few.n + 64); /* not 1000 rows more */
}
