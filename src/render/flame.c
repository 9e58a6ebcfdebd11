/* The common part of flame graphs; see flame.h. */
#include "base/base.h"
#include "render/flame.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/escape.h"
#include "base/text/shortname.h"

/* ---- symbols ------------------------------------------------------------------------------ */

struct symtab {
	struct map index;
	uint32_t *last; /* by name: 1 + the symbol found last; most names have one */
	VEC(struct flame_symbol) v;
};

static bool is_symbol(const struct flame_symbol *s, const struct tree_node *n)
{
	return s->name == n->name && s->module == n->module && s->flags == n->flags;
}

/* The map is keyed by the hash of the whole key; on a collision the next hash is tried. */
static uint32_t symbol_of(struct symtab *tab, const struct tree_node *n)
{
	uint32_t last = tab->last[n->name];
	if (last && is_symbol(&tab->v.p[last - 1], n))
		return last - 1;
	uint64_t h = hash_mix((uint64_t)n->name << 32 | n->module, n->flags);
	for (;; h++) {
		bool is_new;
		uint32_t *id = map_put(&tab->index, h, &is_new);
		if (is_new) {
			*id = (uint32_t)tab->v.n;
			vec_push(&tab->v, (struct flame_symbol){.name = n->name,
								.module = n->module,
								.flags = n->flags});
		}
		if (is_symbol(&tab->v.p[*id], n)) {
			tab->last[n->name] = *id + 1;
			return *id;
		}
	}
}

struct usage {
	uint32_t nr_nodes;
	uint32_t id;
};

static int by_usage(const void *a, const void *b)
{
	const struct usage *x = a;
	const struct usage *y = b;
	return COMPARE(y->nr_nodes, x->nr_nodes) ?: COMPARE(x->id, y->id);
}

static void sort_symbols(struct flame *f, const struct symtab *tab)
{
	size_t n = tab->v.n;
	struct usage *order = xreallocarray(NULL, n, sizeof(*order));
	uint32_t *place = xreallocarray(NULL, n, sizeof(*place));
	for (size_t i = 0; i < n; i++)
		order[i] = (struct usage){tab->v.p[i].nr_nodes, (uint32_t)i};
	qsort(order, n, sizeof(*order), by_usage);
	f->symbols = xreallocarray(NULL, n, sizeof(*f->symbols));
	f->nr_symbols = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		f->symbols[i] = tab->v.p[order[i].id];
		place[order[i].id] = (uint32_t)i;
	}
	for (size_t i = 0; i < f->t->nr_nodes; i++)
		f->symbol[i] = place[f->symbol[i]];
	free(place);
	free(order);
}

static void set_symbols(struct flame *f, enum palette palette)
{
	struct symtab tab = {.last = xcalloc(intern_count(&f->r->names), sizeof(*tab.last))};
	size_t n = f->t->nr_nodes;
	f->symbol = xreallocarray(NULL, n, sizeof(*f->symbol));
	for (size_t i = 0; i < n; i++) {
		f->symbol[i] = symbol_of(&tab, &f->t->nodes[i]);
		tab.v.p[f->symbol[i]].nr_nodes++;
	}
	sort_symbols(f, &tab);
	for (uint32_t i = 0; i < f->nr_symbols; i++) {
		struct flame_symbol *s = &f->symbols[i];
		struct palette_key key = {intern_get(&f->r->names, s->name),
					  intern_get(&f->r->names, s->module), s->flags};
		s->color = palette_color(palette, &key);
	}
	map_release(&tab.index);
	free(tab.last);
	vec_release(&tab.v);
}

static void set_widths(struct flame *f)
{
	size_t n = f->t->nr_nodes;
	f->width = xreallocarray(NULL, n, sizeof(*f->width));
	for (size_t i = 0; i < n; i++)
		f->width[i] = f->t->nodes[i].total;
	if (!f->t->is_differential)
		return;
	for (size_t i = 0; i < n; i++) {
		int64_t delta = f->t->before[i].delta_self;
		f->width[i] = f->t->nodes[i].self + (delta < 0 ? (uint64_t)-delta : 0);
	}
	for (size_t i = n; i-- > 1;) {
		f->width[f->t->nodes[i].parent] += f->width[i];
		f->max_delta = MAX(f->max_delta, fabs((double)f->t->before[i].delta));
	}
}

void flame_init(struct flame *f, const struct report *r, const struct report_tree *t,
		enum palette palette)
{
	*f = (struct flame){.r = r, .t = t};
	set_symbols(f, palette);
	set_widths(f);
}

void flame_release(struct flame *f)
{
	free(f->symbols);
	free(f->symbol);
	free(f->width);
	*f = (struct flame){0};
}

double flame_delta_share(const struct flame *f, uint32_t node)
{
	if (f->max_delta <= 0)
		return 0;
	double delta = (double)f->t->before[node].delta;
	return MAX(-1.0, MIN(1.0, delta / f->max_delta));
}

/* ---- the packed tree ---------------------------------------------------------------------- */

struct strtab {
	uint32_t *id; /* by str_id: 1-based index in the text */
	uint32_t n;
	struct buf text;
};

static uint32_t text_id(struct strtab *tab, const struct intern *names, str_id s)
{
	if (!tab->id[s]) {
		tab->id[s] = ++tab->n;
		struct sv sv = intern_get(names, s);
		/* One line each: the script splits at newlines and rejects invalid UTF-8. */
		escape_term(&tab->text, sv);
		buf_add_ch(&tab->text, '\n');
	}
	return tab->id[s] - 1;
}

static void add_block(struct buf *to, struct buf *block)
{
	buf_add_uleb(to, block->n);
	buf_add_sv(to, buf_sv(block));
	buf_clear(block);
}

static void pack_columns(struct buf *to, const struct flame *f)
{
	const struct report_tree *t = f->t;
	CLEANUP(buf_release) struct buf b = {0};
	buf_reserve(&b, t->nr_nodes + 16);
	for (size_t i = 0; i < t->nr_nodes; i++)
		buf_add_uleb(&b, i < 2 ? 0 : t->nodes[i - 1].depth + 1 - t->nodes[i].depth);
	add_block(to, &b);
	for (size_t i = 0; i < t->nr_nodes; i++)
		buf_add_uleb(&b, f->symbol[i]);
	add_block(to, &b);
	for (size_t i = 0; i < t->nr_nodes; i++)
		buf_add_uleb(&b, t->nodes[i].self);
	add_block(to, &b);
	for (size_t i = 0; t->before && i < t->nr_nodes; i++)
		buf_add_uleb(&b, t->before[i].self);
	add_block(to, &b);
}

static unsigned pack_flags(const struct report_tree *t)
{
	uint64_t largest =
		t->before ? MAX(t->nodes[0].total, t->before[0].total) : t->nodes[0].total;
	return (t->is_differential ? FLAME_PACK_DIFFERENTIAL : 0u) |
	       (t->is_normalised ? FLAME_PACK_NORMALISED : 0u) |
	       (t->is_reversed ? FLAME_PACK_REVERSED : 0u) | (largest >> 53 ? FLAME_PACK_BIG : 0u);
}

void flame_pack(struct buf *to, const struct flame *f)
{
	const struct intern *names = &f->r->names;
	struct strtab fn = {.id = xcalloc(intern_count(names), sizeof(*fn.id))};
	struct strtab mod = {.id = xcalloc(intern_count(names), sizeof(*mod.id))};
	CLEANUP(buf_release) struct buf syms = {0};
	for (uint32_t i = 0; i < f->nr_symbols; i++) {
		const struct flame_symbol *s = &f->symbols[i];
		buf_add_uleb(&syms, text_id(&fn, names, s->name));
		buf_add_uleb(&syms, text_id(&mod, names, s->module));
		buf_add_uleb(&syms, s->flags);
		buf_add_uleb(&syms, s->color);
	}
	buf_add_uleb(to, 1);
	buf_add_uleb(to, pack_flags(f->t));
	buf_add_uleb(to, fn.n);
	buf_add_uleb(to, mod.n);
	buf_add_uleb(to, f->nr_symbols);
	buf_add_uleb(to, f->t->nr_nodes);
	buf_add_uleb(to, fn.text.n + mod.text.n);
	buf_add_sv(to, buf_sv(&fn.text));
	buf_add_sv(to, buf_sv(&mod.text));
	buf_add_sv(to, buf_sv(&syms));
	pack_columns(to, f);
	buf_release(&fn.text);
	buf_release(&mod.text);
	free(fn.id);
	free(mod.id);
}

/* ---- labels ------------------------------------------------------------------------------- */

/* Advance of ' ' to '~' in thousandths of the font size: DejaVu Sans, as wide as any in use. */
static const uint16_t advance[95] = {
	318,  401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
	636,  636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
	1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
	603,  787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
	500,  613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
	635,  635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
};
#define ADVANCE_OTHER 1000
#define ELLIPSIS      "\xe2\x80\xa6"

static unsigned advance_of(struct sv s, size_t n)
{
	unsigned char c = (unsigned char)s.p[0];
	if (n == 1 && c >= 0x20 && c < 0x7f)
		return advance[c - 0x20];
	return n == 1 ? 4 * 636 : ADVANCE_OTHER; /* a control byte is shown as \xNN */
}

double flame_text_px(struct sv text, double font_px)
{
	uint64_t sum = 0;
	while (text.n) {
		size_t n = utf8_len(text);
		sum += advance_of(text, n ? n : 1);
		text = sv_from_idx(text, n ? n : 1);
	}
	return (double)sum * font_px / 1000;
}

/* Returns how many bytes of @text fit. */
static size_t fitting(struct sv text, double avail_px, double font_px)
{
	double left = avail_px * 1000 / font_px;
	size_t at = 0;
	while (at < text.n) {
		struct sv rest = sv_from_idx(text, at);
		size_t n = utf8_len(rest);
		n = n ? n : 1;
		left -= advance_of(rest, n);
		if (left < 0)
			break;
		at += n;
	}
	return at;
}

void flame_label(struct buf *to, struct sv name, double avail_px, double font_px)
{
	CLEANUP(buf_release) struct buf form = {0};
	CLEANUP(buf_release) struct buf next = {0};
	if (avail_px < 1.8 * font_px || !name.n)
		return;
	for (unsigned step = 0; shortname_form(&next, name, step); step++) {
		buf_clear(&form);
		buf_add_sv(&form, buf_sv(&next));
		buf_clear(&next);
		if (fitting(buf_sv(&form), avail_px, font_px) == form.n) {
			buf_add_sv(to, buf_sv(&form));
			return;
		}
	}
	size_t n = fitting(buf_sv(&form), avail_px - font_px * ADVANCE_OTHER / 1000, font_px);
	if (!n)
		return;
	buf_add(to, form.p, n);
	buf_add_str(to, ELLIPSIS);
}
