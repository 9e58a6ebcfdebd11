/*
 * Whose code a demangled name is: the first path segment of its path.
 *
 *	reth_trie::root::compute                      reth_trie
 *	<reth_trie::Root as core::fmt::Debug>::fmt    reth_trie
 *	<u8 as alloy_rlp::Encodable>::encode          alloy_rlp    (the type is nobody's)
 *	<impl core::fmt::Display for revm::X>::fmt    revm
 *	void ns::sort<int*>(int*, int*)               ns           (C++ templates name their result)
 *	net/http.(*conn).serve                        net/http     (Go)
 */
#include "base/base.h"
#include "analyze/stacks/groups.h"

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || (unsigned char)c >= 0x80;
}

/* Returns the index of @what outside of all brackets, or -1. "->" is not a closing bracket. */
static ssize_t find_outside(struct sv s, struct sv what)
{
	int depth = 0;
	for (size_t i = 0; i + what.n <= s.n; i++) {
		if (depth == 0 && !memcmp(s.p + i, what.p, what.n))
			return (ssize_t)i;
		char c = s.p[i];
		if (c == '<' || c == '(' || c == '[' || c == '{')
			depth++;
		else if ((c == '>' && !(i && s.p[i - 1] == '-')) || c == ')' || c == ']' ||
			 c == '}')
			depth -= depth > 0;
	}
	return -1;
}

/* Returns the content of the bracket at the start of s; *ret_after is the rest. */
static struct sv inside(struct sv s, struct sv *ret_after)
{
	int depth = 0;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (c == '<' || c == '(' || c == '[')
			depth++;
		else if ((c == '>' && !(i && s.p[i - 1] == '-')) || c == ')' || c == ']')
			depth--;
		if (depth == 0) {
			*ret_after = sv_from_idx(s, i + 1);
			return sv_from(s.p + 1, i - 1);
		}
	}
	*ret_after = sv_from(s.p + s.n, 0);
	return sv_from_idx(s, 1);
}

static struct sv strip_type_prefixes(struct sv s)
{
	static const char *const words[] = {"mut ",  "const ",  "dyn ",
					    "impl ", "unsafe ", "extern "};
	for (bool again = true; again;) {
		again = false;
		while (s.n && (*s.p == '&' || *s.p == '*' || *s.p == '(' || *s.p == '[' ||
			       *s.p == ' ' || *s.p == '_')) {
			if (*s.p == '_' && !(s.n > 1 && s.p[1] == '<'))
				break;
			s = sv_from_idx(s, 1);
		}
		for (size_t i = 0; i < ARRAY_LEN(words); i++) {
			if (sv_has_prefix(s, sv_from_str(words[i]))) {
				s = sv_from_idx(s, strlen(words[i]));
				again = true;
			}
		}
	}
	return s;
}

static struct sv path_crate(struct sv s, int nr_left);

/*
 * Returns the crate of the type in "T as Trait", "impl Trait for T", "T"; if it has none, that of
 * the trait.
 */
static struct sv qualified_crate(struct sv s, int nr_left)
{
	struct sv type = s;
	struct sv trait = {"", 0};
	ssize_t at = find_outside(s, SV(" as "));
	bool is_impl = sv_has_prefix(s, SV("impl "));
	if (at >= 0) {
		type = sv_from(s.p, (size_t)at);
		trait = sv_from_idx(s, (size_t)at + 4);
	} else if (is_impl && (at = find_outside(s, SV(" for "))) >= 0) {
		trait = sv_from(s.p + 5, (size_t)at - 5);
		type = sv_from_idx(s, (size_t)at + 5);
	}
	struct sv crate = path_crate(type, nr_left);
	return crate.n ? crate : path_crate(trait, nr_left);
}

static struct sv path_crate(struct sv s, int nr_left)
{
	s = strip_type_prefixes(s);
	if (!s.n || !nr_left)
		return sv_from("", 0);
	if (*s.p == '<') {
		struct sv after;
		return qualified_crate(inside(s, &after), nr_left - 1);
	}
	size_t n = 0;
	while (n < s.n && is_word(s.p[n]))
		n++;
	/* v0 names may carry the crate's disambiguator: krate[0123abcd]::path */
	size_t end = n;
	if (n && end < s.n && s.p[end] == '[') {
		struct sv after;
		(void)inside(sv_from_idx(s, end), &after);
		end = (size_t)(after.p - s.p);
	}
	if (!n || !sv_has_prefix(sv_from_idx(s, end), SV("::")))
		return sv_from("", 0);
	return sv_from(s.p, n);
}

/* "net/http.(*conn).serve", "runtime.mallocgc": the package. C clones ("f.part.0") are not Go. */
static struct sv go_package(struct sv s)
{
	static const char *const roots[] = {"runtime.", "main.",    "sync.",  "syscall.",
					    "time.",    "fmt.",     "os.",    "net.",
					    "bytes.",   "strings.", "bufio.", "reflect.",
					    "context."};
	ssize_t paren = sv_index(s, '(');
	struct sv head = paren >= 0 ? sv_from(s.p, (size_t)paren) : s;
	ssize_t slash = sv_rindex(head, '/');
	ssize_t dot = sv_index(sv_from_idx(s, (size_t)(slash + 1)), '.');
	if (dot <= 0 || sv_index(s, ' ') >= 0)
		return sv_from("", 0);
	if (slash > 0)
		return sv_from(s.p, (size_t)(slash + 1 + dot));
	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		if (sv_has_prefix(s, sv_from_str(roots[i])))
			return sv_from(s.p, (size_t)dot);
	return sv_from("", 0);
}

struct sv crate_from_name(struct sv name)
{
	if (!memchr(name.p ? name.p : "", ':', name.n))
		return go_package(name);
	/* A C++ template's result type comes first: skip to the last word before the parameters. */
	if (name.n && *name.p != '<') {
		ssize_t space;
		ssize_t paren = find_outside(name, SV("("));
		while ((space = find_outside(name, SV(" "))) > 0 && (paren < 0 || space < paren)) {
			if (sv_has_suffix(sv_from(name.p, (size_t)space), SV("operator")))
				break;
			name = sv_from_idx(name, (size_t)space + 1);
			paren = find_outside(name, SV("("));
		}
	}
	return path_crate(name, 8);
}
