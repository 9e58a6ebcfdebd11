/*
 * Formats of tracepoints: the input is a format, a NUL byte, and a payload that is printed with the
 * format. The format is also parsed as a file of event names.
 */
#include "base/base.h"

#include "base/buf.h"
#include "base/mem.h"
#include "capture/events/set.h"
#include "capture/events/tracefmt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *end = memchr(data, 0, n);
	size_t nr_text = end ? (size_t)(end - data) : n;
	struct sv text = sv_from((const char *)data, nr_text);
	struct trace_format f;
	CLEANUP(event_set_release) struct event_set set = {0};
	(void)event_set_add_text(&set, text, "fuzz", NULL);
	if (trace_format_parse(&f, text, NULL))
		return 0;
	size_t nr_raw = n - MIN(n, nr_text + 1);
	CLEANUP(free_p) uint8_t *raw = nr_raw ? xmemdup(end + 1, nr_raw) : NULL;
	CLEANUP(buf_release) struct buf b = {0};
	for (size_t k = 0; k <= nr_raw; k += 1 + nr_raw / 16) {
		buf_clear(&b);
		trace_format_print(&b, &f, raw, k);
		for (size_t i = 0; i < b.n; i++)
			ASSERT((uint8_t)b.p[i] != '\n' || memchr(text.p, '\n', text.n));
	}
	trace_format_list(&b, &f);
	trace_format_release(&f);
	return 0;
}
