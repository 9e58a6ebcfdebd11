/*
 * Decodes arbitrary bytes as a sequence of records of the BPF programs. A record that is reported
 * as sane must decode, and what an event points to must be within its record.
 */
#include "base/base.h"

#include "base/mem.h"
#include "capture/bpf/kernelrecord.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool is_inside(const void *p, uint64_t nr_bytes, const uint8_t *from, const uint8_t *to)
{
	const uint8_t *b = p;
	return !nr_bytes || (b >= from && b <= to && nr_bytes <= (uint64_t)(to - b));
}

static void check(const struct kernel_record *r, const uint8_t *to)
{
	const uint8_t *from = (const uint8_t *)r;
	struct kernelrecord_scratch scratch;
	struct event ev;
	if (!kernelrecord_decode(r, &scratch, &ev) || ev.kind != EVENT_STACK)
		return;
	const struct event_stack *s = &ev.stack;
	ASSERT(s->loss <= LOSS_NR);
	ASSERT(is_inside(s->chain, 8ull * s->nr_chain, from, to));
	ASSERT(is_inside(s->stack, s->nr_stack, from, to));
	ASSERT(!s->regs || s->regs == scratch.regs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	while (n >= 2) {
		size_t nr_bytes = MIN((size_t)data[0] | (size_t)data[1] << 8, n - 2);
		struct kernel_record *r = xmalloc(MAX(nr_bytes, (size_t)1));
		memcpy(r, data + 2, nr_bytes);
		if (kernelrecord_is_sane(r, (uint32_t)nr_bytes))
			check(r, (const uint8_t *)r + nr_bytes);
		free(r);
		data += 2 + nr_bytes;
		n -= 2 + nr_bytes;
	}
	return 0;
}
