/* Line tables of Python code; see pylines.h. */
#include "base/base.h"
#include "symbol/pylines.h"

#define UNIT_BYTES 2

enum {
	KIND_ONE_LINE = 10, /* to 12: lines 0, 1, 2 further; two bytes of columns */
	KIND_NO_COLUMNS = 13,
	KIND_LONG = 14,
	KIND_NONE = 15,
};

/* Six bits each, the lowest first; bit 6: another byte follows. */
static uint32_t take_number(struct sv *from)
{
	uint32_t v = 0;
	for (unsigned shift = 0; from->n; shift += 6) {
		uint8_t byte = (uint8_t)*from->p;
		*from = sv_from(from->p + 1, from->n - 1);
		if (shift < 32)
			v |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return v;
}

static int64_t take_signed(struct sv *from)
{
	uint32_t v = take_number(from);
	return v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
}

uint32_t pylines_find(struct sv table, uint32_t first_line, int64_t offset)
{
	int64_t line = first_line;
	int64_t end = 0;
	while (table.n && offset >= 0) {
		uint8_t head = (uint8_t)*table.p;
		unsigned kind = head >> 3 & 15;
		if (!(head & 0x80))
			return 0;
		table = sv_from(table.p + 1, table.n - 1);
		if (kind == KIND_LONG || kind == KIND_NO_COLUMNS)
			line += take_signed(&table);
		else if (kind >= KIND_ONE_LINE && kind < KIND_NO_COLUMNS)
			line += kind - KIND_ONE_LINE;
		end += ((head & 7) + 1) * UNIT_BYTES;
		if (offset < end)
			return kind == KIND_NONE || line <= 0 || line > INT32_MAX ? 0
										  : (uint32_t)line;
		while (table.n && !(*table.p & 0x80)) /* columns */
			table = sv_from(table.p + 1, table.n - 1);
	}
	return offset < 0 ? first_line : 0;
}
