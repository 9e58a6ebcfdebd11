/* Looks ahead in perf rings without consuming; see pending.h. */
#include "base/base.h"
#include "capture/perf/pending.h"

#include "capture/perf/record.h"

void pending_forks_release(struct pending_forks *f)
{
	vec_release(&f->list);
}

void pending_forks_add(struct pending_forks *f, const struct ring *r,
		       const struct perf_event_attr *attr)
{
	/* A second reader with its own position and scratch buffer; it never publishes. */
	struct ring look = *r;
	look.scratch = NULL;
	look.nr_scratch = 0;
	ring_refresh(&look);
	const struct perf_event_header *h;
	bool is_bad;
	while ((h = ring_peek(&look, &is_bad))) {
		uint16_t nr_bytes = h->size;
		struct event ev;
		if (h->type == PERF_RECORD_FORK && record_decode(attr, h, &ev) == RECORD_DECODED)
			vec_push(&f->list, (struct pending_fork){.tid = ev.tid,
								 .ptid = ev.fork.ptid,
								 .time_ns = ev.time_ns});
		ring_consume(&look, nr_bytes);
	}
	free(look.scratch);
}
