/*
 * Reader of heaptrack's files: version 3, as heaptrack_interpret writes and heaptrack_gui opens
 * them, and older versions. Grammar: docs/formats/heaptrack.md. Raw files (heaptrack -r) must be
 * converted by heaptrack_interpret first; the error has the command as a hint.
 *
 *	s <len> <text>                   strings, numbered from 1
 *	i <ip> <module> [<fn> <file> <line>]*   addresses with the functions there, innermost first
 *	t <address> <parent>             stacks, a node is a leaf; parent 0 = the root
 *	a <size> <stack>                 an allocation info: size and stack
 *	+ <a>   - <a>                    an allocation, a free, by the number of its info
 *	c <ms>  R <pages>                the time, the resident set
 *	# strings: <n>  # ips: <n>       the end: without it the file is truncated
 *
 * All numbers are exact: "allocated" and "freed" per second, "live" at the end, "peak" at the
 * maximum of live bytes (the first one, if there are several), temporary allocations by heaptrack's
 * rule (the next event frees the block). A free has only size and stack, not the address, so the
 * age of live blocks is unknown.
 *
 * Peak: each new peak increments a number (epoch). An info stores its live amount of the peak when
 * it first changes in a new epoch, so a new peak does not have to visit all infos.
 *
 * -EINVAL if the first line is not a version, or the file is raw.
 *
 * Most lines are events, so their loop is optimised: no line is copied, hex digits are looked up in
 * a table, and an event accesses only one entry of `infos`.
 */
#include "base/base.h"
#include "format/format.h"

#include <errno.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "format/textframes.h"
#include "model/heap.h"
#include "model/tables.h"

#define START_NS \
	((uint64_t)1000000000) /* added to times, which begin at 0 in the file: 0 means unknown */
#define SECOND_NS      ((uint64_t)1000000000)
#define MS_NS          ((uint64_t)1000000)
#define TIME_MAX_MS    ((uint64_t)1 << 43) /* 278 years; larger times are invalid */
#define RSS_STEP_MS    100                 /* one row of RSS per step, the maximum */
#define INLINES_MAX    256
#define LINE_MAX_BYTES ((size_t)1 << 24)

/*
 * Allocation info (size and stack) with its counts: all data that an event accesses, so an event
 * costs one cache miss. Counts are unsigned, so that those of a malicious file wrap without
 * undefined behaviour; results below 0 (more freed than allocated) become 0.
 */
struct info {
	uint64_t nr_bytes;
	uint64_t epoch; /* the peak that `peak` is of; older: unchanged since */
	uint32_t site;
	uint32_t live;
	uint32_t peak;
	/* in the current second */
	uint32_t calls;
	uint32_t frees;
	uint32_t temporary;
};

/* Blocks of one stack and size class, which become rows. Sums of a second, or of the whole file. */
struct site {
	uint64_t nr[2]; /* allocated and freed; at the end: live and at the peak */
	uint64_t bytes[2];
	uint64_t temporary;
	uint64_t temporary_bytes;
	stack_id stack;
	uint32_t tag;
	bool is_touched;
};

struct reader {
	struct profile *p;
	struct err *err; /* error that ends the reading */
	int rc;
	unsigned file_version;
	bool has_version;
	bool has_command;
	uint64_t page_bytes;
	VEC(str_id) strings; /* by number - 1 */
	VEC(loc_id) ips;
	VEC(stack_id) stacks;
	VEC(struct info) infos;
	VEC(struct site) sites;
	struct map by_site;    /* (stack, class) -> index */
	struct map by_info;    /* version 0: (stack, size) -> index of infos */
	struct map blocks;     /* version 0: address -> index of infos */
	VEC(uint32_t) touched; /* infos of this second */
	VEC(uint32_t) touched_sites;
	uint64_t last; /* info of the last allocation, to recognise temporary ones */

	uint64_t time_ms;
	uint64_t second;
	uint64_t epoch; /* number of the peak */
	uint64_t live_bytes;
	uint64_t peak_bytes;
	uint64_t peak_ms;
	uint64_t nr_events;
	uint64_t rss_ms; /* time of the RSS row that is not yet added */
	uint64_t rss_bytes;
	uint64_t rss_live_bytes;

	task_id task;
	uint32_t allocated;
	uint32_t freed;
	uint32_t live_table;
	uint32_t peak_table;
	uint32_t memory;
	bool has_end; /* the counts that heaptrack writes last */
	uint64_t line_nr;
	uint64_t first_bad_nr;
};

static void reader_release(struct reader *r)
{
	vec_release(&r->strings);
	vec_release(&r->ips);
	vec_release(&r->stacks);
	vec_release(&r->infos);
	vec_release(&r->sites);
	vec_release(&r->touched);
	vec_release(&r->touched_sites);
	map_release(&r->by_site);
	map_release(&r->by_info);
	map_release(&r->blocks);
}

/* ---- fields ------------------------------------------------------------------------------- */

/* Value of a hex digit, or -1. A table, since most characters are digits. */
#define X16(v) v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v
static const int8_t hex_value[256] = {
	X16(-1), X16(-1), X16(-1), 0,       1,       2,       3,  4,  5,       6,       7,
	8,       9,       -1,      -1,      -1,      -1,      -1, -1, -1,      10,      11,
	12,      13,      14,      15,      -1,      -1,      -1, -1, -1,      -1,      -1,
	-1,      -1,      X16(-1), -1,      10,      11,      12, 13, 14,      15,      -1,
	-1,      -1,      -1,      -1,      -1,      -1,      -1, -1, X16(-1), X16(-1), X16(-1),
	X16(-1), X16(-1), X16(-1), X16(-1), X16(-1), X16(-1),
};

/* Parses " 1a2b"; false, with *s unchanged, if the text is not of that form. */
static bool take_hex(struct sv *s, uint64_t *ret_v)
{
	size_t i = 0;
	while (i < s->n && s->p[i] == ' ')
		i++;
	size_t first = i;
	uint64_t v = 0;
	int d;
	for (; i < s->n && (d = hex_value[(uint8_t)s->p[i]]) >= 0; i++) {
		if (v >> 60)
			return false;
		v = v << 4 | (unsigned)d;
	}
	if (i == first || (i < s->n && s->p[i] != ' '))
		return false;
	*ret_v = v;
	s->p += i;
	s->n -= i;
	return true;
}

static void skip_blank(struct sv *s)
{
	if (s->n && s->p[0] == ' ')
		*s = sv_from_idx(*s, 1);
}

static str_id string_at(const struct reader *r, uint64_t number)
{
	return number && number <= r->strings.n ? r->strings.p[number - 1] : 0;
}

/* ---- strings, addresses, stacks, infos ----------------------------------------------------- */

static bool take_string(struct reader *r, struct sv s)
{
	uint64_t len = s.n;
	if (r->file_version >= 3 && !take_hex(&s, &len))
		return false;
	skip_blank(&s);
	vec_push(&r->strings, profile_str(r->p, s.p, MIN(len, (uint64_t)s.n)));
	return true;
}

static bool take_ip(struct reader *r, struct sv s)
{
	uint64_t ip;
	uint64_t module;
	if (!take_hex(&s, &ip) || !take_hex(&s, &module))
		return false;
	str_id path = string_at(r, module);
	VEC(struct text_frame) frames = {0};
	uint64_t fn;
	uint64_t file;
	uint64_t line;
	while (frames.n < INLINES_MAX && take_hex(&s, &fn) && take_hex(&s, &file) &&
	       take_hex(&s, &line))
		vec_push(&frames, (struct text_frame){.name = string_at(r, fn),
						      .path = path,
						      .file = string_at(r, file),
						      .line = (uint32_t)MIN(line, UINT32_MAX),
						      .is_inlined = true});
	bool has_name = frames.n && vec_last(&frames)->name;
	if (has_name)
		vec_last(&frames)->is_inlined = false;
	vec_push(&r->ips, has_name ? text_location(r->p, frames.p, frames.n)
				   : text_unsymbolized(r->p, ip, path, 0));
	vec_release(&frames);
	return true;
}

static bool take_node(struct reader *r, struct sv s)
{
	uint64_t ip;
	uint64_t parent;
	bool is_good = take_hex(&s, &ip) && take_hex(&s, &parent) && ip && ip <= r->ips.n &&
		       parent <= r->stacks.n;
	/* an invalid node keeps its number, as numbers count lines */
	stack_id up = is_good && parent ? r->stacks.p[parent - 1] : 0;
	vec_push(&r->stacks, is_good ? profile_stack(r->p, up, r->ips.p[ip - 1]) : 0);
	return is_good;
}

static uint32_t site_of(struct reader *r, stack_id stack, uint16_t size_class)
{
	bool is_new;
	uint32_t *idx = map_put(&r->by_site, (uint64_t)stack << 16 | size_class, &is_new);
	if (is_new) {
		*idx = (uint32_t)r->sites.n;
		uint32_t tag = profile_tag(r->p, &(struct tag){.log2_ns = LOG2_NONE,
							       .syscall = -1,
							       .size_class = size_class});
		vec_push(&r->sites, (struct site){.stack = stack, .tag = tag});
	}
	return *idx;
}

static bool take_info(struct reader *r, struct sv s)
{
	uint64_t nr_bytes;
	uint64_t stack;
	bool is_good = take_hex(&s, &nr_bytes) && take_hex(&s, &stack) && stack <= r->stacks.n;
	if (!is_good)
		nr_bytes = stack = 0;
	uint32_t site = site_of(r, stack ? r->stacks.p[stack - 1] : 0, heap_size_class(nr_bytes));
	vec_push(&r->infos, (struct info){.nr_bytes = nr_bytes, .site = site});
	return is_good;
}

/* ---- events ------------------------------------------------------------------------------- */

static struct info *touch(struct reader *r, uint64_t idx)
{
	struct info *info = &r->infos.p[idx];
	if (info->epoch != r->epoch) {
		info->peak = info->live;
		info->epoch = r->epoch;
	}
	if (!(info->calls | info->frees))
		vec_push(&r->touched, (uint32_t)idx);
	return info;
}

static void allocate(struct reader *r, uint64_t idx)
{
	struct info *info = touch(r, idx);
	info->live++;
	info->calls++;
	r->live_bytes += info->nr_bytes;
	r->nr_events++;
	if ((int64_t)r->live_bytes > (int64_t)r->peak_bytes) {
		r->peak_bytes = r->live_bytes;
		r->peak_ms = r->time_ms;
		r->epoch++;
	}
}

static void release(struct reader *r, uint64_t idx, bool is_temporary)
{
	struct info *info = touch(r, idx);
	info->live--;
	info->frees++;
	info->temporary += is_temporary;
	r->live_bytes -= info->nr_bytes;
	r->nr_events++;
}

/* Version 0: events have addresses instead of numbers of infos. */
static bool take_old_event(struct reader *r, char kind, struct sv s)
{
	uint64_t nr_bytes;
	uint64_t stack;
	uint64_t address;
	if (kind == '-') {
		if (!take_hex(&s, &address))
			return false;
		const uint32_t *idx = map_get(&r->blocks, address);
		if (idx) {
			release(r, *idx, r->last == address);
			(void)map_del(&r->blocks, address);
			r->last = 0;
		}
		return true;
	}
	if (!take_hex(&s, &nr_bytes) || !take_hex(&s, &stack) || !take_hex(&s, &address) ||
	    stack > r->stacks.n)
		return false;
	bool is_new;
	uint32_t *idx = map_put(&r->by_info, hash_mix(nr_bytes, stack), &is_new);
	if (is_new) {
		*idx = (uint32_t)r->infos.n;
		uint32_t site =
			site_of(r, stack ? r->stacks.p[stack - 1] : 0, heap_size_class(nr_bytes));
		vec_push(&r->infos, (struct info){.nr_bytes = nr_bytes, .site = site});
	}
	*map_put(&r->blocks, address, NULL) = *idx;
	allocate(r, *idx);
	r->last = address;
	return true;
}

static bool take_event(struct reader *r, char kind, uint64_t idx)
{
	if (idx >= r->infos.n)
		return false;
	if (kind == '+') {
		allocate(r, idx);
		r->last = idx;
	} else {
		release(r, idx, r->last == idx);
		r->last = 0; /* as heaptrack does, although 0 is a valid number */
	}
	return true;
}

/* Takes complete lines as long as they are events. Returns the start of the next line. */
static const char *take_events(struct reader *r, const char *p, const char *end)
{
	while (p < end && (*p == '+' || *p == '-') && p[1] == ' ') {
		const char *at = p + 2;
		uint64_t idx = 0;
		int d;
		while ((d = hex_value[(uint8_t)*at]) >= 0) {
			idx = idx << 4 | (unsigned)d;
			at++;
		}
		if (*at != '\n' || at == p + 2 || at > p + 18 || !take_event(r, *p, idx))
			break;
		r->line_nr++;
		p = at + 1;
	}
	return p;
}

/* ---- seconds ------------------------------------------------------------------------------ */

static uint64_t ns_of(uint64_t ms)
{
	return START_NS + ms * MS_NS;
}

static int64_t not_below_0(uint64_t v)
{
	return MAX((int64_t)v, 0);
}

/* Amounts may be negative: another info of the same site has the rest. */
static void add_to_site(struct reader *r, const struct info *info, int64_t first, int64_t second)
{
	struct site *s = &r->sites.p[info->site];
	if (!s->is_touched) {
		s->is_touched = true;
		vec_push(&r->touched_sites, info->site);
	}
	s->nr[0] += (uint64_t)first;
	s->nr[1] += (uint64_t)second;
	s->bytes[0] += (uint64_t)first * info->nr_bytes;
	s->bytes[1] += (uint64_t)second * info->nr_bytes;
	s->temporary += info->temporary;
	s->temporary_bytes += info->temporary * info->nr_bytes;
}

static void reset_sites(struct reader *r)
{
	vec_foreach(idx, &r->touched_sites) {
		struct site *s = &r->sites.p[*idx];
		*s = (struct site){.stack = s->stack, .tag = s->tag};
	}
	vec_clear(&r->touched_sites);
}

static void add_blocks(struct reader *r, uint32_t table, uint64_t time_ns, const struct site *s,
		       int which)
{
	int64_t nr = not_below_0(s->nr[which]);
	int64_t values[HEAP_BLOCK_NR] = {
		[HEAP_BLOCKS] = nr,
		[HEAP_BYTES] = not_below_0(s->bytes[which]),
		[HEAP_SAMPLES] = nr,
	};
	if (nr)
		profile_tagged_sample(r->p, table, time_ns, s->stack, r->task, -1, s->tag, values);
}

static void add_allocated(struct reader *r, uint64_t time_ns, const struct site *s)
{
	int64_t values[HEAP_ALLOCATED_NR] = {
		[HEAP_ALLOCATED_CALLS] = not_below_0(s->nr[0]),
		[HEAP_ALLOCATED_BYTES] = not_below_0(s->bytes[0]),
		[HEAP_ALLOCATED_SAMPLES] = not_below_0(s->nr[0]),
		[HEAP_ALLOCATED_TEMPORARY] = not_below_0(s->temporary),
		[HEAP_ALLOCATED_TEMPORARY_BYTES] = not_below_0(s->temporary_bytes),
	};
	if (s->nr[0] || s->temporary)
		profile_tagged_sample(r->p, r->allocated, time_ns, s->stack, r->task, -1, s->tag,
				      values);
}

static void close_second(struct reader *r)
{
	uint64_t time_ns = START_NS + r->second * SECOND_NS;
	vec_foreach(idx, &r->touched) {
		struct info *info = &r->infos.p[*idx];
		add_to_site(r, info, info->calls, info->frees);
		info->calls = info->frees = info->temporary = 0;
	}
	vec_clear(&r->touched);
	vec_foreach(idx, &r->touched_sites) {
		add_allocated(r, time_ns, &r->sites.p[*idx]);
		add_blocks(r, r->freed, time_ns, &r->sites.p[*idx], 1);
	}
	reset_sites(r);
}

static bool take_time(struct reader *r, struct sv s)
{
	uint64_t ms;
	if (!take_hex(&s, &ms) || ms > TIME_MAX_MS || ms < r->time_ms)
		return false;
	if (ms / 1000 != r->second) {
		close_second(r);
		r->second = ms / 1000;
	}
	r->time_ms = ms;
	return true;
}

static void write_rss(struct reader *r)
{
	if (!r->rss_bytes)
		return;
	int64_t values[HEAP_MEMORY_NR] = {
		[HEAP_MEMORY_RSS] = not_below_0(r->rss_bytes),
		[HEAP_MEMORY_LIVE] = not_below_0(r->rss_live_bytes),
	};
	profile_sample(r->p, r->memory, ns_of(r->rss_ms), 0, r->task, -1, values);
	r->rss_bytes = 0;
}

static bool take_rss(struct reader *r, struct sv s)
{
	uint64_t nr_pages;
	if (!take_hex(&s, &nr_pages) || nr_pages > (uint64_t)INT64_MAX / r->page_bytes)
		return false;
	if (r->time_ms / RSS_STEP_MS != r->rss_ms / RSS_STEP_MS)
		write_rss(r);
	if (nr_pages * r->page_bytes <= r->rss_bytes)
		return true;
	r->rss_bytes = nr_pages * r->page_bytes;
	r->rss_live_bytes = r->live_bytes;
	r->rss_ms = r->time_ms;
	return true;
}

/* ---- lines -------------------------------------------------------------------------------- */

static bool take_version(struct reader *r, struct sv s)
{
	uint64_t program;
	uint64_t file = 0;
	if (!take_hex(&s, &program))
		return false;
	/* the first files of version 1.2 have no file version */
	if (!take_hex(&s, &file) && program == 0x10200)
		file = 1;
	r->has_version = true;
	r->file_version = (unsigned)MIN(file, (uint64_t)UINT32_MAX);
	if (file > 3)
		r->rc = err_set(r->err, -EINVAL,
				"version %" PRIu64
				" of heaptrack files is not supported (newest: 3)",
				file);
	return true;
}

static bool take_command(struct reader *r, struct sv s)
{
	if (r->has_command) /* heaptrack treats a second one as a damaged file */
		return false;
	r->has_command = true;
	CLEANUP(buf_release) struct buf command = {0};
	buf_add_sv(&command, sv_trim(s));
	profile_fact(r->p, FACT_COMMAND, buf_str(&command));
	struct sv left = sv_trim(s);
	struct sv program = sv_split(&left, ' ');
	struct sv base = sv_from_idx(program, (size_t)(sv_rindex(program, '/') + 1));
	r->task = profile_task(r->p, -1, -1, profile_str(r->p, base.p, base.n), 0);
	return true;
}

static bool take_system(struct reader *r, struct sv s)
{
	uint64_t nr_bytes;
	if (!take_hex(&s, &nr_bytes) || nr_bytes < 512 || nr_bytes > (uint64_t)1 << 30)
		return false;
	r->page_bytes = nr_bytes;
	return true;
}

/* Attached: events until here are from before the capture. */
static bool take_attached(struct reader *r)
{
	profile_fact(r->p, FACT_HEAP_ATTACHED, "attach");
	r->live_bytes = r->peak_bytes = 0;
	r->epoch++;
	return true;
}

static bool refuse_raw(struct reader *r)
{
	r->rc = err_set(r->err, -EINVAL, "a raw heaptrack file: its addresses are not symbolized");
	err_hint(r->err, "/usr/lib/heaptrack/libexec/heaptrack_interpret < FILE > FILE.heaptrack, "
			 "on the machine where it was recorded");
	return true;
}

static bool take_line(struct reader *r, struct sv line)
{
	struct sv s = sv_from_idx(line, 1);
	uint64_t idx;
	switch (line.p[0]) {
	case 'v':
		return take_version(r, s);
	case 'X':
		return take_command(r, s);
	case 'I':
		return take_system(r, s);
	case 'A':
		return take_attached(r);
	case 's':
		return take_string(r, s);
	case 'i':
		return take_ip(r, s);
	case 't':
		return take_node(r, s);
	case 'a':
		return take_info(r, s);
	case 'c':
		return take_time(r, s);
	case 'R':
		return take_rss(r, s);
	case '+':
	case '-':
		if (!r->file_version)
			return take_old_event(r, line.p[0], s);
		return take_hex(&s, &idx) && take_event(r, line.p[0], idx);
	case 'x':
	case 'm':
		return refuse_raw(r);
	case '#':
		r->has_end |= sv_has_prefix(s, SV(" ips:"));
		return true;
	case 'S': /* leak suppressions */
		return true;
	}
	return false;
}

static void take_any_line(struct reader *r, struct sv line)
{
	r->line_nr++;
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (!line.n)
		return;
	if (!r->has_version && line.p[0] != 'v') {
		r->rc = err_set(r->err, -EINVAL, "line %" PRIu64 ": expected 'v VERSION VERSION'",
				r->line_nr);
		return;
	}
	if (take_line(r, line))
		return;
	format_bad_line(r->p, r->line_nr, &r->first_bad_nr);
}

static int take_lines(void *ctx, struct sv text)
{
	struct reader *r = ctx;
	const char *p = text.p;
	const char *end = p + text.n;
	const char *last = text.n ? memrchr(p, '\n', text.n) : NULL;
	while (p < end && !r->rc) {
		if (last && r->file_version)
			p = take_events(r, p, last + 1);
		if (p == end)
			break;
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((nl ? nl : end) - p);
		take_any_line(r, sv_from(p, MIN(n, LINE_MAX_BYTES)));
		p = nl ? nl + 1 : end;
	}
	return r->rc;
}

/* ---- the whole file ----------------------------------------------------------------------- */

static void make_tables(struct reader *r)
{
	r->allocated = tables_add(r->p, TABLE_ALLOCATED, 0);
	r->freed = tables_add(r->p, TABLE_FREED, 0);
	r->live_table = tables_add(r->p, TABLE_LIVE, 0);
	r->peak_table = tables_add(r->p, TABLE_PEAK, 0);
	r->memory = tables_add(r->p, TABLE_MEMORY, 0);
	r->p->start_ns = START_NS;
	r->page_bytes = 4096;
}

static bool is_negative(const struct site *s)
{
	return (int64_t)s->nr[0] < 0 || (int64_t)s->bytes[0] < 0 || (int64_t)s->nr[1] < 0 ||
	       (int64_t)s->bytes[1] < 0;
}

/*
 * Files that assay wrote of sources without sizes may free other sizes than were allocated. The
 * sums of a stack are right, but not those of its size classes, so the classes are merged.
 */
static void join_classes(struct reader *r)
{
	CLEANUP(free_p) bool *is_mixed = xcalloc(r->p->stacks.n, sizeof(*is_mixed));
	vec_foreach(idx, &r->touched_sites)
		is_mixed[r->sites.p[*idx].stack] |= is_negative(&r->sites.p[*idx]);
	size_t nr_touched = r->touched_sites.n;
	for (size_t i = 0; i < nr_touched; i++) {
		uint32_t from = r->touched_sites.p[i];
		stack_id stack = r->sites.p[from].stack;
		uint32_t to = is_mixed[stack] ? site_of(r, stack, 0) : from;
		if (to == from)
			continue;
		struct site *s = &r->sites.p[from];
		struct site *all = &r->sites.p[to];
		if (!all->is_touched)
			vec_push(&r->touched_sites, to);
		all->is_touched = true;
		for (size_t which = 0; which < 2; which++) {
			all->nr[which] += s->nr[which];
			all->bytes[which] += s->bytes[which];
			s->nr[which] = s->bytes[which] = 0;
		}
	}
}

static void finish(struct reader *r)
{
	close_second(r);
	write_rss(r);
	vec_foreach(info, &r->infos) {
		uint32_t peak = info->epoch == r->epoch ? info->peak : info->live;
		if (info->live || peak)
			add_to_site(r, info, (int32_t)info->live, (int32_t)peak);
	}
	join_classes(r);
	vec_foreach(idx, &r->touched_sites) {
		add_blocks(r, r->live_table, 0, &r->sites.p[*idx], 0);
		add_blocks(r, r->peak_table, ns_of(r->peak_ms), &r->sites.p[*idx], 1);
	}
	struct profile *p = r->p;
	p->end_ns = ns_of(r->time_ms);
	profile_lose(p, LOSS_SEEN, r->nr_events);
	profile_lose(p, LOSS_WRITTEN, r->nr_events);
	profile_fact(p, FACT_SOURCE, "heaptrack");
	profile_fact(p, FACT_HEAP_METHOD, "dump: read from a file of heaptrack's");
	profile_fact(p, FACT_HEAP_SAMPLING, "every allocation");
	if (!profile_get_fact(p, FACT_HEAP_ATTACHED))
		profile_fact(p, FACT_HEAP_ATTACHED, "launch");
	profile_fact_nr(p, FACT_HEAPTRACK_BAD_LINE, r->first_bad_nr);
}

#define READ_STEP ((size_t)256 << 10)

static uint64_t held(const void *ctx)
{
	const struct reader *r = ctx;
	return r->infos.n * sizeof(*r->infos.p) + r->sites.n * sizeof(*r->sites.p) +
	       (r->strings.n + r->ips.n + r->stacks.n) * sizeof(uint32_t) +
	       (r->by_site.cap + r->by_info.cap + r->blocks.cap) * sizeof(*r->blocks.slots);
}

int heaptrack_read(struct profile *p, const struct format_input *in,
		   const struct format_options *options, struct err *err)
{
	(void)options;
	CLEANUP(reader_release) struct reader r = {.p = p, .err = err};
	make_tables(&r);
	struct format_lines to = {p, READ_STEP, LINE_MAX_BYTES, take_lines, held, &r};
	TRY(format_input_lines(in, &to, err));
	finish(&r);
	if (to.is_open)
		format_truncated(p, FORMAT_OPEN_LINE);
	else if (!r.has_end)
		format_truncated(p, "the counts ('# strings', '# ips') that heaptrack writes last "
				    "are missing");
	return 0;
}

int heaptrack_sniff(struct sv head)
{
	struct sv line = sv_split(&head, '\n');
	uint64_t version;
	struct sv s = sv_from_idx(line, 1);
	if (!line.n || line.p[0] != 'v' || !take_hex(&s, &version) || version > 0xffffff)
		return 0;
	/* the next line must be a letter and a blank, or not read yet */
	bool is_line = !head.n || (head.n > 1 && strchr("XIsxAcS#", head.p[0]) &&
				   (head.p[1] == ' ' || head.p[0] == 'A' || head.p[0] == '#'));
	return is_line ? 95 : 0;
}
