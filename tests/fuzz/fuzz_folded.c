/*
 * Folded stacks: any input gives a profile or an error; written, read and written again the bytes
 * are the same, sorted by stack, and the counts add up.
 */
#include "base/base.h"

#include "base/text/lines.h"
#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct profile *read_folded(const char *text, size_t n, unsigned flags)
{
	struct profile *p = profile_new();
	struct format_input in = {.head = sv_from(text, n)};
	struct format_options options = {.folded = {.flags = flags}};
	struct err err = {0};
	int rc = folded_read(p, &in, &options, &err);
	if (rc && !*err_msg(&err))
		BUG("an error without a message");
	err_release(&err);
	profile_seal(p);
	return p;
}

static void write_folded(const struct profile *p, unsigned flags, struct format_output *to)
{
	struct format_options options = {.folded = {.flags = flags}};
	if (folded_write(to, p, &options, NULL))
		BUG("cannot be written");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	unsigned flags = n ? data[0] % 2 * FOLDED_FIND_THREADS : 0;
	struct profile *p = read_folded((const char *)data, n, flags);
	unsigned marks = FOLDED_KERNEL | FOLDED_INLINE | FOLDED_JIT;
	struct format_output once = {0};
	write_folded(p, marks | (flags ? FOLDED_TID : 0), &once);
	struct lines in = lines_from(once.buf.p, once.buf.n);
	struct sv line;
	struct sv last = {0};
	while (lines_next(&in, &line)) {
		struct sv stack = sv_from(line.p, (size_t)MAX(sv_rindex(line, ' '), 0) + 1);
		int c = memcmp(last.p ? last.p : "", stack.p, MIN(last.n, stack.n));
		if (stack.n < 2 || c > 0 || (c == 0 && last.n >= stack.n))
			BUG("out of order: '%.*s' '%.*s'", SV_ARGS(last), SV_ARGS(stack));
		last = stack;
	}
	/* removing control characters can turn a name into a suffix; after one more round
	 * nothing may change */
	struct profile *q = read_folded(once.buf.p, once.buf.n, 0);
	struct format_output twice = {0};
	write_folded(q, marks, &twice);
	struct profile *r = read_folded(twice.buf.p, twice.buf.n, 0);
	struct format_output thrice = {0};
	write_folded(r, marks, &thrice);
	/* nor is anything promised where a name looks like a count or a comment */
	if (q->tables.n == 1 && r->tables.n == 1 &&
	    !memmem(buf_str(&twice.buf), twice.buf.n, "# ", 2) &&
	    strcmp(buf_str(&twice.buf), buf_str(&thrice.buf)) != 0)
		BUG("written '%s', then '%s'", buf_str(&twice.buf), buf_str(&thrice.buf));
	buf_release(&thrice.buf);
	profile_free(r);
	buf_release(&once.buf);
	buf_release(&twice.buf);
	profile_free(p);
	profile_free(q);
	return 0;
}
