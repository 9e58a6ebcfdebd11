/*
 * perf ring buffer records: any bytes as consecutive records, in each layout that assay uses. The
 * pointers of an event are inside its record.
 */
#include "base/base.h"

#include "arch.h"
#include "base/mem.h"
#include "capture/perf/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const uint64_t layouts[] = {
	PERF_SAMPLE_IP,
	PERF_SAMPLE_CALLCHAIN,
	PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
};

static bool is_inside(const void *p, uint64_t nr_bytes, const uint8_t *from, const uint8_t *to)
{
	const uint8_t *b = p;
	return !nr_bytes || (b >= from && b <= to && nr_bytes <= (uint64_t)(to - b));
}

static void check_event(const struct event *ev, const uint8_t *from, const uint8_t *to)
{
	const struct event_sample *s = &ev->sample;
	switch ((int)ev->kind) {
	case EVENT_SAMPLE:
		ASSERT(is_inside(s->chain, 8ull * s->nr_chain, from, to));
		ASSERT(is_inside(s->stack, s->nr_stack, from, to));
		if (s->regs)
			ASSERT(is_inside(s->regs,
					 8ull * (unsigned)__builtin_popcountll(s->regs_mask), from,
					 to));
		break;
	case EVENT_MAP:
		ASSERT(ev->map.nr_build_id <= EVENT_BUILD_ID_MAX);
		ASSERT(is_inside(ev->map.path, strlen(ev->map.path) + 1, from, to));
		break;
	case EVENT_COMM:
		ASSERT(is_inside(ev->comm.name, strlen(ev->comm.name) + 1, from, to));
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	while (n >= sizeof(struct perf_event_header)) {
		struct perf_event_header h;
		memcpy(&h, data, sizeof(h));
		h.size = (uint16_t)MIN(h.size, n);
		/* Complete, aligned records, whose size the decoder trusts. */
		struct perf_event_header *record = xmalloc(MAX((size_t)h.size, sizeof(h)));
		memcpy(record, data, MAX((size_t)h.size, sizeof(h)));
		*record = h;
		const uint8_t *from = (const uint8_t *)record;
		for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
			const struct perf_event_attr attr = {.sample_type = layouts[i],
							     .build_id = i & 1};
			struct event ev;
			(void)record_time_ns(&attr, record);
			if (record_decode(&attr, record, &ev) == RECORD_DECODED)
				check_event(&ev, from, from + h.size);
		}
		free(record);
		size_t step = MAX((size_t)h.size, sizeof(h));
		data += step;
		n -= step;
	}
	return 0;
}
