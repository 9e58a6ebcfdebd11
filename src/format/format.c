/* The table of formats; see format.h. */
#include "base/base.h"
#include "format/format.h"

#include <errno.h>

static const struct format formats[] = {
	{
		.name = "assay",
		.title = "recording of assay",
		.suffixes = ".assay",
		.sniff = assayfile_sniff,
		.read = assayfile_format_read,
		.write = assayfile_format_write,
	},
	{
		.name = "page",
		.title = "HTML page of assay, as a recording",
		.suffixes = ".html",
		.sniff = pagefile_sniff,
		.read = pagefile_read,
	},
	{
		.name = "folded",
		.title = "folded stacks, one line per stack",
		.suffixes = ".folded .collapsed",
		.flags = FORMAT_ONE_EVENT,
		.sniff = folded_sniff,
		.read = folded_read,
		.write = folded_write,
	},
	{
		.name = "perfscript",
		.title = "output of perf script",
		.suffixes = ".perfscript .perf",
		.flags = FORMAT_OF_EVENTS,
		.sniff = perfscript_sniff,
		.read = perfscript_read,
		.write = perfscript_write,
	},
	{
		.name = "perfdata",
		.title = "perf.data, for perf report, perf script and Hotspot",
		.suffixes = ".perfdata .data",
		.flags = FORMAT_NEEDS_INGEST | FORMAT_OF_EVENTS,
		.sniff = perfdata_sniff,
		.write = perfdata_write,
	},
	{
		.name = "json",
		.title = "aggregated profile as JSON",
		.suffixes = ".json",
		.write = profilejson_write,
	},
	{
		.name = "firefox",
		.title = "profile for the Firefox Profiler",
		.suffixes = ".firefox.json .firefox.json.gz .firefox",
		.flags = FORMAT_CAN_PACK,
		.write = firefox_write,
	},
	{
		.name = "speedscope",
		.title = "JSON for speedscope, one profile per thread",
		.suffixes = ".speedscope.json .speedscope",
		.flags = FORMAT_ONE_EVENT,
		.write = speedscope_write,
	},
	{
		.name = "dot",
		.title = "call graph for Graphviz",
		.suffixes = ".dot .gv",
		.flags = FORMAT_ONE_EVENT,
		.write = dot_write,
	},
	{
		.name = "pprof",
		.title = "pprof's profile.proto, for go tool pprof and many servers",
		.suffixes = ".pb.gz .pprof .pb",
		.flags = FORMAT_NEEDS_NAMES | FORMAT_GZIP,
		.sniff = pprof_sniff,
		.read = pprof_read,
		.write = pprof_write,
	},
	{
		.name = "jemalloc",
		.title = "heap dumps of jemalloc (heap_v2)",
		.suffixes = ".heap",
		.flags = FORMAT_NEEDS_NAMES,
		.sniff = jemallocheap_sniff,
		.read = jemallocheap_read,
	},
	{
		.name = "heaptrack",
		.title = "heaptrack file, for heaptrack_gui and heaptrack_print",
		.suffixes = ".heaptrack .heaptrack.gz .heaptrack.zst",
		.flags = FORMAT_CAN_PACK,
		.sniff = heaptrack_sniff,
		.read = heaptrack_read,
		.write = heaptrack_write,
	},
	{
		.name = "massif",
		.title = "massif.out of valgrind, for ms_print and massif-visualizer",
		.suffixes = ".massif massif.out",
		.sniff = massif_sniff,
		.read = massif_read,
		.write = massif_write,
	},
	{
		.name = "gperftools",
		.title = "heap profiles of gperftools and tcmalloc",
		.suffixes = ".heap",
		.flags = FORMAT_NEEDS_NAMES,
		.sniff = gperfheap_sniff,
		.read = gperfheap_read,
	},
};

const struct format *format_at(size_t i)
{
	return i < ARRAY_LEN(formats) ? &formats[i] : NULL;
}

const struct format *format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

const struct format *format_sniff(struct sv head)
{
	const struct format *best = NULL;
	int best_score = 0;
	head.n = MIN(head.n, FORMAT_SNIFF_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		int score = formats[i].sniff ? formats[i].sniff(head) : 0;
		if (score > best_score) {
			best_score = score;
			best = &formats[i];
		}
	}
	return best;
}

#define FOREIGN_BYTES 1024 /* the marks are at the start of the file */

const char *format_foreign(struct sv head, const char **ret_hint)
{
	static const struct {
		const char *mark;
		const char *what;
		const char *hint;
	} known[] = {
		{"Time and Allocation Profiling Report",
		 "a profile of a Haskell program (GHC .prof)",
		 "ghc-prof-flamegraph or inferno-collapse-ghcprof make folded stacks of it"},
		{"# callgrind format", "the output of valgrind's callgrind",
		 "callgrind_annotate and kcachegrind show it"},
		{"events: Ir", "the output of valgrind's callgrind",
		 "callgrind_annotate and kcachegrind show it"},
		{"# To display the perf.data header info", "the text of perf report",
		 "assay reads the recording itself: assay report perf.data"},
		{"Flat profile:", "the output of gprof", "it has no call stacks"},
		{"https://www.speedscope.app/file-format-schema.json", "a file for speedscope",
		 "open it at speedscope.app"},
	};
	head.n = MIN(head.n, FOREIGN_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (!memmem(head.p, head.n, known[i].mark, strlen(known[i].mark)))
			continue;
		*ret_hint = known[i].hint;
		return known[i].what;
	}
	return NULL;
}

/* Returns the length of the longest suffix that the path ends with, 0 = none. */
static size_t suffix_of(struct sv path, const char *suffixes)
{
	size_t best = 0;
	struct sv left = sv_from_str(suffixes);
	while (left.n) {
		struct sv one = sv_split(&left, ' ');
		if (sv_has_suffix(path, one))
			best = MAX(best, one.n);
	}
	return best;
}

const struct format *format_of_path(const char *path)
{
	const struct format *best = NULL;
	size_t best_n = 0;
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		size_t n = formats[i].write ? suffix_of(sv_from_str(path), formats[i].suffixes) : 0;
		if (n > best_n) {
			best_n = n;
			best = &formats[i];
		}
	}
	return best;
}

#define SPILL_BYTES ((size_t)1 << 20)
#define READ_STEP   ((size_t)1 << 20)

int format_flush(struct format_output *to, struct err *err)
{
	if (!to->file || !to->buf.n)
		return 0;
	TRY(out_write(to->file, to->buf.p, to->buf.n, err));
	buf_clear(&to->buf);
	return 0;
}

int format_spill(struct format_output *to, struct err *err)
{
	return to->buf.n < SPILL_BYTES ? 0 : format_flush(to, err);
}

/* What may be in memory: honest inputs, also compressed ones, stay far below both. */
#define ROOM_FLOOR  ((uint64_t)96 << 20)
#define ROOM_FACTOR 96

int format_check_room(uint64_t nr_stored, const struct profile *p, uint64_t nr_bytes,
		      struct err *err)
{
	uint64_t used = nr_bytes + (p ? profile_bytes(p) : 0);
	if (used <= ROOM_FLOOR || used / ROOM_FACTOR <= nr_stored)
		return 0;
	err_set(err, -EFBIG,
		"its contents need more memory than is allowed: %" PRIu64
		" MiB, or %u times the size of the file if that is larger",
		ROOM_FLOOR >> 20, ROOM_FACTOR);
	return err_hint(err, "if you trust a compressed file, decompress it (gzip -d, xz -d, "
			     "zstd -d) and name the result");
}

uint64_t format_input_stored(const struct format_input *in)
{
	return in->rest ? instream_stored(in->rest) : in->head.n;
}

int format_input_read_all(const struct format_input *in, struct buf *to, struct err *err)
{
	buf_add_sv(to, in->head);
	ssize_t got = in->rest != NULL;
	while (got > 0) {
		got = instream_read(in->rest, buf_reserve(to, READ_STEP), READ_STEP, err);
		to->n += (size_t)MAX(got, 0);
		TRY(got < 0 ? (int)got
			    : format_check_room(instream_stored(in->rest), NULL, to->n, err));
	}
	if (to->n)
		to->p[to->n] = 0;
	return 0;
}

int format_input_text(const struct format_input *in, struct buf *all, struct sv *ret_text,
		      struct err *err)
{
	TRY(in->rest ? format_input_read_all(in, all, err) : 0);
	*ret_text = in->rest ? buf_sv(all) : in->head;
	return 0;
}

int format_input_lines(const struct format_input *in, struct format_lines *to, struct err *err)
{
	if (!in->rest) {
		to->is_open = in->head.n && in->head.p[in->head.n - 1] != '\n';
		return to->take(to->ctx, in->head);
	}
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_sv(&b, in->head);
	for (size_t nr_seen = 0;;) {
		const char *last = b.n ? memrchr(b.p + nr_seen, '\n', b.n - nr_seen) : NULL;
		size_t nr_whole = last ? (size_t)(last + 1 - b.p) : 0;
		TRY(nr_whole ? to->take(to->ctx, sv_from(b.p, nr_whole)) : 0);
		uint64_t held = to->held ? to->held(to->ctx) : 0;
		TRY(format_check_room(instream_stored(in->rest), to->p, held + b.n, err));
		b.n = MIN(b.n - nr_whole, to->line_max);
		if (nr_whole)
			memmove(b.p, b.p + nr_whole, b.n);
		nr_seen = b.n;
		ssize_t n = instream_read(in->rest, buf_reserve(&b, to->step), to->step, err);
		if (n < 0)
			return (int)n;
		to->is_open = !n && b.n;
		if (!n)
			return b.n ? to->take(to->ctx, buf_sv(&b)) : 0;
		b.n += (size_t)n;
	}
}

void format_truncated(struct profile *p, const char *evidence)
{
	p->is_incomplete = true;
	if (!profile_get_fact(p, FACT_PROBLEM))
		profile_factf(p, FACT_PROBLEM, "the file is truncated: %s", evidence);
}

void format_bad_line(struct profile *p, uint64_t line_nr, uint64_t *first_nr)
{
	profile_lose(p, LOSS_SEEN, 1);
	profile_lose(p, LOSS_UNPARSED, 1);
	if (!*first_nr)
		*first_nr = line_nr;
}

/* ---- events ------------------------------------------------------------------------------- */

bool format_is_event(struct sv name, const char *want)
{
	struct sv w = sv_from_str(want);
	if (sv_eq(name, w))
		return true;
	if (name.n <= w.n || name.p[w.n] != ':' || !sv_has_prefix(name, w))
		return false;
	/* the rest must be modifiers, not the name of a tracepoint */
	for (size_t i = w.n + 1; i < name.n; i++)
		if (!name.p[i] || !strchr("ukhGHpPSDeWIbR", name.p[i]))
			return false;
	return true;
}

static int no_such_event(const struct profile *p, const char *event, struct err *err)
{
	CLEANUP(buf_release) struct buf names = {0};
	vec_foreach(t, &p->tables)
		buf_addf(&names, "%s%s", names.n ? ", " : "", profile_text(p, t->event));
	err_set(err, -ENOENT, "no event '%s' in the profile", event);
	return err_hint(err, "its events: %s", names.n ? buf_str(&names) : "none");
}

int format_pick_table(const struct profile *p, const char *event, const struct table **ret_t,
		      struct err *err)
{
	const struct table *found = NULL;
	vec_foreach(t, &p->tables) {
		if (event && !format_is_event(profile_sv(p, t->event), event))
			continue;
		if (!found || (!found->n && t->n))
			found = t;
	}
	if (event && !found)
		return no_such_event(p, event, err);
	*ret_t = found;
	return 0;
}
