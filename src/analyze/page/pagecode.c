/* Assembly for the page; see pagecode.h. */
#include "base/base.h"
#include "analyze/page/pagecode.h"

#include "analyze/stacks/annotate.h"
#include "analyze/stacks/hotcode.h"
#include "base/hash.h"
#include "base/map.h"

#define LOOKED_AT   (3 * PAGECODE_FUNCTIONS) /* functions, of which some have no code */
#define INSNS_WHOLE 800                      /* of longer functions, what is near to samples */
#define NEAR_SAMPLE 12

struct maker {
	struct arena *a;
	const struct selection *sel;
	const struct code_access *code;
	struct page_code out;
	uint32_t nr_places;
};

/* By instruction, whether the page has it. */
static const uint8_t *choose(struct arena *a, const struct hot_function *f,
			     const struct code_function *text)
{
	uint8_t *is_in = arena_calloc(a, text->nr_insns, 1);
	if (text->nr_insns <= INSNS_WHOLE)
		return memset(is_in, 1, text->nr_insns);
	size_t at = 0;
	for (size_t i = 0; i < f->nr_places; i++) {
		while (at < text->nr_insns && text->insns[at].offset < f->places[i].offset)
			at++;
		size_t end = MIN(at + NEAR_SAMPLE + 1, text->nr_insns);
		for (size_t k = at > NEAR_SAMPLE ? at - NEAR_SAMPLE : 0; k < end; k++)
			is_in[k] = 1;
	}
	return is_in;
}

static const char *source_of(struct maker *m, loc_id id)
{
	const struct profile *p = m->sel->p;
	const struct location *loc = &p->locations.p[id];
	const struct frame *f = loc->nr_frames ? &p->frames.p[loc->first_frame] : NULL;
	if (!f || !f->file || !f->line || !m->code->line)
		return "";
	return m->code->line(m->code->ctx, m->a, profile_text(p, f->file), f->line) ?: "";
}

static void add_insns(struct maker *m, struct page_function *to, const struct hot_function *f,
		      const struct code_function *text)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	const uint8_t *is_in = choose(&scratch, f, text);
	size_t at = 0;
	to->insns = arena_calloc(m->a, text->nr_insns, sizeof(*to->insns));
	for (size_t i = 0; i < text->nr_insns; i++) {
		const struct code_insn *insn = &text->insns[i];
		if (!is_in[i]) {
			to->nr_after++;
			continue;
		}
		while (at < f->nr_places && f->places[at].offset < insn->offset)
			at++;
		struct page_insn out = {.vaddr = insn->vaddr,
					.text = insn->text,
					.line = "",
					.source = "",
					.nr_before = to->nr_after};
		if (at < f->nr_places && f->places[at].offset == insn->offset) {
			loc_id loc = f->places[at].loc;
			out.place = ++m->nr_places;
			out.line = annotate_line(m->a, m->sel->p, loc);
			out.source = source_of(m, loc);
			m->out.place_of[loc] = out.place;
		}
		to->nr_after = 0;
		to->insns[to->nr_insns++] = out;
	}
}

/* Other locations of the same instructions: those with inferred callers. */
static void number_twins(struct maker *m)
{
	const struct profile *p = m->sel->p;
	CLEANUP(map_release) struct map places = {0};
	for (loc_id l = 1; l < p->locations.n; l++)
		if (m->out.place_of[l])
			*map_put(&places,
				 hash_mix(p->locations.p[l].module, p->locations.p[l].offset),
				 NULL) = m->out.place_of[l];
	for (loc_id l = 1; l < p->locations.n; l++) {
		const struct location *loc = &p->locations.p[l];
		const uint32_t *place =
			m->out.place_of[l] || !hotcode_is_insn(p, loc)
				? NULL
				: map_get(&places, hash_mix(loc->module, loc->offset));
		if (place)
			m->out.place_of[l] = *place;
	}
}

struct page_code pagecode_make(struct arena *a, const struct selection *sel,
			       const struct code_access *code)
{
	CLEANUP(arena_release) struct arena scratch = {0};
	const struct profile *p = sel->p;
	struct maker m = {.a = a, .sel = sel, .code = code};
	struct hot_function *f;
	if (!code || !code->read)
		return m.out;
	size_t n = MIN(hotcode_find(&scratch, sel, &f), (size_t)LOOKED_AT);
	const struct code_function *text = hotcode_read(&scratch, p, code, f, n);
	size_t nr_with_code = 0;
	m.out.functions = arena_calloc(a, n, sizeof(*m.out.functions));
	m.out.place_of = arena_calloc(a, p->locations.n, sizeof(*m.out.place_of));
	for (size_t i = 0; i < n && nr_with_code < PAGECODE_FUNCTIONS; i++) {
		struct page_function *to = &m.out.functions[m.out.n++];
		*to = (struct page_function){
			.name = arena_strdup(a, profile_text(p, p->functions.p[f[i].func].name)),
			.module = arena_strdup(a, profile_module_name(p, f[i].module)),
			.missing = text[i].missing ? arena_strdup(a, text[i].missing) : NULL};
		if (text[i].missing)
			continue;
		nr_with_code++;
		for (size_t k = 0; k < text[i].nr_insns; k++)
			text[i].insns[k].text = arena_strdup(a, text[i].insns[k].text);
		add_insns(&m, to, &f[i], &text[i]);
	}
	number_twins(&m);
	m.out.has_places = m.nr_places > 0;
	return m.out;
}
