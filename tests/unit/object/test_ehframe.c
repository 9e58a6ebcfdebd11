/* Hand-made .eh_frame and .debug_frame: every encoding, and malformed entries. */
#include "base/base.h"
#include "object/ehframe.h"
#include "tap.h"

#include "base/buf.h"

#define VADDR 0x10000u

static void add_cie(struct buf *b, const char *augmentation, const void *data, size_t nr_data)
{
	size_t at = b->n;
	buf_add_u32le(b, 0);
	buf_add_u32le(b, 0);
	buf_add_ch(b, 1);
	buf_add(b, augmentation, strlen(augmentation) + 1);
	buf_add_uleb(b, 1);
	buf_add_ch(b, 0x78); /* sleb -8 */
	buf_add_ch(b, 16);
	if (augmentation[0] == 'z') {
		buf_add_uleb(b, nr_data);
		buf_add(b, data, nr_data);
	}
	buf_add(b, "\x0c\x07\x08\x90\x01", 5);
	uint32_t n = (uint32_t)(b->n - at - 4);
	memcpy(b->p + at, &n, 4);
}

/* Start and size are passed as encoded bytes. */
static size_t add_fde(struct buf *b, const void *range, size_t nr_range, const char *program)
{
	size_t at = b->n;
	buf_add_u32le(b, 0);
	buf_add_u32le(b, (uint32_t)(b->n)); /* the CIE is at 0 */
	buf_add(b, range, nr_range);
	buf_add_uleb(b, 0); /* augmentation */
	buf_add(b, program, strlen(program));
	uint32_t n = (uint32_t)(b->n - at - 4);
	memcpy(b->p + at, &n, 4);
	return at;
}

static void start_at(struct ehframe_iter *it, struct sv bytes, uint64_t vaddr, bool is_debug_frame)
{
	ehframe_start(it, &(struct ehframe_section){.p = (const uint8_t *)bytes.p,
						    .n = bytes.n,
						    .vaddr = vaddr,
						    .is_debug_frame = is_debug_frame});
}

static struct ehframe_iter start(const struct buf *b)
{
	struct ehframe_iter it;
	start_at(&it, buf_sv(b), VADDR, false);
	return it;
}

TEST(ehframe_pcrel_addresses_are_relative_to_their_field)
{
	struct buf b = {0};
	struct ehframe_fde f;
	int32_t range[2];

	add_cie(&b, "zR", "\x1b", 1);
	range[0] = (int32_t)(0x5000 - (VADDR + (uint32_t)b.n + 8));
	range[1] = 0x40;
	size_t at = add_fde(&b, range, 8, "\x41\x0e\x10");
	buf_add_u32le(&b, 0);
	struct ehframe_iter it = start(&b);
	CHECK(ehframe_next(&it, &f));
	CHECK_U64(f.start, 0x5000);
	CHECK_U64(f.end, 0x5040);
	CHECK_U64(f.offset, at);
	CHECK_U64(f.cie->ra_column, 16);
	CHECK_U64((uint64_t)f.cie->data_align, (uint64_t)-8);
	CHECK_U64(rd_left(&f.program), 3);
	CHECK(!ehframe_next(&it, &f));
	CHECK_U64(it.nr_bad, 0);
	buf_release(&b);
}

static void check_encoding(uint8_t encoding, const void *range, size_t nr_range)
{
	struct buf b = {0};
	struct ehframe_fde f = {0};

	add_cie(&b, "zR", &encoding, 1);
	(void)add_fde(&b, range, nr_range, "\x41");
	struct ehframe_iter it = start(&b);
	CHECK(ehframe_next(&it, &f));
	CHECK_U64(f.start, 0x1234);
	CHECK_U64(f.end, 0x1236);
	buf_release(&b);
}

TEST(ehframe_reads_every_pointer_encoding)
{
	check_encoding(0x00, "\x34\x12\0\0\0\0\0\0\x02\0\0\0\0\0\0\0", 16);
	check_encoding(0x01, "\xb4\x24\x02", 3);
	check_encoding(0x02, "\x34\x12\x02\0", 4);
	check_encoding(0x03, "\x34\x12\0\0\x02\0\0\0", 8);
	check_encoding(0x04, "\x34\x12\0\0\0\0\0\0\x02\0\0\0\0\0\0\0", 16);
	check_encoding(0x09, "\xb4\x24\x02", 3);
	check_encoding(0x0a, "\x34\x12\x02\0", 4);
	check_encoding(0x0b, "\x34\x12\0\0\x02\0\0\0", 8);
	check_encoding(0x0c, "\x34\x12\0\0\0\0\0\0\x02\0\0\0\0\0\0\0", 16);
}

TEST(ehframe_reads_personality_lsda_and_signal_augmentation)
{
	struct buf b = {0};
	struct ehframe_fde f = {0};
	const uint8_t data[] = {0x9b, 1, 2, 3, 4, 0x1b, 0x03};

	add_cie(&b, "zPLRS", data, sizeof(data));
	(void)add_fde(&b, "\x34\x12\0\0\x02\0\0\0", 8, "");
	struct ehframe_iter it = start(&b);
	CHECK(ehframe_next(&it, &f));
	CHECK(f.cie->is_signal_frame);
	CHECK_U64(f.cie->pointer_encoding, 0x03);
	CHECK_U64(f.cie->lsda_encoding, 0x1b);
	buf_release(&b);
}

TEST(ehframe_run_time_encodings_are_malformed)
{
	struct buf b = {0};
	struct ehframe_fde f;

	add_cie(&b, "zR", "\x9b", 1);
	(void)add_fde(&b, "\x34\x12\0\0\x02\0\0\0", 8, "");
	struct ehframe_iter it = start(&b);
	CHECK(!ehframe_next(&it, &f));
	CHECK_U64(it.nr_bad, 1);
	buf_release(&b);
}

TEST(ehframe_skips_a_terminator_in_the_middle)
{
	struct buf b = {0};
	struct ehframe_fde f = {0};

	add_cie(&b, "zR", "\x03", 1);
	buf_add_u32le(&b, 0);
	(void)add_fde(&b, "\x34\x12\0\0\x02\0\0\0", 8, "");
	struct ehframe_iter it = start(&b);
	CHECK(ehframe_next(&it, &f));
	it = start(&b);
	it.section.is_terminated = true;
	CHECK(!ehframe_next(&it, &f));
	buf_release(&b);
}

TEST(ehframe_truncated_at_any_byte_terminates)
{
	struct buf b = {0};
	struct ehframe_fde f;

	add_cie(&b, "zR", "\x1b", 1);
	for (int i = 0; i < 3; i++)
		(void)add_fde(&b, "\x34\x12\0\0\x02\0\0\0", 8, "\x41\x0e\x10");
	for (size_t n = 0; n <= b.n; n++) {
		struct ehframe_iter it;
		uint32_t nr = 0;
		CLEANUP(buf_release) struct buf cut = {0}; /* its end is watched by the sanitizer */
		buf_add(&cut, b.p, n);
		start_at(&it, buf_sv(&cut), VADDR, false);
		while (ehframe_next(&it, &f))
			nr++;
		CHECK(nr <= 3);
		CHECK(n < b.n || nr == 3);
	}
	buf_release(&b);
}

TEST(debug_frame_64_bit_dwarf_finds_its_cie_by_offset)
{
	struct buf b = {0};
	struct ehframe_fde f = {0};
	struct ehframe_iter it;

	buf_add_u32le(&b, 0xffffffff);
	buf_add_u64le(&b, 8 + 1 + 1 + 2 + 3 + 5);
	buf_add_u64le(&b, UINT64_MAX);
	buf_add(&b, "\x04\0\x08\0\x01\x78\x10\x0c\x07\x08\x90\x01", 12);
	buf_add_u32le(&b, 0xffffffff);
	buf_add_u64le(&b, 8 + 16 + 1);
	buf_add_u64le(&b, 0);
	buf_add_u64le(&b, 0x401000);
	buf_add_u64le(&b, 0x20);
	buf_add_ch(&b, 0x41);
	start_at(&it, buf_sv(&b), 0, true);
	CHECK(ehframe_next(&it, &f));
	CHECK_U64(f.start, 0x401000);
	CHECK_U64(f.end, 0x401020);
	CHECK_U64(rd_left(&f.program), 1);
	buf_release(&b);
}
