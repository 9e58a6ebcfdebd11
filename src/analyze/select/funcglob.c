/* Glob patterns for function names; see funcglob.h. */
#include "base/base.h"
#include "analyze/select/funcglob.h"

/* What may follow a name: parameters, template arguments, a version, ".part.0", " [clone". */
static bool is_end(struct sv rest)
{
	return !rest.n || strchr("(<@. [", rest.p[0]);
}

/*
 * Backtracks only to the last '*', which is sufficient for globs: time is name length times stars.
 */
static bool is_like(const char *pattern, const char *end, struct sv name)
{
	const char *star = NULL;
	size_t i = 0;
	size_t star_at = 0;
	for (;;) {
		if (pattern == end && is_end(sv_from_idx(name, i)))
			return true;
		if (pattern != end && *pattern == '*') {
			star = ++pattern;
			star_at = i;
			if (pattern == end)
				return true;
			continue;
		}
		if (i < name.n && pattern != end && (*pattern == '?' || *pattern == name.p[i])) {
			pattern++;
			i++;
			continue;
		}
		if (!star || star_at >= name.n)
			return false;
		pattern = star;
		i = ++star_at;
	}
}

bool funcglob_is_like(const char *patterns, struct sv name)
{
	for (const char *at = patterns;; at++) {
		const char *end = strchrnul(at, '|');
		if (is_like(at, end, name))
			return true;
		if (!*end)
			return false;
		at = end;
	}
}

/*
 * Rust's v0 mangling writes a method as <Type>::method or <Type as Trait>::method, the legacy
 * mangling as Type::method. The tables have the latter. Longer names are truncated; no pattern
 * needs more.
 */
static struct sv plain_path(struct sv name, char *to)
{
	if (!name.n || name.p[0] != '<')
		return name;
	size_t n = 0;
	unsigned depth = 0;
	bool is_trait = false;
	for (size_t i = 0; i < name.n && n < FUNCGLOB_NAME_MAX; i++) {
		char c = name.p[i];
		bool is_arrow = c == '>' && i && name.p[i - 1] == '-';
		if (c == '<' && depth++ == 0 && !n)
			continue;
		if (c == '>' && !is_arrow && depth && --depth == 0) {
			is_trait = false;
			continue;
		}
		if (depth == 1 && sv_has_prefix(sv_from_idx(name, i), SV(" as ")))
			is_trait = true;
		if (!is_trait)
			to[n++] = c;
	}
	return (struct sv){to, n};
}

struct sv funcglob_plain(struct sv name, char to[static FUNCGLOB_NAME_MAX])
{
	name = plain_path(name, to);
	while (name.n && (name.p[0] == '<' || name.p[0] == '&'))
		name = sv_from_idx(name, 1);
	return name;
}

struct sv funcglob_without_args(struct sv name, char to[static FUNCGLOB_NAME_MAX])
{
	size_t n = 0;
	unsigned depth = 0;
	if (!memchr(name.p, '<', name.n) || memmem(name.p, name.n, "operator", strlen("operator")))
		return name;
	for (size_t i = 0; i < name.n && n < FUNCGLOB_NAME_MAX; i++) {
		char c = name.p[i];
		bool is_arrow = c == '>' && i && name.p[i - 1] == '-';
		if (c == '<') {
			if (!depth++ && n > 2 && to[n - 1] == ':' && to[n - 2] == ':')
				n -= 2;
			continue;
		}
		if (c == '>' && !is_arrow && depth) {
			depth--;
			continue;
		}
		if (!depth)
			to[n++] = c;
	}
	return (struct sv){to, n};
}

bool funcglob_is_start(struct sv name)
{
	return funcglob_is_like(
		"_start|__libc_start_main|start_thread|__libc_start_call_main|clone|clone3|__clone|"
		"__clone3|_dl_start_user|thread_start|execute_native_thread_routine*|"
		"std::sys::backtrace::__rust_begin_short_backtrace|std::rt::lang_start*|"
		"__libc_start_main_impl|runtime.goexit|runtime.main|runtime.mstart|runtime.mcall",
		name);
}
