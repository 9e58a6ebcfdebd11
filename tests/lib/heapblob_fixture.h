/* Shared by the tests of the heap recorder: a local recorder, and allocator functions to hook. */
#ifndef ASSAY_TESTS_LIB_HEAPBLOB_FIXTURE_H
#define ASSAY_TESTS_LIB_HEAPBLOB_FIXTURE_H

#include "base/base.h"

#include <unistd.h>

#include "local_recorder.h"
#include "tap.h"

#define MAYBE_UNUSED __attribute__((unused))

static struct local_recorder *hw;
static uint64_t next_block;
static int nr_inner;

static void *(*hooked_malloc)(size_t);
static void (*hooked_free)(void *);

/* Returns addresses that are never dereferenced. */
static MAYBE_UNUSED void *fake_malloc(size_t n)
{
	(void)n;
	next_block += 64;
	return n == (size_t)-1 ? NULL : (void *)(uintptr_t)next_block;
}

static MAYBE_UNUSED void fake_free(void *p)
{
	(void)p;
	nr_inner++;
}

static MAYBE_UNUSED void begin(const struct local_recorder_spec *spec)
{
	hw = local_recorder_new(spec);
	if (!hw)
		tap_skip("no recorder for this machine");
	next_block = 0x10000;
	hooked_malloc =
		(void *(*)(size_t))local_recorder_hook(hw, HEAP_ALLOC_0, (heap_fn)fake_malloc);
	hooked_free = (void (*)(void *))local_recorder_hook(hw, HEAP_FREE_0, (heap_fn)fake_free);
	local_recorder_start(hw);
}

static const struct local_recorder_spec every = {.is_full_trace = true};

/* The next record that is not a stack. */
static MAYBE_UNUSED bool next(struct heap_slot *s, struct heap_seen *r)
{
	do {
		if (!local_recorder_next(hw, s, r))
			return false;
	} while (r->kind == HEAP_RECORD_STACK);
	return true;
}

static MAYBE_UNUSED void check_next(int line, uint32_t kind, uint64_t block, uint64_t n)
{
	struct heap_seen r;

	if (!next(local_recorder_slot(hw), &r)) {
		tap_fail(__FILE__, line, "no record");
		return;
	}
	if (r.kind != kind || r.block != block || (kind != HEAP_RECORD_FREE && r.n != n))
		tap_fail(__FILE__, line, "kind %u block 0x%" PRIx64 " n %" PRIu64, (unsigned)r.kind,
			 r.block, r.n);
}
#define CHECK_NEXT(kind, block, n) \
	check_next(__LINE__, kind, (uint64_t)(uintptr_t)(block), (uint64_t)(n))

static MAYBE_UNUSED void check_none(int line)
{
	struct heap_seen r;
	struct heap_slot *s = local_recorder_slot(hw);

	if (s && next(s, &r))
		tap_fail(__FILE__, line, "a record of kind %d", (int)r.kind);
}
#define CHECK_NONE() check_none(__LINE__)

static MAYBE_UNUSED void *fake_realloc(void *p, size_t n)
{
	return n == 8 ? p : n == (size_t)-1 || n == 0 ? NULL : fake_malloc(n);
}

static MAYBE_UNUSED void *fake_thread_block(uint64_t x, size_t n)
{
	(void)n;
	return (void *)(uintptr_t)(((uint64_t)(uint32_t)gettid() << 24) + x + 1);
}

#endif
