/*
 * Deflate; see inflate.h.
 *
 *	in:   [ ... | bytes not read yet | 16 spare ]      refilled from the source
 *	bits: 64, the lowest come first; bits above nr_bits may hold copies of what comes next
 *	out:  [ window: 32 KiB | chunk that is filled | spare for copies of whole words ]
 *
 * A table's entry says all about a code: how many bits to drop (code and extra bits), where the
 * extra bits begin, and the base to add them to. Codes longer than the table's index lead to
 * subtables, one a prefix. The fast loop runs while a symbol can neither run out of input nor of
 * room, so it checks neither; the last bytes of the input go through the careful one.
 */
#include "base/base.h"
#include "base/inflate.h"

#include <errno.h>

#include "base/mem.h"

#define IN_BYTES     ((size_t)8 << 10)
#define IN_SPARE     32 /* zeros behind the last byte: a refill reads 8 at a time */
#define IN_WANTED    64 /* so much lets the fast loop run */
#define WINDOW_BYTES ((size_t)32 << 10)
#define CHUNK_BYTES  ((size_t)32 << 10)
#define OUT_SPARE    ((size_t)512) /* two literals, a match of 258 bytes, the words it ends in */

#define CODE_BITS_MAX   15
#define SYMBOL_BITS_MAX 48 /* two codes with their extra bits */
#define LIT_BITS        11
#define DIST_BITS       8
#define PRE_BITS        7
#define NR_LITS         288
#define NR_DISTS        32
#define NR_PRES         19
/* One subtable for each code at worst. */
#define LIT_ENTRIES  ((1 << LIT_BITS) + NR_LITS * (1 << (CODE_BITS_MAX - LIT_BITS)))
#define DIST_ENTRIES ((1 << DIST_BITS) + NR_DISTS * (1 << (CODE_BITS_MAX - DIST_BITS)))

/* Entries: bits 0-7 to drop, 8-13 where the extra bits begin, 16-30 base or literal, and flags. */
#define E_LITERAL  (1u << 31)
#define E_SPECIAL  (1u << 15) /* no literal and no length: one of the next two, or no code */
#define E_SUBTABLE (1u << 14) /* base: index of the subtable, bits 8-13 its bits */
#define E_END      (1u << 7)  /* of the block; a subtable or code drops fewer bits */

enum block { BLOCK_NONE, BLOCK_STORED, BLOCK_CODES, BLOCK_END };

struct inflater {
	inflate_source_fn source;
	void *ctx;
	uint64_t bits;
	unsigned nr_bits;
	size_t in_at, in_end; /* in @in */
	bool is_in_ended;     /* the source has no more: in_end is the true end */
	enum block block;
	bool is_last_block;
	size_t nr_stored; /* left of a stored block */
	size_t out_at;    /* where the next byte goes, in @out */
	size_t out_from;  /* the first byte that was ever put out and is still there */
	int failed;       /* an error that stays */
	uint32_t lits[LIT_ENTRIES];
	uint32_t dists[DIST_ENTRIES];
	uint8_t lens[NR_LITS + NR_DISTS];
	uint8_t in[IN_BYTES + IN_SPARE];
	uint8_t out[WINDOW_BYTES + CHUNK_BYTES + OUT_SPARE];
};

struct inflater *inflater_new(inflate_source_fn source, void *ctx)
{
	struct inflater *x = xmalloc(sizeof(*x));
	memset(x, 0, offsetof(struct inflater, lits));
	x->source = source;
	x->ctx = ctx;
	x->out_at = x->out_from = WINDOW_BYTES;
	return x;
}

void inflater_free(struct inflater *x)
{
	free(x);
}

/* ---- input ---- */

/* More input behind what is left, until there are IN_WANTED bytes or the source ends. */
static int read_more(struct inflater *x, struct err *err)
{
	/* Whole bytes in the bits are given back: they need not be found again in what is gone. */
	x->in_at -= x->nr_bits / 8;
	x->nr_bits %= 8;
	memmove(x->in, x->in + x->in_at, x->in_end - x->in_at);
	x->in_end -= x->in_at;
	x->in_at = 0;
	while (!x->is_in_ended && x->in_end < IN_WANTED) {
		ssize_t n = x->source(x->ctx, x->in + x->in_end, IN_BYTES - x->in_end, err);
		if (n < 0)
			return (int)n;
		x->is_in_ended = !n;
		x->in_end += (size_t)n;
	}
	memset(x->in + x->in_end, 0, IN_SPARE);
	return 0;
}

static inline uint64_t load_u64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v; /* little-endian machines only: elf.h */
}

/* At least 56 bits; behind the end of the input, zeros (see is_past_end). */
static inline void top_up(struct inflater *x)
{
	x->bits |= load_u64(x->in + x->in_at) << x->nr_bits;
	x->in_at += (63 - x->nr_bits) >> 3;
	x->nr_bits |= 56;
}

/* Of the input; below zero if bits were used that it does not have. */
static int64_t nr_bits_left(const struct inflater *x)
{
	return ((int64_t)x->in_end - (int64_t)x->in_at) * 8 + x->nr_bits;
}

static bool is_past_end(const struct inflater *x)
{
	return nr_bits_left(x) < 0;
}

static int cut_off(struct err *err)
{
	return err_set(err, -ENODATA, "compressed data is truncated");
}

static int damaged(struct err *err, const char *what)
{
	return err_set(err, -EBADMSG, "bad compressed data: %s", what);
}

/* Makes 32 bits and more ready, for headers. */
static int want_bits(struct inflater *x, struct err *err)
{
	if (x->in_end < x->in_at + IN_SPARE && !x->is_in_ended) {
		int rc = read_more(x, err);
		if (rc)
			return rc;
	}
	if (x->in_at <= x->in_end + IN_SPARE - 8)
		top_up(x);
	return is_past_end(x) ? cut_off(err) : 0;
}

static unsigned take_bits(struct inflater *x, unsigned n)
{
	unsigned v = (unsigned)(x->bits & ((1ull << n) - 1));
	x->bits >>= n;
	x->nr_bits -= n;
	return v;
}

/* Drops the rest of a byte and gives back whole bytes that wait in the bits. */
static int align_to_byte(struct inflater *x, struct err *err)
{
	if (is_past_end(x))
		return cut_off(err);
	x->in_at -= x->nr_bits / 8;
	x->bits = 0;
	x->nr_bits = 0;
	return 0;
}

int inflater_raw(struct inflater *x, void *to, size_t n, struct err *err)
{
	int rc = x->failed ? x->failed : align_to_byte(x, err);
	for (size_t done = 0; !rc && done < n;) {
		if (x->in_at == x->in_end) {
			rc = x->is_in_ended ? cut_off(err) : read_more(x, err);
			continue;
		}
		size_t step = MIN(n - done, x->in_end - x->in_at);
		memcpy((uint8_t *)to + done, x->in + x->in_at, step);
		x->in_at += step;
		done += step;
	}
	return rc;
}

/* ---- tables ---- */

static uint32_t lit_entry(unsigned symbol)
{
	static const uint16_t base[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
					15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
					67, 83, 99, 115, 131, 163, 195, 227, 258};
	static const uint8_t extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
					2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
	if (symbol < 256)
		return E_LITERAL | symbol << 16;
	if (symbol == 256)
		return E_SPECIAL | E_END;
	if (symbol - 257 >= ARRAY_LEN(base))
		return E_SPECIAL;
	return (uint32_t)base[symbol - 257] << 16 | extra[symbol - 257];
}

static uint32_t dist_entry(unsigned symbol)
{
	if (symbol >= 30)
		return E_SPECIAL;
	if (symbol < 4)
		return (symbol + 1) << 16;
	unsigned extra = symbol / 2 - 1;
	return (((2 + symbol % 2) << extra) + 1) << 16 | extra;
}

static uint32_t pre_entry(unsigned symbol)
{
	return symbol << 16;
}

static unsigned reversed(unsigned code, unsigned nr_bits)
{
	unsigned r = 0;
	for (; nr_bits; nr_bits--, code >>= 1)
		r = r << 1 | (code & 1);
	return r;
}

struct shape { /* of a table */
	uint32_t *entries;
	unsigned nr_bits;
	uint32_t (*entry)(unsigned symbol);
	unsigned max_bits; /* of the codes at hand */
	unsigned nr_used;  /* entries */
};

static void put_code(struct shape *t, unsigned symbol, unsigned code, unsigned len)
{
	unsigned at = reversed(code, len);
	uint32_t e = t->entry(symbol);
	uint32_t *to = t->entries;
	unsigned nr_bits = t->nr_bits;
	if (len > t->nr_bits) {
		uint32_t *prefix = &t->entries[at & ((1u << t->nr_bits) - 1)];
		nr_bits = t->max_bits - t->nr_bits;
		if (!(*prefix & E_SUBTABLE)) {
			*prefix = E_SPECIAL | E_SUBTABLE | t->nr_used << 16 | nr_bits << 8 |
				  t->nr_bits;
			for (unsigned i = 0; i < 1u << nr_bits; i++)
				t->entries[t->nr_used + i] = E_SPECIAL;
			t->nr_used += 1u << nr_bits;
		}
		to += *prefix >> 16;
		at >>= t->nr_bits;
		len -= t->nr_bits;
	}
	/* What it has as extra bits stands in the low bits of its entry. */
	if (!(e & E_SPECIAL))
		e |= len << 8;
	e += len;
	for (; at < 1u << nr_bits; at += 1u << len)
		to[at] = e;
}

/* Canonical codes (RFC 1951, 3.2.2). A set that is not full is allowed if it is one code of one
 * bit. */
static bool build(struct shape *t, const uint8_t *lens, unsigned nr)
{
	unsigned counts[CODE_BITS_MAX + 1] = {0}, next[CODE_BITS_MAX + 1], nr_codes = 0;
	for (unsigned i = 0; i < nr; i++)
		counts[lens[i]]++;
	counts[0] = 0;
	int left = 1;
	unsigned code = 0;
	t->max_bits = 0;
	for (unsigned len = 1; len <= CODE_BITS_MAX; len++) {
		code = (code + counts[len - 1]) << 1;
		next[len] = code;
		left = 2 * left - (int)counts[len];
		if (left < 0)
			return false;
		nr_codes += counts[len];
		if (counts[len])
			t->max_bits = len;
	}
	if (left && (nr_codes > 1 || t->max_bits > 1))
		return false;
	for (unsigned i = 0; i < 1u << t->nr_bits; i++)
		t->entries[i] = E_SPECIAL;
	t->nr_used = 1u << t->nr_bits;
	for (unsigned i = 0; i < nr; i++)
		if (lens[i])
			put_code(t, i, next[lens[i]]++, lens[i]);
	return true;
}

static int build_both(struct inflater *x, unsigned nr_lits, unsigned nr_dists, struct err *err)
{
	struct shape lits = {.entries = x->lits, .nr_bits = LIT_BITS, .entry = lit_entry};
	struct shape dists = {.entries = x->dists, .nr_bits = DIST_BITS, .entry = dist_entry};
	if (!build(&lits, x->lens, nr_lits) || !build(&dists, x->lens + nr_lits, nr_dists))
		return damaged(err, "codes do not fit together");
	x->block = BLOCK_CODES;
	return 0;
}

/* ---- blocks ---- */

static int start_fixed(struct inflater *x, struct err *err)
{
	for (unsigned i = 0; i < NR_LITS; i++)
		x->lens[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
	memset(x->lens + NR_LITS, 5, NR_DISTS);
	return build_both(x, NR_LITS, NR_DISTS, err);
}

static int start_stored(struct inflater *x, struct err *err)
{
	uint8_t b[4];
	int rc = inflater_raw(x, b, sizeof(b), err);
	if (rc)
		return rc;
	if ((b[0] ^ b[2]) != 0xff || (b[1] ^ b[3]) != 0xff)
		return damaged(err, "length of a stored block");
	x->nr_stored = b[0] | (size_t)b[1] << 8;
	x->block = BLOCK_STORED;
	return 0;
}

/* The lengths of both codes, themselves coded. */
static int read_lens(struct inflater *x, const uint32_t *pres, unsigned nr, struct err *err)
{
	for (unsigned i = 0; i < nr;) {
		int rc = want_bits(x, err);
		if (rc)
			return rc;
		uint32_t e = pres[x->bits & ((1 << PRE_BITS) - 1)];
		if (e & E_SPECIAL)
			return damaged(err, "no such code");
		(void)take_bits(x, e & 0xff);
		unsigned symbol = e >> 16, times = 1;
		uint8_t len = (uint8_t)symbol;
		if (symbol == 16) {
			if (!i)
				return damaged(err, "nothing to repeat");
			len = x->lens[i - 1];
			times = 3 + take_bits(x, 2);
		} else if (symbol > 16) {
			len = 0;
			times = symbol == 17 ? 3 + take_bits(x, 3) : 11 + take_bits(x, 7);
		}
		if (times > nr - i)
			return damaged(err, "too many code lengths");
		memset(x->lens + i, len, times);
		i += times;
	}
	return is_past_end(x) ? cut_off(err) : 0;
}

static int start_dynamic(struct inflater *x, struct err *err)
{
	static const uint8_t order[NR_PRES] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
					       11, 4,  12, 3, 13, 2, 14, 1, 15};
	uint32_t pres[1 << PRE_BITS];
	struct shape shape = {.entries = pres, .nr_bits = PRE_BITS, .entry = pre_entry};
	uint8_t lens[NR_PRES] = {0};
	unsigned nr_lits = 257 + take_bits(x, 5);
	unsigned nr_dists = 1 + take_bits(x, 5);
	unsigned nr_pres = 4 + take_bits(x, 4);
	if (nr_lits > 286 || nr_dists > 30)
		return damaged(err, "too many codes");
	for (unsigned i = 0; i < nr_pres; i++) {
		int rc = want_bits(x, err);
		if (rc)
			return rc;
		lens[order[i]] = (uint8_t)take_bits(x, 3);
	}
	if (!build(&shape, lens, NR_PRES))
		return damaged(err, "codes do not fit together");
	int rc = read_lens(x, pres, nr_lits + nr_dists, err);
	if (!rc && !x->lens[256])
		rc = damaged(err, "a block without an end");
	return rc ? rc : build_both(x, nr_lits, nr_dists, err);
}

static int start_block(struct inflater *x, struct err *err)
{
	if (x->is_last_block) {
		x->block = BLOCK_END;
		return 0;
	}
	int rc = want_bits(x, err);
	if (rc)
		return rc;
	x->is_last_block = take_bits(x, 1);
	switch (take_bits(x, 2)) {
	case 0:
		return start_stored(x, err);
	case 1:
		return start_fixed(x, err);
	case 2:
		return start_dynamic(x, err);
	default:
		return damaged(err, "no such kind of block");
	}
}

static int copy_stored(struct inflater *x, struct err *err)
{
	size_t n = MIN(x->nr_stored, WINDOW_BYTES + CHUNK_BYTES - x->out_at);
	int rc = inflater_raw(x, x->out + x->out_at, n, err);
	if (rc)
		return rc;
	x->out_at += n;
	x->nr_stored -= n;
	if (!x->nr_stored)
		x->block = BLOCK_NONE;
	return 0;
}

/* ---- symbols ---- */

/* May write up to 16 bytes behind the match: most are short, so two words go without a question. */
__attribute__((always_inline)) static inline void copy_match(uint8_t *to, size_t dist, size_t n)
{
	const uint8_t *from = to - dist;
	uint8_t *end = to + n;
	if (LIKELY(dist >= 8)) {
		memcpy(to, from, 8);
		memcpy(to + 8, from + 8, 8);
		while (UNLIKELY((to += 16) < end)) {
			from += 16;
			memcpy(to, from, 8);
			memcpy(to + 8, from + 8, 8);
		}
	} else if (dist == 1) {
		memset(to, *from, n);
	} else { /* each word makes the next @dist bytes right */
		for (; to < end; to += dist, from += dist)
			memcpy(to, from, 8);
	}
}

/* The value that an entry stands for; its bits are dropped. @b: the bits in hand. */
#define ENTRY_VALUE(e, b) \
	(((e) >> 16) + (unsigned)(((b) & ((1ull << ((e)&0xff)) - 1)) >> ((e) >> 8 & 0x3f)))

/* The bits in hand, in locals: what is written to the output could alias those in memory. */
struct bit_reader {
	uint64_t bits;
	unsigned nr_bits;
	const uint8_t *in;
};

__attribute__((always_inline)) static inline void refill(struct bit_reader *r)
{
	r->bits |= load_u64(r->in) << r->nr_bits;
	r->in += (63 - r->nr_bits) >> 3;
	r->nr_bits |= 56;
}

__attribute__((always_inline)) static inline void drop(struct bit_reader *r, uint32_t e)
{
	r->bits >>= e & 0x3f;
	r->nr_bits -= e & 0x3f;
}

__attribute__((always_inline)) static inline uint32_t look_up(const struct bit_reader *r,
							      const uint32_t *table,
							      unsigned nr_bits)
{
	return table[r->bits & ((1u << nr_bits) - 1)];
}

/* From the table's first part to the subtable that the entry leads to. */
__attribute__((always_inline)) static inline uint32_t look_further(struct bit_reader *r,
								   const uint32_t *table,
								   uint32_t e)
{
	drop(r, e);
	return look_up(r, table + (e >> 16), e >> 8 & 0x3f);
}

/* How symbols came to an end: SYM_MORE is none. */
enum symbol_end { SYM_MORE, SYM_BLOCK_END, SYM_NO_CODE, SYM_TOO_FAR };

/*
 * A symbol that is no literal of the first part: its entry is @e, 48 bits are in hand. @first: the
 * start of what was put out.
 */
__attribute__((always_inline)) static inline enum symbol_end run_one(struct bit_reader *r,
								     const struct inflater *x,
								     uint32_t e, uint8_t **out,
								     const uint8_t *first,
								     uint32_t *ret_next)
{
	if (UNLIKELY(e & E_SPECIAL)) {
		if (e & E_SUBTABLE)
			e = look_further(r, x->lits, e);
		if (e & E_SPECIAL && !(e & E_END))
			return SYM_NO_CODE;
		if (e & E_SPECIAL) {
			drop(r, e);
			return SYM_BLOCK_END;
		}
	}
	if (e & E_LITERAL) {
		drop(r, e);
		*(*out)++ = (uint8_t)(e >> 16);
		refill(r);
		*ret_next = look_up(r, x->lits, LIT_BITS);
		return SYM_MORE;
	}
	size_t n = ENTRY_VALUE(e, r->bits);
	drop(r, e);
	e = look_up(r, x->dists, DIST_BITS);
	if (UNLIKELY(e & E_SUBTABLE))
		e = look_further(r, x->dists, e);
	size_t dist = ENTRY_VALUE(e, r->bits);
	if (UNLIKELY(e & E_SPECIAL || dist > (size_t)(*out - first)))
		return SYM_TOO_FAR;
	drop(r, e);
	/* The next entry is on its way while the match is copied. */
	refill(r);
	*ret_next = look_up(r, x->lits, LIT_BITS);
	copy_match(*out, dist, n);
	*out += n;
	return SYM_MORE;
}

/* Symbols until the block ends, the chunk is full or the input is nearly used up. */
__attribute__((always_inline)) static inline enum symbol_end run_many(struct inflater *x)
{
	struct bit_reader r = {x->bits, x->nr_bits, x->in + x->in_at};
	const uint8_t *in_stop =
		x->in + (x->in_end > IN_WANTED / 2 ? x->in_end - IN_WANTED / 2 : 0);
	uint8_t *out = x->out + x->out_at;
	uint8_t *const out_stop = x->out + WINDOW_BYTES + CHUNK_BYTES;
	const uint8_t *const first = x->out + x->out_from;
	enum symbol_end end = SYM_MORE;
	if (r.in >= in_stop)
		return end;
	refill(&r);
	uint32_t e = look_up(&r, x->lits, LIT_BITS);
	while (end == SYM_MORE && r.in < in_stop && out < out_stop) {
		/* Up to two short literals, then whatever follows. */
		if (e & E_LITERAL) {
			drop(&r, e);
			*out++ = (uint8_t)(e >> 16);
			e = look_up(&r, x->lits, LIT_BITS);
			if (e & E_LITERAL) {
				drop(&r, e);
				*out++ = (uint8_t)(e >> 16);
				e = look_up(&r, x->lits, LIT_BITS);
			}
			refill(&r);
		}
		end = run_one(&r, x, e, &out, first, &e);
	}
	x->bits = r.bits;
	x->nr_bits = r.nr_bits;
	x->in_at = (size_t)(r.in - x->in);
	x->out_at = (size_t)(out - x->out);
	return end;
}

/* One symbol, where the input may end in the middle of it. */
static enum symbol_end run_careful(struct inflater *x)
{
	struct bit_reader r = {x->bits, x->nr_bits, x->in + x->in_at};
	uint8_t *out = x->out + x->out_at;
	uint32_t e;
	refill(&r);
	e = look_up(&r, x->lits, LIT_BITS);
	enum symbol_end end = run_one(&r, x, e, &out, x->out + x->out_from, &e);
	x->bits = r.bits;
	x->nr_bits = r.nr_bits;
	x->in_at = (size_t)(r.in - x->in);
	x->out_at = (size_t)(out - x->out);
	return end;
}

#if defined(__x86_64__)
/* Shifts by a variable take one step with these instructions, and three without: 15 % in all. */
__attribute__((target("bmi,bmi2"))) static enum symbol_end run_many_bmi2(struct inflater *x)
{
	return run_many(x);
}

static enum symbol_end run_fast(struct inflater *x)
{
	return __builtin_cpu_supports("bmi2") ? run_many_bmi2(x) : run_many(x);
}
#else
static enum symbol_end run_fast(struct inflater *x)
{
	return run_many(x);
}
#endif

static int take_end(struct inflater *x, enum symbol_end end, struct err *err)
{
	switch (end) {
	case SYM_MORE:
		return 0;
	case SYM_BLOCK_END:
		x->block = BLOCK_NONE;
		return 0;
	case SYM_NO_CODE:
		return damaged(err, "no such code");
	case SYM_TOO_FAR:
		return damaged(err, "a match from before the start");
	}
	BUG("no such end");
}

static int decode(struct inflater *x, struct err *err)
{
	int rc = take_end(x, run_fast(x), err);
	while (!rc && x->block == BLOCK_CODES && x->out_at < WINDOW_BYTES + CHUNK_BYTES) {
		if (!x->is_in_ended)
			return read_more(x, err);
		/* A symbol is topped up twice. */
		if (x->in_at > x->in_end + IN_SPARE - 16)
			return cut_off(err);
		size_t out_at = x->out_at;
		rc = take_end(x, run_careful(x), err);
		if (is_past_end(x)) {
			x->out_at = out_at;
			return cut_off(err);
		}
	}
	return rc;
}

/* ---- handing out ---- */

static void slide(struct inflater *x)
{
	size_t n = MIN(x->out_at - x->out_from, WINDOW_BYTES);
	memmove(x->out + WINDOW_BYTES - n, x->out + x->out_at - n, n);
	x->out_from = WINDOW_BYTES - n;
	x->out_at = WINDOW_BYTES;
}

int inflater_next(struct inflater *x, const uint8_t **ret_p, size_t *ret_n, struct err *err)
{
	if (x->failed)
		return err_set(err, x->failed, "bad compressed data");
	slide(x);
	while (x->block != BLOCK_END && x->out_at < WINDOW_BYTES + CHUNK_BYTES && !x->failed) {
		if (x->block == BLOCK_NONE)
			x->failed = start_block(x, err);
		else
			x->failed = x->block == BLOCK_STORED ? copy_stored(x, err) : decode(x, err);
	}
	/* What the zeros that stand for missing bytes say need not make sense. */
	if (x->failed == -EBADMSG && x->is_in_ended && nr_bits_left(x) < SYMBOL_BITS_MAX) {
		err_clear(err);
		x->failed = cut_off(err);
	}
	*ret_p = x->out + WINDOW_BYTES;
	*ret_n = x->out_at - WINDOW_BYTES;
	/* What came before the damage is good; the error comes next time. */
	if (!x->failed)
		return 0;
	if (!*ret_n)
		return x->failed;
	err_clear(err);
	return 0;
}
