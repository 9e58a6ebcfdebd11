/*
 * Formatting and parsing of numbers for users, independent of the locale: decimal point, thousands
 * separated by commas. Formatting appends to a buf.
 */
#ifndef ASSAY_BASE_TEXT_NUM_H
#define ASSAY_BASE_TEXT_NUM_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"

/* "12,345,678" */
void num_add_count(struct buf *to, uint64_t v);
/* Three digits and a unit: "999", "1.23 k", "45.6 M", "7.00 G". */
void num_add_short(struct buf *to, uint64_t v);
/* Bytes in powers of 1024: "512 B", "1.50 KiB", "23.4 MiB". */
void num_add_bytes(struct buf *to, uint64_t v);
/* A duration: "0 ns", "950 ns", "12.3 us", "1.50 ms", "2.00 s", "3m 05s", "1h 02m". */
void num_add_ns(struct buf *to, uint64_t ns);
/* A percentage without the "%" sign: "70.3", "5.12", "0.041", "<0.001", "0", "100". */
void num_add_pct(struct buf *to, double pct);
/* The same, returned as text: buf_addf(b, "%s of %s", num_bytes(part).s, num_bytes(all).s). */
struct num_text {
	char s[64];
};
struct num_text num_count(uint64_t v);
/* A count with its noun, which is given in the plural: "1 call", "1,200 calls", "1 process". */
struct num_text num_noun(uint64_t v, const char *plural);
struct num_text num_bytes(uint64_t v);
struct num_text num_ns(uint64_t ns);
struct num_text num_pct(double pct);
struct num_text num_double(double v, int decimals);
/* Rounded half away from zero; decimals <= 9. Non-finite values: "nan", "inf", "-inf". */
void num_add_double(struct buf *to, double v, int decimals);

/*
 * Parsers: the whole view must be the number. They return false and leave the result untouched for
 * anything else, including overflow.
 */
/* "2M", "512KiB", "1.5G", "4096", "8B": K, M, G, T and KiB... are powers of 1024, kB, MB... of
 * 1000. Case matters only for that distinction. */
bool num_parse_bytes(struct sv s, uint64_t *ret_bytes);
/* "997", "10k", "1.5M": powers of 1000. */
bool num_parse_count(struct sv s, uint64_t *ret_v);
/* A decimal number times @unit, rounded down: ("1.5", 1000) is 1500. */
bool num_parse_scaled(struct sv s, uint64_t unit, uint64_t *ret_v);

#endif
