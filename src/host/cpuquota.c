/*
 * CPU quotas of cgroups; see cpuquota.h. Formats: Documentation/scheduler/sched-bwc.rst and
 * cgroup-v2.rst of the kernel: cpu.stat has "throttled_time NS" (version 1) or "throttled_usec US".
 */
#include "base/base.h"
#include "host/cpuquota.h"

#include "base/file/file.h"
#include "base/text/lines.h"
#include "base/mem.h"
#include "host/memory/cgroup.h"

#define TEXT_BYTES_MAX ((size_t)64 << 10)

void cpuquota_release(struct cpuquota *q)
{
	buf_release(&q->path);
	*q = (struct cpuquota){0};
}

static bool read_text(struct buf *to, const char *path)
{
	buf_clear(to);
	return !file_read(to, path, TEXT_BYTES_MAX, NULL);
}

/* Throttled time of one folder; 0: it has none, or no such file. */
static uint64_t throttled_ns(struct sv folder)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(free_p) char *path = xasprintf("%.*s/cpu.stat", SV_ARGS(folder));
	if (!read_text(&text, path))
		return 0;
	uint64_t us = memgroup_value(buf_sv(&text), "throttled_usec");
	return us ? us * 1000 : memgroup_value(buf_sv(&text), "throttled_time");
}

/* The largest of the folder and those above it: a quota can be set on an ancestor. */
static uint64_t most_throttled_ns(struct sv folder, size_t nr_root)
{
	uint64_t most = 0;
	while (folder.n > nr_root) {
		most = MAX(most, throttled_ns(folder));
		ssize_t slash = sv_rindex(folder, '/');
		folder.n = slash > 0 ? (size_t)slash : 0;
	}
	return most;
}

/* Appends the folder of the cgroup that has the CPU controller. Returns whether there is one. */
static bool find_folder(struct buf *to, const char *root, struct sv text)
{
	struct sv line;
	struct lines in = lines_from(text.p, text.n);
	bool is_found = false;
	while (lines_next(&in, &line)) {
		struct sv number = sv_split(&line, ':');
		struct sv names = sv_split(&line, ':');
		bool is_v1 = sv_has_item(names, ',', SV("cpu"));
		if (!line.n || line.p[0] != '/' || (!is_v1 && !sv_eq_str(number, "0")))
			continue;
		if (is_found && !is_v1)
			continue;
		is_found = true;
		buf_clear(to);
		buf_addf(to, "%ssys/fs/cgroup%s%.*s%.*s", root, is_v1 ? "/" : "", SV_ARGS(names),
			 SV_ARGS(line));
	}
	return is_found;
}

void cpuquota_update(struct cpuquota *q, const char *root, int32_t pid)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf folder = {0};
	CLEANUP(free_p) char *path = xasprintf("%sproc/%d/cgroup", root, pid);
	bool is_known = read_text(&text, path) && find_folder(&folder, root, buf_sv(&text));
	bool is_same = !is_known || sv_eq(buf_sv(&folder), buf_sv(&q->path));
	if (!is_same) {
		buf_clear(&q->path);
		buf_add_str(&q->path, buf_str(&folder));
	}
	uint64_t now_ns =
		most_throttled_ns(buf_sv(&q->path), strlen(root) + strlen("sys/fs/cgroup"));
	if (is_same && now_ns > q->seen_ns)
		q->total_ns += now_ns - q->seen_ns;
	if (!is_same || now_ns)
		q->seen_ns = now_ns;
}
