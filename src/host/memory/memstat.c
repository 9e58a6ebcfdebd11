/* Reads the memory use of a process; see memstat.h. */
#include "base/base.h"
#include "host/memory/memstat.h"

#include <errno.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/text/lines.h"
#include "base/mem.h"
#include "host/reader/hostfile.h"

#define BEFORE_EXEC_BYTES 524288 /* touched by a child between the reading and its execve */
#define TEXT_BYTES_MAX    ((size_t)1 << 20)

bool memstat_line(struct sv line, struct sv *ret_key, uint64_t *ret_v)
{
	ssize_t colon = sv_index(line, ':');
	if (colon <= 0)
		return false;
	struct sv value = sv_trim(sv_from_idx(line, (size_t)colon + 1));
	struct sv number = sv_split(&value, ' ');
	uint64_t v;
	if (!sv_to_u64(number, &v))
		return false;
	bool is_kb = sv_eq_str(value, "kB");
	if (value.n && !is_kb)
		return false;
	if (is_kb && v > UINT64_MAX / 1024)
		return false;
	*ret_key = sv_from(line.p, (size_t)colon);
	*ret_v = is_kb ? v * 1024 : v;
	return true;
}

bool memstat_add_field(void *to, const struct memstat_field *fields, size_t nr, struct sv key,
		       uint64_t v)
{
	for (size_t i = 0; i < nr; i++) {
		if (!sv_eq_str(key, fields[i].key))
			continue;
		uint64_t *at = (uint64_t *)(void *)((char *)to + fields[i].at);
		if (__builtin_add_overflow(*at, v, at))
			*at = UINT64_MAX;
		return true;
	}
	return false;
}

#define FIELD(key, member)                            \
	{                                             \
		key, offsetof(struct memstat, member) \
	}

static bool parse_fields(struct memstat *m, struct sv text, const struct memstat_field *fields,
			 size_t nr)
{
	struct lines in = lines_from(text.p, text.n);
	struct sv line, key;
	uint64_t v;
	bool has_any = false;
	while (lines_next(&in, &line))
		if (memstat_line(line, &key, &v))
			has_any |= memstat_add_field(m, fields, nr, key, v);
	return has_any;
}

static bool has_key(struct sv text, const char *key)
{
	struct lines in = lines_from(text.p, text.n);
	struct sv line, name;
	uint64_t v;
	while (lines_next(&in, &line))
		if (memstat_line(line, &name, &v) && sv_eq_str(name, key))
			return true;
	return false;
}

bool memstat_parse_status(struct memstat *m, struct sv text)
{
	static const struct memstat_field fields[] = {
		FIELD("VmPeak", peak_virtual_bytes), FIELD("VmSize", virtual_bytes),
		FIELD("VmLck", locked_bytes),        FIELD("VmHWM", peak_rss_bytes),
		FIELD("RssAnon", anon_bytes),        FIELD("RssFile", file_bytes),
		FIELD("RssShmem", shmem_bytes),      FIELD("VmPTE", page_table_bytes),
		FIELD("VmSwap", swap_bytes),         FIELD("VmData", data_bytes),
	};
	/* Kernels before 4.5 do not split RSS, some have no memory fields: statm is used then. */
	if (!has_key(text, "RssAnon") || !parse_fields(m, text, fields, ARRAY_LEN(fields)))
		return false;
	struct memstat threads = {0};
	static const struct memstat_field nr[] = {FIELD("Threads", nr_minor)};
	if (parse_fields(&threads, text, nr, ARRAY_LEN(nr)))
		m->nr_threads = (uint32_t)MIN(threads.nr_minor, (uint64_t)UINT32_MAX);
	/* VmRSS is not used: the kernel sums it up at another moment than it reads the counters. */
	m->rss_bytes = m->anon_bytes + m->file_bytes + m->shmem_bytes;
	m->has |= MEMSTAT_HAS_RSS | MEMSTAT_HAS_SPLIT;
	return true;
}

bool memstat_parse_statm(struct memstat *m, struct sv text, uint64_t page_bytes)
{
	struct sv rest = sv_trim(text);
	uint64_t pages[3];
	for (size_t i = 0; i < ARRAY_LEN(pages); i++)
		if (!sv_to_u64(sv_split(&rest, ' '), &pages[i]) ||
		    pages[i] > UINT64_MAX / page_bytes)
			return false;
	m->virtual_bytes = pages[0] * page_bytes;
	m->rss_bytes = pages[1] * page_bytes;
	m->file_bytes = MIN(pages[2], pages[1]) * page_bytes;
	m->anon_bytes = m->rss_bytes - m->file_bytes;
	m->has |= MEMSTAT_HAS_RSS;
	return true;
}

/* The name in parentheses may hold blanks and parentheses: fields are counted from its end. */
bool memstat_parse_stat(struct memstat *m, struct sv text)
{
	ssize_t end = sv_rindex(text, ')');
	if (end < 0)
		return false;
	struct sv rest = sv_trim(sv_from_idx(text, (size_t)end + 1));
	uint64_t minor = 0, major = 0, threads = 0, start = 0;
	for (unsigned field = 3; field <= 22; field++) {
		struct sv one = sv_split(&rest, ' ');
		uint64_t *to = field == 10   ? &minor
			       : field == 12 ? &major
			       : field == 20 ? &threads
			       : field == 22 ? &start
					     : NULL;
		if (to && !sv_to_u64(one, to))
			return false;
	}
	m->nr_minor = minor;
	m->nr_major = major;
	m->start_ticks = start;
	if (!m->nr_threads)
		m->nr_threads = (uint32_t)MIN(threads, (uint64_t)UINT32_MAX);
	m->has |= MEMSTAT_HAS_FAULTS;
	return true;
}

bool memstat_parse_rollup(struct memstat *m, struct sv text)
{
	static const struct memstat_field fields[] = {
		FIELD("Rss", walked_rss_bytes),
		FIELD("Pss", pss_bytes),
		FIELD("Pss_Anon", pss_anon_bytes),
		FIELD("Pss_File", pss_file_bytes),
		FIELD("Pss_Shmem", pss_shmem_bytes),
		FIELD("Shared_Clean", shared_clean_bytes),
		FIELD("Shared_Dirty", shared_dirty_bytes),
		FIELD("Private_Clean", private_clean_bytes),
		FIELD("Private_Dirty", private_dirty_bytes),
		FIELD("LazyFree", lazy_free_bytes),
		FIELD("AnonHugePages", anon_huge_bytes),
		FIELD("ShmemPmdMapped", shmem_huge_bytes),
		FIELD("FilePmdMapped", file_huge_bytes),
		FIELD("SwapPss", swap_pss_bytes),
	};
	if (!has_key(text, "Pss") || !parse_fields(m, text, fields, ARRAY_LEN(fields)))
		return false;
	m->has |= MEMSTAT_HAS_PSS;
	return true;
}

static int read_of(struct buf *to, int32_t pid, const char *name, struct err *err)
{
	CLEANUP(free_p) char *path = xasprintf("/proc/%d/%s", pid, name);
	buf_clear(to);
	return hostfile_read_text(to, path, TEXT_BYTES_MAX, err);
}

static int read_counters(struct memstat *m, int32_t pid, struct err *err)
{
	CLEANUP(buf_release) struct buf b = {0};
	uint64_t start_ns = clock_mono_ns();
	if (read_of(&b, pid, "status", NULL) || !memstat_parse_status(m, buf_sv(&b))) {
		/* The status of kernel threads and zombies has no memory fields. */
		if (read_of(&b, pid, "statm", err) ||
		    !memstat_parse_statm(m, buf_sv(&b), (uint64_t)sysconf(_SC_PAGESIZE)) ||
		    !m->virtual_bytes)
			return err_set(err, -ESRCH,
				       "process %d has no memory: it has exited, or "
				       "is a kernel thread",
				       pid);
	}
	if (!read_of(&b, pid, "stat", NULL))
		(void)memstat_parse_stat(m, buf_sv(&b)); /* m->has says whether it did */
	m->counters_ns = clock_mono_ns() - start_ns;
	return 0;
}

int memstat_read(struct memstat *ret_m, int32_t pid, unsigned parts, int *ret_refused,
		 struct err *err)
{
	struct memstat m = {.nr_processes = 1};
	int refused = 0;
	if (parts & MEMSTAT_COUNTERS)
		TRY(read_counters(&m, pid, err));
	if (parts & MEMSTAT_ROLLUP) {
		CLEANUP(buf_release) struct buf b = {0};
		CLEANUP(err_release) struct err why = {0};
		uint64_t start_ns = clock_mono_ns();
		refused = read_of(&b, pid, "smaps_rollup", &why);
		if (!refused && !memstat_parse_rollup(&m, buf_sv(&b)))
			refused = -ENODATA;
		m.rollup_ns = clock_mono_ns() - start_ns;
	}
	if (ret_refused)
		*ret_refused = refused;
	*ret_m = m;
	return 0;
}

uint64_t memstat_peak(int32_t pid)
{
	struct memstat m;
	return memstat_read(&m, pid, MEMSTAT_COUNTERS, NULL, NULL) ? 0 : m.peak_rss_bytes;
}

uint64_t memstat_command_peak(uint64_t peak_bytes, uint64_t before_bytes)
{
	return before_bytes && peak_bytes >= before_bytes + BEFORE_EXEC_BYTES ? peak_bytes : 0;
}

void memstat_add(struct memstat *sum, const struct memstat *one)
{
	bool is_first = !sum->nr_processes;
	unsigned has = is_first ? one->has : sum->has & one->has;
	const size_t first = offsetof(struct memstat, rss_bytes);
	const size_t nr = (sizeof(*sum) - first) / sizeof(uint64_t);
	uint64_t *to = (uint64_t *)(void *)((char *)sum + first);
	const uint64_t *from = (const uint64_t *)(const void *)((const char *)one + first);
	for (size_t i = 0; i < nr; i++)
		to[i] += from[i];
	sum->nr_processes += one->nr_processes;
	sum->nr_threads += one->nr_threads;
	sum->has = has;
}

uint64_t memstat_machine_bytes(void)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct sv line, key;
	uint64_t v;
	if (file_read(&b, "/proc/meminfo", TEXT_BYTES_MAX, NULL))
		return 0;
	struct lines in = lines_from(b.p, b.n);
	while (lines_next(&in, &line))
		if (memstat_line(line, &key, &v) && sv_eq_str(key, "MemTotal"))
			return v;
	return 0;
}
