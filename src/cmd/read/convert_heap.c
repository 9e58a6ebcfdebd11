/* Helpers of assay convert for memory profiles; see convert_heap.h. */
#include "base/base.h"
#include "cmd/read/convert_heap.h"

#include "analyze/memory/heapframes.h"
#include "base/log.h"
#include "model/tables.h"

enum loc_kind { LOC_UNCHECKED = 0, LOC_OTHER, LOC_ALLOCATOR };

struct trim {
	const struct profile *p;
	uint8_t *kinds; /* by location: enum loc_kind */
};

/* Recognizes allocator libraries by file name: stripped ones have few function names. */
static bool is_allocator_library(const char *module)
{
	static const char *const names[] = {"libjemalloc.so", "libtcmalloc", "libmimalloc.so"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strncmp(module, names[i], strlen(names[i])))
			return true;
	return false;
}

static bool is_allocator(struct trim *t, loc_id loc)
{
	const struct location *l = &t->p->locations.p[loc];
	if (t->kinds[loc] == LOC_UNCHECKED &&
	    is_allocator_library(profile_module_name(t->p, l->module)))
		t->kinds[loc] = LOC_ALLOCATOR;
	if (t->kinds[loc] == LOC_UNCHECKED) {
		bool is_all = l->nr_frames != 0;
		for (size_t i = 0; is_all && i < l->nr_frames; i++) {
			const struct frame *f = &t->p->frames.p[l->first_frame + i];
			struct sv name = sv_from_str(profile_frame_name(t->p, f));
			is_all = heapframe_kind_of(name) == HEAPFRAME_ALLOCATOR;
		}
		t->kinds[loc] = is_all ? LOC_ALLOCATOR : LOC_OTHER;
	}
	return t->kinds[loc] == LOC_ALLOCATOR;
}

/* Drops allocator frames at the leaf end; a stack of allocator frames only is kept. */
static stack_id trim_stack(void *ctx, stack_id stack)
{
	struct trim *t = ctx;
	stack_id at = stack;
	while (at && is_allocator(t, t->p->stacks.p[at].loc))
		at = t->p->stacks.p[at].parent;
	return at ? at : stack;
}

struct heapwrite_options convert_heap_options(struct arena *a, const struct profile *p)
{
	struct trim *t = arena_calloc(a, 1, sizeof(*t));
	*t = (struct trim){.p = p, .kinds = arena_calloc(a, p->locations.n, 1)};
	return (struct heapwrite_options){.trim = trim_stack, .trim_ctx = t};
}

void convert_heap_note_losses(const struct profile *p, const char *format)
{
	static const enum table_id of_massif[] = {TABLE_ALLOCATED, TABLE_FREED, TABLE_MAPPED};
	static const enum table_id of_heaptrack[] = {TABLE_MAPPED, TABLE_PEAK};
	CLEANUP(buf_release) struct buf text = {0};
	bool is_massif = !strcmp(format, "massif");
	if (!is_massif && strcmp(format, "heaptrack") != 0)
		return;
	size_t n = is_massif ? ARRAY_LEN(of_massif) : ARRAY_LEN(of_heaptrack);
	for (size_t i = 0; i < n; i++) {
		enum table_id id = is_massif ? of_massif[i] : of_heaptrack[i];
		/* a peak is one of what is allocated and freed over time */
		bool is_written = id == TABLE_PEAK && tables_has_rows(p, TABLE_ALLOCATED);
		if (!is_written && tables_has_rows(p, id))
			buf_addf(&text, "%s%s", text.n ? ", " : "", table_key(id));
	}
	if (text.n)
		log_note("not written: %s (see docs/formats/%s.md)", buf_str(&text), format);
}
