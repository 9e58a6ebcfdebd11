/*
 * Unit test harness: each test is forked, so a crash fails one test; as many run at a time as there are
 * CPUs, at most four. Output is TAP, in the order of the tests.
 *
 *	TEST(names_keep_semicolons_out)
 *	{
 *		CHECK(x == 3);
 *		CHECK_STR(buf_str(&b), "a:b");
 *	}
 *
 * Run some: build/release/tests/unit-tests SUBSTRING. The name of a test states the fact it checks.
 */
#ifndef ASSAY_TESTS_LIB_TAP_H
#define ASSAY_TESTS_LIB_TAP_H

#include "base/base.h"

typedef void (*tap_fn)(void);
void tap_register(const char *file, const char *name, tap_fn fn);
void tap_fail(const char *file, int line, const char *fmt, ...) PRINTF(3, 4);
/* Ends the running test as skipped, with the reason. */
void tap_skip(const char *fmt, ...) PRINTF(1, 2) NORETURN;

#define TEST(name)                                                     \
	static void test_##name(void);                                 \
	__attribute__((constructor)) static void register_##name(void) \
	{                                                              \
		tap_register(__FILE__, #name, test_##name);            \
	}                                                              \
	static void test_##name(void)

#define CHECK(cond)                                                \
	do {                                                       \
		if (!(cond))                                       \
			tap_fail(__FILE__, __LINE__, "%s", #cond); \
	} while (0)
#define CHECK_U64(a, b)                                                                \
	do {                                                                           \
		uint64_t a_ = (uint64_t)(a);                                           \
		uint64_t b_ = (uint64_t)(b);                                           \
		if (a_ != b_)                                                          \
			tap_fail(__FILE__, __LINE__,                                   \
				 "%s = %" PRIu64 " (0x%" PRIx64 "), expected %" PRIu64 \
				 " (0x%" PRIx64 ")",                                   \
				 #a, a_, a_, b_, b_);                                  \
	} while (0)
#define CHECK_STR(a, b)                                                                           \
	do {                                                                                      \
		const char *a_ = (a);                                                             \
		const char *b_ = (b);                                                             \
		if (strcmp(a_, b_))                                                               \
			tap_fail(__FILE__, __LINE__, "%s = \"%s\", expected \"%s\"", #a, a_, b_); \
	} while (0)

#endif
