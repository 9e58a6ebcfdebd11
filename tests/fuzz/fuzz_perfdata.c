/*
 * perf.data: any input gives events within bounds or an error. Reads every byte that an event
 * points to, so that a sanitizer detects invalid pointers.
 */
#include "base/base.h"

#include "base/hash.h"
#include "format/perf/perfdata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int touch(void *ctx, const struct event *ev, struct err *err)
{
	(void)err;
	uint64_t *sum = ctx;
	*sum += ev->time_ns;
	if (ev->kind == EVENT_SAMPLE) {
		const struct event_sample *s = &ev->sample;
		for (uint32_t i = 0; i < s->nr_chain; i++)
			*sum += s->chain[i];
		for (int i = 0; s->regs && i < __builtin_popcountll(s->regs_mask); i++)
			*sum += s->regs[i];
		if (s->stack)
			*sum += hash_bytes(s->stack, s->nr_stack);
		if (s->raw)
			*sum += hash_bytes(s->raw, s->nr_raw);
	} else if (ev->kind == EVENT_MAP) {
		*sum += strlen(ev->map.path) + ev->map.nr_build_id;
	} else if (ev->kind == EVENT_COMM) {
		*sum += strlen(ev->comm.name);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint64_t sum = 0;
	struct event_sink sink = {touch, &sum};
	struct perfdata_info info = {0};
	struct err err = {0};
	int rc = perfdata_read(data, n, &sink, &info, &err);
	if (rc && !*err_msg(&err))
		BUG("an error without a message");
	for (size_t i = 0; i < info.specs.n; i++)
		sum += strlen(info.specs.p[i].name);
	perfdata_info_release(&info);
	err_release(&err);
	return 0;
}
