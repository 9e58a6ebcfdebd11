/*
 * Sections of a recording: table elements as columns of varints, differences where neighbours are
 * near. zstd then sees long runs of small equal bytes. See docs/formats/assay.md.
 */
#include "base/base.h"
#include "format/assayfile_layout.h"

#define COLUMN(field)                                        \
	do {                                                 \
		for (size_t i_ = from; i_ < from + n; i_++)  \
			buf_add_uleb(to, (uint64_t)(field)); \
	} while (0)

/* The difference to the element before; the first one stands alone. Wraps like unsigned. */
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

void encode_strings(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	add_range(to, from, n);
	COLUMN(MIN(profile_sv(p, (str_id)i_).n, ASSAYFILE_STRING_MAX));
	for (size_t i = from; i < from + n; i++) {
		struct sv s = profile_sv(p, (str_id)i);
		buf_add(to, s.p, MIN(s.n, ASSAYFILE_STRING_MAX));
	}
}

void encode_modules(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	add_range(to, from, n);
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

void encode_mappings(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	const struct mapping *m = p->mappings.p;
	add_range(to, from, n);
	COLUMN(m[i_].module);
	COLUMN_DELTA((int64_t)m[i_].pid);
	COLUMN_DELTA(m[i_].start);
	COLUMN(m[i_].len);
	COLUMN(m[i_].pgoff);
	COLUMN_DELTA(m[i_].from_ns);
	COLUMN(m[i_].to_ns + 1); /* "until the end" becomes 0 */
}

void encode_functions(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	const struct function *f = p->functions.p;
	add_range(to, from, n);
	COLUMN_DELTA(f[i_].name);
	COLUMN_DELTA(f[i_].linkage);
	COLUMN(f[i_].module);
	COLUMN(f[i_].flags);
	COLUMN_DELTA(f[i_].start);
}

void encode_locations(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	const struct location *l = p->locations.p;
	add_range(to, from, n);
	COLUMN(l[i_].module);
	COLUMN(l[i_].flags & ~(uint32_t)LOCATION_NAMED); /* naming has its own section */
	COLUMN_DELTA(l[i_].offset);
}

void encode_names(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	const loc_id *log = p->named_log.p;
	add_range(to, from, n);
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
			buf_add_ch(to, (char)f->is_inlined);
			func = f->func;
			file = f->file;
			line = f->line;
		}
	}
}

void encode_stacks(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	const struct stack_node *s = p->stacks.p;
	add_range(to, from, n);
	COLUMN(i_ - s[i_].parent); /* 1 down a chain of new nodes */
	COLUMN_DELTA(s[i_].loc);
}

void encode_tasks(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	const struct task *t = p->tasks.p;
	add_range(to, from, n);
	COLUMN_DELTA((int64_t)t[i_].pid);
	COLUMN_DELTA((int64_t)t[i_].tid);
	COLUMN(t[i_].comm);
	COLUMN_DELTA(t[i_].start_ns);
	COLUMN(t[i_].end_ns);
}

void encode_tags(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	const struct tag *t = p->tags.p;
	add_range(to, from, n);
	COLUMN(t[i_].reason);
	COLUMN(t[i_].evidence);
	COLUMN(t[i_].log2_ns);
	COLUMN((uint64_t)(t[i_].syscall + 1)); /* "none" becomes 0 */
	COLUMN_DELTA(t[i_].object);
	COLUMN_DELTA(t[i_].detail);
	COLUMN_DELTA(t[i_].other);
	COLUMN_DELTA(t[i_].other_stack);
	COLUMN(t[i_].size_class);
}

void encode_marks(struct buf *to, const struct profile *p, size_t from, size_t n)
{
	const struct mark *m = p->marks.p;
	add_range(to, from, n);
	COLUMN_DELTA(m[i_].time_ns);
	COLUMN(m[i_].text);
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
	buf_add_uleb(to, p->is_incomplete); /* a copy of a cut recording stays one */
	uint64_t nr_losses = LOSS_NR; /* without those beside the samples that did not happen */
	while (!p->losses.nr[nr_losses - 1] &&
	       loss_class((enum loss_kind)(nr_losses - 1)) == LOSS_CLASS_BESIDE)
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
