/*
 * Measures perf script text -> folded stacks, in MB of text per second of CPU time.
 *
 *	bench_perfscript make BYTES > FILE     text, always the same: 48 frames a stack, all unique
 *	bench_perfscript time FILE [REPEAT]    the best of REPEAT (5) runs
 *
 * All stacks are distinct, which is the worst case; real recordings repeat stacks and are faster.
 */
#include "base/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/file.h"
#include "format/format.h"

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A frame of function i, at one of four offsets in it. */
static void add_frame(struct buf *to, uint64_t i, uint64_t place)
{
	static const char *const words[] = {"core",   "runtime", "task",   "poll",
					    "alloc",  "interp",  "trie",   "node",
					    "encode", "keccak",  "cursor", "seek"};
	bool is_kernel = i % 10 == 9;
	uint64_t start = (is_kernel ? 0xffffffff81000000 : 0x7f0000000000) + i * 0x1230;
	buf_addf(to, "\t%16" PRIx64 " <%s::%s::%s_%" PRIu64 " as %s>::%s+0x%" PRIx64 " (%s)\n",
		 start + place * 16 + 4, words[i % 12], words[i / 3 % 12], words[i / 7 % 12], i,
		 words[i / 11 % 12], words[i / 13 % 12], place * 16 + 4,
		 is_kernel ? "[kernel.kallsyms]"
		 : i % 3   ? "/usr/bin/service"
			   : "/lib/libc.so.6");
}

static int make_text(size_t nr_bytes)
{
	CLEANUP(buf_release) struct buf b = {0};
	uint64_t state = 88172645463325252;
	size_t nr_written = 0;
	for (uint64_t sample = 0; nr_written < nr_bytes; sample++) {
		buf_clear(&b);
		buf_addf(&b,
			 "worker-%" PRIu64 " %5" PRIu64 " [%03" PRIu64 "] %6" PRIu64 ".%06" PRIu64
			 ":    %7" PRIu64 " cycles:P: \n",
			 sample % 16, 1000 + sample % 16, sample % 4, 100 + sample / 999,
			 sample % 999 * 1001, 200000 + next_random(&state) % 100000);
		uint64_t depth = 12 + next_random(&state) % 49;
		for (uint64_t i = 0; i < depth; i++) { /* small numbers often, as hot code is */
			uint64_t r = next_random(&state);
			add_frame(&b, (r >> 8) % 77 * ((r >> 20) % 77), r % 4);
		}
		for (uint64_t i = 12; i--;)
			add_frame(&b, 6000 + i, 0);
		buf_add_ch(&b, '\n');
		nr_written += b.n;
		if (file_write_all(STDOUT_FILENO, b.p, b.n, NULL))
			return 1;
	}
	return 0;
}

static double cpu_s(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* always there */
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int convert(const char *path, uint64_t *ret_bytes, uint64_t *ret_samples, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "cannot open '%s'", path);
	CLEANUP(instream_free_p) struct instream *rest = NULL;
	TRY(instream_open(&rest, fd, err));
	CLEANUP(out_release) struct out out = {.fd = -1};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct format_options options = {0};
	struct format_output to = {.file = &out};
	struct format_input in = {.rest = rest};
	int rc = out_open(&out, "/dev/null", 0600, err);
	rc = rc ? rc : perfscript_read(p, &in, &options, err);
	if (!rc)
		profile_seal(p);
	rc = rc ? rc : folded_write(&to, p, &options, err);
	rc = rc ? rc : format_flush(&to, err);
	buf_release(&to.buf);
	*ret_bytes = instream_stored(rest);
	*ret_samples = p->losses.nr[LOSS_WRITTEN];
	return rc;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "make"))
		return make_text(strtoul(argv[2], NULL, 10));
	if (argc < 3 || strcmp(argv[1], "time") != 0) {
		fprintf(stderr, "usage: %s make BYTES | time FILE [REPEAT]\n", argv[0]);
		return 2;
	}
	unsigned long nr_repeat = argc > 3 ? strtoul(argv[3], NULL, 10) : 5;
	CLEANUP(err_release) struct err err = {0};
	double best_s = 0;
	uint64_t nr_bytes = 0;
	uint64_t nr_samples = 0;
	for (unsigned long i = 0; i < nr_repeat; i++) {
		double start_s = cpu_s();
		if (convert(argv[2], &nr_bytes, &nr_samples, &err)) {
			fprintf(stderr, "%s\n", err_msg(&err));
			return 1;
		}
		double took_s = cpu_s() - start_s;
		best_s = i && best_s < took_s ? best_s : took_s;
	}
	printf("%" PRIu64 " bytes, %" PRIu64 " samples, %.3f s, %.0f MB/s\n", nr_bytes, nr_samples,
	       best_s, (double)nr_bytes / 1e6 / best_s);
	return 0;
}
