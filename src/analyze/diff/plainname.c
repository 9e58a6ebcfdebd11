/* Names without additions of compilers and linkers; see plainname.h. */
#include "base/base.h"
#include "analyze/diff/plainname.h"

#define HASH_DIGITS 16

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_digit(s.p[i]) && !(s.p[i] >= 'a' && s.p[i] <= 'f'))
			return false;
	return s.n > 0;
}

static bool is_number(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_digit(s.p[i]))
			return false;
	return s.n > 0;
}

/* Whether it ends with @before, a hash, @behind; *ret_n: its length without them. */
static bool has_hash(struct sv s, struct sv before, struct sv behind, size_t *ret_n)
{
	size_t n = before.n + HASH_DIGITS + behind.n;
	if (s.n <= n || !sv_has_suffix(s, behind))
		return false;
	const char *at = s.p + s.n - n;
	if (memcmp(at, before.p, before.n) != 0 || !is_hex(sv_from(at + before.n, HASH_DIGITS)))
		return false;
	*ret_n = s.n - n;
	return true;
}

static bool is_clone_word(struct sv word)
{
	static const char *const words[] = {"cold", "warm",     "part",   "isra", "constprop",
					    "llvm", "lto_priv", "__uniq", "abi0"};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (sv_eq_str(word, words[i]))
			return true;
	return false;
}

/*
 * The length without a last ".word" or ".number". A number alone is cut off only if there is no
 * other dot: names of Go ("main.run.func1.2") and of files have several.
 */
static size_t without_clone(struct sv s)
{
	ssize_t dot = sv_rindex(s, '.');
	if (dot <= 0)
		return s.n;
	struct sv rest = sv_from(s.p, (size_t)dot);
	struct sv last = sv_from_idx(s, (size_t)dot + 1);
	if (is_clone_word(last))
		return rest.n;
	if (!is_number(last))
		return s.n;
	ssize_t before = sv_rindex(rest, '.');
	if (before > 0 && is_clone_word(sv_from_idx(rest, (size_t)before + 1)))
		return (size_t)before;
	return before < 0 && sv_index(rest, '/') < 0 ? rest.n : s.n;
}

struct sv plainname_of_function(struct sv name)
{
	struct sv s = name;
	size_t n;
	while (s.n && s.p[0] != '[') {
		size_t was = s.n;
		const char *clone = s.p[s.n - 1] == ']' ? memmem(s.p, s.n, " [clone .", 9) : NULL;
		if (clone && clone > s.p)
			s.n = (size_t)(clone - s.p);
		s.n = without_clone(s);
		if (has_hash(s, SV("::h"), SV(""), &n) || has_hash(s, SV("17h"), SV("E"), &n))
			s.n = n;
		if (s.n == was)
			break;
	}
	return s;
}

struct sv plainname_of_module(struct sv name)
{
	size_t n;
	if (has_hash(name, SV("-"), SV(""), &n))
		return sv_from(name.p, n);
	const char *so = memmem(name.p, name.n, ".so.", 4);
	if (!so || so == name.p || !is_digit(name.p[name.n - 1]))
		return name;
	return sv_from(name.p, (size_t)(so - name.p) + 3);
}
