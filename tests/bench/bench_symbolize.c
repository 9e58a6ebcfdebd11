/*
 * Measures the DWARF reader on any binary and prints its results, which bench_symbolize.sh compares
 * with llvm-symbolizer.
 *
 *	bench_symbolize make BINARY N [SEED]     N random text addresses, one a line, to stdout
 *	bench_symbolize time BINARY [REPEAT]     addresses on stdin; times to stderr
 *	bench_symbolize dump BINARY              addresses on stdin; functions and lines to stdout
 *
 * The dump has llvm-symbolizer's form without columns: per address its frames, innermost first,
 * as a line with the name and one with file:line, and an empty line at the end.
 */
#include "base/base.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"
#include "host/reader/hostfile.h"
#include "object/elf.h"
#include "symbol/dwarf/dwarf.h"
#include "../lib/elf_path.h"

static const struct debug_search on_host = {.open = hostfile_open_path, .root_fd = -1};

typedef VEC(uint64_t) addrs_vec;

struct addr {
	uint64_t vaddr;
	size_t idx; /* as read */
};

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_vaddr(const void *pa, const void *pb)
{
	const struct addr *a = pa, *b = pb;
	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return a->idx < b->idx ? -1 : a->idx > b->idx;
}

static struct addr *read_addrs(size_t *ret_nr)
{
	VEC(struct addr) v = {0};
	char line[64];
	for (size_t idx = 0; fgets(line, sizeof(line), stdin); idx++)
		vec_push(&v, (struct addr){strtoull(line, NULL, 16), idx});
	if (v.n)
		qsort(v.p, v.n, sizeof(*v.p), by_vaddr);
	*ret_nr = v.n;
	return v.p;
}

static int make(const char *path, size_t nr, uint64_t seed)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(elf_free_p) struct elf *e = NULL;
	if (elf_open_path(&e, path, &err)) {
		fprintf(stderr, "%s\n", err_msg(&err));
		return 1;
	}
	size_t nr_sections;
	const struct elf_section *s = elf_sections(e, &nr_sections);
	uint64_t lo = 0, nr_bytes = 0;
	for (size_t i = 0; i < nr_sections; i++) {
		if (sv_eq_str(s[i].name, ".text")) {
			lo = s[i].vaddr;
			nr_bytes = s[i].nr_bytes;
		}
	}
	if (!nr_bytes)
		return 1;
	uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
	for (size_t i = 0; i < nr; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		printf("0x%" PRIx64 "\n", lo + x % nr_bytes);
	}
	return 0;
}

struct sink {
	size_t nr_frames;
	size_t nr_named;
	uint64_t sum;
	char **texts; /* by sorted idx; NULL: only counted */
};

static void take(void *ctx, size_t query, const struct dwarf_frame *frames, size_t nr)
{
	struct sink *s = ctx;
	s->nr_frames += nr;
	s->nr_named += nr && frames[0].linkage.n;
	for (size_t i = 0; i < nr; i++)
		s->sum += frames[i].line + frames[i].linkage.n + frames[i].file.n;
	if (!s->texts)
		return;
	CLEANUP(buf_release) struct buf b = {0};
	for (size_t i = 0; i < nr; i++) {
		const struct dwarf_frame *f = &frames[i];
		buf_add_sv(&b, f->linkage.n ? f->linkage : SV("??"));
		buf_add_ch(&b, '\n');
		buf_add_sv(&b, f->file.n ? f->file : SV("??"));
		buf_addf(&b, ":%" PRIu32 "\n", f->line);
	}
	if (!nr)
		buf_add_str(&b, "??\n??:0\n");
	s->texts[query] = buf_detach(&b);
}

static int run(const char *path, const uint64_t *vaddrs, size_t nr, struct sink *sink,
	       bool is_reported)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(elf_free_p) struct elf *e = NULL;
	struct dwarf *d = NULL;
	double t0 = now_s(), c0 = cpu_s();
	if (elf_open_path(&e, path, &err) || dwarf_new(&d, e, path, &on_host, 0, &err) || !d) {
		fprintf(stderr, "%s: %s\n", path, err_msg(&err));
		return 1;
	}
	double t1 = now_s();
	if (dwarf_query(d, vaddrs, nr, 0, take, sink, &err)) {
		fprintf(stderr, "%s\n", err_msg(&err));
		return 1;
	}
	double t2 = now_s(), c2 = cpu_s();
	struct dwarf_stats st = dwarf_stats(d);
	struct rusage ru;
	getrusage(RUSAGE_SELF, &ru);
	if (is_reported)
		fprintf(stderr,
			"%zu addresses: %.4f s wall (%.4f open, %.4f query), %.4f s CPU, %zu "
			"frames, %zu named, units %" PRIu64 "/%" PRIu64 " bad %" PRIu64
			" dwo missing %" PRIu64 ", scanned %.1f MB, peak RSS %.1f MB\n",
			nr, t2 - t0, t1 - t0, t2 - t1, c2 - c0, sink->nr_frames, sink->nr_named,
			st.nr_units_scanned, st.nr_units, st.nr_units_bad, st.nr_dwo_missing,
			(double)st.nr_scanned_bytes / 1e6, (double)ru.ru_maxrss / 1024);
	dwarf_free(d);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && !strcmp(argv[1], "make"))
		return make(argv[2], strtoul(argv[3], NULL, 10),
			    argc > 4 ? strtoul(argv[4], NULL, 10) : 1);
	if (argc < 3)
		return 2;
	bool is_dump = !strcmp(argv[1], "dump");
	size_t nr;
	struct addr *addrs = read_addrs(&nr);
	uint64_t *vaddrs = xcalloc(nr + 1, sizeof(*vaddrs));
	for (size_t i = 0; i < nr; i++)
		vaddrs[i] = addrs[i].vaddr;
	unsigned long repeat = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
	int r = 0;
	for (unsigned long i = 0; i < repeat && !r; i++) {
		struct sink sink = {0};
		sink.texts = is_dump ? xcalloc(nr + 1, sizeof(char *)) : NULL;
		r = run(argv[2], vaddrs, nr, &sink, true);
		if (!is_dump)
			continue;
		char **by_idx = xcalloc(nr + 1, sizeof(char *));
		for (size_t k = 0; k < nr; k++)
			by_idx[addrs[k].idx] = sink.texts[k];
		for (size_t k = 0; k < nr && !r; k++)
			printf("%s\n", by_idx[k]);
		for (size_t k = 0; k < nr; k++)
			free(by_idx[k]);
		free(by_idx);
		free(sink.texts);
	}
	free(addrs);
	free(vaddrs);
	return r;
}
