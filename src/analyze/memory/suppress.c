/* Known leaks; see suppress.h. */
#include "base/base.h"
#include "analyze/memory/suppress.h"

#include <errno.h>

#include "base/sv.h"
#include "base/vec.h"

/* Kept until process exit by design: buffers of standard streams, caches of name services. */
static const char *const defaults[] = {
	"^_IO_file_doallocate$",
	"^_IO_default_doallocate$",
	"^__nss_*",
	"^_nl_make_l10nflist*",
	"^_nl_intern_locale_data$",
	"^setlocale$",
	"^tzset_internal$",
	"^__tzfile_read$",
	"^_dl_allocate_tls*",
	"^allocate_dtv*",
	"^_dl_init_paths*",
	"^init_emergency_pool*",
	"^__static_initialization_and_destruction_0*pool*",
	"^__cxa_get_globals*",
	"^__cxa_thread_atexit*",
	"^std::rt::init*",
	"^std::sys::*thread_info*",
};

struct suppress {
	const struct profile *p;
	bool *by_stack;
};

struct rules {
	struct sv *p;
	size_t n;
	size_t cap;
};

/* Matches: '*' is any text, '^' and '$' at the ends anchor. Backtracks to the last '*' only. */
static bool is_like(struct sv pattern, struct sv name)
{
	const char *p = pattern.p;
	const char *end = p + pattern.n;
	bool is_start = p < end && *p == '^';
	p += is_start;
	bool is_end = p < end && end[-1] == '$';
	end -= is_end;
	const char *star = is_start ? NULL : p;
	size_t star_at = 0;
	size_t i = 0;
	for (;;) {
		if (p == end && (!is_end || i == name.n))
			return true;
		if (p < end && *p == '*') {
			star = ++p;
			star_at = i;
		} else if (p < end && i < name.n && *p == name.p[i]) {
			p++;
			i++;
		} else {
			if (!star || star_at >= name.n)
				return false;
			p = star;
			i = ++star_at;
		}
	}
}

static int parse(struct rules *to, const char *text, struct err *err)
{
	size_t nr_line = 0;
	for (struct sv rest = sv_from_str(text); rest.n;) {
		struct sv line = sv_trim(sv_split(&rest, '\n'));
		nr_line++;
		if (!line.n || line.p[0] == '#')
			continue;
		struct sv pattern = sv_from_idx(line, strlen("leak:"));
		if (!sv_has_prefix(line, SV("leak:")) || !pattern.n) {
			err_set(err, -EINVAL, "suppressions, line %zu: '%.*s' is not leak:PATTERN",
				nr_line, SV_ARGS(line));
			return err_hint(err, "a pattern is a part of a function's, module's or "
					     "file's name: leak:cache_warm_up");
		}
		vec_push(to, pattern);
	}
	return 0;
}

int suppress_check(const char *text, struct err *err)
{
	struct rules rules = {0};
	int rc = text ? parse(&rules, text, err) : 0;
	vec_release(&rules);
	return rc;
}

static bool has_match(const struct rules *rules, struct sv name)
{
	for (size_t i = 0; name.n && i < rules->n; i++)
		if (is_like(rules->p[i], name))
			return true;
	return false;
}

/* Each function name is tried once; files and modules in tables of their own. */
static bool *match_locations(struct arena *a, const struct profile *p, const struct rules *rules)
{
	bool *by_func = arena_calloc(a, p->functions.n + 1, sizeof(*by_func));
	bool *by_module = arena_calloc(a, p->modules.n + 1, sizeof(*by_module));
	bool *by_loc = arena_calloc(a, p->locations.n + 1, sizeof(*by_loc));
	for (func_id f = 1; f < p->functions.n; f++)
		by_func[f] = has_match(rules, profile_sv(p, p->functions.p[f].name));
	for (module_id m = 1; m < p->modules.n; m++)
		by_module[m] = has_match(rules, profile_sv(p, p->modules.p[m].path));
	for (loc_id l = 1; l < p->locations.n; l++) {
		const struct location *loc = &p->locations.p[l];
		by_loc[l] = by_module[loc->module];
		for (uint32_t i = 0; i < loc->nr_frames && !by_loc[l]; i++) {
			const struct frame *f = &p->frames.p[loc->first_frame + i];
			by_loc[l] = by_func[f->func] || has_match(rules, profile_sv(p, f->file));
		}
	}
	return by_loc;
}

int suppress_new(struct suppress **ret_s, struct arena *a, const struct profile *p,
		 const char *text, struct err *err)
{
	struct rules rules = {0};
	for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
		vec_push(&rules, sv_from_str(defaults[i]));
	int rc = text ? parse(&rules, text, err) : 0;
	if (!rc) {
		struct suppress *s = arena_calloc(a, 1, sizeof(*s));
		const bool *by_loc = match_locations(a, p, &rules);
		s->p = p;
		s->by_stack = arena_calloc(a, p->stacks.n + 1, sizeof(*s->by_stack));
		for (stack_id id = 1; id < p->stacks.n; id++)
			s->by_stack[id] =
				s->by_stack[p->stacks.p[id].parent] || by_loc[p->stacks.p[id].loc];
		*ret_s = s;
	}
	vec_release(&rules);
	return rc;
}

bool suppress_has(const struct suppress *s, stack_id stack)
{
	return s->by_stack[stack];
}
