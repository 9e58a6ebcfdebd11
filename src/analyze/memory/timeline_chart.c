/* Memory over time as a chart; see timeline.h. */
#include "base/base.h"
#include "analyze/memory/timeline.h"

#include "base/text/num.h"

enum part { LIVE, STACKS, ANON, SHARED, FILES, SWAP, RSS, PSS, NR_PARTS };

static const struct {
	const char *name;
	enum chart_kind kind;
	unsigned color;
} parts[NR_PARTS] = {
	[LIVE] = {"heap, live", CHART_AREA, 0}, [STACKS] = {"stacks", CHART_AREA, 7},
	[ANON] = {"anonymous", CHART_AREA, 1},  [SHARED] = {"shared", CHART_AREA, 2},
	[FILES] = {"files", CHART_AREA, 3},     [SWAP] = {"swap", CHART_AREA, 4},
	[RSS] = {"RSS", CHART_LINE, 5},         [PSS] = {"PSS", CHART_LINE, 6},
};

/* Live bytes, stacks and the rest add up to anonymous memory. */
static void split(uint64_t *v, const struct memtime_row *row, bool has_split)
{
	const uint64_t *m = row->bytes;
	uint64_t anon = m[HEAP_MEMORY_ANON];
	v[STACKS] = m[HEAP_MEMORY_STACKS];
	v[LIVE] = m[HEAP_MEMORY_LIVE];
	if (has_split) {
		v[STACKS] = MIN(v[STACKS], anon);
		v[LIVE] = MIN(v[LIVE], anon - v[STACKS]);
	}
	v[ANON] = has_split ? anon - v[STACKS] - v[LIVE] : 0;
	v[SHARED] = m[HEAP_MEMORY_SHMEM];
	v[FILES] = m[HEAP_MEMORY_FILE];
	v[SWAP] = m[HEAP_MEMORY_SWAP];
	v[RSS] = m[HEAP_MEMORY_RSS];
	v[PSS] = m[HEAP_MEMORY_PSS];
}

static void add_series(struct chart *c, struct arena *a, const struct memtime *m)
{
	uint64_t *columns[NR_PARTS];
	uint64_t most[NR_PARTS] = {0};
	for (size_t k = 0; k < NR_PARTS; k++)
		columns[k] = arena_calloc(a, m->nr_rows, sizeof(*columns[k]));
	for (size_t i = 0; i < m->nr_rows; i++) {
		uint64_t v[NR_PARTS];
		split(v, &m->rows[i], m->has_split);
		for (size_t k = 0; k < NR_PARTS; k++) {
			columns[k][i] = v[k];
			most[k] = v[k] == CELL_NO_BYTES ? most[k] : MAX(most[k], v[k]);
		}
	}
	for (size_t k = 0; k < NR_PARTS; k++) {
		if (!most[k])
			continue;
		const char *name = k == ANON && most[LIVE] ? "other anonymous" : parts[k].name;
		c->series[c->nr_series++] =
			(struct chart_series){name, parts[k].kind, parts[k].color, columns[k]};
	}
}

static const char *subtitle(struct arena *a, const struct profile *p, const struct memtime *m)
{
	const char *target = profile_get_fact(p, FACT_TARGET);
	const uint64_t *peak = m->rows[m->peak_idx].bytes;
	return arena_fmt(a, "%s%s%s%s, %s %s%s%s%s", target ? target : "", target ? ", " : "",
			 num_noun(m->nr_rows, "readings").s,
			 m->nr_processes > 1 ? arena_fmt(a, " of %u processes", m->nr_processes)
					     : "",
			 m->has_live ? "peak live heap" : "peak RSS",
			 num_bytes(peak[m->has_live ? HEAP_MEMORY_LIVE : HEAP_MEMORY_RSS]).s,
			 m->has_live && !m->is_live_whole ? ", allocated in the capture" : "",
			 m->time_unit ? ", by number of " : "", m->time_unit ? m->time_unit : "");
}

int memtime_chart(struct arena *a, const struct profile *p, const char *title, struct chart *ret_c,
		  struct err *err)
{
	struct memtime m;
	TRY(memtime_make(a, p, &m, err));
	uint64_t *ns = arena_calloc(a, m.nr_rows, sizeof(*ns));
	for (size_t i = 0; i < m.nr_rows; i++)
		ns[i] = m.rows[i].time_ns - MIN(m.start_ns, m.rows[i].time_ns);
	struct chart_mark *peak = arena_calloc(a, 1, sizeof(*peak));
	*peak = (struct chart_mark){ns[m.peak_idx], "peak"};
	*ret_c = (struct chart){
		.title = title ? title : "memory over time",
		.subtitle = subtitle(a, p, &m),
		.ns = ns,
		.x_unit = m.time_unit,
		.nr_points = m.nr_rows,
		.marks = peak,
		.nr_marks = 1,
	};
	if (m.has_split) {
		struct memverdict v = memtime_verdict(a, p, &m);
		/* Only the first sentence of the evidence fits the line. */
		const char *end = strstr(v.evidence, ". ");
		int n = end ? (int)(end - v.evidence) : (int)strlen(v.evidence);
		ret_c->note =
			arena_fmt(a, "verdict: %s; %.*s", memverdict_key(v.kind), n, v.evidence);
	}
	add_series(ret_c, a, &m);
	return 0;
}
