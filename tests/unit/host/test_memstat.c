/* host/memory/memstat.c, host/memory/maps.c: the kernel's text about memory, and this process by it. */
#include "base/base.h"

#include "host/memory/maps.h"
#include "host/proc.h"
#include "host/memory/memstat.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/text/lines.h"
#include "tap.h"

#define KB 1024ull

static struct sv text(const char *s)
{
	return sv_from_str(s);
}

TEST(memstat_line_takes_only_numbers_and_kb)
{
	struct sv key;
	uint64_t v = 7;
	CHECK(memstat_line(text("Rss:        12 kB"), &key, &v) && v == 12 * KB &&
	      sv_eq_str(key, "Rss"));
	CHECK(memstat_line(text("Threads:\t3"), &key, &v) && v == 3);
	CHECK(!memstat_line(text("VmFlags: rd mr"), &key, &v));
	CHECK(!memstat_line(text("Name:\t12 monkeys"), &key, &v));
	CHECK(!memstat_line(text("Rss: 18446744073709551615 kB"), &key, &v));
	CHECK(!memstat_line(text("Rss: 12 MB"), &key, &v));
	CHECK(!memstat_line(text(": 12 kB"), &key, &v));
	CHECK(!memstat_line(text(""), &key, &v));
	CHECK(v == 3);
}

TEST(memstat_status_splits_rss)
{
	struct memstat m = {0};
	/* A program may call itself anything; its name stands before the numbers. */
	CHECK(memstat_parse_status(&m, text("Name:\tRssAnon: 9 kB\nVmPeak:\t 100 kB\n"
					    "VmSize:\t 90 kB\nVmHWM:\t 30 kB\nVmRSS:\t 24 kB\n"
					    "RssAnon:\t 10 kB\nRssFile:\t 12 kB\nRssShmem:\t 2 kB\n"
					    "VmPTE:\t 40 kB\nVmSwap:\t 5 kB\nThreads:\t17\n")));
	CHECK_U64(m.rss_bytes, 24 * KB);
	CHECK_U64(m.anon_bytes, 10 * KB);
	CHECK_U64(m.file_bytes, 12 * KB);
	CHECK_U64(m.shmem_bytes, 2 * KB);
	CHECK_U64(m.swap_bytes, 5 * KB);
	CHECK_U64(m.page_table_bytes, 40 * KB);
	CHECK_U64(m.peak_rss_bytes, 30 * KB);
	CHECK_U64(m.virtual_bytes, 90 * KB);
	CHECK_U64(m.nr_threads, 17);
	CHECK(m.has == (MEMSTAT_HAS_RSS | MEMSTAT_HAS_SPLIT));
	struct memstat kernel = {0};
	CHECK(!memstat_parse_status(&kernel, text("Name:\tkthreadd\nThreads:\t1\n")));
	CHECK(!kernel.has);
}

TEST(memstat_statm_and_stat_are_read_without_rights)
{
	struct memstat m = {0};
	CHECK(memstat_parse_statm(&m, text("765 439 412 5 0 123 0\n"), 4096));
	CHECK_U64(m.rss_bytes, 439 * 4096);
	CHECK_U64(m.file_bytes, 412 * 4096);
	CHECK_U64(m.anon_bytes, 27 * 4096);
	CHECK(m.has == MEMSTAT_HAS_RSS);
	CHECK(!memstat_parse_statm(&m, text("765 x"), 4096));
	CHECK(!memstat_parse_statm(&m, text("99999999999999999999 1 1"), 4096));
	CHECK(memstat_parse_stat(&m, text("12 (a) b (c) S 1 2 3 4 5 6 133 7 9 8 10 11 12 13 20 0 4 "
					  "0 1272742 2990080 420\n")));
	CHECK_U64(m.nr_minor, 133);
	CHECK_U64(m.nr_major, 9);
	CHECK_U64(m.nr_threads, 4);
	CHECK_U64(m.start_ticks, 1272742);
	CHECK(!memstat_parse_stat(&m, text("12 (sleep) S 1 2")));
	CHECK(!memstat_parse_stat(&m, text("no name")));
}

TEST(memstat_sums_know_what_all_of_them_have)
{
	struct memstat sum = {0};
	struct memstat one = {.has = MEMSTAT_HAS_RSS | MEMSTAT_HAS_PSS,
			      .nr_processes = 1,
			      .nr_threads = 2,
			      .rss_bytes = 10,
			      .pss_bytes = 6};
	struct memstat two = {
		.has = MEMSTAT_HAS_RSS, .nr_processes = 1, .nr_threads = 1, .rss_bytes = 5};
	memstat_add(&sum, &one);
	CHECK(sum.has & MEMSTAT_HAS_PSS);
	memstat_add(&sum, &two);
	CHECK_U64(sum.rss_bytes, 15);
	CHECK_U64(sum.pss_bytes, 6);
	CHECK_U64(sum.nr_processes, 2);
	CHECK_U64(sum.nr_threads, 3);
	CHECK(!(sum.has & MEMSTAT_HAS_PSS));
}

/* Not by memset: AddressSanitizer would touch its shadow memory as well. */
__attribute__((no_sanitize("address"))) static void touch(volatile char *p, size_t nr_bytes)
{
	for (size_t i = 0; i < nr_bytes; i += 4096)
		p[i] = 1;
}

TEST(memstat_says_of_this_process_what_smaps_adds_up_to)
{
	const size_t nr_bytes = 32 << 20;
	char *p = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared =
		mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED && shared != MAP_FAILED);
	struct memstat before, m;
	CHECK(!memstat_read(&before, getpid(), MEMSTAT_COUNTERS, NULL, NULL));
	touch(p, nr_bytes);
	touch(shared, nr_bytes / 2);
	int refused = 0;
	CHECK(!memstat_read(&m, getpid(), MEMSTAT_COUNTERS | MEMSTAT_ROLLUP, &refused, NULL));
	CHECK(!refused);
	uint64_t anon = m.anon_bytes - before.anon_bytes;
	uint64_t shmem = m.shmem_bytes - before.shmem_bytes;
	CHECK(anon >= nr_bytes - (512 << 10) && anon < nr_bytes + (1 << 20));
	CHECK(shmem >= nr_bytes / 2 - (512 << 10) && shmem < nr_bytes / 2 + (1 << 20));
	CHECK(m.nr_minor > before.nr_minor);
	CLEANUP(memmaps_release) struct memmaps maps = {0};
	CHECK(!memmaps_read(&maps, getpid(), NULL, NULL));
	uint64_t rss = 0, pss = 0;
	vec_foreach(one, &maps.list) {
		rss += one->rss_bytes;
		pss += one->pss_bytes;
		if (one->start <= (uintptr_t)shared && one->end > (uintptr_t)shared)
			CHECK(one->kind == MEMMAP_SHMEM && one->rss_bytes == nr_bytes / 2);
	}
	/* Reading takes some memory itself; who shares with us comes and goes. */
	CHECK(rss >= m.walked_rss_bytes && rss < m.walked_rss_bytes + (2 << 20));
	CHECK(pss + (2 << 20) > m.pss_bytes && pss < m.pss_bytes + (2 << 20));
	CHECK(m.rss_bytes <= rss && m.rss_bytes + (2 << 20) > rss);
	munmap(p, nr_bytes);
	munmap(shared, nr_bytes);
}

TEST(memstat_of_nobody_is_no_such_process)
{
	struct memstat m;
	CLEANUP(err_release) struct err err = {0};
	CHECK(memstat_read(&m, 2, MEMSTAT_COUNTERS, NULL, &err) == -ESRCH || geteuid());
	err_release(&err);
	CHECK(memstat_read(&m, INT32_MAX, MEMSTAT_COUNTERS, NULL, &err) == -ESRCH);
	CHECK(memstat_machine_bytes() > (64 << 20));
}

/* ---- mappings ----------------------------------------------------------------------------- */

static const char smaps[] =
	"00400000-00401000 r-xp 00000000 fe:00 10                     /bin/a program\n"
	"Rss:                   4 kB\nPss:                   2 kB\nVmFlags: rd ex\n"
	"00601000-00602000 rw-p 00001000 fe:00 10                     /bin/a program\n"
	"Rss:                   4 kB\nAnonymous:             4 kB\n"
	"01000000-01100000 rw-p 00000000 00:00 0                      [heap]\n"
	"Rss:                 100 kB\n"
	"7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n"
	"Rss:                   0 kB\n"
	"7f0000001000-7f0000801000 rw-p 00000000 00:00 0 \n"
	"Rss:                  20 kB\nSwap:                 12 kB\n"
	"7f0001000000-7f0101000000 rw-p 00000000 00:00 0 \n"
	"Rss:               10000 kB\n"
	"7f1000000000-7f1000100000 r--s 00000000 fe:00 11             /data/mdbx.dat\n"
	"Rss:                 500 kB\n"
	"7f1100000000-7f1100100000 rw-s 00000000 00:01 12             /memfd:x (deleted)\n"
	"Rss:                  64 kB\n"
	"7f1200000000-7f1200100000 rwxp 00000000 00:00 0 \n"
	"Rss:                  32 kB\n"
	"7f1300000000-7f1300100000 rw-p 00000000 00:00 0              [anon:pool]\n"
	"Rss:                  16 kB\n"
	"7ffe00000000-7ffe00021000 rw-p 00000000 00:00 0              [stack]\n"
	"Rss:                  12 kB\n"
	"7ffe00100000-7ffe00101000 r-xp 00000000 00:00 0              [vdso]\n"
	"Rss:                   4 kB\n";

TEST(memmaps_says_what_mappings_are)
{
	CLEANUP(memmaps_release) struct memmaps m = {0};
	static const enum memmap_kind kinds[] = {
		MEMMAP_CODE, MEMMAP_BINARY, MEMMAP_HEAP, MEMMAP_ANON,  MEMMAP_ANON,  MEMMAP_ANON,
		MEMMAP_FILE, MEMMAP_SHMEM,  MEMMAP_JIT,  MEMMAP_NAMED, MEMMAP_STACK, MEMMAP_SPECIAL,
	};
	memmaps_parse(&m, text(smaps));
	CHECK_U64(m.list.n, ARRAY_LEN(kinds));
	for (size_t i = 0; i < m.list.n; i++)
		CHECK_U64(m.list.p[i].kind, kinds[i]);
	CHECK_STR(memmaps_path(&m, &m.list.p[0]), "/bin/a program");
	CHECK_U64(m.list.p[0].pss_bytes, 2 * KB);
	CHECK_U64(m.list.p[1].anon_bytes, 4 * KB);
	CHECK_U64(memmaps_rss(&m, MEMMAP_ANON), 10020 * KB);
}

TEST(memmaps_knows_the_mappings_of_assay)
{
	CLEANUP(memmaps_release) struct memmaps m = {0};
	memmaps_parse(
		&m,
		text("00400000-00401000 r-xp 00000000 00:01 7 /memfd:assay-heap (deleted)\n"
		     "00401000-00402000 rw-p 00001000 00:01 7 /memfd:assay-heap (deleted)\n"
		     "Rss: 4 kB\nAnonymous: 4 kB\n"
		     "00403000-00404000 r-xp 00000000 00:01 8 /memfd:assay-heap-stubs (deleted)\n"
		     "00405000-00406000 r-xp 00000000 00:01 9 /memfd:other (deleted)\n"));
	for (size_t i = 0; i < 3; i++)
		CHECK_U64(m.list.p[i].kind, MEMMAP_RECORDER);
	CHECK_U64(m.list.p[3].kind, MEMMAP_JIT);
}

TEST(memmaps_paths_may_hold_anything)
{
	CLEANUP(memmaps_release) struct memmaps m = {0};
	memmaps_parse(&m, text("00400000-00401000 r--p 00000000 fe:00 10   /a\\012b c [heap]\n"
			       "Rss: 4 kB\n"
			       "00500000-00400000 r--p 00000000 fe:00 10   /backwards\n"
			       "zz-00 r--p\nRss: 8 kB\n"));
	CHECK_U64(m.list.n, 1);
	CHECK_STR(memmaps_path(&m, &m.list.p[0]), "/a\nb c [heap]");
	CHECK_U64(m.list.p[0].kind, MEMMAP_FILE);
	CHECK_U64(m.list.p[0].rss_bytes, 12 * KB);
}

TEST(memmaps_finds_stacks_by_stack_pointers_and_remembers_them)
{
	CLEANUP(memmaps_release) struct memmaps m = {0};
	CLEANUP(memstacks_release) struct memstacks stacks = {0};
	memmaps_parse(&m, text(smaps));
	/* on a stack; in the heap, where a coroutine's is; in a large arena; nowhere */
	const uint64_t sps[] = {0x7f0000800f00, 0x1000100, 0x7f0002000000, 0x10};
	memmaps_mark_stacks(&m, &stacks, sps, ARRAY_LEN(sps));
	CHECK_U64(m.list.p[4].kind, MEMMAP_STACK);
	CHECK_U64(m.list.p[2].kind, MEMMAP_HEAP);
	CHECK_U64(m.list.p[5].kind, MEMMAP_ANON);
	CHECK_U64(memmaps_rss(&m, MEMMAP_STACK), 32 * KB);
	CHECK_U64(stacks.starts.n, 2);
	/* The thread runs: its stack is known from before. */
	CLEANUP(memmaps_release) struct memmaps again = {0};
	memmaps_parse(&again, text(smaps));
	memmaps_mark_stacks(&again, &stacks, NULL, 0);
	CHECK_U64(again.list.p[4].kind, MEMMAP_STACK);
}

TEST(memmaps_guesses_the_stacks_of_threads_that_always_run)
{
	CLEANUP(memmaps_release) struct memmaps m = {0};
	CLEANUP(memstacks_release) struct memstacks stacks = {0};
	static const char maps[] =
		"7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n"
		"7f0000001000-7f0000201000 rw-p 00000000 00:00 0 \n"
		"7f0000201000-7f0000202000 ---p 00000000 00:00 0 \n"
		"7f0000202000-7f0000402000 rw-p 00000000 00:00 0 \n"
		"7f0000402000-7f0000403000 ---p 00000000 00:00 0 \n"
		"7f0000403000-7f0000c03000 rw-p 00000000 00:00 0 \n"
		"7f0001000000-7f0001200000 rw-p 00000000 00:00 0 \n"; /* no guard */
	const uint64_t sp = 0x7f0000200f00;
	memmaps_parse(&m, text(maps));
	memmaps_mark_stacks(&m, &stacks, &sp, 1);
	CHECK_U64(stacks.starts.n, 1);
	CHECK_U64(memmaps_guess_stacks(&m, &stacks, 1), 1);
	CHECK_U64(m.list.p[3].kind, MEMMAP_STACK); /* as large as the one that was seen */
	CHECK_U64(memmaps_guess_stacks(&m, &stacks, 5), 1);
	CHECK_U64(m.list.p[5].kind, MEMMAP_STACK); /* 8 MiB */
	CHECK_U64(m.list.p[6].kind, MEMMAP_ANON);
	CHECK_U64(stacks.starts.n, 3);
}

TEST(memmaps_reads_stack_pointers)
{
	struct proc_wait w;
	CHECK(proc_parse_wait(text("230 0x0 0x0 0x7ff 0x7fe 0x0 0x0 0x7ffe291b1f28 0x7ff2\n"), &w));
	CHECK(w.nr == 230 && w.sp == 0x7ffe291b1f28 && w.pc == 0x7ff2);
	CHECK(proc_parse_wait(text("-1 0x7ffe0 0x4000\n"), &w));
	CHECK(w.nr == -1 && w.sp == 0x7ffe0 && w.pc == 0x4000);
	CHECK(!proc_parse_wait(text("running\n"), &w));
	CHECK(!proc_parse_wait(text("230 0x0\n"), &w));
	CHECK(!proc_parse_wait(text(""), &w));
}

struct deep {
	pthread_barrier_t touched;
	int pipe_fds[2];
};

static void *sit_on_stack(void *arg)
{
	struct deep *d = arg;
	char room[1 << 20];
	memset(room, 1, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	pthread_barrier_wait(&d->touched);
	char byte;
	return read(d->pipe_fds[0], &byte, 1) ? d : NULL;
}

TEST(memmaps_counts_the_stacks_of_threads)
{
	struct deep d;
	pthread_t thread;
	CLEANUP(memstacks_release) struct memstacks stacks = {0};
	CLEANUP(memmaps_release) struct memmaps m = {0};
	CHECK(!pthread_barrier_init(&d.touched, NULL, 2) && !pipe(d.pipe_fds));
	CHECK(!pthread_create(&thread, NULL, sit_on_stack, &d));
	pthread_barrier_wait(&d.touched);
	uint64_t rss = 0;
	for (int i = 0; i < 200 && rss < (1 << 20); i++) { /* until it sits in read */
		memmaps_release(&m);
		m = (struct memmaps){0};
		CHECK(!memmaps_read(&m, getpid(), &stacks, NULL));
		rss = memmaps_rss(&m, MEMMAP_STACK);
		usleep(1000);
	}
	CHECK(rss >= (1 << 20) && rss < (2 << 20));
	CHECK(write(d.pipe_fds[1], "x", 1) == 1);
	pthread_join(thread, NULL);
}
