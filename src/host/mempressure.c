/* /proc/pressure/memory and the files of memory cgroups, both versions; see mempressure.h. */
#include "base/base.h"

#include "host/mempressure.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/lines.h"
#include "base/mem.h"
#include "base/num.h"

#define TEXT_BYTES_MAX ((size_t)64 << 10)
#define CGROUP_ROOT    "/sys/fs/cgroup"
/* v1 writes the largest number of whole pages for "none". */
#define NO_LIMIT (UINT64_MAX >> 2)

void mempressure_release(struct mempressure *m)
{
	free_p(&m->group);
}

static bool starts_with(struct sv s, const char *prefix)
{
	size_t n = strlen(prefix);
	return s.n >= n && !memcmp(s.p, prefix, n);
}

static uint64_t number_of(const char *p, size_t n)
{
	uint64_t v = 0;
	for (size_t i = 0; i < n && p[i] >= '0' && p[i] <= '9'; i++)
		v = v > UINT64_MAX / 10 - 1 ? v : v * 10 + (uint64_t)(p[i] - '0');
	return v;
}

uint64_t mempressure_value(struct sv text, const char *key)
{
	struct sv line;
	struct lines in = lines_from(text.p, text.n);
	size_t n = strlen(key);
	while (lines_next(&in, &line))
		if (starts_with(line, key) && line.n > n + 1 && line.p[n] == ' ')
			return number_of(line.p + n + 1, line.n - n - 1);
	return 0;
}

/* "total=" of the line that starts with @kind. */
static uint64_t stall_us(struct sv text, const char *kind)
{
	struct sv line;
	struct lines in = lines_from(text.p, text.n);
	while (lines_next(&in, &line)) {
		const char *at =
			starts_with(line, kind) ? memmem(line.p, line.n, "total=", 6) : NULL;
		if (at)
			return number_of(at + 6, (size_t)(line.p + line.n - at - 6));
	}
	return 0;
}

bool mempressure_group_path(struct buf *to, struct sv text, const char *root)
{
	struct sv line, unified = {0};
	struct lines in = lines_from(text.p, text.n);
	while (lines_next(&in, &line)) {
		const char *first = memchr(line.p, ':', line.n);
		if (!first)
			continue;
		struct sv rest = {first + 1, (size_t)(line.p + line.n - first - 1)};
		const char *second = memchr(rest.p, ':', rest.n);
		if (!second)
			continue;
		struct sv names = {rest.p, (size_t)(second - rest.p)};
		struct sv path = {second + 1, (size_t)(rest.p + rest.n - second - 1)};
		if (!names.n)
			unified = path;
		if (names.n == 6 && !memcmp(names.p, "memory", 6)) {
			buf_addf(to, "%s/memory%.*s", root, SV_ARGS(path));
			return true;
		}
	}
	if (!unified.n)
		return false;
	buf_addf(to, "%s%.*s", root, SV_ARGS(unified));
	return true;
}

static bool read_at(struct buf *to, const char *dir, const char *name)
{
	CLEANUP(free_p) char *path = xasprintf("%s/%s", dir, name);
	buf_clear(to);
	return !file_read(to, path, TEXT_BYTES_MAX, NULL);
}

static void read_group(struct mempressure *m)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (read_at(&b, m->group, "memory.failcnt")) {
		m->has_group = true;
		m->nr_at_limit = number_of(b.p, b.n);
		if (read_at(&b, m->group, "memory.limit_in_bytes"))
			m->limit_bytes = number_of(b.p, b.n);
	} else if (read_at(&b, m->group, "memory.events")) {
		m->has_group = true;
		m->nr_at_limit = mempressure_value(buf_sv(&b), "max");
		if (read_at(&b, m->group, "memory.max") && strncmp(buf_str(&b), "max", 3) != 0)
			m->limit_bytes = number_of(b.p, b.n);
	}
	if (m->limit_bytes >= NO_LIMIT)
		m->limit_bytes = UINT64_MAX;
	if (!m->has_group || !read_at(&b, m->group, "memory.stat"))
		return;
	m->nr_refaults = mempressure_value(buf_sv(&b), "workingset_refault_file") +
			 mempressure_value(buf_sv(&b), "workingset_refault_anon") +
			 mempressure_value(buf_sv(&b), "workingset_refault");
}

void mempressure_read(struct mempressure *ret_m, int32_t pid, const struct mempressure *before)
{
	struct mempressure m = {.limit_bytes = UINT64_MAX};
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(buf_release) struct buf path = {0};
	if (read_at(&b, "/proc/pressure", "memory")) {
		m.has_psi = true;
		m.some_us = stall_us(buf_sv(&b), "some ");
		m.full_us = stall_us(buf_sv(&b), "full ");
	}
	CLEANUP(free_p) char *proc = xasprintf("/proc/%d", pid);
	if (before && before->group)
		m.group = xstrdup(before->group);
	else if (!before && pid && read_at(&b, proc, "cgroup") &&
		 mempressure_group_path(&path, buf_sv(&b), CGROUP_ROOT))
		m.group = xstrdup(buf_str(&path));
	if (m.group)
		read_group(&m);
	*ret_m = m;
}

static uint64_t between(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

void mempressure_add_machine(struct buf *to, const struct mempressure *before,
			     const struct mempressure *after)
{
	if (!before->has_psi || !after->has_psi)
		return;
	buf_add_str(to, "some threads waited for memory for ");
	num_add_ns(to, between(before->some_us, after->some_us) * 1000);
	buf_add_str(to, ", all for ");
	num_add_ns(to, between(before->full_us, after->full_us) * 1000);
	buf_add_str(to, " (whole machine)");
}

void mempressure_add_group(struct buf *to, const struct mempressure *before,
			   const struct mempressure *after)
{
	if (!before->has_group || !after->has_group)
		return;
	if (after->limit_bytes == UINT64_MAX) {
		buf_add_str(to, "no limit");
	} else {
		buf_add_str(to, "limit ");
		num_add_bytes(to, after->limit_bytes);
	}
	buf_addf(to, ", %" PRIu64 " times at it, %" PRIu64 " pages read again",
		 between(before->nr_at_limit, after->nr_at_limit),
		 between(before->nr_refaults, after->nr_refaults));
}
