/*
 * perf script text: any input, read in pieces of any size, gives the same profile; samples in are
 * samples out plus losses; written and read again the samples are the same; folded counts add up.
 */
#include "base/base.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file/zio.h"
#include "base/text/lines.h"
#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The head from memory, the rest from a file. */
static struct profile *read_in_pieces(const char *text, size_t n, size_t nr_head)
{
	struct profile *p = profile_new();
	int fd = memfd_create("rest", 0);
	ASSERT(fd >= 0 && write(fd, text + nr_head, n - nr_head) == (ssize_t)(n - nr_head));
	ASSERT(!lseek(fd, 0, SEEK_SET));
	CLEANUP(instream_free_p) struct instream *rest = NULL;
	ASSERT(!instream_open(&rest, fd, NULL));
	struct format_input in = {sv_from(text, nr_head), rest};
	(void)perfscript_read(p, &in, &(struct format_options){0}, NULL); /* junk only: no event */
	profile_seal(p);
	return p;
}

static void write_as(const char *format, const struct profile *p, const char *event,
		     struct format_output *to)
{
	struct format_options options = {.event = event};
	if (format_find(format)->write(to, p, &options, NULL))
		BUG("%s cannot be written", format);
}

static uint64_t sum_of_folded(const struct profile *p, const char *event)
{
	struct format_output out = {0};
	write_as("folded", p, event, &out);
	uint64_t sum = 0;
	struct lines in = lines_from(out.buf.p, out.buf.n);
	struct sv line;
	while (lines_next(&in, &line)) {
		uint64_t v;
		ssize_t blank = sv_rindex(line, ' ');
		if (blank <= 0 || !sv_to_u64(sv_from_idx(line, (size_t)blank + 1), &v))
			BUG("bad folded line '%.*s'", SV_ARGS(line));
		sum += v;
	}
	buf_release(&out.buf);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t step = n ? MIN(data[0] % 40, n) : 0;
	if (zio_sniff(data + step, n - step) != ZKIND_NONE)
		return 0; /* the rest would be decompressed */
	struct profile *p = read_in_pieces((const char *)data, n, n);
	struct profile *q = read_in_pieces((const char *)data, n, step);
	const uint64_t *nr = p->losses.nr;
	if (nr[LOSS_SEEN] !=
	    nr[LOSS_WRITTEN] + nr[LOSS_LOST] + nr[LOSS_UNPARSED] + nr[LOSS_FILTERED])
		BUG("samples in are not samples out plus losses");
	struct format_output a = {0};
	struct format_output b = {0};
	write_as("json", p, NULL, &a);
	write_as("json", q, NULL, &b);
	if (strcmp(buf_str(&a.buf), buf_str(&b.buf)) != 0)
		BUG("pieces of %zu bytes give another profile", step);
	uint64_t nr_samples = 0;
	vec_foreach(t, &p->tables) {
		nr_samples += t->n;
		if (t == p->tables.p && sum_of_folded(p, NULL) != t->n)
			BUG("folded counts do not add up");
	}
	if (nr_samples != nr[LOSS_WRITTEN])
		BUG("written samples are not in the tables");
	buf_clear(&a.buf);
	write_as("perfscript", p, NULL, &a);
	struct profile *back = read_in_pieces(buf_str(&a.buf), a.buf.n, a.buf.n);
	if (back->losses.nr[LOSS_WRITTEN] != nr_samples || back->losses.nr[LOSS_UNPARSED])
		BUG("%" PRIu64 " of %" PRIu64 " samples read back:\n%s",
		    back->losses.nr[LOSS_WRITTEN], nr_samples, buf_str(&a.buf));
	buf_release(&a.buf);
	buf_release(&b.buf);
	profile_free(back);
	profile_free(p);
	profile_free(q);
	return 0;
}
