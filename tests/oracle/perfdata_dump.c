/*
 * Prints the events that the perf.data reader delivers, one per line, for comparison with
 * `perf script` on the same file (tests/oracle/perfdata_read.sh).
 *
 *	perfdata_dump FILE|-    events
 *	perfdata_dump -q FILE|- only the summary, on standard error (for timing)
 */
#include "base/base.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "format/perf/perfdata.h"

struct dump {
	const struct perfdata_info *info;
	struct buf out;
	bool is_quiet;
	uint64_t sum; /* with -q: makes sure that every field is read */
};

/* Prints the same lines that perfdata.awk makes of `perf script -D`. */
static void dump_sample(struct dump *d, const struct event *ev)
{
	const struct event_sample *s = &ev->sample;
	buf_addf(&d->out, "S %" PRIu64 " %d/%d %" PRIx64 " %" PRIu64 " %" PRIx64 " %c", ev->time_ns,
		 ev->pid, ev->tid, s->ip, s->period, s->addr, s->is_user ? 'u' : 'k');
	for (uint32_t i = 0; i < s->nr_chain; i++)
		buf_addf(&d->out, " %" PRIx64, s->chain[i]);
	if (s->regs)
		buf_add_str(&d->out, " regs");
	for (int i = 0; s->regs && i < __builtin_popcountll(s->regs_mask); i++)
		buf_addf(&d->out, " %" PRIx64, s->regs[i]);
	if (s->nr_stack)
		buf_addf(&d->out, " stack %" PRIu64, s->nr_stack);
	buf_add_ch(&d->out, '\n');
}

static void dump_map(struct dump *d, const struct event *ev)
{
	const struct event_map *m = &ev->map;
	buf_addf(&d->out, "M %" PRIu64 " %d/%d %" PRIx64 " %" PRIx64 " %" PRIx64 " ", ev->time_ns,
		 ev->pid, ev->tid, m->start, m->len, m->pgoff);
	if (m->inode)
		buf_addf(&d->out, "%02x:%02x/%" PRIu64 " ", m->dev_major, m->dev_minor, m->inode);
	buf_addf(&d->out, "%s %s", m->is_exec ? "x" : "-", m->path);
	if (m->nr_build_id)
		buf_add_str(&d->out, " bid ");
	for (unsigned i = 0; i < m->nr_build_id; i++)
		buf_addf(&d->out, "%02x", m->build_id[i]);
	buf_add_ch(&d->out, '\n');
}

static int on_event(void *ctx, const struct event *ev, struct err *err)
{
	(void)err;
	struct dump *d = ctx;
	if (d->is_quiet) {
		d->sum += ev->time_ns;
		if (ev->kind == EVENT_SAMPLE)
			for (uint32_t i = 0; i < ev->sample.nr_chain; i++)
				d->sum += ev->sample.chain[i];
		return 0;
	}
	switch (ev->kind) {
	case EVENT_SAMPLE:
		dump_sample(d, ev);
		break;
	case EVENT_MAP:
		dump_map(d, ev);
		break;
	case EVENT_COMM:
		buf_addf(&d->out, "C %" PRIu64 " %d/%d %s%s\n", ev->time_ns, ev->pid, ev->tid,
			 ev->comm.name, ev->comm.is_exec ? " exec" : "");
		break;
	case EVENT_FORK:
		buf_addf(&d->out, "F %" PRIu64 " %d/%d %d/%d\n", ev->time_ns, ev->pid, ev->tid,
			 ev->fork.ppid, ev->fork.ptid);
		break;
	case EVENT_EXIT:
		buf_addf(&d->out, "E %" PRIu64 " %d/%d\n", ev->time_ns, ev->pid, ev->tid);
		break;
	case EVENT_LOST:
		buf_addf(&d->out, "LOST %" PRIu64 " %" PRIu64 "%s\n", ev->time_ns, ev->lost.nr,
			 ev->lost.is_samples ? " samples" : "");
		break;
	case EVENT_SWITCH:
		buf_addf(&d->out, "SWITCH %" PRIu64 " %d/%d %s\n", ev->time_ns, ev->pid, ev->tid,
			 ev->sw.is_out ? "out" : "in");
		break;
	case EVENT_THROTTLE:
		buf_addf(&d->out, "THROTTLE %" PRIu64 "\n", ev->time_ns);
		break;
	default: /* only our own recordings have the others */
		break;
	}
	if (d->out.n > ((size_t)1 << 20)) {
		(void)file_write_all(STDOUT_FILENO, d->out.p, d->out.n, NULL);
		buf_clear(&d->out);
	}
	return 0;
}

static void say(const struct perfdata_info *info)
{
	uint64_t nr_samples = 0;
	vec_foreach(s, &info->specs) {
		fprintf(stderr,
			"event '%s' freq %" PRIu64 " period %" PRIu64 ": %" PRIu64 " samples\n",
			s->name, s->freq_hz, s->period, s->nr_samples);
		nr_samples += s->nr_samples;
	}
	fprintf(stderr, "host %s, os %s, arch %s, cpu %s, cmdline %s\n", info->hostname,
		info->os_release, info->arch, info->cpu_desc, info->cmdline);
	fprintf(stderr,
		"%" PRIu64 " samples, %" PRIu64 " unparsed, %" PRIu64 " late, lost %" PRIu64
		"/%" PRIu64 ", %zu build-ids%s%s\n",
		nr_samples, info->nr_unparsed, info->nr_late, info->nr_lost_records,
		info->nr_lost_samples, info->build_ids.n, info->problem ? ", problem: " : "",
		info->problem ? info->problem : "");
}

int main(int argc, char **argv)
{
	struct perfdata_info info = {0};
	struct dump d = {.info = &info};
	const char *path = argc > 1 ? argv[1] : "-";
	if (!strcmp(path, "-q")) {
		d.is_quiet = true;
		path = argc > 2 ? argv[2] : "-";
	}
	struct err err = {0};
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (fd < 0) {
		fprintf(stderr, "cannot open '%s'\n", path);
		return 2;
	}
	struct event_sink sink = {on_event, &d};
	int rc = perfdata_read_fd(fd, &sink, &info, &err);
	(void)file_write_all(STDOUT_FILENO, buf_str(&d.out), d.out.n, NULL);
	say(&info);
	if (rc)
		fprintf(stderr, "error: %s\n%s\n", err_msg(&err), err.hint ? err.hint : "");
	buf_release(&d.out);
	perfdata_info_release(&info);
	err_release(&err);
	return rc ? 1 : 0;
}
