/*
 * Recordings cut anywhere, of each kind of table: an error, or a page that says that it is incomplete
 * and claims nothing of an end.
 */
#include "base/base.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyze/query.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "format/assay/assayfile.h"
#include "madeheap.h"
#include "render/text.h"
#include "session/load.h"
#include "tap.h"

static bool has(const struct buf *page, const char *what)
{
	return strstr(page->p, what) != NULL;
}

/* Returns false if the file is refused. */
static bool check_page(const char *path, size_t at, size_t all)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(profile_free_p) struct profile *p = NULL;
	const struct load_options none = {0};
	if (load_profile(&p, path, &none, &err)) {
		CHECK(err.code < 0 && err_msg(&err)[0]);
		return false;
	}
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf page = {0};
	struct select_spec spec = {0};
	const struct query q = {.spec = &spec, .by = QUERY_BY_NONE, .limits = {.max_rows = 10}};
	CHECK(!query_run(r, p, &q, &err));
	text_render(&page, r, &(struct text_style){0});
	(void)buf_str(&page);
	if (at == all) {
		CHECK(!p->is_incomplete && !has(&page, "incomplete: "));
		return true;
	}
	CHECK(p->is_incomplete && has(&page, "recording is incomplete"));
	CHECK(!has(&page, " leaked  ") && !has(&page, "program exit") &&
	      !has(&page, "site: not freed"));
	CHECK(!has(&page, "at the end") && !has(&page, "RSS at"));
	return true;
}

/* Cuts a file of @n bytes at every @step-th byte, from the end to the start. */
static void cut(const char *bytes, size_t n, size_t step)
{
	CLEANUP(close_p) int fd = memfd_create("cut", MFD_CLOEXEC);
	CLEANUP(free_p) char *path = xasprintf("/proc/self/fd/%d", fd);
	size_t nr_pages = 0;
	CHECK(!file_write_all(fd, bytes, n, NULL));
	CHECK(check_page(path, n, n));
	for (size_t at = n; at-- > 0;) {
		if (at % step)
			continue;
		CHECK(!ftruncate(fd, (off_t)at));
		nr_pages += check_page(path, at, n);
	}
	CHECK(nr_pages > n / step / 2);
}

static void cut_file(const char *path, size_t step)
{
	CLEANUP(buf_release) struct buf b = {0};
	CHECK(!file_read(&b, path, 1 << 20, NULL));
	cut(b.p, b.n, step);
}

TEST(cut_recordings_of_waits_io_faults_and_spans_say_so)
{
	cut_file("tests/fixtures/waits/service.assay", 3);
	cut_file("tests/fixtures/waits/hotcold.assay", 13);
	cut_file("tests/fixtures/calls/io.assay", 5);
	cut_file("tests/fixtures/calls/faults.assay", 13);
	cut_file("tests/fixtures/calls/spans.assay", 13);
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
	cut(small.p, small.n, 3);
	CLEANUP(buf_release) struct buf large = {0};
	heap_file(&large, 3000);
	CHECK(large.n > 20000);
	cut(large.p, large.n, large.n / 23);
}
