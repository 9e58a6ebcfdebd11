/* Reports as text: facts, losses, notes and hints; tables and trees are in text_table.c. */
#include "base/base.h"
#include "render/text.h"

#include "base/text/escape.h"
#include "base/text/num.h"
#include "base/sv.h"
#include "render/text_table.h"

/* ---- losses ---------------------------------------------------------------------------- */

static void add_share(struct buf *to, uint64_t n, uint64_t of)
{
	num_add_count(to, n);
	if (!of || n > of) /* files whose loss counters count another unit than their rows */
		return;
	buf_addf(to, " (%s %%)", num_pct(100.0 * (double)n / (double)of).s);
}

static void add_causes(struct buf *to, const struct losses *l, enum loss_class class,
		       const char *what, uint64_t sum)
{
	if (!sum)
		return;
	buf_add_str(to, what);
	add_share(to, sum, l->nr[LOSS_WRITTEN]);
	const char *sep = ": ";
	for (enum loss_kind k = 0; k < LOSS_NR; k++) {
		if (loss_class(k) != class || !l->nr[k])
			continue;
		buf_addf(to, "%s%s %s", sep, loss_text(k), num_count(l->nr[k]).s);
		sep = ", ";
	}
	buf_add_ch(to, '\n');
}

static void add_samples(struct buf *to, const struct report *r)
{
	const struct losses *l = &r->losses;
	uint64_t nr_samples = r->nr_samples;
	buf_addf(to, "%s%s: ", r->noun ? r->noun : "samples",
		 r->is_estimated ? " (estimated from samples)" : "");
	if (!losses_has_samples(l)) {
		buf_addf(to, "%s%s\n", num_count(nr_samples).s,
			 nr_samples ? "; losses: not recorded by this input" : "");
		return;
	}
	if (nr_samples && nr_samples != l->nr[LOSS_WRITTEN]) /* a filter, or one table of several */
		buf_addf(to, "%s shown; all events: ", num_count(nr_samples).s);
	if (r->is_estimated) /* nobody saw so many */
		buf_addf(to, "%s, ", num_count(l->nr[LOSS_WRITTEN]).s);
	else
		buf_addf(to, "%s seen, %s written, ", num_count(l->nr[LOSS_SEEN]).s,
			 num_count(l->nr[LOSS_WRITTEN]).s);
	add_share(to, l->nr[LOSS_LOST], l->nr[LOSS_LOST] ? l->nr[LOSS_SEEN] : 0);
	buf_add_str(to, " lost");
	static const struct {
		enum loss_kind kind;
		const char *text;
	} rest[] = {{LOSS_UNPARSED, "not parsed"},
		    {LOSS_FILTERED, "excluded by a filter"},
		    {LOSS_DISK, "not written (disk full)"}};
	for (size_t i = 0; i < ARRAY_LEN(rest); i++) {
		uint64_t nr = l->nr[rest[i].kind];
		if (nr)
			buf_addf(to, ", %s %s", num_count(nr).s, rest[i].text);
	}
	if (l->nr[LOSS_THROTTLED])
		buf_addf(to, "; throttled %" PRIu64 " times", l->nr[LOSS_THROTTLED]);
	buf_add_ch(to, '\n');
	add_causes(to, l, LOSS_CLASS_TRUNC, "truncated stacks: ", losses_truncated(l));
	add_causes(to, l, LOSS_CLASS_UNSYM, "unsymbolized leaf: ", losses_unsymbolized(l));
}

static void add_unnamed(struct buf *to, const struct report *r)
{
	CLEANUP(arena_release) struct arena a = {0};
	const char *unnamed = report_unnamed(&a, r);
	if (unnamed)
		buf_addf(to, "%s\n", unnamed);
}

void text_add_losses(struct buf *to, const struct report *r)
{
	CLEANUP(buf_release) struct buf beside = {0};
	if (!r->has_no_samples)
		add_samples(to, r);
	if (!r->has_no_samples)
		add_unnamed(to, r);
	losses_add_other(&beside, &r->losses);
	if (beside.n)
		buf_addf(to, "%s\n", buf_str(&beside));
}

/* ---- the report ------------------------------------------------------------------------ */

#define FACTS_WIDTH 100

/* "event: cpu-clock; host: vm; ..." wrapped at the width; a long fact has a line of its own. */
static void add_facts(struct buf *to, const struct report *r, const struct text_style *style)
{
	size_t width = style->width ? MIN(style->width, FACTS_WIDTH) : FACTS_WIDTH;
	size_t used = 0;
	vec_foreach(f, &r->facts) {
		CLEANUP(buf_release) struct buf fact = {0};
		if (!style->has_details &&
		    fact_is_detail(intern_str(&r->names, f->key), intern_str(&r->names, f->value)))
			continue;
		escape_term(&fact, intern_get(&r->names, f->key));
		buf_add_str(&fact, ": ");
		escape_term(&fact, intern_get(&r->names, f->value));
		size_t n = text_columns(buf_sv(&fact));
		if (used && used + 2 + n > width) {
			buf_add_ch(to, '\n');
			used = 0;
		}
		if (used)
			buf_add_str(to, "; ");
		used += n + (used ? 2 : 0);
		buf_add_sv(to, buf_sv(&fact));
	}
	if (used)
		buf_add_ch(to, '\n');
}

void text_add_hints(struct buf *to, const struct report *r, const struct text_style *style,
		    const char *indent)
{
	if (style->is_brief || !style->add_hint)
		return;
	vec_foreach(h, &r->hints) {
		CLEANUP(buf_release) struct buf words = {0};
		if (!style->add_hint(&words, h))
			continue;
		buf_add_str(to, indent);
		escape_term(to, buf_sv(&words));
		buf_add_ch(to, '\n');
	}
}

void text_render(struct buf *to, const struct report *r, const struct text_style *style)
{
	text_add_heading(to, style, r->title);
	if (!style->is_brief)
		add_facts(to, r, style);
	text_add_losses(to, r);
	vec_foreach(n, &r->notes) {
		buf_add_str(to, "note: ");
		escape_term(to, sv_from_str(*n));
		buf_add_ch(to, '\n');
	}
	vec_foreach(t, &r->tables)
		text_add_table(to, t, style);
	vec_foreach(t, &r->trees)
		text_add_tree(to, r, t, style);
	CLEANUP(buf_release) struct buf hints = {0};
	text_add_hints(&hints, r, style, "  ");
	if (hints.n)
		buf_addf(to, "\nnext:\n%s", buf_str(&hints));
}
