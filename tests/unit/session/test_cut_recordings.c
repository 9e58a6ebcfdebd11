/*
 * Recordings of each kind of table, cut at every byte: an error, or pages that say that they are
 * incomplete and claim nothing of an end. `make san` runs this with the sanitizers.
 */
#include "base/base.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyze/views.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "format/assay/assayfile.h"
#include "madeheap.h"
#include "model/heapcalibrate.h"
#include "render/text.h"
#include "tap.h"

/* A number that differs if the pages do. */
static uint64_t contents_of(const struct profile *p)
{
	uint64_t h = hash_mix(p->is_incomplete, p->end_ns);
	vec_foreach(t, &p->tables)
		h = hash_mix(h, t->n);
	h = hash_mix(h, p->stacks.n);
	h = hash_mix(h, p->functions.n);
	return hash_mix(h, p->facts.n);
}

static bool has(const struct buf *page, const char *what)
{
	return strstr(page->p, what) != NULL;
}

/* The pages of all views that a profile has, with all their tables and notes. */
static unsigned check_pages(struct profile *p)
{
	static const char *const claims[] = {
		" leaked  ", "program exit", "site: not freed",  "verdict leak", "at the end",
		"RSS at",    "peak RSS",     "was freed before", "no losses\n",
	};
	const struct select_spec spec = {0};
	const struct view_limits limits = {.max_rows = 10};
	unsigned nr = 0;
	heapcalibrate(p);
	profile_seal(p);
	for (unsigned i = 0; i < VIEW_NR; i++) {
		const struct view *v = views_at((enum view_id)i);
		CLEANUP(report_free_p) struct report *r = report_new();
		CLEANUP(buf_release) struct buf page = {0};
		if (!views_has(v, p) || v->page(r, p, &spec, NULL, &limits, NULL))
			continue;
		text_render(&page, r, &(struct text_style){0});
		(void)buf_str(&page);
		nr++;
		CHECK(has(&page, "recording is incomplete") == p->is_incomplete);
		for (size_t k = 0; p->is_incomplete && k < ARRAY_LEN(claims); k++)
			CHECK_STR(has(&page, claims[k]) ? claims[k] : "", "");
	}
	return nr;
}

/*
 * Reads the prefixes of a file of @n bytes, each @step bytes longer, and makes the pages of those that
 * have other contents than the one before. The copies have an exact end, for AddressSanitizer.
 */
static void cut(const char *bytes, size_t n, size_t step)
{
	uint64_t before = 0;
	unsigned nr_pages = 0;
	for (size_t at = n % step; at <= n; at += step) {
		CLEANUP(err_release) struct err err = {0};
		CLEANUP(free_p) void *copy = xmemdup(bytes, at);
		CLEANUP(profile_free_p) struct profile *p = NULL;
		if (assayfile_read(&p, NULL, copy, at, &err)) {
			CHECK(err.code < 0 && err_msg(&err)[0]);
			continue;
		}
		CHECK(p->is_incomplete == (at < n));
		if (contents_of(p) == before)
			continue;
		before = contents_of(p);
		nr_pages += check_pages(p);
	}
	CHECK(nr_pages >= 2);
}

/* AddressSanitizer makes the test ten times slower, and the other build cuts at each byte. */
#ifdef __SANITIZE_ADDRESS__
#define FILE_STEP 11
#else
#define FILE_STEP 1
#endif

static void cut_file(const char *path)
{
	CLEANUP(buf_release) struct buf b = {0};
	CHECK(!file_read(&b, path, 1 << 20, NULL));
	cut(b.p, b.n, FILE_STEP);
}

TEST(cut_recordings_claim_nothing_of_an_end)
{
	cut_file("tests/fixtures/cut/cpu.assay");
	cut_file("tests/fixtures/cut/events.assay");
	cut_file("tests/fixtures/cut/heap.assay");
	cut_file("tests/fixtures/cut/memory.assay");
	cut_file("tests/fixtures/waits/service.assay");
	cut_file("tests/fixtures/waits/hotcold.assay");
	cut_file("tests/fixtures/calls/io.assay");
	cut_file("tests/fixtures/calls/faults.assay");
	cut_file("tests/fixtures/calls/spans.assay");
}

/* As a capture of a launched program writes it: rows each second, live and peak at the end. */
static void heap_file(struct buf *to, int nr_sites)
{
	CLEANUP(profile_free_p) struct profile *p = madeheap_new(4, MADEHEAP_ENDED);
	int fd = memfd_create("heap", MFD_CLOEXEC);
	CLEANUP(assayfile_writer_free_p)
	struct assayfile_writer *w = assayfile_writer_new(dup(fd), "heap");
	CHECK(!assayfile_flush(w, p, NULL));
	for (unsigned s = 0; s < 4; s++) {
		for (int i = 0; i < nr_sites; i++) {
			CLEANUP(free_p) char *stack = xasprintf("main a;f%d a;malloc libc.so.6", i);
			struct madeheap m = {.table = TABLE_ALLOCATED,
					     .second = s,
					     .size = (uint64_t)(100 + i % 7000),
					     .nr = 3,
					     .stack = stack};
			madeheap(p, &m);
			m.table = TABLE_FREED;
			m.nr = 2;
			madeheap(p, &m);
		}
		CHECK(!assayfile_flush(w, p, NULL));
	}
	for (int i = 0; i < nr_sites; i++) {
		CLEANUP(free_p) char *stack = xasprintf("main a;f%d a;malloc libc.so.6", i);
		struct madeheap m = {.table = TABLE_LIVE,
				     .size = (uint64_t)(100 + i % 7000),
				     .nr = 4,
				     .stack = stack};
		madeheap(p, &m);
		m.table = TABLE_PEAK;
		m.second = 3;
		madeheap(p, &m);
	}
	profile_fact(p, FACT_HEAP_ENDED, "yes");
	CHECK(!assayfile_finish(w, p, NULL));
	CHECK(!lseek(fd, 0, SEEK_SET));
	CHECK(!file_read_fd(to, fd, 1 << 24, NULL));
	close(fd);
}

TEST(cut_recordings_of_heaps_claim_no_leaks)
{
	CLEANUP(buf_release) struct buf small = {0};
	heap_file(&small, 3);
	cut(small.p, small.n, 1);
	CLEANUP(buf_release) struct buf large = {0};
	heap_file(&large, 3000);
	CHECK(large.n > 20000);
	cut(large.p, large.n, large.n / 23);
}
