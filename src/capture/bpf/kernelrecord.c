/* Decodes records of the BPF programs; see kernelrecord.h. */
#include "base/base.h"
#include "capture/bpf/kernelrecord.h"

#include "kernel_python.h"
#include "kernel_sample.h"
#include "kernel_stack.h"
#include "model/tables.h"

static bool is_stack_sane(const struct kernel_stack *s)
{
	if (s->head.nr_bytes < sizeof(*s) ||
	    s->nr_frames > (s->head.nr_bytes - sizeof(*s)) / sizeof(s->frames[0]))
		return false;
	return !s->gap_log2 || (s->gap_log2 <= 32 && s->nr_frames == KSTACK_FRAMES_MAX &&
				s->gap_end >= KSTACK_LEAF_FRAMES && s->gap_end < KSTACK_FRAMES_MAX);
}

static bool is_copy_sane(const struct kernel_copy *c)
{
	size_t fixed = offsetof(struct kernel_copy, stack);
	return c->head.nr_bytes >= fixed && c->nr_stack <= c->head.nr_bytes - fixed;
}

static bool is_pystack_sane(const struct kernel_pystack *s)
{
	return s->head.nr_bytes >= sizeof(*s) &&
	       s->nr_frames <= (s->head.nr_bytes - sizeof(*s)) / sizeof(s->frames[0]);
}

static bool is_pycode_sane(const struct kernel_pycode *c)
{
	return c->head.nr_bytes >= sizeof(*c) && c->name.nr_bytes <= PYTHON_NAME_BYTES &&
	       c->file.nr_bytes <= PYTHON_FILE_BYTES;
}

bool kernelrecord_is_sane(const struct kernel_record *r, uint32_t nr_bytes)
{
	if (nr_bytes < sizeof(*r) || r->nr_bytes < sizeof(*r) || r->nr_bytes > nr_bytes ||
	    !r->time_ns)
		return false;
	switch (r->kind) {
	case RECORD_SAMPLE:
		return r->nr_bytes >= sizeof(struct kernel_sample);
	case RECORD_STACK:
		return is_stack_sane((const void *)r);
	case RECORD_COPY:
		return is_copy_sane((const void *)r);
	case RECORD_PYCODE:
		return is_pycode_sane((const void *)r);
	case RECORD_PYSTACK:
		return is_pystack_sane((const void *)r);
	default:
		return true; /* checked by their sources */
	}
}

static void decode_sample(const struct kernel_sample *s, struct event *ev)
{
	ev->kind = EVENT_SAMPLE;
	ev->cpu = (int32_t)s->cpu;
	ev->sample = (struct event_sample){.spec = TABLE_SAMPLES,
					   .ip = s->ip,
					   .period = s->period,
					   .is_user = s->head.flags & KSAMPLE_USER,
					   .user_ref = s->user_ref,
					   .kernel_ref = s->kernel_ref};
}

/* Puts the outer half, a ring that starts at gap_end, in order. */
static void decode_gap(const struct kernel_stack *s, struct kernelrecord_scratch *scratch,
		       struct event_stack *to)
{
	uint32_t nr_first = KSTACK_FRAMES_MAX - s->gap_end;
	uint64_t *outer = scratch->chain + KSTACK_LEAF_FRAMES;
	memcpy(scratch->chain, s->frames, KSTACK_LEAF_FRAMES * sizeof(*s->frames));
	memcpy(outer, s->frames + s->gap_end, nr_first * sizeof(*s->frames));
	memcpy(outer + nr_first, s->frames + KSTACK_LEAF_FRAMES,
	       (KSTACK_LEAF_FRAMES - nr_first) * sizeof(*s->frames));
	to->chain = scratch->chain;
	to->nr_inner = KSTACK_LEAF_FRAMES;
	to->nr_gap_min = 1u << (s->gap_log2 - 1);
}

static void decode_stack(const struct kernel_stack *s, struct kernelrecord_scratch *scratch,
			 struct event *ev)
{
	ev->kind = EVENT_STACK;
	ev->stack = (struct event_stack){.ref = s->ref,
					 .is_kernel = s->head.flags & KSTACK_KERNEL,
					 .is_callers = s->head.flags & KSTACK_CALLERS,
					 .chain = (const uint64_t *)s->frames,
					 .nr_chain = s->nr_frames,
					 .loss = loss_from_walk_end((enum walk_end)s->end)};
	if (s->gap_log2)
		decode_gap(s, scratch, &ev->stack);
}

/* Converts registers from DWARF numbers to the order of perf's register bits. */
static void decode_copy(const struct kernel_copy *c, struct kernelrecord_scratch *scratch,
			struct event *ev)
{
	static const uint8_t perf_of[ARCH_NR_DWARF_REG] = ARCH_PERF_FROM_DWARF;
	uint64_t mask = 0;
	for (unsigned i = 0; i < ARCH_NR_DWARF_REG; i++)
		mask |= (uint64_t)1 << perf_of[i];
	for (unsigned i = 0; i < ARCH_NR_DWARF_REG; i++) {
		uint64_t below = mask & (((uint64_t)1 << perf_of[i]) - 1);
		scratch->regs[__builtin_popcountll(below)] = c->regs[i];
	}
	ev->kind = EVENT_STACK;
	ev->stack = (struct event_stack){.ref = c->ref,
					 .is_callers = c->head.flags & KSTACK_NO_LEAF,
					 .loss = loss_from_walk_end((enum walk_end)c->end),
					 .regs = scratch->regs,
					 .regs_mask = mask,
					 .stack = c->stack,
					 .nr_stack = c->nr_stack};
}

bool kernelrecord_decode(const struct kernel_record *r, struct kernelrecord_scratch *scratch,
			 struct event *ret_ev)
{
	*ret_ev = (struct event){.time_ns = r->time_ns, .pid = r->tgid, .tid = r->pid, .cpu = -1};
	switch (r->kind) {
	case RECORD_SAMPLE:
		decode_sample((const void *)r, ret_ev);
		return true;
	case RECORD_STACK:
		decode_stack((const void *)r, scratch, ret_ev);
		return true;
	case RECORD_COPY:
		decode_copy((const void *)r, scratch, ret_ev);
		return true;
	case RECORD_PYCODE:
		ret_ev->kind = EVENT_PYCODE;
		ret_ev->pycode = (const void *)r;
		return true;
	case RECORD_PYSTACK:
		ret_ev->kind = EVENT_PYSTACK;
		ret_ev->pystack = (const void *)r;
		return true;
	default:
		return false;
	}
}
