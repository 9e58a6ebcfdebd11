/* perf.data reader: event attributes and ids, and the offsets of fields in records. */
#include "base/base.h"
#include "format/perf/perfdata_reader.h"

#include <errno.h>

/* Sample fields that precede the time and the id, in the order of the record. */
#define BEFORE_TIME (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID)
#define BEFORE_ID   (BEFORE_TIME | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR)
/* Fields of the sample_id trailer that come after the time. */
#define AFTER_TIME \
	(PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)
#define TRAILER (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | AFTER_TIME)

static uint32_t bytes_of(uint64_t bits)
{
	return (uint32_t)__builtin_popcountll(bits) * 8;
}

static struct pd_layout layout_from_attr(const struct perf_event_attr *attr)
{
	struct pd_layout l = {.attr = *attr};
	uint64_t type = attr->sample_type;
	if (type & PERF_SAMPLE_TIME)
		l.time_off = PD_HEADER_LEN + bytes_of(type & BEFORE_TIME);
	if (type & PERF_SAMPLE_IDENTIFIER)
		l.id_off = PD_HEADER_LEN;
	else if (type & PERF_SAMPLE_ID)
		l.id_off = PD_HEADER_LEN + bytes_of(type & BEFORE_ID);
	if (!attr->sample_id_all)
		return l;
	l.trailer_len = bytes_of(type & TRAILER);
	if (type & PERF_SAMPLE_TIME)
		l.trailer_time_back = bytes_of(type & AFTER_TIME) + 8;
	if (type & PERF_SAMPLE_IDENTIFIER)
		l.trailer_id_back = 8;
	else if (type & PERF_SAMPLE_ID)
		l.trailer_id_back = bytes_of(type & (AFTER_TIME & ~PERF_SAMPLE_ID)) + 8;
	return l;
}

static bool is_clock(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE &&
	       (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK);
}

static const char *event_name(struct perfdata_info *info, uint32_t type, uint64_t config)
{
	static const char *const hardware[] = {
		"cycles",
		"instructions",
		"cache-references",
		"cache-misses",
		"branches",
		"branch-misses",
		"bus-cycles",
		"stalled-cycles-frontend",
		"stalled-cycles-backend",
		"ref-cycles",
	};
	static const char *const software[] = {
		"cpu-clock",        "task-clock",   "page-faults",  "context-switches",
		"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
		"emulation-faults", "dummy",        "bpf-output",   "cgroup-switches",
	};
	uint64_t low = config & 0xffffffff; /* the upper half is the PMU type on hybrid CPUs */
	if (type == PERF_TYPE_HARDWARE && low < ARRAY_LEN(hardware))
		return hardware[low];
	if (type == PERF_TYPE_SOFTWARE && config < ARRAY_LEN(software))
		return software[config];
	if (type == PERF_TYPE_TRACEPOINT)
		return arena_fmt(&info->text, "tracepoint:%" PRIu64, config);
	if (type == PERF_TYPE_RAW)
		return arena_fmt(&info->text, "r%" PRIx64, config);
	return arena_fmt(&info->text, "event-%u:%" PRIx64, type, config);
}

int pd_add_attr(struct pd_reader *r, const uint8_t *p, size_t n, struct err *err)
{
	if (n < PERF_ATTR_SIZE_VER0)
		return err_set(err, -EBADMSG, "event attribute of %zu bytes, expected at least %d",
			       n, PERF_ATTR_SIZE_VER0);
	if (r->info->specs.n >= PD_SPECS_MAX)
		return err_set(err, -E2BIG, "more than %u events", PD_SPECS_MAX);
	struct perf_event_attr attr = {0};
	memcpy(&attr, p, MIN(n, sizeof(attr)));
	struct pd_layout l = layout_from_attr(&attr);

	vec_push(&r->layouts, l);
	vec_push(&r->info->specs, (struct perfdata_spec){
					  .name = event_name(r->info, attr.type, attr.config),
					  .type = attr.type,
					  .config = attr.config,
					  .sample_type = attr.sample_type,
					  .freq_hz = attr.freq ? attr.sample_freq : 0,
					  .period = attr.freq ? 0 : attr.sample_period,
					  .is_period_ns = is_clock(&attr),
				  });
	return 0;
}

void pd_add_id(struct pd_reader *r, uint64_t id, uint32_t spec)
{
	*map_put(&r->ids, id, NULL) = spec + 1;
	r->last_id = 0; /* invalidate the cache of one entry */
	r->last_spec = 0;
}

uint32_t pd_spec_of(struct pd_reader *r, const uint8_t *rec, uint32_t type, size_t n)
{
	if (r->layouts.n <= 1)
		return r->layouts.n ? 0 : UINT32_MAX;
	/* Without IDENTIFIER the id must be at the same offset for all events: use any layout.
	 */
	const struct pd_layout *first = &r->layouts.p[0];
	uint64_t id = 0;
	if (type == PERF_RECORD_SAMPLE) {
		if (!first->id_off)
			return 0;
		if (n < first->id_off + 8)
			return UINT32_MAX;
		id = pd_u64(rec + first->id_off);
	} else {
		if (!first->trailer_id_back || n < PD_HEADER_LEN + first->trailer_id_back)
			return 0;
		id = pd_u64(rec + n - first->trailer_id_back);
	}
	if (!id)
		return 0; /* written by perf itself */
	if (id == r->last_id)
		return r->last_spec;
	const uint32_t *spec = map_get(&r->ids, id);
	if (!spec)
		return type == PERF_RECORD_SAMPLE ? UINT32_MAX : 0;
	r->last_id = id;
	r->last_spec = *spec - 1;
	return r->last_spec;
}
