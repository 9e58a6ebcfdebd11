/* Line number programs; see line.h. DWARF 5 section 6.2, DWARF 4 section 6.2. */
#include "base/base.h"
#include "symbol/dwarf/line.h"

#define LINE_FILES_MAX ((size_t)1 << 20)
#define PATH_BYTES_MAX 4096 /* of each of the three parts */

struct line_format {
	uint64_t content; /* DW_LNCT_* */
	struct dw_spec spec;
};

void dw_lines_release(struct dw_lines *l)
{
	vec_release(&l->dirs);
	vec_release(&l->files);
	vec_release(&l->pending);
}

static void add_file_v4(struct dw_lines *l, struct rd *r, struct sv name)
{
	uint64_t dir = rd_uleb(r);
	rd_uleb(r); /* time */
	rd_uleb(r); /* length */
	if (!r->is_bad && l->files.n < LINE_FILES_MAX)
		vec_push(&l->files, (struct dw_line_dir_or_file){name, dir});
}

/* Before version 5 there is no directory 0 and no file 0: numbers start at 1. */
static bool read_tables_v4(struct dw_lines *l, struct rd *r)
{
	vec_push(&l->dirs, sv_from("", 0));
	vec_push(&l->files, (struct dw_line_dir_or_file){0});
	for (;;) {
		struct sv dir = rd_cstr(r);
		if (r->is_bad)
			return false;
		if (!dir.n)
			break;
		vec_push(&l->dirs, dir);
	}
	for (;;) {
		struct sv name = rd_cstr(r);
		if (r->is_bad)
			return false;
		if (!name.n)
			return true;
		add_file_v4(l, r, name);
	}
}

static unsigned read_formats(struct rd *r, struct line_format *formats)
{
	unsigned nr = rd_u8(r);
	for (unsigned i = 0; i < nr; i++) {
		formats[i].content = rd_uleb(r);
		uint64_t form = rd_uleb(r);
		formats[i].spec = (struct dw_spec){.form = (uint16_t)MIN(form, UINT16_MAX)};
	}
	return nr;
}

/* Directories or files of version 5, preceded by a description of their format. */
static bool read_table_v5(struct dw_lines *l, struct rd *r, const struct dw_unit *u, bool is_dirs)
{
	struct line_format formats[256];
	unsigned nr_formats = read_formats(r, formats);
	uint64_t nr = rd_uleb(r);
	if (r->is_bad || nr > LINE_FILES_MAX || (nr && !nr_formats))
		return false;
	for (uint64_t i = 0; i < nr; i++) {
		struct dw_line_dir_or_file entry = {.name = sv_from("", 0)};
		for (unsigned k = 0; k < nr_formats; k++) {
			struct dw_value v;
			if (!dw_form_read(r, u, &formats[k].spec, &v))
				return false;
			if (formats[k].content == DW_LNCT_path)
				entry.name = dw_text(u, &v);
			else if (formats[k].content == DW_LNCT_directory_index)
				entry.dir = v.u;
		}
		if (is_dirs)
			vec_push(&l->dirs, entry.name);
		else
			vec_push(&l->files, entry);
	}
	return true;
}

static bool read_fixed_part(struct dw_lines *l, struct rd *r)
{
	l->min_inst_bytes = rd_u8(r);
	l->max_ops = l->version >= 4 ? rd_u8(r) : 1;
	rd_u8(r); /* default_is_stmt: all rows are used, whether is_stmt or not */
	l->line_base = rd_i8(r);
	l->line_range = rd_u8(r);
	l->opcode_base = rd_u8(r);
	if (r->is_bad || !l->opcode_base)
		return false;
	for (unsigned i = 1; i < l->opcode_base; i++)
		l->nr_operands[i] = rd_u8(r);
	if (!l->max_ops)
		l->max_ops = 1;
	return !r->is_bad;
}

bool dw_lines_open(struct dw_lines *l, const struct dw_unit *u)
{
	vec_clear(&l->dirs);
	vec_clear(&l->files);
	if (u->stmt_list == DW_NO_OFFSET)
		return false;
	struct rd r = dw_section_rd(u->file, DW_SEC_LINE, u->stmt_list);
	uint64_t nr_bytes = dw_rd_length(&r, &l->offset_bytes);
	r = rd_sub(&r, nr_bytes);
	unsigned version = rd_u16(&r);
	if (r.is_bad || version < 2 || version > 5)
		return false;
	l->version = (uint8_t)version;
	l->comp_dir = u->comp_dir;
	l->addr_bytes = u->addr_bytes;
	if (version == 5) {
		l->addr_bytes = rd_u8(&r);
		rd_u8(&r); /* segment selector */
	}
	uint64_t nr_header_bytes = dw_rd_offset(&r, l->offset_bytes);
	struct rd header = rd_sub(&r, nr_header_bytes);
	l->program = r;
	if (header.is_bad || !read_fixed_part(l, &header))
		return false;
	if (version < 5)
		return read_tables_v4(l, &header);

	/* The table's strings use its own offset size and the unit's bases. */
	struct dw_unit tu = *u;
	tu.offset_bytes = l->offset_bytes;
	tu.addr_bytes = l->addr_bytes;
	return read_table_v5(l, &header, &tu, true) && read_table_v5(l, &header, &tu, false);
}

struct line_regs {
	uint64_t addr;
	uint64_t op_idx;
	uint64_t file;
	uint64_t line;
};

struct line_run {
	struct dw_lines *l;
	const uint64_t *vaddrs;
	size_t nr;
	uint64_t min_vaddr;
	struct dw_line_row *rows;
	size_t next; /* first address not yet passed in this sequence */
	uint64_t prev_addr;
	uint32_t prev_file;
	uint32_t prev_line;
	bool has_prev;
	bool is_dead;
	uint64_t budget; /* remaining assignments: bounds programs that go back and forth */
};

/* Assigns the addresses between the last row and @addr to the last row. */
static void pass_addresses(struct line_run *run, uint64_t addr)
{
	while (run->next < run->nr && run->vaddrs[run->next] < addr && run->budget) {
		struct dw_line_pending p = {(uint32_t)run->next, run->prev_file, run->prev_line};
		vec_push(&run->l->pending, p);
		run->next++;
		run->budget--;
	}
}

static inline void emit_row(struct line_run *run, const struct line_regs *regs)
{
	if (UNLIKELY(!run->has_prev)) {
		run->has_prev = true;
		run->is_dead = regs->addr < run->min_vaddr;
		run->next = u64_lower_bound(run->vaddrs, run->nr, regs->addr);
	} else if (UNLIKELY(regs->addr < run->prev_addr)) {
		run->next = u64_lower_bound(run->vaddrs, run->nr, regs->addr);
	} else if (run->next < run->nr && run->vaddrs[run->next] < regs->addr) {
		pass_addresses(run, regs->addr);
	}
	run->prev_addr = regs->addr;
	run->prev_file = (uint32_t)MIN(regs->file, UINT32_MAX);
	run->prev_line = (uint32_t)MIN(regs->line, UINT32_MAX);
}

static void end_sequence(struct line_run *run, const struct line_regs *regs)
{
	if (run->has_prev && regs->addr >= run->prev_addr)
		pass_addresses(run, regs->addr);
	if (!run->is_dead) {
		vec_foreach(p, &run->l->pending) {
			struct dw_line_row *row = &run->rows[p->query];
			if (!row->seq_end || row->seq_end > regs->addr)
				*row = (struct dw_line_row){regs->addr, p->file, p->line};
		}
	}
	vec_clear(&run->l->pending);
	run->has_prev = false;
	run->is_dead = false;
}

static inline void advance(const struct dw_lines *l, struct line_regs *regs, uint64_t nr_ops)
{
	if (LIKELY(l->max_ops == 1)) {
		regs->addr += nr_ops * l->min_inst_bytes;
		return;
	}
	uint64_t sum = regs->op_idx + nr_ops;
	regs->addr += sum / l->max_ops * l->min_inst_bytes;
	regs->op_idx = sum % l->max_ops;
}

static const struct line_regs start_regs = {.file = 1, .line = 1};

static void extended_op(struct line_run *run, struct rd *r, struct line_regs *regs)
{
	struct dw_lines *l = run->l;
	uint64_t nr_bytes = rd_uleb(r);
	struct rd arg = rd_sub(r, nr_bytes);
	if (!nr_bytes || r->is_bad)
		return;
	switch (rd_u8(&arg)) {
	case DW_LNE_end_sequence:
		end_sequence(run, regs);
		*regs = start_regs;
		break;
	case DW_LNE_set_address:
		regs->op_idx = 0;
		regs->addr = rd_left(&arg) >= 8 ? rd_u64(&arg) : rd_u32(&arg);
		break;
	case DW_LNE_define_file: {
		struct sv name = rd_cstr(&arg);
		add_file_v4(l, &arg, name);
		break;
	}
	default: /* discriminators and vendor extensions */
		break;
	}
}

static void standard_op(struct line_run *run, struct rd *r, unsigned op, struct line_regs *regs)
{
	struct dw_lines *l = run->l;
	switch (op) {
	case DW_LNS_copy:
		emit_row(run, regs);
		break;
	case DW_LNS_advance_pc:
		advance(l, regs, rd_uleb(r));
		break;
	case DW_LNS_advance_line:
		regs->line = (uint32_t)(regs->line + (uint64_t)rd_sleb(r));
		break;
	case DW_LNS_set_file:
		regs->file = rd_uleb(r);
		break;
	case DW_LNS_const_add_pc:
		if (l->line_range)
			advance(l, regs, (255u - l->opcode_base) / l->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		regs->addr += rd_u16(r);
		regs->op_idx = 0;
		break;
	case DW_LNS_set_column:
	case DW_LNS_set_isa:
		rd_uleb(r);
		break;
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		break;
	default: /* unknown standard opcode: the header gives its number of operands */
		for (unsigned i = 0; i < l->nr_operands[op]; i++)
			rd_uleb(r);
	}
}

bool dw_lines_run(struct dw_lines *l, const uint64_t *vaddrs, size_t nr, uint64_t min_vaddr,
		  struct dw_line_row *rows)
{
	struct line_run run = {.l = l, .vaddrs = vaddrs, .nr = nr, .min_vaddr = min_vaddr};
	struct line_regs regs = start_regs;
	struct rd r = l->program;
	run.rows = rows;
	run.budget = 16 * (uint64_t)nr + rd_left(&r);
	vec_clear(&l->pending);
	uint8_t base = l->opcode_base;
	uint8_t range = l->line_range;

	while (r.p < r.end) {
		unsigned op = *r.p++;
		if (LIKELY(op >= base)) {
			unsigned adjusted = op - base;
			if (UNLIKELY(!range))
				return false;
			advance(l, &regs, adjusted / range);
			regs.line = (uint32_t)(regs.line + (uint64_t)(int64_t)l->line_base +
					       adjusted % range);
			emit_row(&run, &regs);
		} else if (op) {
			standard_op(&run, &r, op, &regs);
		} else {
			extended_op(&run, &r, &regs);
		}
	}
	vec_clear(&l->pending);
	return !r.is_bad;
}

static bool is_absolute(struct sv path)
{
	return path.n && path.p[0] == '/';
}

static size_t append_part(char *to, size_t at, struct sv part)
{
	if (!part.n)
		return at;
	if (at && to[at - 1] != '/')
		to[at++] = '/';
	while (at && part.n && part.p[0] == '/')
		part = sv_from_idx(part, 1);
	memcpy(to + at, part.p, part.n);
	return at + part.n;
}

struct sv dw_lines_path(const struct dw_lines *l, uint64_t file, struct arena *arena)
{
	if (file >= l->files.n || (l->version < 5 && !file))
		return sv_from("", 0);
	struct sv name = l->files.p[file].name;
	if (!name.n || is_absolute(name))
		return name;
	uint64_t dir_idx = l->files.p[file].dir;
	struct sv dir = sv_from("", 0);
	if (dir_idx < l->dirs.n)
		dir = l->dirs.p[dir_idx];
	/* Since version 5 directory 0 is the compilation directory itself. */
	struct sv comp = sv_from("", 0);
	if (!is_absolute(dir) && (l->version < 5 || dir_idx))
		comp = l->comp_dir;
	if (comp.n > PATH_BYTES_MAX || dir.n > PATH_BYTES_MAX || name.n > PATH_BYTES_MAX)
		return name;
	char *to = arena_alloc(arena, comp.n + dir.n + name.n + 3);
	size_t n = append_part(to, 0, comp);
	n = append_part(to, n, dir);
	n = append_part(to, n, name);
	return sv_from(to, n);
}
