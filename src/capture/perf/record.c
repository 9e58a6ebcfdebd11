/* Decodes perf records; see record.h. Layouts: linux/perf_event.h, enum perf_event_type. */
#include "base/base.h"
#include "capture/perf/record.h"

#include "arch.h"
#include "base/file/rd.h"

/* The trailer of all records except samples (sample_id_all): pid tid, time, cpu res. */
#define TRAILER_BYTES 24

uint64_t record_time_ns(const struct perf_event_attr *attr, const struct perf_event_header *h)
{
	(void)attr; /* the layout is fixed by open.c */
	size_t at = h->type == PERF_RECORD_SAMPLE ? 24 : h->size - 16;
	uint64_t t = 0;
	if (h->size >= sizeof(*h) + TRAILER_BYTES)
		memcpy(&t, (const uint8_t *)h + at, sizeof(t));
	return t;
}

static bool decode_user_stack(struct rd *r, struct event_sample *s, const uint8_t *record_end)
{
	uint64_t abi = rd_u64(r);
	if (abi) {
		s->regs_mask = ARCH_PERF_REGS_MASK;
		s->is_compat = abi != ARCH_PERF_ABI_64;
		s->regs = (const void *)rd_bytes(r, 8 * (size_t)__builtin_popcountll(s->regs_mask));
	}
	uint64_t asked = rd_u64(r);
	if (!asked)
		return !r->is_bad;
	s->stack = rd_bytes(r, (size_t)MIN(asked, (uint64_t)(record_end - r->p)));
	uint64_t got = rd_u64(r);
	s->nr_stack = MIN(got, asked);
	s->is_stack_full = got >= asked;
	return !r->is_bad;
}

static enum record_result decode_sample(const struct perf_event_attr *attr,
					const struct perf_event_header *h, struct event *ev)
{
	struct rd r = rd_from(h + 1, h->size - sizeof(*h));
	struct event_sample *s = &ev->sample;
	ev->kind = EVENT_SAMPLE;
	s->ip = rd_u64(&r);
	ev->pid = rd_i32(&r);
	ev->tid = rd_i32(&r);
	ev->time_ns = rd_u64(&r);
	ev->cpu = rd_i32(&r);
	(void)rd_u32(&r); /* reserved */
	s->period = rd_u64(&r);
	s->is_user = (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
	if (attr->sample_type & PERF_SAMPLE_CALLCHAIN) {
		uint64_t nr = rd_u64(&r);
		if (nr > rd_left(&r) / 8)
			return RECORD_BAD;
		s->nr_chain = (uint32_t)nr;
		s->chain = (const void *)rd_bytes(&r, nr * 8);
	}
	if ((attr->sample_type & PERF_SAMPLE_STACK_USER) && !decode_user_stack(&r, s, r.end))
		return RECORD_BAD;
	return r.is_bad ? RECORD_BAD : RECORD_DECODED;
}

/* The flag alone does not suffice: the kernel leaves it set for the next event of the record. */
static bool decode_map(const struct perf_event_header *h, bool may_have_build_id, struct rd *r,
		       struct event *ev)
{
	struct event_map *m = &ev->map;
	ev->kind = EVENT_MAP;
	ev->pid = rd_i32(r);
	ev->tid = rd_i32(r);
	m->start = rd_u64(r);
	m->len = rd_u64(r);
	m->pgoff = rd_u64(r);
	if (may_have_build_id && (h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		uint8_t nr = rd_u8(r);
		m->nr_build_id = MIN(nr, (uint8_t)EVENT_BUILD_ID_MAX);
		rd_skip(r, 3);
		const uint8_t *id = rd_bytes(r, 20);
		if (id)
			memcpy(m->build_id, id, m->nr_build_id);
	} else {
		m->dev_major = rd_u32(r);
		m->dev_minor = rd_u32(r);
		m->inode = rd_u64(r);
		(void)rd_u64(r); /* inode generation */
	}
	uint32_t prot = rd_u32(r);
	(void)rd_u32(r);       /* flags */
	m->is_exec = prot & 4; /* PROT_EXEC */
	m->path = rd_cstr(r).p;
	return !r->is_bad;
}

static enum record_result decode_other(const struct perf_event_attr *attr,
				       const struct perf_event_header *h, struct rd *r,
				       struct event *ev)
{
	switch (h->type) {
	case PERF_RECORD_MMAP2:
		return decode_map(h, attr->build_id, r, ev) ? RECORD_DECODED : RECORD_BAD;
	case PERF_RECORD_COMM:
		ev->kind = EVENT_COMM;
		ev->pid = rd_i32(r);
		ev->tid = rd_i32(r);
		ev->comm.is_exec = h->misc & PERF_RECORD_MISC_COMM_EXEC;
		ev->comm.name = rd_cstr(r).p;
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		ev->kind = h->type == PERF_RECORD_FORK ? EVENT_FORK : EVENT_EXIT;
		ev->pid = rd_i32(r);
		ev->fork.ppid = rd_i32(r);
		ev->tid = rd_i32(r);
		ev->fork.ptid = rd_i32(r);
		break;
	case PERF_RECORD_LOST:
		ev->kind = EVENT_LOST;
		(void)rd_u64(r); /* event id */
		ev->lost.nr = rd_u64(r);
		break;
	case PERF_RECORD_THROTTLE:
		ev->kind = EVENT_THROTTLE;
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE: /* the thread is in the trailer */
		ev->kind = EVENT_SWITCH;
		ev->sw.is_out = h->misc & PERF_RECORD_MISC_SWITCH_OUT;
		ev->sw.is_preempt = h->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
		break;
	default:
		return RECORD_IGNORED;
	}
	return r->is_bad ? RECORD_BAD : RECORD_DECODED;
}

enum record_result record_decode(const struct perf_event_attr *attr,
				 const struct perf_event_header *h, struct event *ret_ev)
{
	*ret_ev = (struct event){.cpu = -1};
	if (h->size < sizeof(*h))
		return RECORD_BAD;
	if (h->type == PERF_RECORD_SAMPLE)
		return decode_sample(attr, h, ret_ev);
	if (h->size < sizeof(*h) + TRAILER_BYTES)
		return RECORD_BAD;
	struct rd r = rd_from(h + 1, h->size - sizeof(*h) - TRAILER_BYTES);
	struct rd trailer = rd_from((const uint8_t *)h + h->size - TRAILER_BYTES, TRAILER_BYTES);
	ret_ev->pid = rd_i32(&trailer);
	ret_ev->tid = rd_i32(&trailer);
	ret_ev->time_ns = rd_u64(&trailer);
	ret_ev->cpu = rd_i32(&trailer);
	return decode_other(attr, h, &r, ret_ev);
}
