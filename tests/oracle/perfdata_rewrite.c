/*
 * Reads a perf.data file into a profile and writes the profile as perf.data again, to check how
 * perf and Hotspot read it (tests/oracle/perfdata_write.sh).
 *
 *	perfdata_rewrite IN OUT
 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/mem.h"
#include "format/format.h"
#include "format/perf/perfdata.h"
#include "ingest/builder.h"

struct ctx {
	struct profile *p;
	struct builder *b;
	struct event_sink sink;
	const struct perfdata_info *info;
	size_t nr_tables;
};

static int no_file(void *ctx, struct byte_source *ret_s, int32_t pid, const struct event_map *map)
{
	(void)ctx, (void)ret_s, (void)pid, (void)map;
	return -ENOENT;
}

static int on_event(void *ctx, const struct event *ev, struct err *err)
{
	struct ctx *c = ctx;
	for (; c->nr_tables < c->info->specs.n; c->nr_tables++) {
		const struct perfdata_spec *s = &c->info->specs.p[c->nr_tables];
		struct table shape = builder_table_shape(c->p, s->name, (double)s->freq_hz);
		builder_set_table(c->b, (uint32_t)c->nr_tables, profile_table(c->p, &shape));
	}
	return c->sink.event(c->sink.ctx, ev, err);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	struct err err = {0};
	struct perfdata_info info = {0};
	struct file_access files = {.open = no_file};
	struct profile *p = profile_new();
	struct builder_options options = {.files = &files};
	struct builder *b = builder_new(p, &options);
	struct ctx c = {.p = p, .b = b, .sink = builder_sink(b), .info = &info};
	struct event_sink sink = {on_event, &c};
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	int rc = perfdata_read_fd(fd, &sink, &info, &err);
	if (!rc) {
		if (info.hostname)
			profile_fact(p, FACT_HOST, info.hostname);
		if (info.os_release)
			profile_fact(p, FACT_KERNEL, info.os_release);
		profile_fact(p, FACT_CPUS, "2");
		if (info.cmdline)
			profile_fact(p, FACT_COMMAND, info.cmdline);
		profile_seal(p);
		struct out o;
		struct perfdata_written w;
		rc = out_open(&o, argv[2], 0600, &err);
		if (!rc) {
			struct format_output to = {.file = &o};
			struct format_options how = {.perfdata.ret_written = &w};
			rc = perfdata_write(&to, p, &how, &err);
			if (!rc)
				rc = format_flush(&to, &err);
			if (!rc)
				rc = out_commit(&o, &err);
			out_release(&o);
		}
		if (!rc)
			fprintf(stderr,
				"%" PRIu64 " samples, %" PRIu64 " bytes, %" PRIu64 " cut, %" PRIu64
				" named, %" PRIu64 " guessed\n",
				w.nr_samples, w.nr_bytes, w.nr_truncated_stacks, w.nr_named_frames,
				w.nr_guessed_maps);
	}
	if (rc)
		fprintf(stderr, "error: %s\n", err_msg(&err));
	close(fd);
	builder_free(b);
	profile_free(p);
	perfdata_info_release(&info);
	err_release(&err);
	return rc ? 1 : 0;
}
