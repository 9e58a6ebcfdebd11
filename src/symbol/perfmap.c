/* JIT code ranges, and the parser of /tmp/perf-PID.map; see perfmap.h and jitcode.h. */
#include "base/base.h"
#include "symbol/perfmap.h"

#include <errno.h>

#include "base/mem.h"
#include "symbol/jitcode.h"

#define TEXT_BYTES_MAX  ((size_t)2 << 30)
#define STEP_BYTES      ((size_t)256 << 10)
#define NAMES_BYTES_MAX ((size_t)1 << 30)
#define SIZELESS_BYTES  4096 /* maximum length of an entry of size 0 */
#define VISITED_MAX     4096 /* maximum number of ranges visited for one address */

void perfmap_free(struct perfmap *m)
{
	if (!m)
		return;
	vec_release(&m->ranges);
	vec_release(&m->lines);
	buf_release(&m->names);
	free(m);
}

/* ---- the tree ---- */

uint32_t jitcode_add_name(struct perfmap *m, struct sv name, uint32_t *ret_nr_bytes)
{
	size_t n = MIN(name.n, JITCODE_NAME_BYTES_MAX);
	if (m->names.n + n > NAMES_BYTES_MAX)
		return JITCODE_NONE;
	uint32_t at = (uint32_t)m->names.n;
	buf_add(&m->names, name.p, n);
	*ret_nr_bytes = (uint32_t)n;
	return at;
}

bool jitcode_add(struct perfmap *m, struct jitcode_range r)
{
	if (r.end <= r.start || m->ranges.n >= JITCODE_RANGES_MAX) {
		m->nr_bad++;
		return false;
	}
	r.seq = (uint32_t)m->ranges.n;
	vec_push(&m->ranges, r);
	return true;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct jitcode_range *x = a;
	const struct jitcode_range *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* The depth is at most log2 of 2^23 ranges. */
static uint64_t set_max_end(struct jitcode_range *r, size_t n)
{
	if (!n)
		return 0;
	size_t mid = n / 2;
	uint64_t left = set_max_end(r, mid);
	uint64_t right = set_max_end(r + mid + 1, n - mid - 1);
	r[mid].max_end = MAX(r[mid].end, MAX(left, right));
	return r[mid].max_end;
}

void jitcode_seal(struct perfmap *m)
{
	bool is_sorted = true;
	for (size_t i = 1; i < m->ranges.n && is_sorted; i++)
		is_sorted = m->ranges.p[i - 1].start <= m->ranges.p[i].start;
	if (!is_sorted)
		qsort(m->ranges.p, m->ranges.n, sizeof(*m->ranges.p), compare_ranges);
	(void)set_max_end(m->ranges.p, m->ranges.n);
}

struct search {
	uint64_t addr;
	uint64_t time_ns;
	const struct jitcode_range *now;   /* the newest one not after time_ns */
	const struct jitcode_range *later; /* the oldest one after time_ns */
	unsigned nr_visited;
};

static void consider(struct search *s, const struct jitcode_range *r)
{
	s->nr_visited++;
	if (!s->time_ns || r->time_ns <= s->time_ns) {
		if (!s->now || r->seq > s->now->seq)
			s->now = r;
	} else if (!s->later || r->seq < s->later->seq) {
		s->later = r;
	}
}

static void search_tree(struct search *s, const struct jitcode_range *r, size_t n)
{
	while (n && s->nr_visited < VISITED_MAX) {
		size_t mid = n / 2;
		if (r[mid].max_end <= s->addr)
			return;
		if (r[mid].start <= s->addr) {
			if (s->addr < r[mid].end)
				consider(s, &r[mid]);
			search_tree(s, r + mid + 1, n - mid - 1);
		}
		n = mid;
	}
}

static void find_line(const struct perfmap *m, const struct jitcode_range *r, uint64_t addr,
		      struct sv *ret_file, uint32_t *ret_line)
{
	*ret_file = SV("");
	*ret_line = 0;
	uint64_t at = addr - r->start;
	if (!r->nr_lines)
		return;
	const struct jitcode_line *lines = m->lines.p + r->lines;
	size_t nr = upper_bound(lines, r->nr_lines, at, at);
	if (!nr)
		return;
	const struct jitcode_line *l = &lines[nr - 1];
	*ret_file = sv_from(m->names.p + l->file_at, l->nr_file_bytes);
	*ret_line = l->line;
}

bool perfmap_find(const struct perfmap *m, uint64_t addr, uint64_t time_ns, struct sv *ret_name,
		  uint64_t *ret_start, struct sv *ret_file, uint32_t *ret_line)
{
	struct search s = {.addr = addr, .time_ns = m->is_timed ? time_ns : 0};
	search_tree(&s, m->ranges.p, m->ranges.n);
	const struct jitcode_range *r = s.now ? s.now : s.later;
	if (!r || r->name_at == JITCODE_NONE)
		return false;
	*ret_name = sv_from(m->names.p + r->name_at, r->nr_name_bytes);
	*ret_start = r->start;
	find_line(m, r, addr, ret_file, ret_line);
	return true;
}

/* ---- /tmp/perf-PID.map ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Parses a hexadecimal number and the blanks after it. */
static bool take_hex(const char **p, const char *end, uint64_t *ret_v)
{
	const char *q = *p;
	while (q < end && !is_blank(*q))
		q++;
	if (q == end || !sv_to_hex(sv_from(*p, (size_t)(q - *p)), ret_v))
		return false;
	while (q < end && is_blank(*q))
		q++;
	*p = q;
	return true;
}

static bool read_line(struct perfmap *m, const char *p, const char *end)
{
	uint64_t start;
	uint64_t nr_bytes;
	while (end > p && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	if (!take_hex(&p, end, &start) || !take_hex(&p, end, &nr_bytes) || p == end ||
	    nr_bytes > UINT64_MAX - start)
		return false;
	struct jitcode_range r = {.start = start, .end = start + nr_bytes};
	r.name_at = jitcode_add_name(m, sv_from(p, (size_t)(end - p)), &r.nr_name_bytes);
	if (r.name_at == JITCODE_NONE)
		return false;
	if (!nr_bytes)
		r.end = MIN(start, UINT64_MAX - SIZELESS_BYTES) + SIZELESS_BYTES;
	(void)jitcode_add(m, r); /* counts rejected ranges */
	return true;
}

/* Takes the lines of a text; the last one need not end with a newline. */
static void read_lines(struct perfmap *m, const char *p, const char *end)
{
	while (p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		eol = eol ? eol : end;
		if (eol > p && !read_line(m, p, eol))
			m->nr_bad++;
		p = eol + 1;
	}
}

int perfmap_parse(struct perfmap **ret_m, struct sv text, struct err *err)
{
	if (text.n > TEXT_BYTES_MAX)
		return err_set(err, -EFBIG, "perf map of %zu bytes", text.n);
	struct perfmap *m = xcalloc(1, sizeof(*m));
	read_lines(m, text.p, text.p + text.n);
	jitcode_seal(m);
	*ret_m = m;
	return 0;
}

/*
 * Takes the complete lines of a step, all of it if it @is_last or is one line; returns where the
 * rest begins. *is_skipped: the step begins within a line that is longer than a step.
 */
static const char *read_step(struct perfmap *m, const char *step, const char *end, bool is_last,
			     bool *is_skipped)
{
	const char *from = step;
	if (*is_skipped) {
		const char *eol = memchr(step, '\n', (size_t)(end - step));
		from = eol ? eol + 1 : end;
		*is_skipped = !eol;
	}
	const char *last = memrchr(from, '\n', (size_t)(end - from));
	bool is_long = !last && from == step && end == step + STEP_BYTES;
	*is_skipped |= is_long;
	const char *to = is_long || is_last ? end : last ? last + 1 : from;
	read_lines(m, from, to);
	return to;
}

int perfmap_read(struct perfmap **ret_m, const struct byte_source *file, struct err *err)
{
	uint64_t size = (uint64_t)file->st.st_size;
	if (size > TEXT_BYTES_MAX)
		return err_set(err, -EFBIG, "larger than %zu bytes", TEXT_BYTES_MAX);
	CLEANUP(perfmap_free_p) struct perfmap *m = xcalloc(1, sizeof(*m));
	CLEANUP(free_p) char *step = xmalloc(STEP_BYTES);
	size_t nr_kept = 0; /* of a line that is not complete */
	bool is_skipped = false;
	for (uint64_t at = 0; at < size;) {
		size_t n = MIN(STEP_BYTES - nr_kept, size - at);
		TRY(file->ops->read(file->ctx, step + nr_kept, n, at, err));
		at += n;
		const char *end = step + nr_kept + n;
		const char *rest = read_step(m, step, end, at == size, &is_skipped);
		nr_kept = (size_t)(end - rest);
		memmove(step, rest, nr_kept);
	}
	jitcode_seal(m);
	*ret_m = TAKE(m);
	return 0;
}
