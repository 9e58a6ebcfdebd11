/* perf.data reader: decodes kernel records (<linux/perf_event.h>, enum perf_event_type). */
#include "base/base.h"
#include "format/perf/perfdata_reader.h"

#include "base/hash.h"

#define PROT_EXEC_BIT          4u
#define SAMPLE_BRANCH_COUNTERS (1u << 19) /* newer than Debian 12's header */

uint64_t pd_time_of(const struct pd_layout *l, const uint8_t *rec, uint32_t type, size_t n)
{
	uint64_t t = 0;
	if (type == PERF_RECORD_SAMPLE) {
		if (l->time_off && n >= l->time_off + 8)
			t = pd_u64(rec + l->time_off);
	} else if (l->trailer_time_back) {
		if (n >= PD_HEADER_LEN + l->trailer_len)
			t = pd_u64(rec + n - l->trailer_time_back);
	} else if ((type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT) && n >= 32) {
		t = pd_u64(rec + 24);
	}
	return t == UINT64_MAX ? 0 : t;
}

/* Position of the values of PERF_SAMPLE_READ, which are used after the whole sample is parsed. */
struct read_values {
	const uint8_t *p;
	uint64_t nr;
	size_t stride;
	bool has_id;
};

static struct read_values parse_read(struct rd *rd, uint64_t format)
{
	struct read_values v = {.nr = 1, .has_id = format & PERF_FORMAT_ID};
	v.stride = 8 + (v.has_id ? 8 : 0) + (format & PERF_FORMAT_LOST ? 8 : 0);
	size_t times = (format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 8 : 0) +
		       (format & PERF_FORMAT_TOTAL_TIME_RUNNING ? 8 : 0);
	if (format & PERF_FORMAT_GROUP) {
		v.nr = rd_u64(rd);
		rd_skip(rd, times);
		if (v.nr > rd_left(rd) / v.stride)
			rd->is_bad = true;
		else
			v.p = rd_bytes(rd, v.nr * v.stride);
		return v;
	}
	/* Layout: value, times, id, lost. Set the stride so that one loop reads groups as well. */
	v.p = rd_bytes(rd, times + v.stride);
	v.stride = times + 8; /* distance from the value to the id */
	return v;
}

static void skip_branches(struct rd *rd, uint64_t branch_type)
{
	uint64_t nr = rd_u64(rd);
	if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		rd_skip(rd, 8);
	size_t each = 24 + (branch_type & SAMPLE_BRANCH_COUNTERS ? 8 : 0);
	if (nr > rd_left(rd) / each)
		rd->is_bad = true;
	else
		rd_skip(rd, nr * each);
}

static void parse_chain(struct rd *rd, struct event_sample *s)
{
	uint64_t nr = rd_u64(rd);
	if (nr > rd_left(rd) / 8) {
		rd->is_bad = true;
		return;
	}
	s->chain = (const uint64_t *)(const void *)rd_bytes(rd, nr * 8);
	s->nr_chain = (uint32_t)nr;
}

static void parse_regs(struct rd *rd, uint64_t mask, struct event_sample *s)
{
	uint64_t abi = rd_u64(rd);
	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	s->is_compat = abi == PERF_SAMPLE_REGS_ABI_32;
	if ((uintptr_t)rd->p & 7) { /* after a raw payload of odd size: not from a kernel */
		rd->is_bad = true;
		return;
	}
	s->regs = (const uint64_t *)(const void *)rd_bytes(rd,
							   (size_t)__builtin_popcountll(mask) * 8);
	s->regs_mask = mask;
}

static void parse_stack(struct rd *rd, struct event_sample *s)
{
	uint64_t room = rd_u64(rd);
	if (!room)
		return;
	if (room > rd_left(rd)) {
		rd->is_bad = true;
		return;
	}
	s->stack = rd_bytes(rd, room);
	uint64_t filled = rd_u64(rd);
	s->nr_stack = MIN(filled, room);
	s->is_stack_full = filled >= room;
}

/* Parses the fields in the order of the kernel; those after the stack are not needed. */
static struct read_values parse_sample(struct rd *rd, const struct perf_event_attr *attr,
				       struct event *ev)
{
	uint64_t type = attr->sample_type;
	struct event_sample *s = &ev->sample;
	struct read_values values = {0};
	if (type & PERF_SAMPLE_IDENTIFIER)
		rd_skip(rd, 8);
	if (type & PERF_SAMPLE_IP)
		s->ip = rd_u64(rd);
	if (type & PERF_SAMPLE_TID) {
		ev->pid = rd_i32(rd);
		ev->tid = rd_i32(rd);
	}
	if (type & PERF_SAMPLE_TIME)
		ev->time_ns = rd_u64(rd);
	if (type & PERF_SAMPLE_ADDR)
		s->addr = rd_u64(rd);
	if (type & PERF_SAMPLE_ID)
		rd_skip(rd, 8);
	if (type & PERF_SAMPLE_STREAM_ID)
		rd_skip(rd, 8);
	if (type & PERF_SAMPLE_CPU) {
		ev->cpu = rd_i32(rd);
		rd_skip(rd, 4);
	}
	if (type & PERF_SAMPLE_PERIOD)
		s->period = rd_u64(rd);
	else if (!attr->freq && attr->sample_period)
		s->period = attr->sample_period;
	else
		s->period = 1;
	if (type & PERF_SAMPLE_READ)
		values = parse_read(rd, attr->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		parse_chain(rd, s);
	if (type & PERF_SAMPLE_RAW) {
		s->nr_raw = rd_u32(rd);
		s->raw = rd_bytes(rd, s->nr_raw);
	}
	if (type & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(rd, attr->branch_sample_type);
	if (type & PERF_SAMPLE_REGS_USER)
		parse_regs(rd, attr->sample_regs_user, s);
	if (type & PERF_SAMPLE_STACK_USER)
		parse_stack(rd, s);
	return values;
}

static int emit(struct pd_reader *r, const struct event *ev, struct err *err)
{
	int rc = r->sink->event(r->sink->ctx, ev, err);
	if (UNLIKELY(rc))
		r->is_stopped = true;
	return rc;
}

static int emit_sample(struct pd_reader *r, struct event *ev, uint32_t spec, struct err *err)
{
	struct perfdata_info *info = r->info;
	ev->sample.spec = spec;
	info->specs.p[spec].nr_samples++;
	if (ev->time_ns) {
		if (!info->first_ns || ev->time_ns < info->first_ns)
			info->first_ns = ev->time_ns;
		if (ev->time_ns > info->last_ns)
			info->last_ns = ev->time_ns;
	}
	return emit(r, ev, err);
}

/*
 * A sample with the counters of its group (perf record -e '{a,b}:S') is delivered as one sample for
 * each counter that changed since the last one, with the difference as its period.
 */
static int emit_read(struct pd_reader *r, struct event *ev, uint32_t spec,
		     const struct read_values *v, struct err *err)
{
	const struct perf_event_attr *attr = &r->layouts.p[spec].attr;
	bool is_group = attr->read_format & PERF_FORMAT_GROUP;
	for (uint64_t i = 0; i < v->nr; i++) {
		const uint8_t *p = is_group ? v->p + i * v->stride : v->p;
		uint64_t value = pd_u64(p);
		uint32_t of = spec;
		uint64_t id = 0;
		if (v->has_id) {
			id = pd_u64(is_group ? p + 8 : p + v->stride);
			const uint32_t *found = map_get(&r->ids, id);
			if (!found) {
				r->info->nr_unparsed++;
				continue;
			}
			of = *found - 1;
		}
		uint64_t key = attr->inherit ? hash_mix(id, (uint32_t)ev->tid) : id;
		bool is_new;
		uint32_t *idx = map_put(&r->read_values, key, &is_new);
		if (is_new) {
			*idx = (uint32_t)r->read_last.n;
			vec_push(&r->read_last, 0);
		}
		uint64_t *last = &r->read_last.p[*idx];
		uint64_t period = value - *last;
		*last = value;
		if (!period)
			continue;
		ev->sample.period = period;
		TRY(emit_sample(r, ev, of, err));
	}
	return 0;
}

static int deliver_sample(struct pd_reader *r, const uint8_t *rec, size_t n, uint32_t spec,
			  struct err *err)
{
	unsigned mode = pd_misc(rec) & PERF_RECORD_MISC_CPUMODE_MASK;
	struct event ev = {
		.kind = EVENT_SAMPLE,
		.pid = -1,
		.tid = -1,
		.cpu = -1,
		.sample = {.is_user = mode == PERF_RECORD_MISC_USER ||
				      mode == PERF_RECORD_MISC_GUEST_USER},
	};
	struct rd rd = rd_from(rec + PD_HEADER_LEN, n - PD_HEADER_LEN);
	struct read_values v = parse_sample(&rd, &r->layouts.p[spec].attr, &ev);
	if (rd.is_bad) {
		r->info->nr_unparsed++;
		return 0;
	}
	if (v.p)
		return emit_read(r, &ev, spec, &v, err);
	return emit_sample(r, &ev, spec, err);
}

/* Parses the sample_id_all fields at the end of records that are not samples. */
static void parse_trailer(const struct pd_layout *l, const uint8_t *rec, size_t n, struct event *ev)
{
	if (!l->trailer_len)
		return;
	uint64_t type = l->attr.sample_type;
	struct rd rd = rd_from(rec + n - l->trailer_len, l->trailer_len);
	if (type & PERF_SAMPLE_TID) {
		ev->pid = rd_i32(&rd);
		ev->tid = rd_i32(&rd);
	}
	if (type & PERF_SAMPLE_TIME)
		ev->time_ns = rd_u64(&rd);
	rd_skip(&rd, (type & PERF_SAMPLE_ID ? 8 : 0) + (type & PERF_SAMPLE_STREAM_ID ? 8 : 0));
	/* Records that perf synthesizes have time and CPU 0: the CPU is unknown then. */
	if (type & PERF_SAMPLE_CPU)
		ev->cpu = ev->time_ns ? rd_i32(&rd) : -1;
	if (ev->time_ns == UINT64_MAX)
		ev->time_ns = 0;
}

static int deliver_map(struct pd_reader *r, struct rd *rd, uint32_t type, uint16_t misc,
		       struct event *ev, struct err *err)
{
	struct event_map *m = &ev->map;
	unsigned mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;
	if (mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER)
		return 0;
	ev->kind = EVENT_MAP;
	ev->pid = rd_i32(rd);
	ev->tid = rd_i32(rd);
	m->start = rd_u64(rd);
	m->len = rd_u64(rd);
	m->pgoff = rd_u64(rd);
	m->is_kernel = mode == PERF_RECORD_MISC_KERNEL;
	m->is_exec = !(misc & PERF_RECORD_MISC_MMAP_DATA);
	if (type == PERF_RECORD_MMAP2) {
		struct rd id = rd_sub(rd, 24);
		uint32_t prot = rd_u32(rd);
		rd_skip(rd, 4);
		m->is_exec = m->is_kernel || (prot & PROT_EXEC_BIT);
		if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
			uint8_t nr = rd_u8(&id);
			rd_skip(&id, 3);
			m->nr_build_id = (uint8_t)MIN(nr, EVENT_BUILD_ID_MAX);
			const uint8_t *bytes = rd_bytes(&id, EVENT_BUILD_ID_MAX);
			if (bytes)
				memcpy(m->build_id, bytes, m->nr_build_id);
		} else {
			m->dev_major = rd_u32(&id);
			m->dev_minor = rd_u32(&id);
			m->inode = rd_u64(&id);
		}
	}
	m->path = rd_cstr(rd).p;
	if (rd->is_bad)
		return 0;
	if (m->is_kernel || m->is_exec)
		pd_apply_build_id(r->info, m);
	return emit(r, ev, err);
}

static int deliver_task(struct pd_reader *r, struct rd *rd, uint32_t type, struct event *ev,
			struct err *err)
{
	ev->kind = type == PERF_RECORD_FORK ? EVENT_FORK : EVENT_EXIT;
	ev->pid = rd_i32(rd);
	int32_t ppid = rd_i32(rd);
	ev->tid = rd_i32(rd);
	int32_t ptid = rd_i32(rd);
	uint64_t time_ns = rd_u64(rd);
	if (!ev->time_ns)
		ev->time_ns = time_ns;
	if (type == PERF_RECORD_FORK) {
		ev->fork.ppid = ppid;
		ev->fork.ptid = ptid;
		ev->fork.is_synthesized = !ev->time_ns; /* synthesized by perf */
	}
	return rd->is_bad ? 0 : emit(r, ev, err);
}

static int deliver_lost(struct pd_reader *r, struct rd *rd, uint32_t type, struct event *ev,
			struct err *err)
{
	ev->kind = EVENT_LOST;
	if (type == PERF_RECORD_LOST)
		rd_skip(rd, 8);
	ev->lost.nr = rd_u64(rd);
	ev->lost.is_samples = type == PERF_RECORD_LOST_SAMPLES;
	if (rd->is_bad)
		return 0;
	struct perfdata_info *info = r->info;
	if (ev->lost.is_samples)
		info->nr_lost_samples = u64_add(info->nr_lost_samples, ev->lost.nr);
	else
		info->nr_lost_records = u64_add(info->nr_lost_records, ev->lost.nr);
	/* Both records count the same losses: report only the increase of the larger count.
	 */
	uint64_t most = MAX(info->nr_lost_samples, info->nr_lost_records);
	ev->lost.nr = most - MIN(most, r->lost_reported);
	if (!ev->lost.nr)
		return 0;
	r->lost_reported = most;
	return emit(r, ev, err);
}

/* Code that the kernel generated at run time: BPF programs, trampolines. */
static int deliver_ksymbol(struct pd_reader *r, struct rd *rd, struct event *ev, struct err *err)
{
	uint64_t start = rd_u64(rd);
	uint32_t len = rd_u32(rd);
	rd_skip(rd, 2);
	uint16_t flags = rd_u16(rd);
	const char *name = rd_cstr(rd).p;
	if (rd->is_bad || flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		return 0;
	ev->kind = EVENT_MAP;
	ev->pid = ev->tid = -1;
	ev->map = (struct event_map){.start = start,
				     .len = len,
				     .pgoff = start,
				     .is_exec = true,
				     .is_kernel = true,
				     .is_symbol = true,
				     .path = name};
	return emit(r, ev, err);
}

static int deliver_other(struct pd_reader *r, const uint8_t *rec, size_t n, uint32_t spec,
			 struct err *err)
{
	const struct pd_layout *l = &r->layouts.p[spec];
	uint32_t type = pd_type(rec);
	uint16_t misc = pd_misc(rec);
	if (n < PD_HEADER_LEN + l->trailer_len) {
		r->info->nr_unparsed++;
		return 0;
	}
	struct event ev = {.pid = -1, .tid = -1, .cpu = -1};
	parse_trailer(l, rec, n, &ev);
	struct rd rd = rd_from(rec + PD_HEADER_LEN, n - PD_HEADER_LEN - l->trailer_len);
	int rc = 0;
	switch (type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		rc = deliver_map(r, &rd, type, misc, &ev, err);
		break;
	case PERF_RECORD_COMM:
		ev.kind = EVENT_COMM;
		ev.pid = rd_i32(&rd);
		ev.tid = rd_i32(&rd);
		ev.comm.name = rd_cstr(&rd).p;
		ev.comm.is_exec = misc & PERF_RECORD_MISC_COMM_EXEC;
		if (!rd.is_bad)
			rc = emit(r, &ev, err);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		rc = deliver_task(r, &rd, type, &ev, err);
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		rc = deliver_lost(r, &rd, type, &ev, err);
		break;
	case PERF_RECORD_THROTTLE:
		ev.kind = EVENT_THROTTLE;
		rc = emit(r, &ev, err);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		ev.kind = EVENT_SWITCH;
		ev.sw.is_out = misc & PERF_RECORD_MISC_SWITCH_OUT;
		ev.sw.is_preempt = misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
		rc = emit(r, &ev, err);
		break;
	case PERF_RECORD_KSYMBOL:
		rc = deliver_ksymbol(r, &rd, &ev, err);
		break;
	default: /* not needed: READ, AUX, NAMESPACES, CGROUP, TEXT_POKE, ... */
		break;
	}
	if (rd.is_bad)
		r->info->nr_unparsed++;
	return rc;
}

int pd_deliver(struct pd_reader *r, const uint8_t *rec, uint32_t spec, struct err *err)
{
	size_t n = pd_size(rec);
	if (UNLIKELY((uintptr_t)rec & 7)) { /* after a compressed record of an odd size */
		memcpy(r->bounce, rec, n);
		rec = (const uint8_t *)r->bounce;
	}
	if (LIKELY(pd_type(rec) == PERF_RECORD_SAMPLE))
		return deliver_sample(r, rec, n, spec, err);
	return deliver_other(r, rec, n, spec, err);
}
