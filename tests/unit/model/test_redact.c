/* What is removed from a profile before it is given away. */
#include "base/base.h"
#include "model/redact.h"
#include "tap.h"

#include <string.h>

#include "made/made.h"
#include "made/madewaits.h"

#define SECRET "s3cret"

static struct profile *profile_with_secrets(void)
{
	struct profile *p = madewaits_new(1);
	static const char *const objects[] = {"/var/" SECRET "/a", "/var/" SECRET "/b",
					      "tcp 10.0.0.1:80 -> " SECRET ":5", "lock 0x7f00",
					      "unix @" SECRET};
	for (size_t i = 0; i < ARRAY_LEN(objects); i++)
		madewait(p, &(struct madewait){.comm = "worker",
					       .tid = 2,
					       .stack = "main;read /lib/" SECRET "/libx.so",
					       .reason = WAIT_FILE_READ,
					       .object = objects[i],
					       .nr = 1,
					       .ms = 5});
	uint32_t t = made_table(p, "/opt/" SECRET "/probe", 2);
	made_sample(p, t, &(struct made){.stack = "LazyCompile:*run(/home/" SECRET "/a.js:5:1)"});
	made_sample(p, t,
		    &(struct made){.stack = "a<f /a/" SECRET "/dup.so;a<g /b/" SECRET "/dup.so"});
	profile_fact(p, FACT_HOST, SECRET);
	profile_fact(p, FACT_COMMAND, "/bin/" SECRET " --password " SECRET);
	profile_fact(p, FACT_KERNEL, "6.1.0-" SECRET);
	profile_fact(p, FACT_TARGET, SECRET);
	profile_fact(p, FACT_DUMPS, "/tmp/" SECRET);
	profile_fact_text(p, "cmdline of another program", SECRET);
	profile_fact(p, FACT_HEAP_ALLOCATOR, "jemalloc of /opt/a " SECRET "/libjemalloc.so");
	profile_mark(p, p->start_ns, SECRET);
	profile_mark(p, p->start_ns + 1, SECRET " again");
	profile_seal(p);
	return p;
}

TEST(redact_leaves_no_text_that_identifies_people_or_places)
{
	CLEANUP(profile_free_p) struct profile *p = profile_with_secrets();
	size_t nr_rows = p->tables.p[0].n;
	size_t nr_modules = p->modules.n;
	profile_redact(&p);
	for (size_t i = 0; i < intern_count(&p->strings); i++)
		CHECK(!strstr(intern_str(&p->strings, (str_id)i), SECRET));
	CHECK_U64(p->tables.p[0].n, nr_rows);
	CHECK_U64(p->modules.n, nr_modules);
	CHECK(profile_get_fact(p, FACT_REDACTED) != NULL);
	CHECK_STR(profile_get_fact(p, FACT_KERNEL), "6.1.0");
	CHECK_STR(profile_get_fact(p, FACT_TARGET), "target");
	CHECK_STR(profile_get_fact(p, FACT_HEAP_ALLOCATOR), "jemalloc of libjemalloc.so");
	CHECK(profile_get_fact(p, FACT_COMMAND) == NULL);
	CHECK_STR(profile_text(p, p->marks.p[1].text), "mark 2");
}

static bool has_text(const struct profile *p, const char *text)
{
	for (size_t i = 0; i < intern_count(&p->strings); i++)
		if (!strcmp(intern_str(&p->strings, (str_id)i), text))
			return true;
	return false;
}

TEST(redact_keeps_what_tells_objects_and_functions_apart)
{
	CLEANUP(profile_free_p) struct profile *p = profile_with_secrets();
	profile_redact(&p);
	static const char *const kept[] = {
		"file 1",  "file 2", "tcp 3",  "lock 0x7f00", "unix 4",
		"libx.so", "dup.so", "worker", "read",        "LazyCompile:*run(a.js:5:1)"};
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		CHECK(has_text(p, kept[i]));
}

TEST(drop_arguments_keeps_the_program)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	profile_drop_arguments(p);
	CHECK(profile_get_fact(p, FACT_COMMAND) == NULL);
	profile_fact(p, FACT_COMMAND, "./prog -p secret");
	profile_drop_arguments(p);
	CHECK_STR(profile_get_fact(p, FACT_COMMAND), "./prog");
}
