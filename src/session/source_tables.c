/* The tables that the sources of a capture fill; see sources.h. */
#include "base/base.h"
#include "session/sources.h"

#include "capture/heapsource.h"
#include "capture/io.h"
#include "model/tables.h"
#include "session/event_tables.h"

#define HEAP_PROGRAMS (ENGINE_HEAP | ENGINE_PROBES)

/* What each part of a capture fills, in the order in which the tables are made. */
static const struct {
	unsigned program; /* enum engine_programs */
	enum table_id table;
} filled[] = {
	{ENGINE_WAITS, TABLE_OFF_CPU},    {ENGINE_WAITS, TABLE_ON_CPU},
	{ENGINE_WAITS, TABLE_BLAME},      {ENGINE_IO, TABLE_IO},
	{ENGINE_IO, TABLE_BLOCK},         {ENGINE_IO, TABLE_FAULTS},
	{ENGINE_IO, TABLE_RECLAIM},       {ENGINE_SPANS, TABLE_SPANS},
	{ENGINE_SPANS, TABLE_SPAN_TIME},  {ENGINE_SPANS, TABLE_SLOWEST_SPANS},
	{HEAP_PROGRAMS, TABLE_ALLOCATED}, {HEAP_PROGRAMS, TABLE_LIVE},
	{HEAP_PROGRAMS, TABLE_PEAK},      {HEAP_PROGRAMS, TABLE_FREED},
	{HEAP_PROGRAMS, TABLE_OLDER},     {HEAP_PROGRAMS, TABLE_MAPPED},
};

void sources_make_tables(const struct capture_options *o, struct profile *p, struct builder *b)
{
	unsigned programs = o->programs;
	bool is_sampled = o->heap && !o->heap->is_every;
	for (size_t i = 0; i < ARRAY_LEN(filled); i++) {
		unsigned flags =
			is_sampled && filled[i].program == HEAP_PROGRAMS ? TABLES_ESTIMATE : 0;
		if (programs & filled[i].program)
			builder_set_table(b, filled[i].table,
					  tables_add(p, filled[i].table, flags));
	}
	if (programs & ENGINE_IO && o->io_parts & IO_PART_GROWTH) {
		builder_set_table(b, TABLE_GROWTH, tables_add(p, TABLE_GROWTH, 0));
		builder_set_table(b, TABLE_MAPPED, tables_add(p, TABLE_MAPPED, 0));
	}
	if (programs & ENGINE_MEMORY)
		builder_set_table(b, TABLE_MEMORY, tables_add(p, TABLE_MEMORY, 0));
	if (programs & ENGINE_COUNTS)
		event_tables_add(p, b, o->counts);
}
