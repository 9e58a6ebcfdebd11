/*
 * The DWARF reader. The input is a list of (u8 section, u24 length, bytes); sections numbered from
 * 16 on are those of the dwz supplement. Looks up addresses in all ranges of the units. The results
 * must be the same with one thread and with three (tested for one input in sixteen, as starting
 * threads is slow).
 */
#include "base/base.h"

#include "base/hash.h"
#include "base/file/rd.h"
#include "symbol/dwarf/dwarf.h"
#include "symbol/dwarf/sections.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define NR_ADDRS 512

static void take(void *ctx, size_t query, const struct dwarf_frame *frames, size_t nr)
{
	uint64_t *sum = ctx;
	for (size_t i = 0; i < nr; i++) {
		const struct dwarf_frame *f = &frames[i];
		*sum = hash_mix(*sum, hash_bytes(f->linkage.p, f->linkage.n));
		*sum = hash_mix(*sum, hash_bytes(f->file.p, f->file.n));
		*sum = hash_mix(*sum, f->line + query);
		*sum = hash_mix(*sum, f->func_start);
	}
}

static uint64_t look_up(const struct sv *main, const struct sv *alt, unsigned nr_threads)
{
	uint64_t vaddrs[NR_ADDRS];
	for (size_t i = 0; i < NR_ADDRS; i++)
		vaddrs[i] = 0x1000 + i * 3;
	struct dwarf *d = dwarf_new_sections(main, alt, 0x1000, nr_threads);
	uint64_t sum = 0;
	if (dwarf_query(d, vaddrs, NR_ADDRS, 0, take, &sum, NULL))
		BUG("a query of this size is not refused");
	dwarf_free(d);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sv sections[32];
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		sections[i] = sv_from("", 0);
	struct rd r = rd_from(data, n);
	while (rd_left(&r) > 4) {
		uint32_t head = rd_u32(&r);
		size_t left = rd_left(&r);
		size_t nr_bytes = MIN(head >> 8, left);
		const uint8_t *p = rd_bytes(&r, nr_bytes);
		sections[head & 31] = sv_from((const char *)p, nr_bytes);
	}
	uint64_t one = look_up(sections, sections + 16, 1);
	if (n % 16 == 0 && look_up(sections, sections + 16, 3) != one)
		BUG("the number of threads changes the answer");
	return 0;
}
