/*
 * Names that formats trip over: markup, quotes, separators, formulas, control bytes, bytes that are no
 * UTF-8. Deterministic; never empty, without NUL bytes.
 */
#ifndef ASSAY_TESTS_LIB_ODDNAMES_H
#define ASSAY_TESTS_LIB_ODDNAMES_H

#include "base/base.h"
#include "base/buf.h"

/* How many names a test takes; sanitizers are slow. */
#ifdef __SANITIZE_ADDRESS__
#define HOSTILE_NAMES 5000u
#else
#define HOSTILE_NAMES 100000u
#endif

/* Sets @to to the name number @i; equal numbers have equal names, others different ones. */
void hostile_name(struct buf *to, uint32_t i);

#endif
