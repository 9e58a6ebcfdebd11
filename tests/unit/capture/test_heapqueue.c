/* What one thread finds and another tells: nothing lost, nothing twice, in order. */
#include "base/base.h"
#include "base/buf.h"
#include "capture/heap/heappeaks.h"
#include "capture/heap/queue.h"
#include "kernel_python.h"
#include "tap.h"

#include <errno.h>
#include <pthread.h>

#define NR_BATCHES 400
#define NR_EACH    5

static void *put_batches(void *ctx)
{
	struct heapqueue_batch b = {0};
	for (uint32_t i = 0; i < NR_BATCHES; i++) {
		for (uint32_t j = 0; j < NR_EACH; j++) {
			uint32_t nr = i * NR_EACH + j;
			vec_push(&b.rows, ((struct heapqueue_row){
						  .pid = 7, .row = {.tid = 8, .values = {nr}}}));
			vec_push(&b.stacks,
				 ((struct heapqueue_stack){.pid = 7, .ref = nr, .nr_frames = 2}));
			vec_push(&b.frames, nr);
			vec_push(&b.frames, nr + 1);
		}
		heapqueue_put(ctx, &b);
		CHECK_U64(b.rows.n + b.stacks.n + b.frames.n, 0);
	}
	heapqueue_batch_release(&b);
	return NULL;
}

struct seen {
	uint64_t nr_stacks;
	uint64_t nr_rows;
	uint64_t nr_wrong;
};

static int on_event(void *ctx, const struct event *ev, struct err *err)
{
	(void)err;
	struct seen *s = ctx;
	if (ev->kind == EVENT_STACK) {
		uint64_t nr = s->nr_stacks++;
		s->nr_wrong += ev->stack.ref != nr || ev->stack.nr_chain != 2 ||
			       ev->stack.chain[0] != nr || ev->stack.chain[1] != nr + 1;
	} else {
		uint64_t nr = s->nr_rows++;
		s->nr_wrong +=
			ev->kind != EVENT_AGGREGATE || (uint64_t)ev->aggregate.values[0] != nr;
		/* A row's stack is reported before it. */
		s->nr_wrong += s->nr_stacks < s->nr_rows;
	}
	return 0;
}

TEST(heapqueue_reports_all_that_another_thread_puts_in_order)
{
	struct heapqueue q;
	heapqueue_init(&q);
	struct seen seen = {0};
	const struct event_sink sink = {on_event, &seen};
	CLEANUP(err_release) struct err err = {0};
	pthread_t putter;
	CHECK(pthread_create(&putter, NULL, put_batches, &q) == 0);
	while (seen.nr_rows < NR_BATCHES * NR_EACH / 2)
		CHECK(heapqueue_deliver(&q, &sink, &err) == 0);
	pthread_join(putter, NULL);
	CHECK(heapqueue_deliver(&q, &sink, &err) == 0);
	CHECK_U64(seen.nr_rows, NR_BATCHES * NR_EACH);
	CHECK_U64(seen.nr_stacks, NR_BATCHES * NR_EACH);
	CHECK_U64(seen.nr_wrong, 0);
	heapqueue_release(&q);
}

static int note_order(void *ctx, const struct event *ev, struct err *err)
{
	(void)err;
	struct buf *seen = ctx;
	buf_add_ch(seen, ev->kind == EVENT_STACK     ? 's'
			 : ev->kind == EVENT_PYCODE  ? 'c'
			 : ev->kind == EVENT_PYSTACK ? 'p'
						     : 'r');
	return 0;
}

/* Python frames refer to stacks and code objects of any ring, which a batch has in any order. */
TEST(heapqueue_reports_python_frames_after_what_they_refer_to)
{
	struct heapqueue q;
	heapqueue_init(&q);
	struct heapqueue_batch b = {0};
	struct kernel_pystack frames = {
		.head = {.kind = RECORD_PYSTACK, .nr_bytes = sizeof(frames), .time_ns = 1}};
	static struct kernel_pycode code = {
		.head = {.kind = RECORD_PYCODE, .nr_bytes = sizeof(code), .time_ns = 1}};
	struct kernel_pystack bad = frames;
	bad.nr_frames = 1; /* which is not there */
	heapqueue_batch_python(&b, &frames.head);
	heapqueue_batch_python(&b, &bad.head);
	heapqueue_batch_python(&b, &code.head);
	vec_push(&b.rows, ((struct heapqueue_row){.pid = 7}));
	vec_push(&b.stacks, ((struct heapqueue_stack){.pid = 7, .ref = 1}));
	heapqueue_put(&q, &b);
	CHECK_U64(b.codes.n + b.pystacks.n, 0);
	CLEANUP(buf_release) struct buf seen = {0};
	const struct event_sink sink = {note_order, &seen};
	CHECK(heapqueue_deliver(&q, &sink, NULL) == 0);
	CHECK_STR(buf_str(&seen), "scpr");
	heapqueue_batch_release(&b);
	heapqueue_release(&q);
}

static int refuse(void *ctx, const struct event *ev, struct err *err)
{
	(void)ctx;
	(void)ev;
	return err_set(err, -EIO, "no room");
}

TEST(heapqueue_says_that_the_sink_refused)
{
	struct heapqueue q;
	heapqueue_init(&q);
	struct heapqueue_batch b = {0};
	vec_push(&b.rows, ((struct heapqueue_row){.pid = 7}));
	heapqueue_put(&q, &b);
	const struct event_sink sink = {refuse, NULL};
	CLEANUP(err_release) struct err err = {0};
	CHECK(heapqueue_deliver(&q, &sink, &err) == -EIO);
	heapqueue_batch_release(&b);
	heapqueue_release(&q);
}

TEST(heapqueue_refs_of_no_stack_stay_none)
{
	CHECK_U64(heapqueue_ref(5, 0), 0);
	CHECK(heapqueue_ref(5, 1) != 0);
	CHECK(heapqueue_ref(5, 1) != heapqueue_ref(6, 1));
	CHECK(heapqueue_ref(5, 1) != heapqueue_ref(5, 2));
}

static void add_peak(struct heappeaks *k, int32_t pid, int64_t bytes)
{
	struct heapqueue_batch rows = {0};
	vec_push(&rows.rows, ((struct heapqueue_row){.pid = pid, .row = {.values = {1, bytes}}}));
	heappeaks_add(k, pid, (double)bytes, &rows);
	heapqueue_batch_release(&rows);
}

TEST(heappeaks_keeps_the_larger_heap_of_a_process_that_executed_another_program)
{
	struct heapqueue q;
	struct heappeaks k = {0};
	heapqueue_init(&q);
	add_peak(&k, 7, 100);
	add_peak(&k, 8, 50);
	add_peak(&k, 7, 300);
	add_peak(&k, 7, 200);
	heappeaks_put(&k, 7, &q);
	CHECK_U64(q.waiting.rows.n, 1);
	CHECK_U64(q.waiting.rows.p[0].row.values[1], 300);
	add_peak(&k, 7, 20); /* another process of that PID */
	heappeaks_put(&k, 0, &q);
	CHECK_U64(q.waiting.rows.n, 3);
	CHECK_U64(k.list.n, 0);
	heappeaks_release(&k);
	heapqueue_release(&q);
}
