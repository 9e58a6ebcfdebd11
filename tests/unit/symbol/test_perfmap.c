/* symbol/perfmap: symbols of JIT code, from text and from jitdump. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "symbol/jitcode.h"
#include "symbol/perfmap.h"

static const char *at(const struct perfmap *m, uint64_t addr, uint64_t time_ns)
{
	static char shown[128]; /* tests are forked */
	struct sv name;
	struct sv file;
	uint64_t start;
	uint32_t line;
	if (!perfmap_find(m, addr, time_ns, &name, &start, &file, &line))
		return "-";
	CHECK(start <= addr);
	int n = snprintf(shown, sizeof(shown), "%.*s", SV_ARGS(name));
	if (line)
		(void)snprintf(shown + n, sizeof(shown) - (size_t)n, " %.*s:%u", SV_ARGS(file),
			       line);
	return shown;
}

static struct perfmap *parse(const char *text)
{
	struct perfmap *m = NULL;
	CHECK(!perfmap_parse(&m, sv_from_str(text), NULL));
	return m;
}

TEST(perfmap_read_in_steps_is_the_same_as_at_once)
{
	CLEANUP(buf_release) struct buf text = {0};
	for (unsigned i = 0; i < 40000; i++) {
		buf_addf(&text, "%x 10 name_%u", i * 16, i);
		if (i % 9973 == 9000) /* longer than a step */
			buf_add_repeat(&text, 'x', 300000 + i * 20);
		if (i < 39999)
			buf_add_ch(&text, '\n');
	}
	CLEANUP(source_close) struct byte_source file = {0};
	source_from_bytes(&file, text.p, text.n);
	CLEANUP(perfmap_free_p) struct perfmap *once = parse(buf_str(&text));
	CLEANUP(perfmap_free_p) struct perfmap *steps = NULL;
	CHECK(!perfmap_read(&steps, &file, NULL));
	CHECK_U64(steps->ranges.n, 40000);
	CHECK_U64(steps->nr_bad, 0);
	CHECK(once->names.n == steps->names.n &&
	      !memcmp(once->names.p, steps->names.p, once->names.n));
	CHECK_STR(at(steps, 39999 * 16, 0), "name_39999");
	CHECK_STR(at(steps, 123 * 16 + 15, 0), "name_123");
}

TEST(perfmap_later_entries_win_where_they_overlap)
{
	CLEANUP(perfmap_free_p)
	struct perfmap *m = parse("1000 100 old\n"
				  "1040 10 inner\n"
				  "10f0 100 across\n"
				  "900 50 first\n"
				  "1000 20 head\n");
	CHECK_STR(at(m, 0x1010, 0), "head");
	CHECK_STR(at(m, 0x1020, 0), "old");
	CHECK_STR(at(m, 0x1048, 0), "inner");
	CHECK_STR(at(m, 0x1050, 0), "old");
	CHECK_STR(at(m, 0x10f8, 0), "across");
	CHECK_STR(at(m, 0x11ef, 0), "across");
	CHECK_STR(at(m, 0x11f0, 0), "-");
	CHECK_STR(at(m, 0x94f, 0), "first");
	CHECK_STR(at(m, 0x950, 0), "-");
}

TEST(perfmap_accepts_all_line_formats)
{
	CLEANUP(perfmap_free_p)
	struct perfmap *m = parse("0x2000 0x10 JS:*hot; Fib /a b.js:1:2\r\n"
				  "3000\t10\ttabbed\n"
				  "\n"
				  "4000 0 sizeless\n"
				  "5000 10\n"
				  "x 10 y\n"
				  "11112222333344445 1 toolong\n"
				  "ffffffffffffff00 200 wraps\n"
				  "6000 10 last");
	CHECK_STR(at(m, 0x2001, 0), "JS:*hot; Fib /a b.js:1:2");
	CHECK_STR(at(m, 0x3001, 0), "tabbed");
	CHECK_STR(at(m, 0x4100, 0), "sizeless");
	CHECK_STR(at(m, 0x6001, 0), "last");
	CHECK_U64(m->nr_bad, 4);
	CHECK_U64(m->ranges.n, 4);
}

TEST(perfmap_finds_under_a_thousand_overlapping_ranges)
{
	CLEANUP(buf_release) struct buf text = {0};
	for (unsigned i = 0; i < 3000; i++)
		buf_addf(&text, "%x %x f%u\n", 0x10000 + i, 0x10000, i);
	CLEANUP(perfmap_free_p) struct perfmap *m = NULL;
	CHECK(!perfmap_parse(&m, buf_sv(&text), NULL));
	CHECK_STR(at(m, 0x10000 + 5000, 0), "f2999");
	CHECK_STR(at(m, 0x10000 + 7, 0), "f7");
}

/* ---- jitdump ---- */

static void header(struct buf *b, uint64_t flags)
{
	buf_add_u32le(b, 0x4a695444);
	buf_add_u32le(b, 1);
	buf_add_u32le(b, 40);
	buf_add_u32le(b, 62);
	buf_add_u32le(b, 0);
	buf_add_u32le(b, 77);
	buf_add_u64le(b, 1);
	buf_add_u64le(b, flags);
}

static void record(struct buf *b, uint32_t id, uint64_t time_ns, const struct buf *body)
{
	buf_add_u32le(b, id);
	buf_add_u32le(b, (uint32_t)body->n + 16);
	buf_add_u64le(b, time_ns);
	buf_add(b, body->p, body->n);
}

static void load(struct buf *b, uint64_t time_ns, uint64_t addr, uint64_t nr_bytes,
		 const char *name)
{
	CLEANUP(buf_release) struct buf body = {0};
	buf_add_u64le(&body, 77);
	buf_add_u64le(&body, addr);
	buf_add_u64le(&body, addr);
	buf_add_u64le(&body, nr_bytes);
	buf_add_u64le(&body, 1);
	buf_add(&body, name, strlen(name) + 1);
	buf_add_repeat(&body, '\x90', nr_bytes);
	record(b, 0, time_ns, &body);
}

static void move(struct buf *b, uint64_t time_ns, uint64_t from, uint64_t to, uint64_t nr_bytes)
{
	CLEANUP(buf_release) struct buf body = {0};
	buf_add_u64le(&body, 77);
	buf_add_u64le(&body, to);
	buf_add_u64le(&body, from);
	buf_add_u64le(&body, to);
	buf_add_u64le(&body, nr_bytes);
	buf_add_u64le(&body, 1);
	record(b, 1, time_ns, &body);
}

static void lines(struct buf *b, uint64_t addr)
{
	CLEANUP(buf_release) struct buf body = {0};
	buf_add_u64le(&body, addr);
	buf_add_u64le(&body, 2);
	buf_add_u64le(&body, addr + 8);
	buf_add_u32le(&body, 11);
	buf_add_u32le(&body, 0);
	buf_add(&body, "a.js", 5);
	buf_add_u64le(&body, addr + 16);
	buf_add_u32le(&body, 12);
	buf_add_u32le(&body, 0);
	buf_add(&body, "\xff", 2);
	record(b, 2, 1, &body);
}

static void make_dump(struct buf *b, uint64_t flags)
{
	static const struct buf nothing = {0};
	header(b, flags);
	lines(b, 0x1000);
	load(b, 100, 0x1000, 0x20, "first");
	record(b, 4, 110, &nothing); /* unwinding information */
	record(b, 99, 110, &nothing);
	move(b, 200, 0x1000, 0x2000, 0x20);
	load(b, 300, 0x1000, 0x40, "second");
	record(b, 3, 400, &nothing);
	load(b, 500, 0x1000, 0x40, "after the close");
}

TEST(jitdump_lookup_uses_the_state_at_the_given_time)
{
	CLEANUP(buf_release) struct buf b = {0};
	make_dump(&b, 0);
	CLEANUP(perfmap_free_p) struct perfmap *m = NULL;
	CHECK(!perfmap_parse_jitdump(&m, buf_sv(&b), NULL));
	CHECK_STR(at(m, 0x1004, 150), "first");
	CHECK_STR(at(m, 0x100a, 150), "first a.js:11");
	CHECK_STR(at(m, 0x101f, 150), "first a.js:12");
	CHECK_STR(at(m, 0x1004, 250), "-"); /* moved away */
	CHECK_STR(at(m, 0x2010, 250), "first a.js:12");
	CHECK_STR(at(m, 0x1004, 350), "second");
	CHECK_STR(at(m, 0x1004, 0), "second");
	CHECK_STR(at(m, 0x1004, 50), "first"); /* announced late */
	CHECK_STR(at(m, 0x3000, 350), "-");
	CHECK_U64(m->nr_bad, 0);
}

TEST(jitdump_with_tsc_time_stamps_uses_its_last_state)
{
	CLEANUP(buf_release) struct buf b = {0};
	make_dump(&b, 1);
	CLEANUP(perfmap_free_p) struct perfmap *m = NULL;
	CHECK(!perfmap_parse_jitdump(&m, buf_sv(&b), NULL));
	CHECK_STR(at(m, 0x1004, 150), "second");
}

TEST(jitdump_truncated_or_corrupted_anywhere_does_not_crash)
{
	CLEANUP(buf_release) struct buf b = {0};
	make_dump(&b, 0);
	for (size_t i = 0; i < 2 * b.n; i++) {
		CLEANUP(buf_release) struct buf copy = {0};
		buf_add(&copy, b.p, i < b.n ? i : b.n);
		if (i >= b.n)
			copy.p[i - b.n] ^= '\xff';
		struct perfmap *m = NULL;
		if (!perfmap_parse_jitdump(&m, buf_sv(&copy), NULL)) {
			(void)at(m, 0x1004, 150);
			(void)at(m, 0x2010, 250);
		}
		perfmap_free(m);
	}
}

TEST(jitdump_of_another_byte_order_or_version_is_refused)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct perfmap *m = NULL;
	CHECK(perfmap_parse_jitdump(&m, SV("DTiJ"), NULL) == -EBADMSG);
	make_dump(&b, 0);
	b.p[4] = 9;
	CHECK(perfmap_parse_jitdump(&m, buf_sv(&b), NULL) == -ENOTSUP);
}
