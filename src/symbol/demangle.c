/*
 * Demangling; see demangle.h.
 *
 * libiberty parses the names; its callback interface is used because it allocates nothing.
 * libiberty does not limit its output, and substitutions let a name of 1 kB produce 2^100 bytes.
 * Therefore the callback leaves by longjmp when our limit is reached. Nothing needs to be cleaned
 * up then except a decoded punycode identifier of a Rust name.
 */
#include "base/base.h"
#include "symbol/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>

#define INPUT_MAX  ((size_t)16 << 10)
#define OUTPUT_MAX ((size_t)64 << 10)
/* libiberty refuses C++ names over 1 kB unless its recursion limit is off. Up to this length it
 * then uses less than 2 MB of stack. */
#define UNLIMITED_MAX ((size_t)4 << 10)
#define HASH_CHARS    16
#define LEGACY_TAIL   (3 + HASH_CHARS + 1) /* "17h" hash "E" */

struct sink {
	struct buf *to;
	size_t start;
	jmp_buf too_long;
};

static void put(const char *p, size_t n, void *opaque)
{
	struct sink *s = opaque;
	if (!n) /* the pointer may be NULL */
		return;
	if (s->to->n - s->start + n > OUTPUT_MAX)
		longjmp(s->too_long, 1);
	/* Rust names arrive in pieces of a few bytes; buf_add took 10 % of the time. */
	if (LIKELY(n < s->to->cap - s->to->n)) {
		memcpy(s->to->p + s->to->n, p, n);
		s->to->n += n;
	} else {
		buf_add(s->to, p, n);
	}
}

typedef int (*grammar_fn)(const char *mangled, int options, demangle_callbackref put, void *ctx);

/* Returns false and adds nothing if the name is not in this grammar or exceeds the limit. */
static bool try_grammar(struct buf *to, grammar_fn grammar, const char *name, int options)
{
	struct sink s = {.to = to, .start = to->n};
	if (_setjmp(s.too_long)) {
		to->n = s.start;
		return false;
	}
	(void)buf_reserve(to, 128);
	if (grammar(name, options, put, &s) && to->n > s.start) {
		to->p[to->n] = 0;
		return true;
	}
	to->n = s.start;
	return false;
}

static bool is_hex(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f')))
			return false;
	return true;
}

static bool is_legacy_end(struct sv s, size_t end)
{
	const char *tail = s.p + end - LEGACY_TAIL;
	return end >= LEGACY_TAIL + 3 && s.p[end - 1] == 'E' && !memcmp(tail, "17h", 3) &&
	       is_hex(tail + 3, HASH_CHARS);
}

/*
 * Returns the length of a Rust legacy name, _ZN...17h<hash>E, without suffixes; 0 if it is none.
 * Such names may contain dots, so the suffix is searched from the end.
 */
static size_t legacy_length(struct sv s)
{
	if (s.p[2] != 'N')
		return 0;
	if (is_legacy_end(s, s.n))
		return s.n;
	if (!memchr(s.p, '.', s.n) && !memchr(s.p, '@', s.n))
		return 0;
	for (size_t end = s.n - 1; end > LEGACY_TAIL; end--)
		if ((s.p[end] == '.' || s.p[end] == '@') && is_legacy_end(s, end))
			return end;
	return 0;
}

/* The next ".word[.digits]" of a suffix. */
static struct sv next_part(struct sv *rest)
{
	size_t n = 1;
	while (n < rest->n && rest->p[n] != '.' && rest->p[n] != '@')
		n++;
	size_t m = n + 1;
	while (m < rest->n && rest->p[m] >= '0' && rest->p[m] <= '9')
		m++;
	if (n < rest->n && rest->p[n] == '.' && m > n + 1)
		n = m;
	struct sv part = sv_from(rest->p, n);
	*rest = sv_from_idx(*rest, n);
	return part;
}

/* Suffixes that name the same code; some with a number behind them. */
static const char *const renamings[] = {".llvm", ".lto_priv", ".__uniq", ".abi0", ".abiinternal"};
#define RENAMINGS_NR (sizeof(renamings) / sizeof(*renamings))

static bool is_renaming(struct sv part)
{
	for (size_t i = 0; i < RENAMINGS_NR; i++) {
		struct sv key = sv_from_str(renamings[i]);
		if (sv_has_prefix(part, key) && (part.n == key.n || part.p[key.n] == '.'))
			return true;
	}
	return false;
}

enum suffix_form { SUFFIX_PLAIN, SUFFIX_CLONE };

static void add_suffix(struct buf *to, struct sv rest, enum suffix_form form, unsigned flags)
{
	while (rest.n && rest.p[0] == '.') {
		struct sv part = next_part(&rest);
		/* LLVM may add the hash of the unit in hexadecimal after the number. */
		if (is_renaming(part) && !(flags & DEMANGLE_HASHES))
			continue;
		if (form == SUFFIX_CLONE)
			buf_addf(to, " [clone %.*s]", SV_ARGS(part));
		else
			buf_add_sv(to, part);
	}
	buf_add_sv(to, rest);
}

/* Returns where the first renaming of an unmangled name starts; parts before it may be names. */
static size_t plain_length(struct sv s)
{
	for (size_t i = 1; i < s.n; i++)
		if (s.p[i] == '.') {
			struct sv rest = sv_from_idx(s, i);
			if (is_renaming(next_part(&rest)))
				return i;
		}
	return s.n;
}

static size_t mangled_length(struct sv s)
{
	size_t n = 0;
	while (n < s.n && s.p[n] != '.' && s.p[n] != '@')
		n++;
	return n;
}

/*
 * DMGL_RET_DROP also drops the return types of function pointers among the template arguments of
 * a variable (libiberty 2.40): "Holder< (*)(int)>".
 */
static bool has_dropped_too_much(const struct buf *b, size_t start)
{
	if (b->p[b->n - 1] == ')') /* a function, whose own return type it was */
		return false;
	return memmem(b->p + start, b->n - start, "< (*", 4) ||
	       memmem(b->p + start, b->n - start, ",  (*", 5);
}

/* A Rust legacy name that demangles as C++ because libiberty rejects its hash as too regular. */
static void drop_hash(struct buf *to, size_t start)
{
	size_t n = to->n - start;
	if (n <= HASH_CHARS + 3)
		return;
	const char *tail = to->p + to->n - HASH_CHARS - 3;
	if (!memcmp(tail, "::h", 3) && is_hex(tail + 3, HASH_CHARS))
		to->n -= HASH_CHARS + 3;
}

static bool demangle_rust(struct buf *to, const char *name, struct sv rest, unsigned flags)
{
	int options = flags & DEMANGLE_HASHES ? DMGL_VERBOSE : DMGL_NO_OPTS;
	if (!try_grammar(to, rust_demangle_callback, name, options))
		return false;
	add_suffix(to, rest, SUFFIX_PLAIN, flags);
	return true;
}

/*
 * Returns whether an identifier, <length><characters>, may include the character at @at. Numbers
 * that are no lengths make it true too often, which leaves a name as it is.
 */
static bool may_be_in_identifier(const char *name, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		size_t length = 0;
		for (; i < at && name[i] >= '0' && name[i] <= '9'; i++)
			length = MIN(length * 10 + (size_t)(name[i] - '0'), INPUT_MAX);
		if (i + length > at)
			return true;
	}
	return false;
}

/*
 * Rewrites what libiberty 2.40 does not know: a parameter of the enclosing function, fL0p_, to fp_,
 * which is shown alike, and a reference temporary with a sequence id, _ZGR<name>[<id>]_, to the
 * same without its end. Returns whether there was one of them.
 */
static bool rewrite_cxx(char *name, size_t n)
{
	static const char level[] = {'L', '0'};
	size_t length = n;
	for (size_t i = 2; i + 4 <= length; i++) {
		if (memcmp(name + i, "fL0p", 4) != 0 || may_be_in_identifier(name, i))
			continue;
		length -= sizeof(level);
		memmove(name + i + 1, name + i + 1 + sizeof(level), length - i - 1);
	}
	if (!strncmp(name, "_ZGR", 4) && name[length - 1] == '_')
		length--;
	name[length] = 0;
	return length < n;
}

/* "reference temporary #1 for x": the number may be one less than that of the id that was cut. */
static void drop_number(struct buf *to, size_t start)
{
	static const char text[] = "reference temporary #";
	size_t at = start + sizeof(text) - 2;
	if (to->n < at + 1 || memcmp(to->p + start, text, sizeof(text) - 1) != 0)
		return;
	const char *end = memchr(to->p + at, ' ', to->n - at);
	size_t nr_cut = end ? (size_t)(end + 1 - (to->p + at)) : 0;
	memmove(to->p + at, to->p + at + nr_cut, to->n - at - nr_cut + 1);
	to->n -= nr_cut;
}

static bool try_rewritten(struct buf *to, const char *name, size_t n, int options)
{
	char other[UNLIMITED_MAX + 1];
	size_t start = to->n;
	if (n > UNLIMITED_MAX)
		return false;
	memcpy(other, name, n + 1);
	if (!rewrite_cxx(other, n) || !try_grammar(to, cplus_demangle_v3_callback, other, options))
		return false;
	drop_number(to, start);
	return true;
}

static bool demangle_cxx(struct buf *to, const char *name, size_t n, struct sv rest, unsigned flags)
{
	int options = DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP;
	size_t start = to->n;
	if (!try_grammar(to, cplus_demangle_v3_callback, name, options)) {
		bool is_long = n >= 1024 && n <= UNLIMITED_MAX;
		options |= is_long ? DMGL_NO_RECURSE_LIMIT : 0;
		if (!(is_long && try_grammar(to, cplus_demangle_v3_callback, name, options)) &&
		    !try_rewritten(to, name, n, options))
			return false;
	}
	if (has_dropped_too_much(to, start)) {
		to->n = start;
		if (!try_grammar(to, cplus_demangle_v3_callback, name, options & ~DMGL_RET_DROP))
			return false;
	}
	if (!(flags & DEMANGLE_HASHES))
		drop_hash(to, start);
	add_suffix(to, rest, SUFFIX_CLONE, flags);
	return true;
}

void demangle(struct buf *to, struct sv s, unsigned flags)
{
	bool is_rust = s.n > 2 && s.p[0] == '_' && s.p[1] == 'R';
	bool is_z = s.n > 2 && s.p[0] == '_' && s.p[1] == 'Z';
	size_t n = s.n;
	if (flags & DEMANGLE_RAW) {
		buf_add_sv(to, s);
		return;
	}
	if ((is_rust || is_z) && s.n <= INPUT_MAX) {
		char name[INPUT_MAX + 1];
		size_t legacy = is_z ? legacy_length(s) : 0;
		n = legacy ? legacy : mangled_length(s);
		memcpy(name, s.p, n);
		name[n] = 0;
		struct sv rest = sv_from_idx(s, n);
		if (!memchr(name, 0, n) &&
		    (((is_rust || legacy) && demangle_rust(to, name, rest, flags)) ||
		     (is_z && demangle_cxx(to, name, n, rest, flags))))
			return;
	}
	n = plain_length(s);
	buf_add(to, s.p, n);
	add_suffix(to, sv_from_idx(s, n), SUFFIX_PLAIN, flags);
}
