/*
 * Parses jitdump files; see perfmap.h. Format: kernel
 * tools/perf/Documentation/jitdump-specification.txt, version 1.
 */
#include "base/base.h"
#include "symbol/perfmap.h"

#include <errno.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/file/rd.h"
#include "symbol/jitcode.h"

#define MAGIC         0x4a695444u /* "JiTD" */
#define VERSION       1
#define HEADER_BYTES  40
#define RECORD_BYTES  16
#define FLAG_ARCH_TSC 1u

enum record { LOAD = 0, MOVE = 1, DEBUG = 2, CLOSE = 3, UNWINDING = 4 };

struct pending { /* line records, which precede the record of their code */
	uint64_t code_addr;
	uint32_t lines;
	uint32_t nr_lines;
};

static int compare_lines(const void *a, const void *b)
{
	uint32_t x = ((const struct jitcode_line *)a)->at;
	uint32_t y = ((const struct jitcode_line *)b)->at;
	return x < y ? -1 : x > y;
}

/* The name "\xff" means the same file as the previous line. */
static bool read_debug(struct perfmap *m, struct rd *r, struct pending *ret_p)
{
	struct pending p = {.code_addr = rd_u64(r), .lines = (uint32_t)m->lines.n};
	uint64_t nr = rd_u64(r);
	uint32_t file_at = 0;
	uint32_t nr_file_bytes = 0;
	for (uint64_t i = 0; i < nr && !r->is_bad && m->lines.n < JITCODE_LINES_MAX; i++) {
		uint64_t addr = rd_u64(r);
		uint32_t line = rd_u32(r);
		rd_skip(r, 4); /* discriminator */
		struct sv file = rd_cstr(r);
		if (r->is_bad)
			break;
		if (!sv_eq(file, SV("\xff")))
			file_at = jitcode_add_name(m, file, &nr_file_bytes);
		if (file_at == JITCODE_NONE || addr < p.code_addr ||
		    addr - p.code_addr > UINT32_MAX)
			continue;
		vec_push(&m->lines, (struct jitcode_line){(uint32_t)(addr - p.code_addr), line,
							  file_at, nr_file_bytes});
	}
	p.nr_lines = (uint32_t)m->lines.n - p.lines;
	if (p.nr_lines) /* an unstable sort will do: in practice each address has one line */
		qsort(m->lines.p + p.lines, p.nr_lines, sizeof(*m->lines.p), compare_lines);
	*ret_p = p;
	return !r->is_bad;
}

static bool read_load(struct perfmap *m, struct rd *r, uint64_t time_ns, const struct pending *p)
{
	rd_skip(r, 8); /* pid, tid */
	rd_skip(r, 8); /* vma: the same as code_addr */
	uint64_t start = rd_u64(r);
	uint64_t nr_bytes = rd_u64(r);
	rd_skip(r, 8); /* code index */
	struct sv name = rd_cstr(r);
	if (r->is_bad || nr_bytes > UINT64_MAX - start)
		return false;
	struct jitcode_range range = {.start = start, .end = start + nr_bytes, .time_ns = time_ns};
	range.name_at = jitcode_add_name(m, name, &range.nr_name_bytes);
	if (range.name_at == JITCODE_NONE)
		return false;
	if (p->nr_lines && p->code_addr == start) {
		range.lines = p->lines;
		range.nr_lines = p->nr_lines;
	}
	(void)jitcode_add(m, range); /* counts rejected ranges */
	return true;
}

/* Finds the newest range that starts at an address: the code that a move record refers to. */
static const struct jitcode_range *newest_at(const struct perfmap *m, const struct map *by_start,
					     uint64_t start)
{
	const uint32_t *idx = map_get(by_start, start);
	return idx ? &m->ranges.p[*idx] : NULL;
}

static bool read_move(struct perfmap *m, struct rd *r, uint64_t time_ns, const struct map *by_start)
{
	rd_skip(r, 16); /* pid, tid, vma */
	uint64_t from = rd_u64(r);
	uint64_t to = rd_u64(r);
	uint64_t nr_bytes = rd_u64(r);
	if (r->is_bad || nr_bytes > UINT64_MAX - from || nr_bytes > UINT64_MAX - to)
		return false;
	const struct jitcode_range *old = newest_at(m, by_start, from);
	if (!old || old->name_at == JITCODE_NONE)
		return false;
	struct jitcode_range moved = *old;
	moved.start = to;
	moved.end = to + nr_bytes;
	moved.time_ns = time_ns;
	struct jitcode_range gone = {
		.start = from, .end = from + nr_bytes, .time_ns = time_ns, .name_at = JITCODE_NONE};
	(void)jitcode_add(m, gone); /* first, since the new range may overlap the old one */
	(void)jitcode_add(m, moved);
	return true;
}

static void note_start(const struct perfmap *m, struct map *by_start, size_t from)
{
	for (size_t i = from; i < m->ranges.n; i++)
		*map_put(by_start, m->ranges.p[i].start, NULL) = (uint32_t)i;
}

static void read_records(struct perfmap *m, struct rd *r)
{
	CLEANUP(map_release) struct map by_start = {0};
	struct pending pending = {0};
	while (rd_left(r) >= RECORD_BYTES) {
		uint32_t id = rd_u32(r);
		uint32_t nr_bytes = rd_u32(r);
		uint64_t time_ns = rd_u64(r);
		if (nr_bytes < RECORD_BYTES || nr_bytes - RECORD_BYTES > rd_left(r)) {
			m->nr_bad++; /* incomplete (still being written) or damaged from here on */
			return;
		}
		struct rd body = rd_sub(r, nr_bytes - RECORD_BYTES);
		size_t before = m->ranges.n;
		bool is_good = true;
		time_ns = m->is_timed ? time_ns : 0;
		switch (id) {
		case LOAD:
			is_good = read_load(m, &body, time_ns, &pending);
			pending = (struct pending){0};
			break;
		case MOVE:
			is_good = read_move(m, &body, time_ns, &by_start);
			break;
		case DEBUG:
			is_good = read_debug(m, &body, &pending);
			break;
		case CLOSE:
			return;
		case UNWINDING:
		default: /* record types of newer versions */
			break;
		}
		m->nr_bad += !is_good;
		note_start(m, &by_start, before);
	}
}

int perfmap_parse_jitdump(struct perfmap **ret_m, struct sv bytes, struct err *err)
{
	struct rd r = rd_from(bytes.p, bytes.n);
	uint32_t magic = rd_u32(&r);
	uint32_t version = rd_u32(&r);
	uint32_t nr_header_bytes = rd_u32(&r);
	rd_skip(&r, 4 + 4 + 4 + 8); /* machine, padding, pid, time */
	uint64_t flags = rd_u64(&r);
	if (r.is_bad || magic != MAGIC)
		return err_set(err, -EBADMSG, "not a jitdump file");
	if (version != VERSION || nr_header_bytes < HEADER_BYTES)
		return err_set(err, -ENOTSUP, "jitdump version %u with a header of %u bytes",
			       version, nr_header_bytes);
	rd_skip(&r, nr_header_bytes - HEADER_BYTES);
	struct perfmap *m = xcalloc(1, sizeof(*m));
	m->is_timed = !(flags & FLAG_ARCH_TSC);
	read_records(m, &r);
	jitcode_seal(m);
	*ret_m = m;
	return 0;
}
