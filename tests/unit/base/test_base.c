/* base/: maps, interning, readers, escaping. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>

#include "base/buf.h"
#include "base/text/escape.h"
#include "base/intern.h"
#include "base/text/json.h"
#include "base/map.h"
#include "base/file/rd.h"
#include "base/file/zio.h"

TEST(map_keeps_what_was_put_after_deletions)
{
	CLEANUP(map_release) struct map m = {0};
	for (uint64_t i = 0; i < 10000; i++)
		*map_put(&m, i * 7, NULL) = (uint32_t)i;
	for (uint64_t i = 0; i < 10000; i += 2)
		CHECK(map_del(&m, i * 7));
	for (uint64_t i = 0; i < 10000; i++) {
		uint32_t *v = map_get(&m, i * 7);
		CHECK((i % 2) == (v != NULL));
		CHECK(!v || *v == i);
	}
	CHECK_U64(m.n, 5000);
}

TEST(intern_gives_one_id_per_string)
{
	CLEANUP(intern_release) struct intern t = {0};
	CHECK_U64(intern_add(&t, "", 0), 0);
	uint32_t a = intern_add_str(&t, "alpha");
	for (int i = 0; i < 1000; i++) {
		char s[16];
		snprintf(s, sizeof(s), "s%d", i);
		intern_add_str(&t, s);
	}
	CHECK_U64(intern_add_str(&t, "alpha"), a);
	CHECK_STR(intern_str(&t, a), "alpha");
	CHECK_U64(intern_count(&t), 1002);
}

TEST(errors_keep_their_code_without_a_place_for_the_message)
{
	CHECK(err_set(NULL, EACCES, "no") == -EACCES);
	CHECK(err_hint(NULL, "remedy") == -EACCES);
	CHECK(err_wrap(NULL, "of a file") == -EACCES);
	errno = ENOSPC;
	CHECK(err_sys(NULL, "no") == -ENOSPC);
	CHECK(err_hint(NULL, "remedy") == -ENOSPC);
	struct err kept = {0};
	CHECK(err_set(&kept, -EINVAL, "no") == -EINVAL && err_hint(NULL, "x") == -EINVAL);
	err_release(&kept);
}

TEST(reader_sets_is_bad_at_the_end_permanently)
{
	struct rd r = rd_from("\x01\x02\x03", 3);
	CHECK_U64(rd_u16(&r), 0x0201);
	CHECK_U64(rd_u16(&r), 0);
	CHECK(r.is_bad);
	CHECK_U64(rd_u8(&r), 0);
	struct rd s = rd_from("\x7f", 1);
	CHECK(rd_sleb(&s) == -1);
}

TEST(escaping_makes_any_bytes_harmless)
{
	CLEANUP(buf_release) struct buf b = {0};
	escape_xml(&b, sv_from("a<\x01\xff&\"", 6));
	CHECK_STR(buf_str(&b), "a&lt;\\x01\xef\xbf\xbd&amp;&quot;");
	buf_clear(&b);
	escape_json(&b, sv_from("q\"\n\x02", 4));
	CHECK_STR(buf_str(&b), "q\\\"\\n\\u0002");
	buf_clear(&b);
	escape_filename(&b, SV("../x y"));
	CHECK_STR(buf_str(&b), "_._x_y");
}

TEST(json_writer_places_commas)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct json j = json_to(&b);
	json_obj(&j);
	json_key(&j, "a");
	json_arr(&j);
	json_u64(&j, 1);
	json_i64(&j, -2);
	json_end(&j);
	json_key(&j, "b");
	json_str(&j, "x");
	json_end(&j);
	CHECK_STR(buf_str(&b), "{\"a\":[1,-2],\"b\":\"x\"}");
}

TEST(compression_of_text_and_columns_round_trips)
{
	CLEANUP(buf_release) struct buf plain = {0};
	for (int i = 0; i < 50000; i++)
		buf_addf(&plain, "name%d\n", i / 3);
	size_t end_of_text = plain.n;
	for (int i = 0; i < 200000; i++)
		buf_add_uleb(&plain, i % 7 ? 0 : (uint64_t)i * 2654435761u % 1000);
	const size_t sizes[] = {0, 1, end_of_text, plain.n};
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		CLEANUP(buf_release) struct buf z = {0};
		CLEANUP(buf_release) struct buf back = {0};
		CHECK(!zio_compress_embedded(&z, plain.p, sizes[i], NULL));
		CHECK(z.n < 1000 + sizes[i] / 3);
		CHECK(!zio_decompress(&back, ZKIND_GZIP, z.p, z.n, 1 << 30, NULL));
		CHECK(back.n == sizes[i] && !memcmp(buf_str(&back), plain.p, back.n));
	}
}

TEST(compression_round_trips_and_truncation_is_reported)
{
	CLEANUP(buf_release) struct buf plain = {0};
	for (int i = 0; i < 100000; i++)
		buf_addf(&plain, "%d;", i);
	enum zkind kinds[] = {ZKIND_ZSTD, ZKIND_GZIP};
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		CLEANUP(buf_release) struct buf z = {0};
		CLEANUP(buf_release) struct buf back = {0};
		CLEANUP(buf_release) struct buf cut = {0};
		if (kinds[k] == ZKIND_ZSTD)
			CHECK(!zio_compress_zstd(&z, plain.p, plain.n, 1, NULL));
		else
			CHECK(!zio_compress_gzip(&z, plain.p, plain.n, 6, NULL));
		CHECK(zio_sniff(z.p, z.n) == kinds[k]);
		CHECK(!zio_decompress(&back, kinds[k], z.p, z.n, 1 << 30, NULL));
		CHECK(back.n == plain.n && !memcmp(back.p, plain.p, back.n));
		CHECK(zio_decompress(&cut, kinds[k], z.p, z.n / 2, 1 << 30, NULL) == -ENODATA);
	}
}
