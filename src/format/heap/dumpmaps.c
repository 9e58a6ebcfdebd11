/* Stacks and mappings of allocators' dumps; see dumpmaps.h. */
#include "base/base.h"
#include "format/heap/dumpmaps.h"

#include <math.h>

#include "base/file/file.h"
#include "base/text/lines.h"

#define DEPTH_MAX 65536 /* frames; no program has more */

/* ---- numbers ------------------------------------------------------------------------------ */

static void skip_blanks(struct sv *s)
{
	while (s->n && (s->p[0] == ' ' || s->p[0] == '\t')) {
		s->p++;
		s->n--;
	}
}

static bool take_ch(struct sv *s, char c)
{
	skip_blanks(s);
	if (!s->n || s->p[0] != c)
		return false;
	s->p++;
	s->n--;
	return true;
}

static bool take_u64(struct sv *s, uint64_t *ret_v)
{
	skip_blanks(s);
	uint64_t v = 0;
	size_t i = 0;
	for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s->p[i] - '0'), &v))
			return false;
	if (!i)
		return false;
	*s = sv_from_idx(*s, i);
	*ret_v = v;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool take_hex(struct sv *s, uint64_t *ret_v)
{
	skip_blanks(s);
	size_t i = s->n >= 2 && s->p[0] == '0' && (s->p[1] | 32) == 'x' ? 2 : 0;
	size_t first = i;
	uint64_t v = 0;
	int d;
	for (; i < s->n && (d = hex_digit(s->p[i])) >= 0; i++) {
		if (v >> 60)
			return false;
		v = v << 4 | (uint64_t)d;
	}
	if (i == first)
		return false;
	*s = sv_from_idx(*s, i);
	*ret_v = v;
	return true;
}

bool dumpmaps_row(struct sv text, struct dump_sum *ret_live, struct dump_sum *ret_all,
		  struct sv *ret_rest)
{
	struct dump_sum live;
	struct dump_sum all;
	if (!take_u64(&text, &live.nr) || !take_ch(&text, ':') ||
	    !take_u64(&text, &live.nr_bytes) || !take_ch(&text, '[') || !take_u64(&text, &all.nr) ||
	    !take_ch(&text, ':') || !take_u64(&text, &all.nr_bytes) || !take_ch(&text, ']'))
		return false;
	*ret_live = live;
	*ret_all = all;
	*ret_rest = sv_trim(text);
	return true;
}

/* @taken: the probability with which each block of a row was sampled. */
static struct dump_estimate scale(struct dump_sum sum, double taken)
{
	struct dump_estimate e = {.nr = (double)sum.nr, .nr_bytes = (double)sum.nr_bytes};
	if (!sum.nr || !(taken > 0)) /* blocks of 0 bytes are never sampled */
		return e;
	double each = e.nr_bytes / e.nr / taken;
	e.variance = e.nr * each * each * (1 - taken);
	e.nr /= taken;
	e.nr_bytes /= taken;
	return e;
}

static double mean_in_intervals(struct dump_sum sum, uint64_t interval)
{
	return sum.nr ? (double)sum.nr_bytes / (double)sum.nr / (double)interval : 0;
}

struct dump_estimate dumpmaps_unbias(struct dump_sum sum, uint64_t interval)
{
	return scale(sum, interval ? -expm1(-mean_in_intervals(sum, interval)) : 1);
}

struct dump_estimate dumpmaps_unbias_v1(struct dump_sum sum, uint64_t interval)
{
	double ratio = interval ? mean_in_intervals(sum, interval) : 1;
	return scale(sum, MIN(ratio, 1.0));
}

int64_t dumpmaps_round(double v)
{
	if (!(v > 0))
		return 0;
	return v < 9.2e18 ? llround(v) : INT64_MAX;
}

/* ---- mappings ----------------------------------------------------------------------------- */

void dumpmaps_split(struct sv dump, struct sv *ret_stacks, struct sv *ret_maps)
{
	static const char *const marks[] = {"MAPPED_LIBRARIES:", "--- Memory map:"};
	*ret_stacks = dump;
	*ret_maps = (struct sv){0};
	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		struct sv left = *ret_stacks;
		size_t len = strlen(marks[i]);
		const char *at;
		while ((at = memmem(left.p, left.n, marks[i], len))) {
			size_t off = (size_t)(at - dump.p);
			if (!off || at[-1] == '\n') {
				*ret_stacks = sv_from(dump.p, off);
				*ret_maps = sv_from_idx(dump, off + len);
				break;
			}
			left = sv_from_idx(left, (size_t)(at - left.p) + len);
		}
	}
}

#define DELETED SV(" (deleted)")

struct map_line {
	struct dump_map map;
	bool is_exec;
	uint64_t dev;
	uint64_t inode;
	struct sv path;
};

/* "55d0-55d1 r-xp 00001000 fe:00 1119   /usr/bin/prog" */
static bool parse_map(struct sv s, struct map_line *ret_l)
{
	struct map_line l = {0};
	uint64_t major;
	uint64_t minor;
	if (!take_hex(&s, &l.map.start) || !take_ch(&s, '-') || !take_hex(&s, &l.map.end) ||
	    l.map.end <= l.map.start)
		return false;
	skip_blanks(&s);
	if (s.n < 4)
		return false;
	l.is_exec = s.p[2] == 'x';
	s = sv_from_idx(s, 4);
	if (!take_hex(&s, &l.map.pgoff) || !take_hex(&s, &major) || !take_ch(&s, ':') ||
	    !take_hex(&s, &minor) || !take_u64(&s, &l.inode))
		return false;
	l.dev = major << 32 | (uint32_t)minor;
	l.path = sv_trim(s);
	*ret_l = l;
	return true;
}

static module_id module_of(struct dumpmaps *m, struct map_line *l)
{
	if (sv_eq(l->path, SV("[vdso]")))
		return profile_module(m->p, &(struct module){.kind = MODULE_VDSO,
							     .path = profile_cstr(m->p, "[vdso]")});
	bool is_file = l->path.n && l->path.p[0] == '/' && l->inode;
	if (!is_file)
		return l->is_exec && !l->path.n
			       ? profile_module(m->p, &(struct module){.kind = MODULE_JIT,
								       .path = profile_cstr(
									       m->p, "//anon"),
								       .pid = m->pid})
			       : 0;
	struct module shape = {.kind = MODULE_ELF, .dev = l->dev, .inode = l->inode};
	if (sv_has_suffix(l->path, DELETED)) {
		l->path.n -= DELETED.n;
		shape.is_deleted = true;
	}
	shape.path = profile_str(m->p, l->path.p, l->path.n);
	return profile_module(m->p, &shape);
}

static void add_map(struct dumpmaps *m, struct map_line *l)
{
	m->has_main_stack |= sv_eq(l->path, SV("[stack]"));
	l->map.module = module_of(m, l);
	if (!l->map.module)
		return;
	vec_push(&m->maps, l->map);
	const struct module *mod = &m->p->modules.p[l->map.module];
	const char *path = profile_text(m->p, mod->path);
	/* The program is the first file, except for the recorder (remote/patch/heapspace.h). */
	if (mod->kind == MODULE_ELF && !m->comm && strncmp(path, "/memfd:assay-", 13)) {
		const char *base = path_base(path);
		m->comm = profile_cstr(m->p, base);
	}
	if (l->is_exec)
		vec_push(&m->p->mappings, (struct mapping){.module = l->map.module,
							   .pid = m->pid,
							   .start = l->map.start,
							   .len = l->map.end - l->map.start,
							   .pgoff = l->map.pgoff,
							   .to_ns = UINT64_MAX});
}

static int by_start(const void *a, const void *b)
{
	const struct dump_map *x = a;
	const struct dump_map *y = b;
	return COMPARE(x->start, y->start);
}

void dumpmaps_parse(struct dumpmaps *m, struct profile *p, int32_t pid, struct sv maps)
{
	*m = (struct dumpmaps){.p = p, .pid = pid};
	m->is_cut = !sv_trim(maps).n || maps.p[maps.n - 1] != '\n';
	struct lines in = lines_from(maps.p, maps.n);
	struct sv line;
	while (lines_next(&in, &line)) {
		struct map_line l;
		struct sv text = sv_trim(line);
		/* gperftools may write a line "build=..." first */
		if (!text.n || sv_has_prefix(text, SV("build=")))
			continue;
		if (parse_map(text, &l))
			add_map(m, &l);
		else
			m->nr_bad++;
	}
	p->losses.nr[LOSS_UNPARSED] += m->nr_bad;
	p->losses.nr[LOSS_SEEN] += m->nr_bad;
	if (m->maps.n)
		qsort(m->maps.p, m->maps.n, sizeof(*m->maps.p), by_start);
}

void dumpmaps_add_damage(const struct dumpmaps *m, uint64_t got, uint64_t wanted)
{
	if (m->is_cut || (!m->has_main_stack && m->nr_outside)) {
		CLEANUP(buf_release) struct buf b = {0};
		buf_add_str(&b, "truncated: its list of mapped files is incomplete");
		if ((double)got < 0.99 * (double)wanted) /* headers of gperftools are not exact */
			buf_addf(&b, ", its stacks have %.0f %% of the bytes in its header",
				 100.0 * (double)got / (double)wanted);
		profile_fact(m->p, FACT_HEAP_DUMP, buf_str(&b));
	}
	profile_fact_nr(m->p, FACT_HEAP_DUMP_BAD_LINE, m->first_bad_nr);
}

void dumpmaps_release(struct dumpmaps *m)
{
	vec_release(&m->maps);
	vec_release(&m->chain);
	map_release(&m->locs);
}

static const struct dump_map *find_map(const struct dumpmaps *m, uint64_t address)
{
	size_t nr = upper_bound(m->maps.p, m->maps.n, start, address);
	const struct dump_map *found = nr ? &m->maps.p[nr - 1] : NULL;
	return found && address < found->end ? found : NULL;
}

/* ---- stacks ------------------------------------------------------------------------------- */

static loc_id new_location(struct dumpmaps *m, uint64_t address, uint32_t flags)
{
	/* A call may be the last instruction of a mapping: the return address is outside. */
	const struct dump_map *map =
		find_map(m, flags & LOCATION_CALL && address ? address - 1 : address);
	if (!map) {
		m->nr_outside++;
		module_id unknown = profile_module(
			m->p, &(struct module){.kind = MODULE_UNKNOWN,
					       .path = profile_cstr(m->p, "[unknown]"),
					       .pid = m->pid});
		return profile_location(m->p, unknown, address, flags);
	}
	bool is_file = m->p->modules.p[map->module].kind != MODULE_JIT;
	uint64_t offset = is_file ? address - map->start + map->pgoff : address;
	return profile_location(m->p, map->module, offset, flags);
}

static loc_id location_of(struct dumpmaps *m, uint64_t address, uint32_t flags)
{
	bool is_new;
	uint32_t *loc = map_put(&m->locs, address << 1 | (flags & LOCATION_CALL), &is_new);
	if (is_new)
		*loc = new_location(m, address, flags);
	return *loc;
}

bool dumpmaps_stack(struct dumpmaps *m, struct sv text, uint32_t first_flags, stack_id *ret_stack,
		    size_t *ret_depth)
{
	vec_clear(&m->chain);
	for (skip_blanks(&text); text.n; skip_blanks(&text)) {
		uint64_t address;
		if (!take_hex(&text, &address) || (text.n && text.p[0] != ' ' && text.p[0] != '\t'))
			return false;
		uint32_t flags = m->chain.n ? LOCATION_CALL : first_flags;
		if (m->chain.n < DEPTH_MAX)
			vec_push(&m->chain, location_of(m, address, flags));
	}
	stack_id stack = 0;
	for (size_t i = m->chain.n; i--;)
		stack = profile_stack(m->p, stack, m->chain.p[i]);
	*ret_stack = stack;
	*ret_depth = m->chain.n;
	return true;
}
