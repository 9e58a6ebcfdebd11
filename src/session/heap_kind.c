/* The heap among the sources of a capture; see heap_kind.h. */
#include "base/base.h"
#include "session/heap_kind.h"

#include "capture/heapsource.h"
#include "model/heaptables.h"
#include "specs.h"

/* In this order: views that are not told which take the first one with rows. */
static const struct {
	enum heap_table_kind kind;
	uint32_t spec;
	bool is_derived; /* its rows tell again what "allocated" counts */
} tables[] = {
	{HEAP_KIND_ALLOCATED, SPEC_HEAP_ALLOCATED, false},
	{HEAP_KIND_LIVE, SPEC_HEAP_LIVE, true},
	{HEAP_KIND_PEAK, SPEC_HEAP_PEAK, true},
	{HEAP_KIND_FREED, SPEC_HEAP_FREED, true},
	{HEAP_KIND_OLDER, SPEC_HEAP_OLDER, true},
	{HEAP_KIND_MAPPED, SPEC_HEAP_MAPPED, true},
};

void heap_kind_tables(const struct capture_options *o, struct profile *p, struct builder *b)
{
	unsigned flags = o->heap && !o->heap->is_every ? HEAP_TABLE_ESTIMATE : 0;
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		uint32_t table = heap_table(p, tables[i].kind, flags);
		if (tables[i].is_derived)
			builder_set_derived_table(b, tables[i].spec, table);
		else
			builder_set_table(b, tables[i].spec, table);
	}
}
