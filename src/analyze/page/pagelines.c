/* Weights of source lines; see pagelines.h. */
#include "base/base.h"
#include "analyze/page/pagelines.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

struct lines {
	const struct profile *p;
	VEC(struct page_line) list;
	uint32_t *of_frame; /* by index in p->frames: index of its line + 1; 0: no line is known */
	uint64_t *self;     /* by stack */
	uint64_t *total;
};

/* Frames with the same function, file and line are one line. */
static void number_lines(struct lines *l)
{
	const struct profile *p = l->p;
	CLEANUP(map_release) struct map index = {0};
	l->of_frame = xcalloc(p->frames.n, sizeof(*l->of_frame));
	vec_foreach(loc, &p->locations) {
		for (uint32_t k = 0; k < loc->nr_frames; k++) {
			const struct frame *f = &p->frames.p[loc->first_frame + k];
			if (!f->line || !f->file)
				continue;
			module_id module = profile_frame_module(p, loc, f);
			uint64_t key =
				hash_mix((uint64_t)p->functions.p[f->func].name << 32 | module,
					 (uint64_t)f->file << 32 | f->line);
			bool is_new;
			uint32_t *at = map_put(&index, key, &is_new);
			if (is_new) {
				vec_push(&l->list, (struct page_line){
							   .function = profile_frame_name(p, f),
							   .module = profile_module_name(p, module),
							   .file = profile_text(p, f->file),
							   .line = f->line});
				*at = (uint32_t)l->list.n;
			}
			l->of_frame[loc->first_frame + k] = *at;
		}
	}
}

static bool has_line(const struct lines *l, const struct location *loc, uint32_t from,
		     uint32_t line)
{
	for (uint32_t k = from; k < loc->nr_frames; k++)
		if (l->of_frame[loc->first_frame + k] == line)
			return true;
	return false;
}

/* Whether a caller of frame @k of a stack's leaf is the same line. */
static bool is_recursive(const struct lines *l, stack_id stack, uint32_t k, uint32_t line)
{
	const struct profile *p = l->p;
	const struct location *loc = &p->locations.p[p->stacks.p[stack].loc];
	if (has_line(l, loc, k + 1, line))
		return true;
	for (stack_id s = p->stacks.p[stack].parent; s; s = p->stacks.p[s].parent)
		if (has_line(l, &p->locations.p[p->stacks.p[s].loc], 0, line))
			return true;
	return false;
}

static void add_stack(struct lines *l, stack_id stack)
{
	const struct location *loc = &l->p->locations.p[l->p->stacks.p[stack].loc];
	for (uint32_t k = 0; k < loc->nr_frames; k++) {
		uint32_t line = l->of_frame[loc->first_frame + k];
		if (!line)
			continue;
		struct page_line *to = &l->list.p[line - 1];
		to->self += k ? 0 : l->self[stack];
		if (!is_recursive(l, stack, k, line))
			to->total += l->total[stack];
	}
}

static int by_function(const void *x, const void *y)
{
	const struct page_line *a = x;
	const struct page_line *b = y;
	return strcmp(a->function, b->function) ?: strcmp(a->module, b->module)
	       ?: strcmp(a->file, b->file) ?: COMPARE(a->line, b->line);
}

/* Files are opened in the order of their functions. */
static void read_texts(struct arena *a, const struct selection *sel, const struct code_access *code,
		       struct page_line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct page_line *l = &lines[i];
		bool is_read = code && code->line && l->total >= sel->weight / LINES_MIN_SHARE;
		const char *text = is_read ? code->line(code->ctx, a, l->file, l->line) : NULL;
		l->text = text ? text : "";
	}
}

size_t pagelines_make(struct arena *a, const struct selection *sel, const struct code_access *code,
		      struct page_line **ret_lines)
{
	const struct profile *p = sel->p;
	struct lines l = {.p = p,
			  .self = xcalloc(p->stacks.n, sizeof(*l.self)),
			  .total = xcalloc(p->stacks.n, sizeof(*l.total))};
	number_lines(&l);
	for (size_t i = 0; i < sel->nr_rows; i++) {
		const struct select_row *row = &sel->rows[i];
		l.total[row->stack] += row->weight;
		if (!row->synth_leaf) /* else the reason of a wait is the leaf */
			l.self[row->stack] += row->weight;
	}
	/* Callers have smaller ids than what they call. */
	for (size_t s = p->stacks.n; s-- > 1;) {
		l.total[p->stacks.p[s].parent] += l.total[s];
		if (l.total[s])
			add_stack(&l, (stack_id)s);
	}
	size_t n = 0;
	struct page_line *lines = arena_calloc(a, l.list.n, sizeof(*lines));
	vec_foreach(line, &l.list)
		if (line->total)
			lines[n++] = *line;
	if (n)
		qsort(lines, n, sizeof(*lines), by_function);
	read_texts(a, sel, code, lines, n);
	free(l.self);
	free(l.total);
	free(l.of_frame);
	vec_release(&l.list);
	*ret_lines = lines;
	return n;
}
