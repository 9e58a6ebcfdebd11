/* Short forms of names; see shortname.h. */
#include "base/base.h"
#include "base/text/shortname.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/text/escape.h"

#define NAME_BYTES_MAX 4096 /* what is parsed of a name; a longer one is cut */
#define PARTS_MAX      64   /* components of a path that are separated */
#define HASH_DIGITS    16

enum strip {
	STRIP_ARGUMENTS = 1 << 0,
	STRIP_TEMPLATES = 1 << 1,
	STRIP_TRAIT = 1 << 2,
	STRIP_HASHES = 1 << 3,
};

/* What each step leaves out; the steps after these shorten the path. */
static const unsigned strips[] = {
	0,
	STRIP_ARGUMENTS,
	STRIP_ARGUMENTS | STRIP_TEMPLATES,
	STRIP_ARGUMENTS | STRIP_TEMPLATES | STRIP_TRAIT,
	STRIP_ARGUMENTS | STRIP_TEMPLATES | STRIP_TRAIT | STRIP_HASHES,
};

/* What stands for what is left out. In a path ".." is a folder. */
static const char *dots_of(struct sv name)
{
	return name.n && memchr(name.p, '/', name.n) ? "..." : "..";
}

/* ---- characters ------------------------------------------------------------------------ */

static bool is_start(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

static size_t bytes_of_first(struct sv s, size_t n)
{
	size_t i = 0;
	for (; i < s.n; i++)
		if (is_start(s.p[i]) && n-- == 0)
			break;
	return i;
}

static size_t bytes_of_last(struct sv s, size_t n)
{
	size_t i = s.n;
	while (i > 0 && n > 0)
		if (is_start(s.p[--i]))
			n--;
	return s.n - i;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_word(char c)
{
	return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '$' ||
	       c < 0;
}

static bool has_at(struct sv s, size_t i, const char *what)
{
	return sv_has_prefix(sv_from_idx(s, MIN(i, s.n)), sv_from_str(what));
}

/* ---- what is left out ------------------------------------------------------------------ */

/* Returns the index after the bracket that closes the one at @i; 0 if it is not closed. */
static size_t skip_group(struct sv s, size_t i)
{
	char open = s.p[i];
	char close = open == '<' ? '>' : open == '(' ? ')' : open == '[' ? ']' : '}';
	size_t depth = 0;
	for (size_t k = i; k < s.n; k++) {
		bool is_arrow = s.p[k] == '>' && k && (s.p[k - 1] == '-' || s.p[k - 1] == '=');
		if (s.p[k] == open)
			depth++;
		else if (s.p[k] == close && !is_arrow && !--depth)
			return k + 1;
	}
	return 0;
}

/* Returns the length of "operator<<" at @i, with the symbol; 0: another word is there. */
static size_t operator_length(struct sv s, size_t i)
{
	static const char *const symbols[] = {"()", "[]", "<=>", "<<=", ">>=", "->*", "->", "<<",
					      ">>", "<=", ">=",  "==",  "!=",  "&&",  "||", "++",
					      "--", "+=", "-=",  "*=",  "/=",  "%=",  "^=", "&=",
					      "|=", "<",  ">",   "+",   "-",   "*",   "/",  "%",
					      "^",  "&",  "|",   "~",   "!",   "=",   ","};
	const size_t n = strlen("operator");
	if (!has_at(s, i, "operator") || (i && is_word(s.p[i - 1])) ||
	    (i + n < s.n && is_word(s.p[i + n])))
		return 0;
	for (size_t k = 0; k < ARRAY_LEN(symbols); k++)
		if (has_at(s, i + n, symbols[k]))
			return n + strlen(symbols[k]);
	return n;
}

/* Returns the index after the qualifiers of a C++ member function: "() const &". */
static size_t skip_qualifiers(struct sv s, size_t i)
{
	static const char *const words[] = {" const", " volatile", " noexcept", " &&", " &", "&"};
	for (size_t k = 0; k < ARRAY_LEN(words); k++)
		if (has_at(s, i, words[k])) {
			i += strlen(words[k]);
			k = (size_t)-1;
		}
	return i;
}

/* Returns the index after a hash or a compiler's suffix at @i; @i if there is none. */
static size_t skip_hash(struct sv s, size_t i)
{
	static const char *const suffixes[] = {".llvm.", ".isra.",     ".constprop.",
					       ".part.", ".lto_priv.", ".cold"};
	if (has_at(s, i, " [clone ."))
		return skip_group(s, i + 1) ?: i;
	bool is_crate = s.p[i] == '[' && i && is_word(s.p[i - 1]);
	size_t at = is_crate ? i + 1 : has_at(s, i, "::h") ? i + 3 : s.n;
	size_t n = at;
	while (n < s.n && is_hex(s.p[n]))
		n++;
	if (n - at == HASH_DIGITS &&
	    (is_crate ? n < s.n && s.p[n] == ']' : n == s.n || s.p[n] == '.'))
		return n + is_crate;
	for (size_t k = 0; k < ARRAY_LEN(suffixes); k++) {
		if (!has_at(s, i, suffixes[k]))
			continue;
		i += strlen(suffixes[k]);
		while (i < s.n && is_digit(s.p[i]))
			i++;
		return i;
	}
	return i;
}

/* "<A as B>": returns the length of "A"; 0 if it is not such a type, or nothing follows it. */
static size_t type_length(struct sv s, size_t i, size_t end)
{
	size_t n = i + 1;
	while (n + 1 < end && !has_at(s, n, " as ")) {
		size_t after =
			s.p[n] == '<' || s.p[n] == '(' || s.p[n] == '[' ? skip_group(s, n) : 0;
		n = after ? after : n + 1;
	}
	return has_at(s, end, "::") ? n - i - 1 : 0;
}

/* "void ns::f<int>": a return type ends at the last space outside brackets. */
static void drop_return_type(struct buf *to)
{
	struct sv s = buf_sv(to);
	size_t at = 0;
	for (size_t i = 0; i < s.n; i++) {
		bool opens = s.p[i] == '<' || s.p[i] == '(' || s.p[i] == '[' || s.p[i] == '{';
		size_t after = opens ? skip_group(s, i) : 0;
		size_t op = operator_length(s, i);
		if (op) /* "operator new" and conversions have spaces of their own */
			break;
		if (s.p[i] == ' ')
			at = i + 1;
		i = after ? after - 1 : i;
	}
	if (!at || at >= s.n)
		return;
	memmove(to->p, to->p + at, to->n - at + 1);
	to->n -= at;
}

static void add_stripped(struct buf *to, struct sv s, unsigned what)
{
	CLEANUP(buf_release) struct buf out = {0};
	for (size_t i = 0; i < s.n;) {
		char before = i ? s.p[i - 1] : 0;
		size_t op = operator_length(s, i);
		size_t end = s.p[i] == '<' || s.p[i] == '(' ? skip_group(s, i) : 0;
		size_t after_hash = what & STRIP_HASHES ? skip_hash(s, i) : i;
		bool is_call =
			s.p[i] == '(' && (is_word(before) || (before && strchr(">)]}", before)));
		bool is_generic =
			s.p[i] == '<' && (is_word(before) || (before && strchr(":]})", before)));
		size_t type = end && s.p[i] == '<' && !is_generic ? type_length(s, i, end) : 0;
		if (op) {
			buf_add(&out, s.p + i, op);
			i += op;
		} else if (after_hash > i) {
			i = after_hash;
		} else if (end && is_call && what & STRIP_ARGUMENTS) {
			drop_return_type(&out);
			i = skip_qualifiers(s, end);
		} else if (end && is_generic && what & STRIP_TEMPLATES) {
			if (sv_has_suffix(buf_sv(&out), SV("::")))
				out.n -= 2;
			i = end;
		} else if (type && what & STRIP_TRAIT) {
			add_stripped(&out, (struct sv){s.p + i + 1, type}, what);
			i = end;
		} else {
			buf_add_ch(&out, s.p[i++]);
		}
	}
	buf_add_sv(to, out.n ? buf_sv(&out) : s);
}

/* ---- paths ----------------------------------------------------------------------------- */

struct part {
	size_t from; /* its separator, which the first part need not have */
	size_t name;
};

/* Splits at "::" and "/" outside brackets; returns the number of parts. */
static size_t split(struct sv s, struct part *ret_parts)
{
	size_t n = 1;
	const char *slash = memchr(s.p, '/', s.n);
	size_t after_slash = slash ? (size_t)(slash - s.p) + 1 : s.n;
	/* "kworker/1:1H" is a name, not a path */
	bool is_path = slash && (slash == s.p || memchr(slash + 1, '/', s.n - after_slash));
	ret_parts[0] = (struct part){0, 0};
	for (size_t i = 0; i < s.n && n < PARTS_MAX; i++) {
		bool opens = s.p[i] == '<' || s.p[i] == '(' || s.p[i] == '[' || s.p[i] == '{';
		size_t op = operator_length(s, i);
		size_t after = op ? i + op : opens ? skip_group(s, i) : 0;
		size_t separator = after ? 0 : has_at(s, i, "::") ? 2 : is_path && s.p[i] == '/';
		if (separator && i && i + separator < s.n) {
			ret_parts[n++] = (struct part){i, i + separator};
			i += separator - 1;
		}
		i = after ? after - 1 : i;
	}
	return n;
}

/* JIT code has a name and a place, "~render /srv/app/render.js:10": the path of the place goes first. */
static bool add_place(struct buf *to, struct sv s, size_t space, size_t nr_left_out)
{
	size_t base = s.n;
	while (s.p[base - 1] != '/')
		base--;
	if (nr_left_out > 2)
		return false;
	buf_add(to, s.p, space + (nr_left_out == 1));
	if (nr_left_out == 1)
		buf_add_sv(to, sv_from_idx(s, base));
	return true;
}

/* The path without @nr_left_out of its parts: "a::..::c::d", then its end alone. */
static bool add_path(struct buf *to, struct sv s, size_t nr_left_out)
{
	struct part parts[PARTS_MAX];
	const char *space = memmem(s.p, s.n, " /", 2);
	if (space && space > s.p)
		return add_place(to, s, (size_t)(space - s.p), nr_left_out);
	size_t n = split(s, parts);
	/* a closure or the like says nothing without its function */
	size_t least = n > 1 && s.p[parts[n - 1].name] == '{' ? 2 : 1;
	if (nr_left_out + least > n)
		return false;
	size_t kept = n - nr_left_out;
	size_t head = kept > 2 ? (kept - 1) / 2 : 0;
	const struct part *tail = &parts[n - (kept - head)];
	if (!head) {
		buf_add_sv(to, sv_from_idx(s, tail->name));
		return true;
	}
	buf_add(to, s.p, parts[head].from);
	buf_add(to, s.p + tail->from, tail->name - tail->from);
	buf_add_str(to, dots_of(s));
	buf_add_sv(to, sv_from_idx(s, tail->from));
	return true;
}

bool shortname_form(struct buf *to, struct sv name, unsigned step)
{
	if (step && name.n > NAME_BYTES_MAX)
		return false;
	if (!step || !name.n) {
		buf_add_sv(to, name);
		return !step;
	}
	if (step < ARRAY_LEN(strips)) {
		add_stripped(to, name, strips[step]);
		return true;
	}
	CLEANUP(buf_release) struct buf bare = {0};
	add_stripped(&bare, name, strips[ARRAY_LEN(strips) - 1]);
	return add_path(to, buf_sv(&bare), step - ARRAY_LEN(strips) + 1);
}

/* ---- forms of a width ------------------------------------------------------------------- */

void shortname_cut(struct buf *to, struct sv text, size_t columns)
{
	const char *mark = dots_of(text);
	const size_t dots = strlen(mark);
	if (utf8_columns(text) <= columns) {
		buf_add_sv(to, text);
		return;
	}
	size_t rest = columns > dots ? columns - dots : 0;
	size_t tail = rest * 3 / 5; /* the end is the most specific part */
	size_t nr_tail = bytes_of_last(text, tail);
	buf_add(to, text.p, bytes_of_first(text, rest - tail));
	buf_add(to, mark, MIN(columns, dots));
	buf_add(to, text.p + text.n - nr_tail, nr_tail);
}

void shortname_cut_end(struct buf *to, struct sv text, size_t columns)
{
	static const char mark[] = "..";
	const size_t dots = MIN(strlen(mark), columns);
	bool is_whole = utf8_columns(text) <= columns;
	buf_add(to, text.p, is_whole ? text.n : bytes_of_first(text, columns - dots));
	buf_add(to, mark, is_whole ? 0 : dots);
}

void shortname_cut_list(struct buf *to, struct sv text, size_t columns)
{
	size_t end = columns > 2 ? bytes_of_first(text, columns - 2) : 0;
	while (end && end < text.n && text.p[end] != ' ' && text.p[end - 1] != ' ')
		end--;
	bool is_whole = utf8_columns(text) <= columns;
	if (is_whole || end < 3 * columns / 5) { /* a long word at the end: a part of it is more */
		shortname_cut_end(to, text, columns);
		return;
	}
	buf_add(to, text.p, end);
	buf_add_str(to, "..");
}

void shortname_add(struct buf *to, struct sv name, size_t columns)
{
	CLEANUP(buf_release) struct buf form = {0};
	CLEANUP(buf_release) struct buf next = {0};
	for (unsigned step = 0; shortname_form(&next, name, step); step++) {
		buf_clear(&form);
		buf_add_sv(&form, buf_sv(&next));
		buf_clear(&next);
		if (utf8_columns(buf_sv(&form)) <= columns)
			break;
	}
	shortname_cut(to, buf_sv(&form), columns);
}

/* ---- a list of names -------------------------------------------------------------------- */

static int compare(struct sv a, struct sv b)
{
	return memcmp(a.p, b.p, MIN(a.n, b.n)) ?: COMPARE(a.n, b.n);
}

struct entry {
	struct sv name;
	char *form;
	size_t i;
};

static int by_form(const void *x, const void *y)
{
	const struct entry *a = x;
	const struct entry *b = y;
	return strcmp(a->form, b->form) ?: compare(a->name, b->name) ?: COMPARE(a->i, b->i);
}

/* Length in bytes of what the names have in common at the start; they are sorted. */
static size_t common_start(struct sv a, struct sv b)
{
	size_t n = 0;
	while (n < a.n && n < b.n && a.p[n] == b.p[n])
		n++;
	while (n && n < a.n && !is_start(a.p[n]))
		n--;
	return n;
}

/* A form that has what follows the first @common bytes: "std::..tor<int>". */
static char *form_from(struct sv name, size_t common, size_t columns)
{
	const char *mark = dots_of(name);
	const size_t dots = strlen(mark);
	size_t head = columns / 4;
	CLEANUP(buf_release) struct buf form = {0};
	if (common <= head + dots) {
		buf_add(&form, name.p, bytes_of_first(name, columns > dots ? columns - dots : 0));
		if (form.n < name.n)
			buf_add_str(&form, mark);
		return buf_detach(&form);
	}
	size_t context = columns / 4; /* bytes before the difference: its word */
	size_t from = common > context + head ? common - context : head;
	while (from < name.n && !is_start(name.p[from]))
		from++;
	buf_add(&form, name.p, bytes_of_first(name, head));
	buf_add_str(&form, mark);
	struct sv rest = sv_from_idx(name, from);
	size_t room = columns > head + dots ? columns - head - dots : 0;
	if (utf8_columns(rest) <= room) {
		/* all that follows fits, and more before it */
		buf_add_sv(&form, sv_from_idx(name, name.n - bytes_of_last(name, room)));
	} else {
		buf_add(&form, rest.p, bytes_of_first(rest, room > dots ? room - dots : 0));
		buf_add_str(&form, mark);
	}
	return buf_detach(&form);
}

/* A form made different by a number, where the difference is too long to be shown. */
static char *numbered(const char *form, size_t nr, size_t columns)
{
	CLEANUP(free_p) char *number = xasprintf("~%zu", nr);
	CLEANUP(buf_release) struct buf to = {0};
	size_t room = columns > strlen(number) ? columns - strlen(number) : 1;
	struct sv s = sv_from_str(form);
	buf_add(&to, form, bytes_of_first(s, room));
	buf_add_str(&to, number);
	return buf_detach(&to);
}

/* Replaces the forms of entries from..to, equal forms of names that are not. */
static void make_differ(struct entry *e, size_t n, size_t columns, unsigned pass)
{
	size_t common = common_start(e[0].name, e[n - 1].name);
	size_t nr = 0;
	for (size_t i = 0; i < n; i++) {
		nr += i && compare(e[i].name, e[i - 1].name) != 0;
		char *form = pass ? (nr ? numbered(e[i].form, nr + 1, columns) : xstrdup(e[i].form))
				  : form_from(e[i].name, common, columns);
		free(e[i].form);
		e[i].form = form;
	}
}

static void make_all_differ(struct entry *e, size_t n, size_t columns)
{
	for (unsigned pass = 0; pass < 3; pass++) {
		bool is_done = true;
		qsort(e, n, sizeof(*e), by_form);
		for (size_t i = 0, end; i < n; i = end) {
			for (end = i + 1; end < n && !strcmp(e[i].form, e[end].form);)
				end++;
			if (!compare(e[i].name, e[end - 1].name))
				continue;
			make_differ(e + i, end - i, columns, pass);
			is_done = false;
		}
		if (is_done)
			return;
	}
}

void shortnames_make(struct shortnames *ret_s, const struct sv *names, size_t n, size_t columns)
{
	*ret_s = (struct shortnames){.at = xcalloc(n + 1, sizeof(*ret_s->at))};
	CLEANUP(free_p) struct entry *e = xcalloc(n + 1, sizeof(*e));
	CLEANUP(buf_release) struct buf form = {0};
	for (size_t i = 0; i < n; i++) {
		buf_clear(&form);
		shortname_add(&form, names[i], columns);
		e[i] = (struct entry){names[i], xstrdup(buf_str(&form)), i};
	}
	if (n)
		make_all_differ(e, n, columns);
	for (size_t i = 0; i < n; i++) {
		ret_s->at[e[i].i] = ret_s->text.n;
		buf_add(&ret_s->text, e[i].form, strlen(e[i].form) + 1);
		free(e[i].form);
	}
}

void shortnames_release(struct shortnames *s)
{
	buf_release(&s->text);
	free(s->at);
}
