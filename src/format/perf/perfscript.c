/*
 * Reader of `perf script` text; see perfscript.h.
 *
 * Nearly all of the text is frame lines, and most of them repeat. Each distinct line is parsed
 * once: a repeated line costs one lookup in a hash table of raw lines, and only a comparison if it
 * follows the same line as the last time. Frames at the root that are the same as in the previous
 * stack need no lookup.
 *
 *	raw line --hash--> struct line --+--> item --+-- groups of inlined frames --> loc_id
 *	                   (parsed once)   (of the open sample, leaf first)
 */
#include "base/base.h"
#include "format/format.h"

#include <errno.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/text/lines.h"
#include "base/map.h"
#include "base/vec.h"
#include "format/perf/scriptline.h"
#include "format/textframes.h"
#include "model/eventunit.h"

/* Limits for malformed input: longer lines and deeper stacks are truncated. */
#define LINE_MAX_BYTES ((size_t)1 << 20)
#define STACK_MAX      65536

enum line_kind { LINE_JUNK, LINE_FRAME, LINE_SOURCE };

struct line {
	struct line *next; /* the line that followed it the last time, or NULL */
	uint64_t ip;
	uint32_t nr_bytes;
	uint32_t frame_idx;
	loc_id loc;   /* of this frame alone, 0 = not created yet */
	uint8_t kind; /* enum line_kind */
	bool is_inlined;
	bool has_name; /* has a function name, or (source line) a file name */
	char text[];   /* last, as the fields above are read after comparing it */
};

struct slot {
	uint64_t hash;
	struct line *line; /* NULL = free */
};

struct item {
	struct line *line;
	const struct line *source; /* its source line, or NULL */
};

/* The fields of an event line, with ids. */
struct sample {
	uint32_t table;
	task_id task;
	uint64_t time_ns;
	int32_t cpu;
	int64_t values[2];
};

struct known_event {
	str_id name;
	uint32_t table;
};

struct reader {
	struct profile *p;
	const char *only_event; /* NULL: all */
	struct arena text;
	VEC(struct text_frame) frames; /* by line; for source lines only file and line */
	struct line *before_first;     /* represents the event line */
	struct line *last_line;        /* of the open sample */
	struct slot *slots;
	size_t nr_slots;   /* a power of two */
	struct map groups; /* hash of items -> loc */

	uint64_t line_nr;
	uint64_t first_bad_nr;
	struct sv first_bad;
	bool has_anchors; /* an event line had cpu or time: then all must have it */
	VEC(struct known_event) events;

	bool has_blank_lines; /* after the stacks */
	bool is_open;         /* the following lines belong to a sample */
	bool is_skipped;
	struct sample sample;
	VEC(struct item) items; /* leaf first */
	VEC(loc_id) locs;       /* leaf first */
	VEC(loc_id) last_locs;  /* of the last sample, root first, and its stacks */
	VEC(stack_id) last_stacks;
	uint64_t nr_samples;
};

static void reader_release(struct reader *r)
{
	arena_release(&r->text);
	vec_release(&r->frames);
	free(r->slots);
	map_release(&r->groups);
	vec_release(&r->events);
	vec_release(&r->items);
	vec_release(&r->locs);
	vec_release(&r->last_locs);
	vec_release(&r->last_stacks);
}

static void count_bad(struct reader *r, struct sv line)
{
	bool is_first = !r->first_bad_nr;
	format_bad_line(r->p, r->line_nr, &r->first_bad_nr);
	if (!is_first)
		return;
	size_t n = MIN(line.n, 80);
	r->first_bad = sv_from(arena_strndup(&r->text, line.p, n), n);
}

/* ---- distinct lines ----------------------------------------------------------------------- */

static str_id str_of(struct reader *r, struct sv s)
{
	return profile_str(r->p, s.p, s.n);
}

static void parse_line(struct reader *r, struct line *l)
{
	struct text_frame *frame = &r->frames.p[l->frame_idx];
	struct sv text = sv_from(l->text, l->nr_bytes);
	struct script_frame f;
	struct script_source src;
	if (script_parse_frame(text, &f)) {
		l->kind = LINE_FRAME;
		l->ip = f.ip;
		l->is_inlined = f.is_inlined;
		l->has_name = f.symbol.n != 0;
		*frame = (struct text_frame){.name = str_of(r, f.symbol),
					     .path = str_of(r, f.dso),
					     .func_flags = text_func_flags(f.dso),
					     .is_inlined = f.is_inlined,
					     .is_inferred = f.is_inferred};
	} else if (script_parse_source(text, &src)) {
		l->kind = LINE_SOURCE;
		l->is_inlined = src.is_inlined;
		l->has_name = src.file.n != 0;
		*frame = (struct text_frame){.file = str_of(r, src.file), .line = src.line};
	} else {
		l->kind = LINE_JUNK;
	}
}

static void grow_slots(struct reader *r)
{
	struct slot *old = r->slots;
	size_t nr_old = r->nr_slots;
	r->nr_slots *= 2;
	r->slots = xcalloc(r->nr_slots, sizeof(*r->slots));
	for (size_t i = 0; i < nr_old; i++) {
		if (!old[i].line)
			continue;
		size_t at = old[i].hash & (r->nr_slots - 1);
		while (r->slots[at].line)
			at = (at + 1) & (r->nr_slots - 1);
		r->slots[at] = old[i];
	}
	free(old);
}

static struct line *add_line(struct reader *r, struct sv text)
{
	struct line *l = arena_alloc(&r->text, sizeof(*l) + text.n);
	*l = (struct line){.nr_bytes = (uint32_t)text.n, .frame_idx = (uint32_t)r->frames.n};
	memcpy(l->text, text.p, text.n);
	(void)vec_add(&r->frames);
	parse_line(r, l);
	return l;
}

static struct line *find_line(struct reader *r, struct sv text)
{
	uint64_t hash = hash_bytes(text.p, text.n);
	size_t at = hash & (r->nr_slots - 1);
	for (; r->slots[at].line; at = (at + 1) & (r->nr_slots - 1)) {
		struct line *l = r->slots[at].line;
		if (r->slots[at].hash == hash && l->nr_bytes == text.n &&
		    !memcmp(l->text, text.p, text.n))
			return l;
	}
	struct line *l = add_line(r, text);
	r->slots[at] = (struct slot){hash, l};
	if (r->frames.n * 2 > r->nr_slots)
		grow_slots(r);
	return l;
}

/* ---- the open sample ---------------------------------------------------------------------- */

static loc_id loc_of_line(struct reader *r, struct line *l)
{
	const struct text_frame *frame = &r->frames.p[l->frame_idx];
	if (l->loc)
		return l->loc;
	if (l->has_name)
		l->loc = text_location(r->p, frame, 1);
	else
		l->loc = text_unsymbolized(r->p, l->ip, frame->path, frame->func_flags);
	return l->loc;
}

static uint64_t id_of(const struct line *l)
{
	return l ? (uint64_t)l->frame_idx + 1 : 0;
}

static bool is_inlined(const struct item *it)
{
	return it->line->is_inlined || (it->source && it->source->is_inlined);
}

/* Location of frames [from, to), which have one address: inlined functions, or a source line. */
static loc_id loc_of_group(struct reader *r, size_t from, size_t to)
{
	uint64_t h = 0;
	for (size_t i = from; i < to; i++)
		h = hash_mix(h ^ id_of(r->items.p[i].line), id_of(r->items.p[i].source));
	bool is_new;
	uint32_t *loc = map_put(&r->groups, h, &is_new);
	if (!is_new)
		return *loc;
	VEC(struct text_frame) frames = {0};
	for (size_t i = from; i < to; i++) {
		const struct item *it = &r->items.p[i];
		struct text_frame f = r->frames.p[it->line->frame_idx];
		if (it->source) {
			f.file = r->frames.p[it->source->frame_idx].file;
			f.line = r->frames.p[it->source->frame_idx].line;
		}
		f.is_inlined = is_inlined(it) && i + 1 < to;
		vec_push(&frames, f);
	}
	*loc = text_location(r->p, frames.p, frames.n);
	vec_release(&frames);
	return *loc;
}

static void resolve_items(struct reader *r)
{
	vec_clear(&r->locs);
	for (size_t i = 0; i < r->items.n;) {
		struct line *l = r->items.p[i].line;
		if (!is_inlined(&r->items.p[i]) && (!r->items.p[i].source || !l->has_name)) {
			vec_push(&r->locs, loc_of_line(r, l));
			i++;
			continue;
		}
		/* inlined frames up to the containing function, at the same address */
		size_t end = i;
		while (end + 1 < r->items.n && is_inlined(&r->items.p[end]) &&
		       r->items.p[end + 1].line->ip == l->ip)
			end++;
		vec_push(&r->locs, loc_of_group(r, i, end + 1));
		i = end + 1;
	}
}

static stack_id build_stack(struct reader *r)
{
	size_t n = r->locs.n;
	size_t shared = 0;
	while (shared < n && shared < r->last_locs.n &&
	       r->last_locs.p[shared] == r->locs.p[n - 1 - shared])
		shared++;
	vec_reserve(&r->last_locs, n);
	vec_reserve(&r->last_stacks, n);
	stack_id stack = shared ? r->last_stacks.p[shared - 1] : 0;
	for (size_t i = shared; i < n; i++) {
		loc_id loc = r->locs.p[n - 1 - i];
		stack = profile_stack(r->p, stack, loc);
		r->last_locs.p[i] = loc;
		r->last_stacks.p[i] = stack;
	}
	r->last_locs.n = r->last_stacks.n = n;
	return stack;
}

static void close_sample(struct reader *r)
{
	if (!r->is_open)
		return;
	r->is_open = false;
	struct profile *p = r->p;
	p->losses.nr[LOSS_SEEN]++;
	if (r->is_skipped) {
		p->losses.nr[LOSS_FILTERED]++;
		return;
	}
	resolve_items(r);
	stack_id stack = build_stack(r);
	const struct sample *s = &r->sample;
	profile_sample(p, s->table, s->time_ns, stack, s->task, s->cpu, s->values);
	p->losses.nr[LOSS_WRITTEN]++;
	if (r->items.n >= STACK_MAX)
		p->losses.nr[LOSS_TRUNC_DEPTH]++;
	if (s->time_ns && (!p->start_ns || s->time_ns < p->start_ns))
		p->start_ns = s->time_ns;
	p->end_ns = MAX(p->end_ns, s->time_ns);
	r->nr_samples++;
}

/* ---- event lines -------------------------------------------------------------------------- */

static uint32_t table_of_event(struct reader *r, const struct script_event *e)
{
	str_id name = str_of(r, e->event.n ? e->event : SV("samples"));
	for (size_t i = r->events.n; i--;)
		if (r->events.p[i].name == name)
			return r->events.p[i].table;
	struct table shape = {.event = name,
			      .time_kind = e->has_time ? TABLE_TIME_INSTANT : TABLE_TIME_TIMELESS,
			      .nr_columns = e->has_period ? 2 : 1};
	shape.columns[0] = (struct column){.name = profile_cstr(r->p, "samples")};
	shape.columns[1] = (struct column){.name = profile_cstr(r->p, "period"),
					   .unit = eventunit_of(e->event)};
	eventunit_set_amount(r->p, &shape);
	uint32_t table = profile_table(r->p, &shape);
	vec_push(&r->events, (struct known_event){name, table});
	return table;
}

static void add_frame_line(struct reader *r, struct sv text)
{
	struct line *l = find_line(r, text);
	r->last_line->next = l;
	r->last_line = l;
	switch ((enum line_kind)l->kind) {
	case LINE_FRAME:
		if (r->items.n < STACK_MAX)
			vec_push(&r->items, (struct item){l, NULL});
		return;
	case LINE_SOURCE:
		if (r->items.n && !vec_last(&r->items)->source && (l->has_name || l->is_inlined))
			vec_last(&r->items)->source = l;
		return;
	case LINE_JUNK:
		count_bad(r, text);
		return;
	}
}

/* "PERF_RECORD_LOST lost 12", printed with --show-lost-events; other records are ignored. */
static void take_record_line(struct reader *r, struct sv text)
{
	uint64_t nr;
	if (!sv_has_prefix(text, SV("PERF_RECORD_LOST lost ")) ||
	    !sv_to_u64(sv_from_idx(text, SV("PERF_RECORD_LOST lost ").n), &nr))
		return;
	profile_lose(r->p, LOSS_SEEN, nr);
	profile_lose(r->p, LOSS_LOST, nr);
}

/* Takes the next line if it is the one that followed the last time; returns its bytes, or 0. */
static size_t take_predicted(struct reader *r, const char *text, size_t n)
{
	struct line *l = r->last_line->next;
	if (!l || l->kind != LINE_FRAME || n <= l->nr_bytes || text[l->nr_bytes] != '\n' ||
	    memcmp(text, l->text, l->nr_bytes) != 0 || r->items.n >= STACK_MAX)
		return 0;
	r->last_line = l;
	vec_push(&r->items, (struct item){l, NULL});
	r->line_nr++;
	return l->nr_bytes + 1;
}

static bool take_event_line(struct reader *r, struct sv line)
{
	struct script_event e;
	if (!script_parse_event(line, r->has_anchors ? SCRIPT_NEED_CPU_OR_TIME : 0, &e))
		return false;
	close_sample(r);
	if (sv_has_prefix(e.event, SV("PERF_RECORD_")))
		return true;
	r->has_anchors |= e.has_time || e.cpu >= 0;
	r->is_open = true;
	r->is_skipped = r->only_event && !format_is_event(e.event, r->only_event);
	vec_clear(&r->items);
	r->last_line = r->before_first;
	if (r->is_skipped)
		return true;
	r->sample = (struct sample){.table = table_of_event(r, &e),
				    .time_ns = e.time_ns,
				    .cpu = e.cpu > INT16_MAX ? -1 : e.cpu};
	r->sample.values[0] = 1;
	r->sample.values[1] = e.has_period ? (int64_t)MIN(e.period, (uint64_t)INT64_MAX) : 1;
	r->sample.task = profile_task(r->p, e.pid, e.tid, str_of(r, e.comm), e.time_ns);
	/* without call chains the frame is on the event's own line; of a tracepoint that is its payload */
	struct script_frame f;
	if (e.rest.n && !eventunit_is_tracepoint(e.event) && script_parse_frame(e.rest, &f) &&
	    (f.symbol.n || f.dso.n))
		add_frame_line(r, e.rest);
	return true;
}

/* ---- lines -------------------------------------------------------------------------------- */

/* "# hostname : vm": the header's information about the machine and the command. */
static void take_comment(struct reader *r, struct sv line)
{
	static const char *const keys[] = {"captured on", "hostname", "os release", "perf version",
					   "arch",        "cpudesc",  "cmdline"};
	struct sv value = sv_from_idx(line, 1);
	if (r->nr_samples || r->is_open || sv_index(value, ':') < 0)
		return;
	struct sv key = sv_trim(sv_split(&value, ':'));
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (!sv_eq_str(key, keys[i]))
			continue;
		CLEANUP(buf_release) struct buf name = {0};
		CLEANUP(buf_release) struct buf text = {0};
		buf_addf(&name, "perf %s", keys[i]);
		buf_add_sv(&text, sv_trim(value));
		profile_fact_text(r->p, buf_str(&name), buf_str(&text));
	}
}

static bool is_all_blank(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != ' ' && s.p[i] != '\t')
			return false;
	return true;
}

static bool is_comment(struct sv s)
{
	return s.p[0] == '#' && (s.n == 1 || s.p[1] == ' ');
}

/* "comm 12 [000] 1.000001: PERF_RECORD_LOST lost 5": a record, not an event (no colon). */
static bool take_record(struct reader *r, struct sv line)
{
	static const char mark[] = ": PERF_RECORD_";
	const char *at = memmem(line.p, line.n, mark, sizeof(mark) - 1);
	if (!at)
		return false;
	close_sample(r);
	take_record_line(r, sv_from(at + 2, (size_t)(line.p + line.n - at) - 2));
	return true;
}

/* Frames of old versions of perf have no blanks in front: "ffffffff8103d0ca f ([kernel])". */
static bool is_unindented_frame(struct sv line, unsigned flags)
{
	struct script_event e;
	struct script_frame f;
	return line.p[line.n - 1] == ')' && script_parse_frame(line, &f) &&
	       !(script_parse_event(line, flags, &e) && e.event.n);
}

static void take_line(struct reader *r, struct sv line)
{
	r->line_nr++;
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (!line.n || is_all_blank(line)) {
		r->has_blank_lines |= r->is_open;
		close_sample(r);
		return;
	}
	if (line.p[0] == '\t' && r->is_open) {
		if (!r->is_skipped)
			add_frame_line(r, line);
		return;
	}
	/* with blanks in front: without call chains an event whose thread's name is right-aligned,
	 * else a frame whose tab was lost, or a source line */
	struct script_event e;
	struct script_frame f;
	bool is_indented = line.p[0] == ' ' || line.p[0] == '\t';
	if (is_indented && r->is_open && !script_parse_event(line, SCRIPT_NEED_CPU_OR_TIME, &e) &&
	    script_parse_frame(line, &f)) {
		if (!r->is_skipped)
			add_frame_line(r, line);
		return;
	}
	if (!is_indented && is_comment(line)) {
		take_comment(r, line);
		return;
	}
	unsigned flags = r->has_anchors ? SCRIPT_NEED_CPU_OR_TIME : 0;
	if (!is_indented && r->is_open && is_unindented_frame(line, flags)) {
		if (!r->is_skipped)
			add_frame_line(r, line);
		return;
	}
	if (take_event_line(r, line) || take_record(r, line))
		return;
	if (is_indented && r->is_open) {
		if (!r->is_skipped)
			add_frame_line(r, line);
		return;
	}
	count_bad(r, line);
}

static int take_lines(void *ctx, struct sv text)
{
	struct reader *r = ctx;
	const char *end = text.p + text.n;
	for (const char *p = text.p; p < end;) {
		size_t left = (size_t)(end - p);
		size_t n = r->is_open && !r->is_skipped ? take_predicted(r, p, left) : 0;
		p += n;
		if (n)
			continue;
		const char *nl = memchr(p, '\n', left);
		n = nl ? (size_t)(nl - p) : left;
		take_line(r, sv_from(p, MIN(n, LINE_MAX_BYTES)));
		p = nl ? nl + 1 : end;
	}
	return 0;
}

#define READ_STEP ((size_t)64 << 10) /* fits the CPU cache: 256 KiB takes a quarter longer */

static uint64_t held(const void *ctx)
{
	const struct reader *r = ctx;
	return r->text.total_bytes + r->frames.n * sizeof(*r->frames.p) +
	       r->nr_slots * sizeof(*r->slots) + r->groups.cap * sizeof(*r->groups.slots);
}

int perfscript_read(struct profile *p, const struct format_input *in,
		    const struct format_options *options, struct err *err)
{
	CLEANUP(reader_release)
	struct reader r = {.p = p, .only_event = options->event, .nr_slots = 4096};
	r.before_first = arena_calloc(&r.text, 1, sizeof(*r.before_first));
	r.slots = xcalloc(r.nr_slots, sizeof(*r.slots));
	struct format_lines to = {p, READ_STEP, LINE_MAX_BYTES, take_lines, held, &r};
	TRY(format_input_lines(in, &to, err));
	if (to.is_open)
		format_truncated(p, FORMAT_OPEN_LINE);
	else if (r.is_open && r.has_blank_lines && r.items.n)
		profile_fact(p, FACT_PROBLEM,
			     "the file may be truncated: no blank line follows its last stack");
	close_sample(&r);
	profile_fact(p, FACT_SOURCE, "perf script");
	if (!p->losses.nr[LOSS_WRITTEN] && !p->losses.nr[LOSS_FILTERED] && r.first_bad_nr)
		return err_set(err, -EINVAL,
			       "line %" PRIu64 ": expected 'comm pid [cpu] time: event:', "
			       "found '%.*s'",
			       r.first_bad_nr, SV_ARGS(r.first_bad));
	return 0;
}

/* Lines without brackets or times may be other text: most unindented lines must parse. */
int perfscript_sniff(struct sv head)
{
	struct lines in = lines_from(head.p, head.n);
	struct sv line;
	size_t nr_events = 0;
	size_t nr_others = 0;
	while (lines_next(&in, &line)) {
		struct script_event e;
		if (!line.n || is_comment(line) || in.p == in.end)
			continue;
		if (script_parse_event(line, SCRIPT_NEED_CPU_OR_TIME, &e))
			return 90;
		if (script_parse_event(line, 0, &e) && e.event.n)
			nr_events++;
		else if (line.p[0] != ' ' && line.p[0] != '\t' &&
			 !(nr_events && is_unindented_frame(line, 0)))
			nr_others++;
	}
	return nr_events > nr_others ? 40 : 0;
}
