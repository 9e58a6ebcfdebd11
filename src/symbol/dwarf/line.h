/*
 * Internal to the DWARF reader: runs a unit's line number program once, versions 2 to 5.
 *
 * The rows are not stored. The addresses to look up are sorted; while the rows of a sequence are
 * generated, each address is assigned the last row at or before it. Where sequences overlap, the
 * one that ends first is used. Otherwise addresses of other code would be assigned to a sequence of
 * discarded code, whose start the linker set to 0.
 */
#ifndef ASSAY_SYMBOL_DWARF_LINE_H
#define ASSAY_SYMBOL_DWARF_LINE_H

#include "base/arena.h"
#include "base/base.h"
#include "symbol/dwarf/dwarf_file.h"

struct dw_line_row {      /* of one looked-up address */
	uint64_t seq_end; /* 0 = no row */
	uint32_t file;
	uint32_t line;
};

struct dw_line_dir_or_file {
	struct sv name;
	uint64_t dir;
};

/* An address of the sequence that is being generated: its row is valid if the sequence is used. */
struct dw_line_pending {
	uint32_t query; /* index of the address */
	uint32_t file;
	uint32_t line;
};

/* A line table's header and the scratch memory to run it. Reused by one worker. */
struct dw_lines {
	uint8_t version;
	uint8_t addr_bytes;
	uint8_t offset_bytes;
	uint8_t min_inst_bytes;
	uint8_t max_ops;
	int8_t line_base;
	uint8_t line_range;
	uint8_t opcode_base;
	uint8_t nr_operands[256];
	struct sv comp_dir;
	struct rd program;
	VEC(struct sv) dirs;
	VEC(struct dw_line_dir_or_file) files;
	VEC(struct dw_line_pending) pending;
};

void dw_lines_release(struct dw_lines *l);
/* Resets @l and reads the header of the unit's line table. False if it has none or is damaged. */
bool dw_lines_open(struct dw_lines *l, const struct dw_unit *u);
/*
 * Fills @rows, one for each of the ascending @vaddrs. Sequences that start below @min_vaddr are
 * of discarded code and are skipped. False if the program is damaged; rows found before it remain.
 */
bool dw_lines_run(struct dw_lines *l, const uint64_t *vaddrs, size_t nr, uint64_t min_vaddr,
		  struct dw_line_row *rows);
/* Returns the full path of a file number, in @arena or borrowed; empty if it does not exist. */
struct sv dw_lines_path(const struct dw_lines *l, uint64_t file, struct arena *arena);

#endif
