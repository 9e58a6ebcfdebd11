/*
 * Heap profiles of gperftools (HEAPPROFILE, HeapProfilerDump) and those that tcmalloc samples
 * (MallocExtension's heap and growth). docs/formats/gperftools-heap.md has the grammar.
 * Reader only.
 *
 *	heap profile:  1246:  8800744 [  1246:  8800744] @ heapprofile
 *	     1:   81920 [     1:   81920] @ 0x7f21 0x7f20 ...	live [allocated] @ stack, leaf first
 *	MAPPED_LIBRARIES:
 *
 * The text after "@" in the first line is the kind of the profile:
 *	heapprofile	every allocation: "live" and "allocated" are exact
 *	..._v2/N	a Poisson sample with N bytes in between: each row is scaled by its mean
 *			size before any sum (dumpmaps_unbias)
 *	heap/N		the older sample: a block of s bytes was seen with s / (N / 2)
 *	growth...	what the allocator got from the system, by stack: "mapped"
 * Without an "@", equal numbers before and in the brackets mean the older sample with 128 KiB.
 */
#include "base/base.h"
#include "format/format.h"

#include <errno.h>

#include "base/text/lines.h"
#include "format/heap/dumpmaps.h"
#include "model/heap.h"
#include "model/tables.h"

#define HEADER           SV("heap profile:")
#define INTERVAL_DEFAULT ((uint64_t)128 << 10)

enum sampling { SAMPLING_NONE, SAMPLING_V1, SAMPLING_V2 };

struct reader {
	struct profile *p;
	struct dumpmaps maps;
	enum sampling sampling;
	uint64_t interval;
	bool is_growth;
	bool has_all;
	task_id task;
	uint32_t live_table;
	uint32_t all_table;
	uint64_t head_bytes; /* live, as its head says, and in its stacks */
	uint64_t stack_bytes;
};

static bool contains(struct sv s, const char *word)
{
	return memmem(s.p, s.n, word, strlen(word)) != NULL;
}

/* Parses the kind after "@": "heapprofile", "heap_v2/524288", "growthz/1". */
static void take_kind(struct reader *r, struct sv kind)
{
	struct sv number = kind;
	struct sv name = sv_trim(sv_split(&number, '/'));
	size_t nr_digits = 0;
	while (nr_digits < number.n && number.p[nr_digits] >= '0' && number.p[nr_digits] <= '9')
		nr_digits++;
	uint64_t interval = 0;
	(void)sv_to_u64(sv_from(number.p, nr_digits), &interval); /* 0: none given */
	r->is_growth = contains(name, "growth");
	if (sv_eq(name, SV("heapprofile")) || !contains(name, "heap") || r->is_growth)
		return;
	bool is_v2 = contains(name, "_v2");
	r->sampling = is_v2 ? SAMPLING_V2 : SAMPLING_V1;
	r->interval = is_v2 ? interval : interval / 2;
	if (!r->interval)
		r->interval = INTERVAL_DEFAULT;
}

static bool take_header(struct reader *r, struct sv line)
{
	struct dump_sum live;
	struct dump_sum all;
	struct sv rest;
	if (!sv_has_prefix(line, HEADER) ||
	    !dumpmaps_row(sv_from_idx(line, HEADER.n), &live, &all, &rest))
		return false;
	r->head_bytes = live.nr_bytes;
	bool is_same = live.nr == all.nr && live.nr_bytes == all.nr_bytes;
	if (rest.n > 1 && rest.p[0] == '@') {
		take_kind(r, sv_trim(sv_from_idx(rest, 1)));
	} else if (is_same) {
		r->sampling = SAMPLING_V1;
		r->interval = INTERVAL_DEFAULT;
	}
	/* a sampled heap profile has live blocks only */
	r->has_all = !r->is_growth && (r->sampling == SAMPLING_NONE || !is_same);
	return true;
}

static struct dump_estimate unbias(const struct reader *r, struct dump_sum s)
{
	switch (r->sampling) {
	case SAMPLING_NONE:
		break;
	case SAMPLING_V1:
		return dumpmaps_unbias_v1(s, r->interval);
	case SAMPLING_V2:
		return dumpmaps_unbias(s, r->interval);
	}
	return (struct dump_estimate){.nr = (double)s.nr, .nr_bytes = (double)s.nr_bytes};
}

static void add_row(struct reader *r, uint32_t table, stack_id stack, struct dump_sum s)
{
	if (!s.nr && !s.nr_bytes)
		return;
	struct dump_estimate e = unbias(r, s);
	bool is_exact = r->sampling == SAMPLING_NONE;
	int64_t values[HEAP_BLOCK_NR] = {
		[HEAP_BLOCKS] =
			is_exact ? (int64_t)MIN(s.nr, (uint64_t)INT64_MAX) : dumpmaps_round(e.nr),
		[HEAP_BYTES] = is_exact ? (int64_t)MIN(s.nr_bytes, (uint64_t)INT64_MAX)
					: dumpmaps_round(e.nr_bytes),
		[HEAP_SAMPLES] = (int64_t)MIN(s.nr, (uint64_t)INT64_MAX),
		[HEAP_VARIANCE] = dumpmaps_round(e.variance),
	};
	if (r->is_growth)
		values[HEAP_SAMPLES] = 0; /* the column there: bytes unmapped */
	profile_sample(r->p, table, 0, stack, r->task, -1, values);
	profile_lose(r->p, LOSS_SEEN, (uint64_t)values[HEAP_BLOCKS]);
	profile_lose(r->p, LOSS_WRITTEN, (uint64_t)values[HEAP_BLOCKS]);
}

/* "live [allocated] @ stack" */
static bool take_line(struct reader *r, struct sv line)
{
	struct dump_sum live;
	struct dump_sum all;
	struct sv rest;
	stack_id stack;
	size_t depth;
	if (!dumpmaps_row(line, &live, &all, &rest) || !rest.n || rest.p[0] != '@' ||
	    !dumpmaps_stack(&r->maps, sv_from_idx(rest, 1), LOCATION_CALL, &stack, &depth))
		return false;
	r->stack_bytes += live.nr_bytes;
	add_row(r, r->live_table, stack, live);
	if (r->has_all)
		add_row(r, r->all_table, stack, all);
	return true;
}

static void make_tables(struct reader *r)
{
	unsigned flags = r->sampling == SAMPLING_NONE ? 0 : TABLES_ESTIMATE;
	r->live_table = tables_add(r->p, r->is_growth ? TABLE_MAPPED : TABLE_LIVE, flags);
	if (r->has_all)
		r->all_table = tables_add(r->p, TABLE_ALLOCATED, flags | TABLES_NO_TEMPORARY);
	r->task = profile_task(r->p, -1, -1, r->maps.comm, 0);
}

static void set_facts(struct reader *r)
{
	CLEANUP(buf_release) struct buf b = {0};
	profile_fact(r->p, FACT_SOURCE, "gperftools heap profile");
	profile_fact(r->p, FACT_HEAP_ALLOCATOR, "tcmalloc");
	profile_fact(r->p, FACT_HEAP_METHOD, "dump: read from a file of gperftools' profiler");
	if (r->sampling == SAMPLING_NONE)
		buf_add_str(&b, "every allocation");
	else
		buf_add_u64(&b, r->interval);
	profile_fact(r->p, FACT_HEAP_SAMPLING, buf_str(&b));
	dumpmaps_add_damage(&r->maps, r->stack_bytes, r->head_bytes);
}

int gperfheap_read(struct profile *p, const struct format_input *in,
		   const struct format_options *options, struct err *err)
{
	(void)options;
	CLEANUP(buf_release) struct buf all = {0};
	struct sv text;
	TRY(format_input_text(in, &all, &text, err));
	struct sv stacks;
	struct sv maps;
	dumpmaps_split(text, &stacks, &maps);
	struct lines lines = lines_from(stacks.p, stacks.n);
	struct sv line = {0};
	struct reader r = {.p = p};
	if (!lines_next(&lines, &line) || !take_header(&r, sv_trim(line)))
		return err_set(err, -EINVAL,
			       "line 1: expected 'heap profile: N: BYTES [N: BYTES] @ KIND', "
			       "found '%.*s'",
			       (int)MIN(line.n, (size_t)80), line.p);
	dumpmaps_parse(&r.maps, p, 0, maps);
	make_tables(&r);
	int rc = 0;
	while (!rc && lines_next(&lines, &line)) {
		line = sv_trim(line);
		if (line.n && !take_line(&r, line))
			format_bad_line(r.p, lines.nr, &r.maps.first_bad_nr);
		if (lines.nr % ROOM_LINES == 0)
			rc = format_check_room(format_input_stored(in), p, text.n, err);
	}
	set_facts(&r);
	dumpmaps_release(&r.maps);
	return rc;
}

int gperfheap_sniff(struct sv head)
{
	return sv_has_prefix(head, HEADER) ? 100 : 0;
}
