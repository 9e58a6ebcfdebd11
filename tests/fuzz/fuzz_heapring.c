/*
 * Ring buffers of a recorder in an untrusted process: with any head positions and records each
 * drain ends, space is released, and the counts of live-block accounting add up.
 */
#include "base/base.h"

#include "base/mem.h"
#include "capture/heap/heapaccount.h"
#include "capture/heap/heapring.h"
#include "model/tables.h"

#define SLOTS      3
#define RING_BYTES 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct fuzz_state {
	struct heap_shared shared;
	struct heap_slot slots[SLOTS];
	uint64_t rings[SLOTS][RING_BYTES / 8];
	const uint8_t *ring_at[SLOTS];
	struct heapaccount *account;
	int64_t blocks; /* allocated - freed - live */
};

static void on_thread(void *ctx, uint16_t slot, int32_t tid)
{
	ASSERT(slot < SLOTS && tid > 0);
	heapaccount_thread(((struct fuzz_state *)ctx)->account, slot, tid);
}

static void on_stack(void *ctx, uint32_t stack, const uint64_t *frames, uint32_t nr,
		     enum walk_end end)
{
	(void)ctx;
	(void)stack;
	(void)frames;
	ASSERT(nr <= HEAP_FRAMES_MAX && end < WALK_END_NR);
}

static void on_row(void *ctx, const struct heapaccount_row *row)
{
	struct fuzz_state *w = ctx;
	if (row->spec == TABLE_ALLOCATED)
		w->blocks += row->values[0];
	else if (row->spec == TABLE_FREED || row->spec == TABLE_LIVE)
		w->blocks -= row->values[0];
}

/* Writes a part of the input to the rings, as if by the target. */
static const uint8_t *write_rings(struct fuzz_state *w, const uint8_t *data, const uint8_t *end)
{
	for (unsigned s = 0; s < SLOTS && data < end; s++) {
		size_t nr = MIN((size_t)(*data & 63), (size_t)(end - data - 1) / 8);
		w->slots[s].tid = 1 + (*data++ >> 6);
		w->slots[s].owner = 64;
		for (size_t i = 0; i < nr; i++, data += 8) {
			memcpy(&w->rings[s][w->slots[s].head % RING_BYTES / 8], data, 8);
			w->slots[s].head += 8;
		}
		if (data < end && *data == 0xff) /* an arbitrary head position */
			w->slots[s].head += (uint64_t)*data << 8;
	}
	return data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct fuzz_state *w = xcalloc(1, sizeof(*w));
	for (unsigned s = 0; s < SLOTS; s++)
		w->ring_at[s] = (const uint8_t *)w->rings[s];
	w->account = heapaccount_new(&(struct heapaccount_spec){
		.start_ns = 1000, .nr_slots = SLOTS, .on_row = on_row, .ctx = w});
	heapaccount_clock(w->account, &(struct heapclock){1000, 1000, 1});
	struct heapring ring;
	heapring_init(&ring, &(struct heapring_spec){.shared = &w->shared,
						     .slots = w->slots,
						     .nr_slots = SLOTS,
						     .ring_bytes = RING_BYTES,
						     .rings = w->ring_at,
						     .on_thread = on_thread,
						     .on_stack = on_stack,
						     .ctx = w});
	const uint8_t *end = data + n;
	for (uint64_t tsc = 2000; data < end; tsc += 400000000) {
		data = write_rings(w, data, end);
		struct heapring_event events[8];
		size_t got;
		heapring_begin(&ring, tsc);
		while ((got = heapring_next(&ring, events, 8)))
			heapaccount_add(w->account, events, got);
		heapaccount_advance(w->account, tsc);
		for (unsigned s = 0; s < SLOTS; s++)
			ASSERT(w->slots[s].head - w->slots[s].tail <= RING_BYTES);
	}
	heapaccount_end(w->account);
	ASSERT(!w->blocks);
	heapring_release(&ring);
	heapaccount_free(w->account);
	free(w);
	return 0;
}
