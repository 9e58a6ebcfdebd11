/* Short forms of names, and wrapped text. */
#include "base/base.h"
#include "base/text/shortname.h"

#include "base/buf.h"
#include "base/file/file.h"
#include "base/text/escape.h"
#include "base/text/lines.h"
#include "base/text/wrap.h"
#include "tap.h"

#define FIXTURE "tests/fixtures/text/names.forms"

static const char *forms_of(struct buf *to, const char *name)
{
	CLEANUP(buf_release) struct buf form = {0};
	CLEANUP(buf_release) struct buf before = {0};
	buf_clear(to);
	for (unsigned step = 0; shortname_form(&form, sv_from_str(name), step); step++) {
		if (!step || strcmp(buf_str(&form), buf_str(&before)) != 0)
			buf_addf(to, "%s%s", step ? "\n\t" : "", buf_str(&form));
		buf_clear(&before);
		buf_add_sv(&before, buf_sv(&form));
		buf_clear(&form);
	}
	buf_add_ch(to, '\n');
	return buf_str(to);
}

/* A name, and below it its further forms; the test names_js compares names.js with the same file. */
TEST(names_lose_what_says_least_first)
{
	CLEANUP(buf_release) struct buf want = {0};
	CLEANUP(buf_release) struct buf got = {0};
	CLEANUP(buf_release) struct buf one = {0};
	CHECK(!file_read_named(&want, FIXTURE, 1 << 16, NULL));
	struct lines in = lines_from(want.p, want.n);
	struct sv line;
	while (lines_next(&in, &line)) {
		CLEANUP(buf_release) struct buf name = {0};
		if (line.n && line.p[0] == '\t')
			continue;
		buf_add_sv(&name, line);
		buf_add_str(&got, forms_of(&one, buf_str(&name)));
	}
	CHECK_STR(buf_str(&got), buf_str(&want));
}

static const char *form_of(struct buf *to, const char *name, size_t columns)
{
	buf_clear(to);
	shortname_add(to, sv_from_str(name), columns);
	return buf_str(to);
}

TEST(names_fit_into_any_width)
{
	CLEANUP(buf_release) struct buf b = {0};
	static const char *const names[] = {
		"<alloc::vec::Vec<T, A> as core::iter::Extend<T>>::extend_one",
		"a_function_name_of_c_that_has_no_parts_at_all",
		"\xc3\xa4\xc3\xb6\xc3\xbc::\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc",
		"<<<<((((",
		">)]}::",
		"::",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		for (size_t n = 0; n < 70; n++)
			CHECK(utf8_columns(sv_from_str(form_of(&b, names[i], n))) <= n);
	CHECK_STR(form_of(&b, names[1], 20), "a_functi..rts_at_all");
}

TEST(different_names_stay_different)
{
	static const char *const texts[] = {
		"std::vector<int>::push_back(int)",
		"std::vector<long>::push_back(long)",
		"std::vector<int>::push_back(int)",
		"core::ops::function::FnOnce::call_once::h0123456789abcdef",
		"core::ops::function::FnOnce::call_once::h0123456789abcdee",
		"a_long_name_of_a_function_that_ends_in_one_0000000000000000000000000000000001_x",
		"a_long_name_of_a_function_that_ends_in_one_0000000000000000000000000000000002_x",
		"a_long_name_of_a_function_that_ends_in_one_0000000000000000000000000000000003_x",
	};
	struct sv names[ARRAY_LEN(texts)];
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		names[i] = sv_from_str(texts[i]);
	for (size_t columns = 12; columns < 90; columns++) {
		CLEANUP(shortnames_release) struct shortnames s;
		shortnames_make(&s, names, ARRAY_LEN(names), columns);
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			CHECK(utf8_columns(sv_from_str(shortnames_at(&s, i))) <= columns);
			for (size_t k = 0; k < i; k++)
				CHECK(!strcmp(shortnames_at(&s, i), shortnames_at(&s, k)) ==
				      !strcmp(texts[i], texts[k]));
		}
	}
}

static const char *wrapped(struct buf *to, const char *text, size_t indent, size_t width)
{
	buf_clear(to);
	wrap_add(to, sv_from_str(text), 0, indent, width);
	return buf_str(to);
}

TEST(sentences_are_wrapped_at_words)
{
	CLEANUP(buf_release) struct buf b = {0};
	CHECK_STR(wrapped(&b, "one two three", 2, 0), "one two three");
	CHECK_STR(wrapped(&b, "one two three four", 2, 12), "one two\n  three four");
	CHECK_STR(wrapped(&b, "averyveryverylongword b", 2, 10), "averyveryv\n  erylongw\n  ord b");
	CHECK_STR(wrapped(&b, "", 2, 10), "");
}
