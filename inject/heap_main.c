/*
 * The recorder inside a target; see wire/heap_wire.h for what it is told and what it tells.
 */
#include "heap_wire.h"

struct heap_data heap_data = {.magic = HEAP_WIRE_MAGIC, .version = HEAP_WIRE_VERSION};

/* The types of jemalloc's experimental.hooks (5.2.0 .. 5.3.1). */
void heap_hook_alloc(void *extra, int type, void *result, uint64_t raw, const uint64_t *args);
void heap_hook_dalloc(void *extra, int type, void *block, const uint64_t *args);
void heap_hook_expand(void *extra, int type, void *block, uint64_t old_usize, uint64_t new_usize,
		      uint64_t raw, const uint64_t *args);
void heap_prof_backtrace(void **vec, unsigned *len, unsigned max);

void heap_hook_alloc(void *extra, int type, void *result, uint64_t raw, const uint64_t *args)
{
	(void)extra, (void)type, (void)result, (void)raw, (void)args;
}

void heap_hook_dalloc(void *extra, int type, void *block, const uint64_t *args)
{
	(void)extra, (void)type, (void)block, (void)args;
}

void heap_hook_expand(void *extra, int type, void *block, uint64_t old_usize, uint64_t new_usize,
		      uint64_t raw, const uint64_t *args)
{
	(void)extra, (void)type, (void)block, (void)old_usize, (void)new_usize, (void)raw,
		(void)args;
}

void heap_prof_backtrace(void **vec, unsigned *len, unsigned max)
{
	(void)vec, (void)max;
	*len = 0;
}
