/*
 * Reader of `perf script` text; see perfscript.h.
 *
 * Nearly all of the text are frame lines, and the same ones over and over. Each distinct line is
 * parsed once: a hash table from the raw bytes of a line to what it means is all that a repeated
 * line costs. Stacks that begin as the one before (they mostly do) skip the lookups of what they
 * share with it.
 *
 *	raw line --hash--> struct line --+--> item --+-- groups of inlined frames --> loc_id
 *	                   (parsed once)   (of the open sample, leaf first)
 */
#include "base/base.h"
#include "format/perfscript.h"

#include <errno.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/lines.h"
#include "base/map.h"
#include "base/vec.h"
#include "format/format.h"
#include "format/scriptline.h"
#include "format/textframes.h"

/* A line that never ends, or a stack that no program has, is cut here. */
#define LINE_MAX_BYTES ((size_t)1 << 20)
#define STACK_MAX      65536

enum line_kind { LINE_FRAME, LINE_SOURCE, LINE_JUNK };

struct line {
	uint64_t hash;
	const char *text;
	uint32_t nr_bytes;
	enum line_kind kind;
	loc_id loc; /* of the frame alone, 0 until it is needed */
	uint64_t ip;
	struct text_frame frame; /* source lines: file and line only */
};

struct item {
	uint32_t line;
	uint32_t source; /* its source line, 0 = none */
};

/* What an event line says about a sample, resolved. */
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

struct perfscript_reader {
	struct profile *p;
	const char *only_event; /* NULL: all */
	struct arena text;
	VEC(struct line) lines; /* element 0 is a dummy */
	uint32_t *slots;        /* of lines, 0 = free */
	size_t nr_slots;
	struct map groups; /* hash of items -> loc */

	struct buf carry; /* a line whose end has not come yet */
	bool is_carry_cut;
	uint64_t line_nr;
	uint64_t first_bad_nr;
	struct sv first_bad;
	bool has_anchors; /* an event line with cpu or time was seen: all have one */
	VEC(struct known_event) events;

	bool is_open; /* a sample's lines are coming */
	bool is_skipped;
	struct sample sample;
	VEC(struct item) items; /* leaf first */
	VEC(loc_id) locs;       /* leaf first */
	VEC(loc_id) last_locs;  /* of the last sample, root first, and its stacks */
	VEC(stack_id) last_stacks;
	uint64_t nr_truncated_stacks;
	uint64_t nr_samples;
};

struct perfscript_reader *perfscript_reader_new(struct profile *p,
						const struct perfscript_options *options)
{
	struct perfscript_reader *r = xcalloc(1, sizeof(*r));
	r->p = p;
	r->only_event = options ? options->event : NULL;
	(void)vec_add(&r->lines);
	r->nr_slots = 4096;
	r->slots = xcalloc(r->nr_slots, sizeof(*r->slots));
	return r;
}

void perfscript_reader_free(struct perfscript_reader *r)
{
	if (!r)
		return;
	arena_release(&r->text);
	vec_release(&r->lines);
	free(r->slots);
	map_release(&r->groups);
	buf_release(&r->carry);
	vec_release(&r->events);
	vec_release(&r->items);
	vec_release(&r->locs);
	vec_release(&r->last_locs);
	vec_release(&r->last_stacks);
	free(r);
}

void perfscript_reader_free_p(struct perfscript_reader **r)
{
	perfscript_reader_free(*r);
}

bool perfscript_reader_first_bad(const struct perfscript_reader *r, uint64_t *ret_line_nr,
				 struct sv *ret_line)
{
	if (!r->first_bad_nr)
		return false;
	*ret_line_nr = r->first_bad_nr;
	*ret_line = r->first_bad;
	return true;
}

static void count_bad(struct perfscript_reader *r, struct sv line)
{
	r->p->losses.nr[LOSS_SEEN]++;
	r->p->losses.nr[LOSS_UNPARSED]++;
	if (r->first_bad_nr)
		return;
	r->first_bad_nr = r->line_nr;
	size_t n = MIN(line.n, 80);
	r->first_bad = sv_from(arena_strndup(&r->text, line.p, n), n);
}

/* ---- distinct lines ----------------------------------------------------------------------- */

static str_id str_of(struct perfscript_reader *r, struct sv s)
{
	return profile_str(r->p, s.p, s.n);
}

static void parse_line(struct perfscript_reader *r, struct line *l)
{
	struct sv text = sv_from(l->text, l->nr_bytes);
	struct script_frame f;
	struct script_source src;
	if (script_parse_frame(text, &f)) {
		l->kind = LINE_FRAME;
		l->ip = f.ip;
		l->frame = (struct text_frame){.name = str_of(r, f.symbol),
					       .path = str_of(r, f.dso),
					       .func_flags = text_func_flags(f.dso),
					       .is_inlined = f.is_inlined};
	} else if (script_parse_source(text, &src)) {
		l->kind = LINE_SOURCE;
		l->frame = (struct text_frame){.file = str_of(r, src.file), .line = src.line};
	} else {
		l->kind = LINE_JUNK;
	}
}

static void grow_slots(struct perfscript_reader *r)
{
	free(r->slots);
	r->nr_slots *= 2;
	r->slots = xcalloc(r->nr_slots, sizeof(*r->slots));
	for (uint32_t i = 1; i < r->lines.n; i++) {
		size_t at = r->lines.p[i].hash & (r->nr_slots - 1);
		while (r->slots[at])
			at = (at + 1) & (r->nr_slots - 1);
		r->slots[at] = i;
	}
}

/* Its index, and whether it was there. A new one is only hashed and copied. */
static uint32_t find_line(struct perfscript_reader *r, struct sv text, bool *ret_is_new)
{
	uint64_t hash = hash_bytes(text.p, text.n);
	size_t at = hash & (r->nr_slots - 1);
	for (; r->slots[at]; at = (at + 1) & (r->nr_slots - 1)) {
		const struct line *l = &r->lines.p[r->slots[at]];
		if (l->hash == hash && l->nr_bytes == text.n && !memcmp(l->text, text.p, text.n)) {
			*ret_is_new = false;
			return r->slots[at];
		}
	}
	*ret_is_new = true;
	uint32_t id = (uint32_t)r->lines.n;
	r->slots[at] = id;
	vec_push(&r->lines, (struct line){.hash = hash,
					  .text = arena_strndup(&r->text, text.p, text.n),
					  .nr_bytes = (uint32_t)text.n});
	if (r->lines.n * 2 > r->nr_slots)
		grow_slots(r);
	return id;
}

/* ---- the open sample ---------------------------------------------------------------------- */

static loc_id loc_of_line(struct perfscript_reader *r, struct line *l)
{
	if (l->loc)
		return l->loc;
	if (l->frame.name)
		l->loc = text_location(r->p, &l->frame, 1);
	else
		l->loc = text_unnamed(r->p, l->ip, l->frame.path, l->frame.func_flags);
	return l->loc;
}

/* Frames [from, to) are one address: functions inlined into each other, or one with a source. */
static loc_id loc_of_group(struct perfscript_reader *r, size_t from, size_t to)
{
	uint64_t h = 0;
	for (size_t i = from; i < to; i++)
		h = hash_mix(h ^ r->items.p[i].line, r->items.p[i].source);
	bool is_new;
	uint32_t *loc = map_put(&r->groups, h, &is_new);
	if (!is_new)
		return *loc;
	VEC(struct text_frame) frames = {0};
	for (size_t i = from; i < to; i++) {
		const struct item *it = &r->items.p[i];
		struct text_frame f = r->lines.p[it->line].frame;
		f.file = r->lines.p[it->source].frame.file;
		f.line = r->lines.p[it->source].frame.line;
		f.is_inlined &= i + 1 < to;
		vec_push(&frames, f);
	}
	*loc = text_location(r->p, frames.p, frames.n);
	vec_release(&frames);
	return *loc;
}

static void resolve_items(struct perfscript_reader *r)
{
	vec_clear(&r->locs);
	for (size_t i = 0; i < r->items.n;) {
		struct line *l = &r->lines.p[r->items.p[i].line];
		if (!l->frame.is_inlined && (!r->items.p[i].source || !l->frame.name)) {
			vec_push(&r->locs, loc_of_line(r, l));
			i++;
			continue;
		}
		/* inlined frames up to the one, at the same address, that is not */
		size_t end = i;
		while (end + 1 < r->items.n && r->lines.p[r->items.p[end].line].frame.is_inlined &&
		       r->lines.p[r->items.p[end + 1].line].ip == l->ip)
			end++;
		vec_push(&r->locs, loc_of_group(r, i, end + 1));
		i = end + 1;
	}
}

static stack_id build_stack(struct perfscript_reader *r)
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

static void close_sample(struct perfscript_reader *r)
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
	if (r->locs.n && !p->locations.p[r->locs.p[0]].nr_frames)
		p->losses.nr[p->locations.p[r->locs.p[0]].unsym]++;
	if (r->items.n >= STACK_MAX)
		p->losses.nr[LOSS_TRUNC_DEPTH]++;
	if (s->time_ns && (!p->start_ns || s->time_ns < p->start_ns))
		p->start_ns = s->time_ns;
	p->end_ns = MAX(p->end_ns, s->time_ns);
	r->nr_samples++;
}

/* ---- event lines -------------------------------------------------------------------------- */

/* Events whose period is nanoseconds of CPU time. */
static enum unit unit_of_period(struct sv event)
{
	bool is_clock =
		sv_has_prefix(event, SV("cpu-clock")) || sv_has_prefix(event, SV("task-clock"));
	return is_clock ? UNIT_NS : UNIT_COUNT;
}

static uint32_t table_of_event(struct perfscript_reader *r, const struct script_event *e)
{
	str_id name = str_of(r, e->event.n ? e->event : SV("samples"));
	for (size_t i = r->events.n; i--;)
		if (r->events.p[i].name == name)
			return r->events.p[i].table;
	struct table shape = {.event = name,
			      .time_kind = e->has_time ? TABLE_INSTANT : TABLE_TIMELESS,
			      .nr_columns = e->has_period ? 2 : 1};
	shape.columns[0] = (struct column){.name = profile_cstr(r->p, "samples")};
	shape.columns[1] = (struct column){.name = profile_cstr(r->p, "period"),
					   .unit = unit_of_period(e->event)};
	uint32_t table = profile_table(r->p, &shape);
	vec_push(&r->events, (struct known_event){name, table});
	return table;
}

static void add_frame_line(struct perfscript_reader *r, struct sv line)
{
	bool is_new;
	uint32_t id = find_line(r, line, &is_new);
	struct line *l = &r->lines.p[id];
	if (is_new)
		parse_line(r, l);
	switch (l->kind) {
	case LINE_FRAME:
		if (r->items.n < STACK_MAX)
			vec_push(&r->items, (struct item){id, 0});
		return;
	case LINE_SOURCE:
		if (r->items.n && !vec_last(&r->items)->source)
			vec_last(&r->items)->source = id;
		return;
	case LINE_JUNK:
		count_bad(r, line);
		return;
	}
}

/* "PERF_RECORD_LOST lost 12", as --show-lost-events prints it; other records say nothing here. */
static void take_record_line(struct perfscript_reader *r, struct sv text)
{
	uint64_t nr;
	if (!sv_has_prefix(text, SV("PERF_RECORD_LOST lost ")) ||
	    !sv_to_u64(sv_from_idx(text, SV("PERF_RECORD_LOST lost ").n), &nr) || nr > UINT32_MAX)
		return;
	r->p->losses.nr[LOSS_SEEN] += nr;
	r->p->losses.nr[LOSS_LOST] += nr;
}

static bool take_event_line(struct perfscript_reader *r, struct sv line)
{
	struct script_event e;
	if (!script_parse_event(line, r->has_anchors ? SCRIPT_NEED_ANCHOR : 0, &e))
		return false;
	close_sample(r);
	if (sv_has_prefix(e.event, SV("PERF_RECORD_")))
		return true;
	r->has_anchors |= e.has_time || e.cpu >= 0;
	r->is_open = true;
	r->is_skipped = r->only_event && !format_is_event(e.event, r->only_event);
	vec_clear(&r->items);
	if (r->is_skipped)
		return true;
	r->sample = (struct sample){.table = table_of_event(r, &e),
				    .time_ns = e.time_ns,
				    .cpu = e.cpu > INT16_MAX ? -1 : e.cpu};
	r->sample.values[0] = 1;
	r->sample.values[1] = e.has_period ? (int64_t)MIN(e.period, (uint64_t)INT64_MAX) : 1;
	r->sample.task = profile_task(r->p, e.pid, e.tid, str_of(r, e.comm), e.time_ns);
	/* without call chains the frame is on the event's own line */
	struct script_frame f;
	if (e.rest.n && !script_is_tracepoint(e.event) && script_parse_frame(e.rest, &f) &&
	    (f.symbol.n || f.dso.n))
		add_frame_line(r, e.rest);
	return true;
}

/* ---- lines -------------------------------------------------------------------------------- */

/* "# hostname : vm": what the header tells of the machine and the command. */
static void take_comment(struct perfscript_reader *r, struct sv line)
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
		profile_fact(r->p, buf_str(&name), buf_str(&text));
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

/* "comm 12 [000] 1.000001: PERF_RECORD_LOST lost 5": no event, as no colon follows. */
static bool take_record(struct perfscript_reader *r, struct sv line)
{
	static const char mark[] = ": PERF_RECORD_";
	const char *at = memmem(line.p, line.n, mark, sizeof(mark) - 1);
	if (!at)
		return false;
	close_sample(r);
	take_record_line(r, sv_from(at + 2, (size_t)(line.p + line.n - at) - 2));
	return true;
}

static void take_line(struct perfscript_reader *r, struct sv line)
{
	r->line_nr++;
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (!line.n || is_all_blank(line)) {
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
	if (is_indented && r->is_open && !script_parse_event(line, SCRIPT_NEED_ANCHOR, &e) &&
	    script_parse_frame(line, &f)) {
		if (!r->is_skipped)
			add_frame_line(r, line);
		return;
	}
	if (!is_indented && is_comment(line)) {
		take_comment(r, line);
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

void perfscript_reader_push(struct perfscript_reader *r, const char *text, size_t n)
{
	const char *end = text + n;
	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t nr_bytes = (size_t)((nl ? nl : end) - text);
		if (nl && !r->carry.n) {
			take_line(r, sv_from(text, MIN(nr_bytes, LINE_MAX_BYTES)));
		} else {
			size_t room = LINE_MAX_BYTES - MIN(r->carry.n, LINE_MAX_BYTES);
			buf_add(&r->carry, text, MIN(nr_bytes, room));
			if (nl) {
				take_line(r, buf_sv(&r->carry));
				buf_clear(&r->carry);
			}
		}
		text = nl ? nl + 1 : end;
	}
}

void perfscript_reader_finish(struct perfscript_reader *r)
{
	if (r->carry.n)
		take_line(r, buf_sv(&r->carry));
	buf_clear(&r->carry);
	close_sample(r);
	profile_fact(r->p, "source", "perf script");
}

#define READ_STEP ((size_t)256 << 10) /* stays in the second-level cache */

int perfscript_read(struct profile *p, const struct format_input *in,
		    const struct format_options *options, struct err *err)
{
	CLEANUP(perfscript_reader_free_p)
	struct perfscript_reader *r = perfscript_reader_new(p, &options->perfscript);
	perfscript_reader_push(r, in->head.p, in->head.n);
	if (in->fd >= 0) {
		CLEANUP(free_p) char *step = xmalloc(READ_STEP);
		for (;;) {
			ssize_t n = file_read_some(in->fd, step, READ_STEP, err);
			if (n < 0)
				return (int)n;
			if (!n)
				break;
			perfscript_reader_push(r, step, (size_t)n);
		}
	}
	perfscript_reader_finish(r);
	uint64_t nr;
	struct sv line;
	if (!p->losses.nr[LOSS_WRITTEN] && !p->losses.nr[LOSS_FILTERED] &&
	    perfscript_reader_first_bad(r, &nr, &line))
		return err_set(err, -EINVAL,
			       "line %" PRIu64 ": expected 'comm pid [cpu] time: event:', "
			       "found '%.*s'",
			       nr, SV_ARGS(line));
	return 0;
}

int perfscript_sniff(struct sv head)
{
	struct lines in = lines_from(head.p, head.n);
	struct sv line;
	while (lines_next(&in, &line)) {
		struct script_event e;
		if (!line.n || is_comment(line) || in.p == in.end)
			continue;
		if (script_parse_event(line, SCRIPT_NEED_ANCHOR, &e))
			return 90;
		if (script_parse_event(line, 0, &e) && e.event.n)
			return 40;
	}
	return 0;
}
