/*
 * Internal to the DWARF reader: one run of a unit's line number program, versions 2 to 5.
 *
 * The rows are not kept: the looked-up addresses are sorted, and while the rows of a sequence
 * stream by, each address is given the last row at or before it. Where sequences overlap, the one
 * that ends first wins, so that a sequence of discarded code, whose start the linker set to 0,
 * cannot take what belongs to another.
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

struct dw_line_pending {
	uint32_t query;
	uint32_t file;
	uint32_t line;
};

/* A table's header and the scratch memory of its run; cleared by dw_lines_open, kept per worker. */
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
/* Reads the header of the table of @u. False if it has none or it is damaged. */
bool dw_lines_open(struct dw_lines *l, const struct dw_unit *u);
/*
 * Fills @rows, one for each of the ascending @vaddrs. Sequences that start below @min_vaddr are
 * of discarded code. False if the program is damaged; rows before the damage stay.
 */
bool dw_lines_run(struct dw_lines *l, const uint64_t *vaddrs, size_t nr, uint64_t min_vaddr,
		  struct dw_line_row *rows);
/* Full path of a file number, in the arena or borrowed; empty if there is no such file. */
struct sv dw_lines_path(const struct dw_lines *l, uint64_t file, struct arena *arena);

#endif
