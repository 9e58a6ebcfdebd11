/* perf.data reader: the optional header sections ("features") and build-ids. */
#include "base/base.h"
#include "format/perf/perfdata_reader.h"

#include "base/hash.h"

#define MISC_BUILD_ID_SIZE (1u << 15) /* the record has the length of its build-id */

void perfdata_info_release(struct perfdata_info *info)
{
	vec_release(&info->specs);
	vec_release(&info->build_ids);
	map_release(&info->build_id_index);
	arena_release(&info->text);
	*info = (struct perfdata_info){0};
}

/* A perf_header_string: length (padded), text, NUL. */
static const char *feature_string(struct pd_reader *r, struct rd *rd)
{
	uint32_t len = rd_u32(rd);
	const uint8_t *p = rd_bytes(rd, len);
	if (!p)
		return NULL;
	return arena_strndup(&r->info->text, (const char *)p, strnlen((const char *)p, len));
}

static const char *feature_cmdline(struct pd_reader *r, struct rd *rd)
{
	CLEANUP(buf_release) struct buf line = {0};
	uint32_t nr = rd_u32(rd);
	for (uint32_t i = 0; i < nr && !rd->is_bad; i++) {
		const char *arg = feature_string(r, rd);
		if (!arg)
			break;
		if (i)
			buf_add_ch(&line, ' ');
		buf_add_str(&line, arg);
	}
	return rd->is_bad && !line.n ? NULL : arena_strdup(&r->info->text, buf_str(&line));
}

/* Names of the events, matched by the ids in the attributes. */
static void feature_event_desc(struct pd_reader *r, struct rd *rd)
{
	uint32_t nr = rd_u32(rd);
	uint32_t attr_size = rd_u32(rd);
	for (uint32_t i = 0; i < nr && !rd->is_bad; i++) {
		rd_skip(rd, attr_size);
		uint32_t nr_ids = rd_u32(rd);
		const char *name = feature_string(r, rd);
		uint32_t spec = i;
		for (uint32_t k = 0; k < nr_ids && !rd->is_bad; k++) {
			const uint32_t *of = map_get(&r->ids, rd_u64(rd));
			if (of && !rd->is_bad)
				spec = *of - 1;
		}
		if (!rd->is_bad && name && *name && spec < r->info->specs.n)
			r->info->specs.p[spec].name = name;
	}
}

static void feature_clock_data(struct pd_reader *r, struct rd *rd)
{
	uint32_t version = rd_u32(rd);
	rd_skip(rd, 4); /* which clock it is */
	uint64_t wall_ns = rd_u64(rd);
	uint64_t clock_ns = rd_u64(rd);
	if (rd->is_bad || version != 1)
		return;
	r->info->wall_ns = (int64_t)wall_ns;
	r->info->clock_ns = clock_ns;
}

static void feature_build_ids(struct pd_reader *r, struct rd *rd)
{
	while (rd_left(rd) >= PD_HEADER_LEN) {
		size_t n = pd_size(rd->p);
		const uint8_t *rec = n >= PD_HEADER_LEN ? rd_bytes(rd, n) : NULL;
		if (!rec)
			return;
		pd_build_id_record(r, rec, n);
	}
}

void pd_feature(struct pd_reader *r, unsigned feature, const uint8_t *p, size_t n)
{
	struct perfdata_info *info = r->info;
	struct rd rd = rd_from(p, n);
	switch (feature) {
	case PD_FEAT_BUILD_ID:
		feature_build_ids(r, &rd);
		break;
	case PD_FEAT_HOSTNAME:
		info->hostname = feature_string(r, &rd);
		break;
	case PD_FEAT_OSRELEASE:
		info->os_release = feature_string(r, &rd);
		break;
	case PD_FEAT_ARCH:
		info->arch = feature_string(r, &rd);
		break;
	case PD_FEAT_CPUDESC:
		info->cpu_desc = feature_string(r, &rd);
		break;
	case PD_FEAT_CMDLINE:
		info->cmdline = feature_cmdline(r, &rd);
		break;
	case PD_FEAT_EVENT_DESC:
		feature_event_desc(r, &rd);
		break;
	case PD_FEAT_CLOCK_DATA:
		feature_clock_data(r, &rd);
		break;
	default: /* topology, caches, PMUs, CPUs, ...: not needed */
		break;
	}
}

static struct sv build_id_key(const char *path)
{
	/* The kernel's map is named after a symbol in it; its build-id is not. */
	struct sv s = sv_from_str(path);
	struct sv kernel = SV("[kernel.kallsyms]");
	return sv_has_prefix(s, kernel) ? kernel : s;
}

void pd_build_id_record(struct pd_reader *r, const uint8_t *rec, size_t n)
{
	uint16_t misc = pd_misc(rec);
	struct rd rd = rd_from(rec + PD_HEADER_LEN, n - PD_HEADER_LEN);
	int32_t pid = rd_i32(&rd);
	const uint8_t *bytes = rd_bytes(&rd, 24);
	size_t room = rd_left(&rd);
	if (rd.is_bad || !room)
		return;
	size_t len = strnlen((const char *)rd.p, room);
	uint8_t nr = EVENT_BUILD_ID_MAX;
	if (misc & MISC_BUILD_ID_SIZE)
		nr = MIN(bytes[20], EVENT_BUILD_ID_MAX);
	else /* older perf pads shorter ids (md5, uuid) with zeros */
		while (nr > 8 && !(bytes[nr - 1] | bytes[nr - 2] | bytes[nr - 3] | bytes[nr - 4]))
			nr -= 4;
	unsigned mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;
	struct perfdata_build_id id = {
		.path = arena_strndup(&r->info->text, (const char *)rd.p, len),
		.pid = pid,
		.is_kernel = mode == PERF_RECORD_MISC_KERNEL,
		.nr_bytes = nr,
	};
	memcpy(id.bytes, bytes, nr);
	vec_push(&r->info->build_ids, id);
	struct sv key = build_id_key(id.path);
	*map_put(&r->info->build_id_index, hash_bytes(key.p, key.n), NULL) =
		(uint32_t)r->info->build_ids.n;
}

void pd_apply_build_id(const struct perfdata_info *info, struct event_map *map)
{
	if (map->nr_build_id || !info->build_ids.n)
		return;
	struct sv key = build_id_key(map->path);
	const uint32_t *found = map_get(&info->build_id_index, hash_bytes(key.p, key.n));
	if (!found)
		return;
	const struct perfdata_build_id *id = &info->build_ids.p[*found - 1];
	if (!sv_eq(build_id_key(id->path), key))
		return;
	memcpy(map->build_id, id->bytes, id->nr_bytes);
	map->nr_build_id = id->nr_bytes;
}
