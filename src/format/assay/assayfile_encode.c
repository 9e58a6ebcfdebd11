/*
 * Encodes the sections of a recording: elements as columns of varints, as differences if neighbours
 * have similar values, which zstd compresses well. See docs/formats/assay.md.
 */
#include "base/base.h"
#include "format/assay/assayfile_sections.h"

#define COLUMN(field)                                        \
	do {                                                 \
		for (size_t i_ = from; i_ < from + n; i_++)  \
			buf_add_uleb(to, (uint64_t)(field)); \
	} while (0)

/* The difference to the previous element (0 before the first); unsigned, may wrap. */
#define COLUMN_DELTA(field)                                        \
	do {                                                       \
		uint64_t last_ = 0;                                \
		for (size_t i_ = from; i_ < from + n; i_++) {      \
			uint64_t v_ = (uint64_t)(field);           \
			buf_add_zigzag(to, (int64_t)(v_ - last_)); \
			last_ = v_;                                \
		}                                                  \
	} while (0)

static void add_range(struct buf *to, size_t from, size_t n)
{
	buf_add_uleb(to, from);
	buf_add_uleb(to, n);
}

static void encode_strings(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	COLUMN(MIN(profile_sv(p, (str_id)i_).n, ASSAYFILE_STRING_MAX));
	for (size_t i = from; i < from + n; i++) {
		struct sv s = profile_sv(p, (str_id)i);
		buf_add(to, s.p, MIN(s.n, ASSAYFILE_STRING_MAX));
	}
}

static void encode_modules(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	for (size_t i = from; i < from + n; i++) {
		const struct module *m = &p->modules.p[i];
		buf_add_uleb(to, (uint64_t)m->kind);
		buf_add_uleb(to, m->path);
		buf_add_uleb(to, m->nr_build_id);
		buf_add(to, m->build_id, m->nr_build_id);
		buf_add_uleb(to, m->is_deleted);
		buf_add_uleb(to, m->dev);
		buf_add_uleb(to, m->inode);
		buf_add_zigzag(to, m->pid);
	}
}

static void encode_names(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	const loc_id *log = p->symbolized_log.p;
	COLUMN_DELTA(log[i_]);
	COLUMN(p->locations.p[log[i_]].nr_frames);
	COLUMN(p->locations.p[log[i_]].unsym);
	uint64_t func = 0;
	uint64_t file = 0;
	uint64_t line = 0;
	for (size_t i = from; i < from + n; i++) {
		const struct location *l = &p->locations.p[log[i]];
		const struct frame *f = p->frames.p + l->first_frame;
		for (size_t k = 0; k < l->nr_frames; k++, f++) {
			buf_add_zigzag(to, (int64_t)(f->func - func));
			buf_add_zigzag(to, (int64_t)(f->file - file));
			buf_add_zigzag(to, (int64_t)(f->line - line));
			buf_add_ch(to, f->is_inferred ? FRAME_BYTE_INFERRED : (char)f->is_inlined);
			func = f->func;
			file = f->file;
			line = f->line;
		}
	}
}

/* The value of a field as it is stored. */
static uint64_t field_value(const uint8_t *element, const struct assayfile_field *f)
{
	uint64_t v = 0;
	memcpy(&v, element + f->offset, f->nr_bytes);
	unsigned nr_spare = 64 - 8u * f->nr_bytes;
	if (f->is_signed)
		v = (uint64_t)((int64_t)(v << nr_spare) >> nr_spare);
	return (v & ~(uint64_t)f->dropped) + f->bias;
}

static void encode_stacks(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	const struct stack_node *s = p->stacks.p;
	COLUMN(i_ - s[i_].parent); /* 1 for a node right after its parent */
	COLUMN_DELTA(s[i_].loc);
}

static void encode_columns(struct buf *to, const struct profile *p, enum assayfile_section type,
			   size_t from, size_t n)
{
	const struct assayfile_columns *columns = &assayfile_columns[type];
	const uint8_t *elements = assayfile_vec(p, type).p;
	for (size_t c = 0; c < columns->nr; c++) {
		const struct assayfile_field *f = &columns->fields[c];
		uint64_t last = 0;
		for (size_t i = from; i < from + n; i++) {
			uint64_t v = field_value(elements + i * columns->each_bytes, f);
			if (f->is_delta)
				buf_add_zigzag(to, (int64_t)(v - last));
			else
				buf_add_uleb(to, v);
			last = v;
		}
	}
}

void encode_elements(struct buf *to, const struct profile *p, enum assayfile_section type,
		     size_t from, size_t n)
{
	add_range(to, from, n);
	if (type == SECTION_STRINGS)
		encode_strings(to, p, from, n);
	else if (type == SECTION_MODULES)
		encode_modules(to, p, from, n);
	else if (type == SECTION_NAMES)
		encode_names(to, p, from, n);
	else if (type == SECTION_STACKS)
		encode_stacks(to, p, from, n);
	else
		encode_columns(to, p, type, from, n);
}

void encode_table(struct buf *to, const struct profile *p, size_t table)
{
	const struct table *t = &p->tables.p[table];
	buf_add_uleb(to, table);
	buf_add_uleb(to, t->event);
	buf_add_uleb(to, (uint64_t)t->time_kind);
	buf_add_uleb(to, t->nr_columns);
	buf_add_uleb(to, t->weight_column);
	for (uint32_t c = 0; c < t->nr_columns; c++) {
		buf_add_uleb(to, t->columns[c].name);
		buf_add_uleb(to, (uint64_t)t->columns[c].unit);
		buf_add_uleb(to, (t->columns[c].is_level ? 1u : 0) |
					 (t->columns[c].is_estimate ? 2u : 0));
	}
	uint64_t freq_bits;
	memcpy(&freq_bits, &t->freq_hz, sizeof(freq_bits));
	buf_add_u64le(to, freq_bits);
	buf_add_uleb(to, t->has_tags ? ASSAYFILE_HAS_TAGS : 0);
}

void encode_samples(struct buf *to, const struct profile *p, size_t table, size_t from, size_t n)
{
	const struct table *t = &p->tables.p[table];
	buf_add_uleb(to, table);
	add_range(to, from, n);
	COLUMN_DELTA(t->time_ns[i_]);
	COLUMN(t->stack[i_]);
	COLUMN_DELTA(t->task[i_]);
	COLUMN_DELTA((int64_t)t->cpu[i_]);
	uint32_t nr = t->nr_columns;
	for (uint32_t c = 0; c < nr; c++)
		COLUMN_DELTA(t->values[i_ * nr + c]);
	if (t->has_tags)
		COLUMN_DELTA(t->tag[i_]);
}

void encode_state(struct buf *to, const struct profile *p)
{
	buf_add_uleb(to, p->start_ns);
	buf_add_uleb(to, p->end_ns);
	buf_add_zigzag(to, p->wall_start_ns);
	buf_add_uleb(to, p->is_incomplete); /* a copy of an incomplete recording is incomplete */
	uint64_t nr_losses = LOSS_NR;       /* without trailing counters that are 0 */
	while (!p->losses.nr[nr_losses - 1] &&
	       loss_class((enum loss_kind)(nr_losses - 1)) == LOSS_CLASS_OTHER)
		nr_losses--;
	buf_add_uleb(to, nr_losses);
	for (size_t i = 0; i < nr_losses; i++)
		buf_add_uleb(to, p->losses.nr[i]);
	buf_add_uleb(to, p->facts.n);
	vec_foreach(f, &p->facts) {
		buf_add_uleb(to, f->key);
		buf_add_uleb(to, f->value);
	}
}
