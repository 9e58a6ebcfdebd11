/* Regexes over the names of a profile; see match.h. */
#include "base/base.h"
#include "analyze/select/match.h"

#include <errno.h>

#include "analyze/memory/heapframes.h"
#include "base/buf.h"
#include "base/text/regex.h"
#include "base/text/suggest.h"
#include "base/sv.h"
#include "model/tables.h"

#define NEAR_NAME_BYTES 64 /* longer names are compared by their end, which has the function */

static unsigned char fold_case(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Returns the pattern without regex syntax, to compare it with names. */
static size_t plain_text(const char *s, char *to, size_t cap)
{
	size_t n = 0;
	for (; *s && n < cap; s++)
		if (!strchr("^$.*+?()[]{}|\\", *s))
			to[n++] = (char)fold_case(*s);
	return n;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static unsigned distance_to_word(struct sv want, const char *word, size_t nr_word)
{
	char have[NEAR_NAME_BYTES];
	size_t n = MIN(nr_word, sizeof(have));
	for (size_t i = 0; i < n; i++)
		have[i] = (char)fold_case(word[i]);
	unsigned d = (unsigned)suggest_distance(want, sv_from(have, n));
	if (n > want.n) { /* "libd" is near "libc.so.6" */
		unsigned of_prefix = (unsigned)suggest_distance(want, sv_from(have, want.n)) + 1;
		d = MIN(d, of_prefix);
	}
	return d;
}

/* Returns the smallest distance to a word of the candidate: "keccak" of "keccak::KeccakF1600". */
static unsigned distance_to_words(struct sv want, const char *candidate)
{
	unsigned best = UINT_MAX;
	for (const char *c = candidate; *c;) {
		size_t n = 0;
		while (is_word(c[n]))
			n++;
		if (n) {
			unsigned d = distance_to_word(want, c, n);
			best = MIN(best, d);
		}
		c += n ? n : 1;
	}
	return best;
}

void near_add(struct near *n, const char *candidate)
{
	char want[NEAR_NAME_BYTES];
	char whole[512];
	size_t nw = plain_text(n->wanted, want, sizeof(want));
	if (!nw || !*candidate)
		return;
	size_t nr_whole = plain_text(candidate, whole, sizeof(whole));
	bool has_it = memmem(whole, nr_whole, want, nw);
	unsigned d = has_it ? 0 : distance_to_words(sv_from(want, nw), candidate);
	if (d > nw / 3 + 1)
		return;
	for (size_t i = 0; i < NEAR_MAX; i++) {
		if (n->best[i] && !strcmp(n->best[i], candidate))
			return;
		if (n->best[i] && n->distance[i] <= d)
			continue;
		memmove(&n->best[i + 1], &n->best[i], (NEAR_MAX - 1 - i) * sizeof(n->best[0]));
		memmove(&n->distance[i + 1], &n->distance[i],
			(NEAR_MAX - 1 - i) * sizeof(n->distance[0]));
		n->best[i] = candidate;
		n->distance[i] = d;
		return;
	}
}

int near_hint(const struct near *n, struct err *err)
{
	if (!n->best[0])
		return err ? err->code : -ENOENT;
	CLEANUP(buf_release) struct buf b = {0};
	for (size_t i = 0; i < NEAR_MAX && n->best[i]; i++)
		buf_addf(&b, "%s'%s'", i ? ", " : "", n->best[i]);
	return err_hint(err, "did you mean %s?", buf_str(&b));
}

static const char *func_name(const struct profile *p, func_id f)
{
	return profile_frame_name(p, &(struct frame){.func = f});
}

static void spread_over_locations(struct arena *a, const struct profile *p, struct match *m)
{
	size_t n = p->locations.n;
	uint16_t *in = arena_alloc(a, n * sizeof(*in));
	uint16_t *out = arena_alloc(a, n * sizeof(*out));
	in[0] = out[0] = MATCH_NONE;
	for (loc_id loc = 1; loc < n; loc++) {
		const struct location *l = &p->locations.p[loc];
		in[loc] = out[loc] = MATCH_NONE;
		if (!l->nr_frames && m->by_func[0])
			in[loc] = out[loc] = 0;
		for (uint16_t i = 0; i < l->nr_frames; i++) {
			if (!m->by_func[p->frames.p[l->first_frame + i].func])
				continue;
			if (in[loc] == MATCH_NONE)
				in[loc] = i;
			out[loc] = i;
		}
	}
	m->innermost = in;
	m->outermost = out;
}

int match_functions_if_any(struct arena *a, const struct profile *p, const char *option,
			   const char *pattern, struct match *ret_m, struct err *err)
{
	CLEANUP(regex_free_p) struct regex *re = NULL;
	if (regex_new(&re, pattern, 0, err))
		return err_wrap(err, "%s", option);
	uint8_t *by_func = arena_calloc(a, p->functions.n, 1);
	struct match m = {.by_func = by_func};
	for (func_id f = 0; f < p->functions.n; f++) {
		by_func[f] = regex_match(re, sv_from_str(func_name(p, f)));
		m.nr_functions += by_func[f];
	}
	if (regex_nr_over_limit(re)) {
		err_set(err, -EINVAL, "%s: pattern '%s' takes too many steps on %" PRIu64 " names",
			option, pattern, regex_nr_over_limit(re));
		return err_hint(err, "avoid nested repeats such as (a+)+");
	}
	spread_over_locations(a, p, &m);
	*ret_m = m;
	return 0;
}

int match_functions(struct arena *a, const struct profile *p, const char *option,
		    const char *pattern, struct match *ret_m, struct err *err)
{
	struct match m;
	TRY(match_functions_if_any(a, p, option, pattern, &m, err));
	/* by_func[0] counts only if there are unsymbolized locations */
	if (!m.nr_functions) {
		struct near near = {.wanted = pattern};
		for (func_id f = 1; f < p->functions.n; f++)
			near_add(&near, func_name(p, f));
		err_set(err, -ENOENT, "%s: no function matches '%s'", option, pattern);
		if (tables_find_rows(p, TABLE_LIVE) &&
		    heapframe_kind_of(sv_from_str(pattern)) == HEAPFRAME_ALLOCATOR)
			return err_hint(err,
					"stacks of a heap begin at the allocator's callers; to "
					"list them: assay report");
		return near_hint(&near, err);
	}
	*ret_m = m;
	return 0;
}

const uint8_t *match_stacks(struct arena *a, const struct profile *p, const struct match *m)
{
	uint8_t *has = arena_calloc(a, p->stacks.n, 1);
	for (stack_id s = 1; s < p->stacks.n; s++) {
		const struct stack_node *node = &p->stacks.p[s];
		has[s] = has[node->parent] || m->outermost[node->loc] != MATCH_NONE;
	}
	return has;
}
