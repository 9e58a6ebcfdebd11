/* Reader of folded stacks; see folded.h. The writer is folded_write.c. */
#include "base/base.h"
#include "format/folded.h"

#include <errno.h>
#include <math.h>

#include "base/text/lines.h"
#include "base/map.h"
#include "base/hash.h"
#include "base/vec.h"
#include "format/format.h"
#include "format/textframes.h"

#define READ_STEP      ((size_t)64 << 10) /* fits the CPU cache */
#define LINE_MAX_BYTES ((size_t)64 << 20)

struct folded_line {
	struct sv stack;
	struct sv before; /* second count of a difference, else empty */
	struct sv count;
};

struct folded_frame {
	struct text_frame f;
	loc_id loc; /* of the frame alone; 0: not known yet */
};

/* Where a group of frames begins in the text of a stack, and the stack above it. */
struct folded_seat {
	size_t at;
	stack_id id;
};

/* What the first frames of a file are. */
enum folded_roots {
	ROOTS_ARE_FRAMES,
	ROOTS_ARE_COMMS,
	ROOTS_HAVE_IDS, /* comm-PID or comm-PID/TID */
};

struct folded_reader {
	struct profile *p;
	const struct folded_options *options;
	uint32_t table;        /* the counts */
	uint32_t before_table; /* of a difference */
	bool is_difference;
	struct map texts; /* hash of a frame's text -> index into frames */
	VEC(struct folded_frame) frames;
	VEC(uint32_t) group;           /* of the location being built: frames, innermost last */
	VEC(struct text_frame) inward; /* scratch: the group, innermost first */
	struct sv before;              /* text of the stack before, in the same block of lines */
	VEC(struct folded_seat) seats; /* of that text, outermost first */
	uint64_t nr_rounded;
	uint64_t line_nr;
	uint64_t nr_good; /* lines */
	uint64_t first_bad_nr;
	bool is_first_bad_long; /* else it has no count */
	enum folded_roots roots;
};

static bool is_number(struct sv s)
{
	if (!s.n || s.p[0] < '0' || s.p[0] > '9')
		return false;
	size_t nr_points = 0;
	for (size_t i = 0; i < s.n; i++) {
		nr_points += s.p[i] == '.';
		if (s.p[i] != '.' && (s.p[i] < '0' || s.p[i] > '9'))
			return false;
	}
	return nr_points <= 1;
}

static struct sv drop_blanks(struct sv s)
{
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

/* Cuts the last blank-separated word off *s if it is a number. */
static bool cut_number(struct sv *s, struct sv *ret_number)
{
	size_t i = s->n;
	while (i && s->p[i - 1] != ' ' && s->p[i - 1] != '\t')
		i--;
	struct sv word = sv_from(s->p + i, s->n - i);
	if (!i || !is_number(word))
		return false;
	struct sv left = drop_blanks(sv_from(s->p, i));
	if (!left.n)
		return false;
	*ret_number = word;
	*s = left;
	return true;
}

static bool split_line(struct sv line, bool is_difference, struct folded_line *ret_l)
{
	struct folded_line l = {.stack = drop_blanks(line)};
	if (!cut_number(&l.stack, &l.count))
		return false;
	if (is_difference && !cut_number(&l.stack, &l.before))
		return false;
	*ret_l = l;
	return true;
}

static bool is_skipped(struct sv line)
{
	return !drop_blanks(line).n || (line.p[0] == '#' && (line.n == 1 || line.p[1] == ' '));
}

/* The complete lines of the head. */
static struct sv whole_lines(const struct format_input *in)
{
	ssize_t last = in->rest ? sv_rindex(in->head, '\n') : -1;
	return last < 0 ? in->head : sv_from(in->head.p, (size_t)last + 1);
}

/* Whether all of the first thousand lines end with two counts, and there is at least one line. */
static bool has_two_counts(struct sv text)
{
	struct lines in = lines_from(text.p, text.n);
	struct sv line;
	size_t nr = 0;
	while (in.nr < 1000 && lines_next(&in, &line)) {
		struct folded_line l;
		if (is_skipped(line) || !split_line(line, false, &l))
			continue;
		if (!split_line(line, true, &l))
			return false;
		nr++;
	}
	return nr > 0;
}

/* ---- frames ------------------------------------------------------------------------------- */

static void parse_frame(struct folded_reader *r, struct sv text, struct text_frame *ret_f)
{
	struct text_frame f = {0};
	if (text.n > 4 && text.p[text.n - 4] == '_' && text.p[text.n - 3] == '[' &&
	    text.p[text.n - 1] == ']') {
		char mark = text.p[text.n - 2];
		f.is_inlined = mark == 'i';
		f.func_flags = mark == 'k' ? FUNC_KERNEL : mark == 'j' ? FUNC_JIT : 0;
		f.is_inferred = mark == 't';
		if (f.is_inlined || f.is_inferred || f.func_flags)
			text.n -= 4;
		/* separate modules, so that read() and read()_[k] are different functions */
		if (f.func_flags)
			f.path = profile_cstr(r->p, mark == 'k' ? "[kernel]" : "[jit]");
	}
	f.name = profile_str(r->p, text.p, text.n);
	*ret_f = f;
}

static uint32_t find_frame(struct folded_reader *r, struct sv text)
{
	bool is_new;
	uint32_t *idx = map_put(&r->texts, hash_bytes(text.p, text.n), &is_new);
	if (is_new) {
		*idx = (uint32_t)r->frames.n;
		struct folded_frame f = {0};
		parse_frame(r, text, &f.f);
		vec_push(&r->frames, f);
	}
	return *idx;
}

static loc_id location_of_group(struct folded_reader *r)
{
	size_t n = r->group.n;
	vec_clear(&r->inward);
	while (n-- > 0)
		vec_push(&r->inward, r->frames.p[r->group.p[n]].f);
	return text_location(r->p, r->inward.p, r->inward.n);
}

/* Adds the location of a function and of those inlined into it, which follow it in the text. */
static stack_id add_group(struct folded_reader *r, stack_id parent)
{
	if (!r->group.n)
		return parent;
	loc_id *known = r->group.n == 1 ? &r->frames.p[r->group.p[0]].loc : NULL;
	loc_id loc = known && *known ? *known : location_of_group(r);
	if (known)
		*known = loc;
	vec_clear(&r->group);
	return profile_stack(r->p, parent, loc);
}

static size_t nr_common(struct sv a, struct sv b)
{
	size_t n = MIN(a.n, b.n);
	size_t i = 0;
	while (i + 8 <= n && !memcmp(a.p + i, b.p + i, 8))
		i += 8;
	while (i < n && a.p[i] == b.p[i])
		i++;
	return i;
}

/*
 * Neighbouring lines of most files begin with the same frames, which need no look-up: returns the
 * last group of frames that ends where both texts are still equal. The group after it may differ, or
 * have one more inlined frame.
 */
static struct folded_seat shared_with_before(struct folded_reader *r, struct sv stack)
{
	size_t nr = nr_common(r->before, stack);
	size_t n = r->seats.n;
	while (n && r->seats.p[n - 1].at > nr)
		n--;
	r->before = stack;
	r->seats.n = n < 2 ? 0 : n - 2;
	return n < 2 ? (struct folded_seat){0} : r->seats.p[n - 2];
}

static stack_id add_stack(struct folded_reader *r, struct sv stack)
{
	const char *start = stack.p;
	struct folded_seat seat = shared_with_before(r, stack);
	stack_id id = seat.id;
	stack = sv_from_idx(stack, seat.at);
	while (stack.n) {
		struct sv text = sv_split(&stack, ';');
		if (!text.n)
			continue;
		uint32_t frame = find_frame(r, text);
		if (!r->frames.p[frame].f.is_inlined || r->group.n >= UINT16_MAX) {
			id = add_group(r, id);
			vec_push(&r->seats, (struct folded_seat){(size_t)(text.p - start), id});
		}
		vec_push(&r->group, frame);
	}
	return add_group(r, id);
}

static bool parse_i32(struct sv s, int32_t *ret_v)
{
	uint64_t v;
	if (!sv_to_u64(s, &v) || v > INT32_MAX)
		return false;
	*ret_v = (int32_t)v;
	return true;
}

struct root {
	struct sv comm;
	int32_t pid; /* -1: unknown */
	int32_t tid;
};

/* Whether it is comm-PID or comm-PID/TID; "?" is an unknown PID. */
static bool parse_ids(struct sv text, struct root *ret_root)
{
	struct root root = {.pid = -1, .tid = -1};
	ssize_t dash = sv_rindex(text, '-');
	if (dash <= 0)
		return false;
	struct sv tids = sv_from_idx(text, (size_t)dash + 1);
	bool has_tid = sv_index(tids, '/') >= 0;
	struct sv pids = sv_split(&tids, '/');
	if ((!sv_eq(pids, SV("?")) && !parse_i32(pids, &root.pid)) ||
	    (has_tid && !sv_eq(tids, SV("?")) && !parse_i32(tids, &root.tid)))
		return false;
	root.comm = sv_from(text.p, (size_t)dash);
	*ret_root = root;
	return true;
}

static task_id task_of_root(struct folded_reader *r, struct sv text)
{
	struct root root = {.comm = text, .pid = -1, .tid = -1};
	if (r->roots == ROOTS_HAVE_IDS)
		(void)parse_ids(text, &root);
	str_id comm = profile_str(r->p, root.comm.p, root.comm.n);
	return profile_task(r->p, root.pid, root.tid, comm, 0);
}

/* Whether no function calls this one: what is above it in a stack is not a frame. */
static bool is_outermost(struct sv frame)
{
	static const char *const whole[] = {"_start",         "start_thread", "thread_start",
					    "_pthread_start", "kthread",      "x86_64_start_kernel",
					    "[truncated]"};
	static const char *const begin[] = {"__libc_start_main", "__libc_start_call_main",
					    "ret_from_fork", "secondary_startup", "runtime.goexit"};
	if (frame.n > 4 && sv_eq(sv_from_idx(frame, frame.n - 4), SV("_[k]")))
		frame.n -= 4;
	for (size_t i = 0; i < ARRAY_LEN(whole); i++)
		if (sv_eq_str(frame, whole[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(begin); i++)
		if (sv_has_prefix(frame, sv_from_str(begin[i])))
			return true;
	return false;
}

/* Whether a first frame can be no thread: clone calls start_thread, "[unknown]" anything. */
static bool is_surely_frame(struct sv root)
{
	return is_outermost(root) || sv_has_prefix(root, SV("[")) ||
	       memmem(root.p, root.n, "clone", 5);
}

/* See folded.h. */
static enum folded_roots find_roots(struct sv head, bool is_difference)
{
	struct lines in = lines_from(head.p, head.n);
	struct sv line;
	size_t nr = 0;
	size_t nr_ids = 0;
	bool has_evidence = false;
	while (lines_next(&in, &line)) {
		struct folded_line l;
		struct root root;
		if (is_skipped(line) || !split_line(line, is_difference, &l))
			continue;
		struct sv text = sv_split(&l.stack, ';');
		if (is_outermost(text))
			return ROOTS_ARE_FRAMES;
		nr++;
		nr_ids += parse_ids(text, &root);
		has_evidence |= !is_surely_frame(text) && is_outermost(sv_split(&l.stack, ';'));
	}
	if (nr && nr_ids == nr)
		return ROOTS_HAVE_IDS;
	return has_evidence ? ROOTS_ARE_COMMS : ROOTS_ARE_FRAMES;
}

/* ---- lines -------------------------------------------------------------------------------- */

static bool parse_count(struct folded_reader *r, struct sv s, int64_t *ret_v)
{
	uint64_t v;
	if (sv_to_u64(s, &v)) {
		*ret_v = (int64_t)v;
		return v <= INT64_MAX;
	}
	double d;
	if (!sv_to_double(s, &d) || !(d < 9e18))
		return false;
	*ret_v = llround(d);
	r->nr_rounded += (double)*ret_v != d;
	return true;
}

static void add_line(struct folded_reader *r, struct sv text, uint64_t line_nr)
{
	struct profile *p = r->p;
	struct folded_line l;
	int64_t count = 0;
	int64_t before = 0;
	bool is_long = text.n >= LINE_MAX_BYTES; /* its middle may be missing */
	if (is_long || !split_line(text, r->is_difference, &l) ||
	    !parse_count(r, l.count, &count) ||
	    (r->is_difference && !parse_count(r, l.before, &before))) {
		r->is_first_bad_long |= is_long && !r->first_bad_nr;
		format_bad_line(p, line_nr, &r->first_bad_nr);
		return;
	}
	task_id task = 0;
	if (r->roots != ROOTS_ARE_FRAMES)
		task = task_of_root(r, sv_split(&l.stack, ';'));
	stack_id stack = add_stack(r, l.stack);
	if (r->is_difference && before)
		profile_sample(p, r->before_table, 0, stack, task, -1, &before);
	if (count || !r->is_difference)
		profile_sample(p, r->table, 0, stack, task, -1, &count);
	profile_lose(p, LOSS_SEEN, (uint64_t)count);
	profile_lose(p, LOSS_WRITTEN, (uint64_t)count);
}

static int take_lines(void *ctx, struct sv text)
{
	struct folded_reader *r = ctx;
	struct lines lines = lines_from(text.p, text.n);
	struct sv line;
	r->before = SV("");
	vec_clear(&r->seats);
	while (lines_next(&lines, &line)) {
		r->line_nr++;
		if (is_skipped(line))
			continue;
		uint64_t nr_bad = r->p->losses.nr[LOSS_UNPARSED];
		add_line(r, line, r->line_nr);
		r->nr_good += r->p->losses.nr[LOSS_UNPARSED] == nr_bad;
	}
	return 0;
}

static uint32_t add_table(struct profile *p, const char *event)
{
	struct table shape = {
		.event = profile_cstr(p, event), .time_kind = TABLE_TIME_TIMELESS, .nr_columns = 1};
	shape.columns[0] = (struct column){.name = profile_cstr(p, "samples")};
	return profile_table(p, &shape);
}

static void reader_release(struct folded_reader *r)
{
	map_release(&r->texts);
	vec_release(&r->frames);
	vec_release(&r->group);
	vec_release(&r->inward);
	vec_release(&r->seats);
}

static uint64_t held(const void *ctx)
{
	const struct folded_reader *r = ctx;
	return r->frames.n * sizeof(*r->frames.p) + r->texts.cap * sizeof(*r->texts.slots);
}

int folded_read(struct profile *p, const struct format_input *in,
		const struct format_options *options, struct err *err)
{
	CLEANUP(reader_release) struct folded_reader r = {.p = p, .options = &options->folded};
	r.is_difference = has_two_counts(whole_lines(in));
	if (options->folded.flags & FOLDED_FIND_THREADS)
		r.roots = find_roots(whole_lines(in), r.is_difference);
	const char *event = options->folded.read_event;
	if (r.is_difference)
		r.before_table = add_table(p, TABLES_BEFORE);
	r.table = add_table(p, r.is_difference ? TABLES_AFTER : event ? event : "samples");
	struct format_lines to = {p, READ_STEP, LINE_MAX_BYTES, take_lines, held, &r};
	TRY(format_input_lines(in, &to, err));
	if (!r.nr_good && r.first_bad_nr)
		return err_set(err, -EINVAL, "line %" PRIu64 ": %s", r.first_bad_nr,
			       r.is_first_bad_long ? "longer than 64 MiB"
						   : "expected 'frame;frame count'");
	profile_fact(p, FACT_SOURCE, "folded");
	if (to.is_open) /* other programs than perf's scripts may omit it */
		profile_fact(p, FACT_PROBLEM, "the file may be truncated: " FORMAT_OPEN_LINE);
	profile_fact_nr(p, FACT_FOLDED_ROUNDED, r.nr_rounded);
	profile_fact_nr(p, FACT_FOLDED_BAD_LINE, r.first_bad_nr);
	return 0;
}

/* Whether the line begins like JSON or markup, which may be one long line with semicolons. */
static bool is_markup(struct sv line)
{
	return line.n && (line.p[0] == '{' || line.p[0] == '<' || sv_has_prefix(line, SV("[{")) ||
			  sv_has_prefix(line, SV("[\"")));
}

/* Whether numbers precede the count: a table of columns, unless there are frames. */
static bool has_columns(struct sv stack)
{
	struct sv number;
	return cut_number(&stack, &number) && cut_number(&stack, &number);
}

int folded_sniff(struct sv head)
{
	struct lines in = lines_from(head.p, head.n);
	struct sv line;
	size_t nr_good = 0;
	size_t nr_bad = 0;
	size_t nr_deep = 0;
	bool is_table = false;
	while (lines_next(&in, &line) && in.nr <= 100) {
		struct folded_line l;
		bool is_cut = in.p == in.end && head.n >= FORMAT_SNIFF_BYTES;
		if (is_skipped(line))
			continue;
		bool is_text = !memchr(line.p, 0, line.n);
		if (is_cut && in.nr == 1) /* a first line longer than the head */
			return is_text && sv_index(line, ';') >= 0 && !is_markup(line) ? 30 : 0;
		if (is_cut)
			continue;
		bool is_good = is_text && split_line(line, false, &l);
		nr_good += is_good;
		nr_bad += !is_good;
		nr_deep += is_good && sv_index(l.stack, ';') >= 0;
		is_table |= is_good && has_columns(l.stack);
	}
	if (!nr_good || nr_bad > nr_good)
		return 0;
	if (nr_deep)
		return 80;
	return is_table || nr_bad * 4 > nr_good ? 0 : 20;
}
