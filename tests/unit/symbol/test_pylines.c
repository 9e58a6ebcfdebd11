/* symbol/pylines: lines of Python instructions, from a table that CPython 3.11 wrote. */
#include "base/base.h"
#include "tap.h"

#include "symbol/pylines.h"

/*
 * 1  def f(a,          5          for i in b       9          y = (a +
 * 2        b):         6      ]                    10
 * 3      x = [         7                           11              b)
 * 4          a(i)      8      if x:                12     return x
 */
static const uint8_t table[] = {
	0xf8, 0x80, 0x00, 0xf0, 0x04, 0x03, 0x09, 0x06, 0xf0, 0x00, 0x03, 0x09, 0x06, 0xf0, 0x00,
	0x03, 0x09, 0x06, 0xf0, 0x00, 0x03, 0x09, 0x06, 0xe0, 0x11, 0x12, 0xf0, 0x05, 0x03, 0x09,
	0x06, 0xf1, 0x00, 0x03, 0x09, 0x06, 0xf4, 0x00, 0x03, 0x09, 0x06, 0x80, 0x41, 0xf0, 0x0a,
	0x00, 0x08, 0x09, 0xf0, 0x00, 0x03, 0x05, 0x10, 0xd8, 0x0d, 0x0e, 0xe0, 0x0d, 0x0e, 0xf1,
	0x05, 0x02, 0x0e, 0x0f, 0x88, 0x01, 0xf0, 0x06, 0x00, 0x0c, 0x0d, 0x80, 0x48,
};

TEST(pylines_are_those_that_python_says)
{
	/* From code.co_positions(): the first instruction of each run on one line. */
	static const struct {
		int from;
		uint32_t line;
	} runs[] = {{2, 1},  {4, 3},   {12, 5}, {14, 3}, {32, 8},
		    {36, 9}, {38, 11}, {40, 9}, {46, 12}};
	struct sv t = sv_from((const char *)table, sizeof(table));
	for (int at = 2, i = -1; at < 50; at += 2) {
		if ((size_t)i + 1 < ARRAY_LEN(runs) && at == runs[i + 1].from)
			i++;
		CHECK_U64(pylines_find(t, 1, at), runs[i].line);
	}
	CHECK_U64(pylines_find(t, 1, 0), 0); /* COPY_FREE_VARS has no line */
	CHECK_U64(pylines_find(t, 1, -2), 1);
	CHECK_U64(pylines_find(t, 1, 50), 0);
}

TEST(pylines_of_any_bytes_end)
{
	uint8_t bytes[64];
	uint32_t seed = 1;
	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof(bytes); i++) {
			seed = seed * 1664525 + 1013904223;
			bytes[i] = (uint8_t)(seed >> 24);
		}
		bytes[0] |= 0x80;
		struct sv t = sv_from((const char *)bytes, seed % sizeof(bytes));
		CHECK(pylines_find(t, seed, seed >> 16 & 255) <= INT32_MAX);
	}
	CHECK_U64(pylines_find(sv_from("\xf0", 1), 5, 0), 5);         /* cut */
	CHECK_U64(pylines_find(sv_from("\xe8\x7f\x7f", 3), 5, 0), 0); /* a negative line */
}
