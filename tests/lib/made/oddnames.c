/* Names that formats trip over; see oddnames.h. */
#include "base/base.h"
#include "oddnames.h"

#include "base/hash.h"

void hostile_name(struct buf *to, uint32_t i)
{
	static const char *const pieces[] = {
		"\"",
		"\\",
		";",
		"\n",
		"\r\n",
		"\t",
		"\x01",
		"\x1b[2J",
		"\x7f",
		"\xff",
		"\xc3",
		"\xe2\x80\xa8",
		"\xef\xbf\xbf",
		"\xed\xa0\x80",
		"\xf4\x90\x80\x80",
		"\xc2\x85",
		"</script>",
		"<!--",
		"-->",
		"]]>",
		"&amp;",
		"&",
		"<b a='1'>",
		"%s%n",
		"{{x}}",
		"${x}",
		"=1+1",
		"+cmd|' /C calc'!A0",
		"-2+3",
		"@SUM(A1)",
		",",
		"'",
		"`",
		"|",
		"#",
		" ",
		"  ",
		" 12",
		":",
		"::",
		"->",
		"(",
		")",
		" (/bin/x)",
		"[k]",
		"_[k]",
		"\\N\\G",
		"\\u0000",
		"\xf0\x9f\x92\xa3",
		"\xd9\x85",
		"e\xcc\x81",
		"operator<<",
		"fn(u8) -> u8",
	};
	uint64_t seed = hash_u64(i + 1);
	buf_clear(to);
	for (unsigned n = 1 + seed % 6; n; n--) {
		seed = hash_u64(seed);
		buf_add_str(to, pieces[seed % ARRAY_LEN(pieces)]);
		if (seed >> 60 == 0)
			buf_add_ch(to, (char)(1 + (seed >> 32) % 255));
	}
	buf_addf(to, "%u", i); /* different also after cleaning */
	if (seed >> 62 == 1)
		buf_add_str(to, pieces[(seed >> 8) % ARRAY_LEN(pieces)]);
}
