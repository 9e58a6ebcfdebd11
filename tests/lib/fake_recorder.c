/* A fake heap recorder; see fake_recorder.h. */
#include "base/base.h"
#include "fake_recorder.h"

#include "base/hash.h"
#include "base/mem.h"
#include "kernel_python.h"

static void on_thread(void *ctx, uint16_t slot, int32_t tid)
{
	struct fake_recorder *w = ctx;
	heapaccount_thread(w->account, slot, tid);
}

static void on_stack(void *ctx, uint32_t stack, const uint64_t *frames, uint32_t nr,
		     enum walk_end end)
{
	struct fake_recorder *w = ctx;
	(void)frames, (void)nr, (void)end;
	vec_push(&w->stacks, stack);
}

static void on_python(void *ctx, struct kernel_record *r)
{
	struct fake_recorder *w = ctx;
	vec_push(&w->pythons, r->kind == RECORD_PYSTACK ? ((const struct kernel_pystack *)r)->ref
							: ((const struct kernel_pycode *)r)->key);
}

static void on_row(void *ctx, const struct heapaccount_row *row)
{
	struct fake_recorder *w = ctx;
	vec_push(&w->rows, *row);
	uint64_t key = hash_mix(hash_mix(row->spec, row->stack),
				hash_mix((uint64_t)row->tid, row->size_class));
	bool is_new;
	uint32_t *idx = map_put(&w->sum_of, key, &is_new);
	if (is_new) {
		*idx = (uint32_t)w->sums.n;
		vec_push(&w->sums, (struct fake_recorder_sum){.spec = row->spec,
							      .stack = row->stack,
							      .tid = row->tid,
							      .size_class = row->size_class});
	}
	for (unsigned i = 0; i < 6; i++)
		w->sums.p[*idx].values[i] += row->values[i];
}

void fake_recorder_init(struct fake_recorder *w, uint64_t interval_bytes, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->seed = seed * 2 + 1;
	for (unsigned i = 0; i < FAKE_RECORDER_SLOTS; i++) {
		w->ring_at[i] = (const uint8_t *)w->rings[i];
		w->slots[i].owner = 0x7000 + 64 * (uint64_t)i;
		w->slots[i].tid = 100 + i;
	}
	w->account = heapaccount_new(&(struct heapaccount_spec){.start_ns = FAKE_RECORDER_START,
								.interval_bytes = interval_bytes,
								.nr_slots = FAKE_RECORDER_SLOTS,
								.on_row = on_row,
								.ctx = w});
	heapaccount_clock(w->account,
			  &(struct heapclock){FAKE_RECORDER_START, FAKE_RECORDER_START, 1});
	heapring_init(&w->ring, &(struct heapring_spec){.shared = &w->shared,
							.slots = w->slots,
							.nr_slots = FAKE_RECORDER_SLOTS,
							.ring_bytes = FAKE_RECORDER_RING_BYTES,
							.rings = w->ring_at,
							.on_thread = on_thread,
							.on_stack = on_stack,
							.on_python = on_python,
							.ctx = w});
}

void fake_recorder_release(struct fake_recorder *w)
{
	heapring_release(&w->ring);
	heapaccount_free(w->account);
	vec_release(&w->sums);
	vec_release(&w->rows);
	vec_release(&w->stacks);
	vec_release(&w->pythons);
	map_release(&w->sum_of);
}

uint64_t fake_recorder_random(struct fake_recorder *w, uint64_t below)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return w->seed % below;
}

bool fake_recorder_put(struct fake_recorder *w, unsigned slot, const uint64_t *words, uint32_t nr)
{
	struct heap_slot *s = &w->slots[slot];
	uint64_t head = s->head;
	uint64_t tail = __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
	uint64_t at = head % FAKE_RECORDER_RING_BYTES;
	uint64_t pad = at + 8 * nr > FAKE_RECORDER_RING_BYTES ? FAKE_RECORDER_RING_BYTES - at : 0;
	if (head + pad + 8 * nr - tail > FAKE_RECORDER_RING_BYTES)
		return false;
	if (pad)
		w->rings[slot][at / 8] = HEAP_RECORD_PAD;
	head += pad;
	memcpy(&w->rings[slot][head % FAKE_RECORDER_RING_BYTES / 8], words, 8 * nr);
	__atomic_store_n(&s->head, head + 8 * nr, __ATOMIC_RELEASE);
	return true;
}

static uint64_t head_word(unsigned kind, uint64_t tsc)
{
	return kind | (uint64_t)HEAP_SITE_NONE << HEAP_SITE_SHIFT | tsc << HEAP_TSC_SHIFT;
}

bool fake_recorder_alloc(struct fake_recorder *w, unsigned slot, uint64_t tsc, uint64_t addr,
			 uint64_t nr_bytes, uint32_t stack)
{
	uint64_t words[3] = {head_word(HEAP_RECORD_ALLOC, tsc),
			     addr | (uint64_t)(stack & 0xffff) << HEAP_STACK_SHIFT,
			     nr_bytes | (uint64_t)(stack >> 16) << HEAP_STACK_SHIFT};
	return fake_recorder_put(w, slot, words, 3);
}

bool fake_recorder_free(struct fake_recorder *w, unsigned slot, uint64_t tsc, uint64_t addr)
{
	uint64_t words[2] = {head_word(HEAP_RECORD_FREE, tsc), addr};
	return fake_recorder_put(w, slot, words, 2);
}

void fake_recorder_pass(struct fake_recorder *w, uint64_t tsc)
{
	struct heapring_event events[16];
	size_t n;
	heapring_begin(&w->ring, tsc);
	while ((n = heapring_next(&w->ring, events, ARRAY_LEN(events))))
		heapaccount_add(w->account, events, n);
	heapaccount_advance(w->account, tsc);
}

int64_t fake_recorder_sum(const struct fake_recorder *w, uint32_t spec, int64_t stack, int64_t tid,
			  unsigned column)
{
	int64_t sum = 0;
	vec_foreach(s, &w->sums)
		if (s->spec == spec && (stack < 0 || s->stack == stack) &&
		    (tid < 0 || s->tid == tid))
			sum += s->values[column];
	return sum;
}
