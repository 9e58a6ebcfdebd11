/* Reports as text: answer, facts, losses, notes and hints; tables are in text_table.c. */
#include "base/base.h"
#include "render/text.h"

#include "base/mem.h"
#include "base/sv.h"
#include "base/text/escape.h"
#include "base/text/num.h"
#include "base/text/wrap.h"
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
		buf_addf(to, "; throttled %s", num_noun(l->nr[LOSS_THROTTLED], "times").s);
	buf_add_ch(to, '\n');
	add_causes(to, l, LOSS_CLASS_TRUNC, "truncated stacks: ", losses_truncated(l));
	add_causes(to, l, LOSS_CLASS_UNSYM,
		   "innermost frame unsymbolized: ", losses_unsymbolized(l));
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

#define MATTERS_PCT 1 /* truncated or unsymbolized: less is not worth a word on the first page */

static void add_part(struct buf *to, uint64_t n, uint64_t of, const char *what)
{
	buf_addf(to, "%s%s ", to->n ? ", " : "", what);
	add_share(to, n, of);
}

/* The most frequent cause of a class. */
static void add_main_cause(struct buf *to, const struct losses *l, enum loss_class class)
{
	enum loss_kind most = LOSS_NR;
	for (enum loss_kind k = 0; k < LOSS_NR; k++)
		if (loss_class(k) == class && l->nr[k] &&
		    (most == LOSS_NR || l->nr[k] > l->nr[most]))
			most = k;
	if (most < LOSS_NR)
		buf_addf(to, ": %s", loss_text(most));
}

/* Losses of samples. @ret_has_less: there are some that do not matter. */
static void add_parts(struct buf *to, const struct report *r, bool *ret_has_less)
{
	static const struct {
		enum loss_kind kind;
		const char *text;
	} kinds[] = {{LOSS_LOST, "lost"},
		     {LOSS_UNPARSED, "not parsed"},
		     {LOSS_DISK, "not written (disk full)"},
		     {LOSS_DAMAGED, "in damaged or missing parts of the recording"},
		     {LOSS_FILTERED, "excluded by a filter"}};
	const uint64_t *nr = r->losses.nr;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (nr[kinds[i].kind])
			add_part(to, nr[kinds[i].kind], nr[LOSS_SEEN], kinds[i].text);
	if (nr[LOSS_THROTTLED])
		buf_addf(to, "%sthrottled %s", to->n ? ", " : "",
			 num_noun(nr[LOSS_THROTTLED], "times").s);
	const uint64_t sums[] = {losses_truncated(&r->losses), losses_unsymbolized(&r->losses)};
	static const char *const texts[] = {"truncated stacks", "innermost frame unsymbolized"};
	static const enum loss_class classes[] = {LOSS_CLASS_TRUNC, LOSS_CLASS_UNSYM};
	uint64_t all = MAX(nr[LOSS_WRITTEN], (uint64_t)1);
	for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
		if (100.0 * (double)sums[i] / (double)all < MATTERS_PCT) {
			*ret_has_less |= sums[i] != 0;
			continue;
		}
		add_part(to, sums[i], nr[LOSS_WRITTEN], texts[i]);
		if (r->nr_samples != nr[LOSS_WRITTEN]) /* a share of other rows than are shown */
			buf_addf(to, " of all %s", num_noun(nr[LOSS_WRITTEN], "events").s);
		add_main_cause(to, &r->losses, classes[i]);
	}
	const struct report_frames *f = &r->frames;
	if (f->unnamed > 0 && 100 * f->unnamed / f->all >= MATTERS_PCT) {
		CLEANUP(arena_release) struct arena a = {0};
		buf_addf(to, "%s%s", to->n ? ", " : "", report_unnamed(&a, r));
	} else {
		*ret_has_less |= f->unnamed > 0;
	}
}

bool text_add_loss_summary(struct buf *to, const struct report *r)
{
	CLEANUP(buf_release) struct buf parts = {0};
	CLEANUP(buf_release) struct buf other = {0};
	bool has_less = false;
	losses_add_other(&other, &r->losses);
	if (!r->has_no_samples) {
		add_parts(&parts, r, &has_less);
		buf_addf(to, "%s%s: %s", r->noun ? r->noun : "samples",
			 r->is_estimated ? " (estimated from samples)" : "",
			 num_count(r->nr_samples).s);
		if (parts.n)
			buf_addf(to, "; %s", buf_str(&parts));
		else if (!losses_has_samples(&r->losses))
			buf_add_str(to,
				    r->nr_samples ? "; losses: not recorded by this input" : "");
		else if (!other.n)
			buf_addf(
				to, "; no losses%s%s", r->is_incomplete ? " in what was read" : "",
				has_less
					? "; truncated or unsymbolized: below 1 % of events and of frames"
					: "");
	}
	if (other.n)
		buf_addf(to, "%s%s", to->n ? "; " : "", buf_str(&other));
	return parts.n || other.n;
}

/* ---- the report ------------------------------------------------------------------------ */

#define FACTS_WIDTH 100
#define ANSWERS_MAX 3
#define HEAD_MAX    16 /* lines above the tables of a page: further notes are left out */
#define PAGE_HINTS  3  /* lines of commands; one that has no room is left out */

static void add_line(struct buf *to, struct sv text, size_t indent, const struct text_style *style)
{
	wrap_add(to, text, 0, indent, style->width);
	buf_add_ch(to, '\n');
}

static bool is_in_title(const char *key)
{
	enum fact_id id = fact_from_key(key);
	return id == FACT_TARGET || id == FACT_COMMAND || id == FACT_DURATION;
}

/* "CPU time: redis-server, 4.00 s of recording": of what, and how long. */
static void add_title(struct buf *to, const struct report *r, const struct text_style *style)
{
	static const enum fact_id of[] = {FACT_TARGET, FACT_COMMAND, FACT_DURATION};
	CLEANUP(buf_release) struct buf title = {0};
	buf_add_str(&title, r->title);
	bool has_name = false;
	const char *sep = ": ";
	for (size_t i = 0; i < ARRAY_LEN(of) && !style->has_details; i++) {
		const char *value = report_get_fact(r, of[i]);
		if (!value || (of[i] == FACT_COMMAND && has_name))
			continue;
		buf_addf(&title, "%s%s%s", sep, value,
			 of[i] == FACT_DURATION ? " of recording" : "");
		has_name = true;
		sep = ", ";
	}
	text_add_heading(to, style, buf_str(&title));
}

static bool is_further(const struct report *r, const char *key)
{
	enum fact_id id = fact_from_key(key);
	vec_foreach(f, &r->further_facts)
		if (*f == id)
			return true;
	return false;
}

/* "event: cpu-clock; host: vm; ..." wrapped at the width; a long fact has lines of its own. */
static void add_facts(struct buf *to, const struct report *r, const struct text_style *style)
{
	size_t width = style->width ? MIN(style->width, (unsigned)FACTS_WIDTH) : FACTS_WIDTH;
	size_t used = 0;
	vec_foreach(f, &r->facts) {
		CLEANUP(buf_release) struct buf fact = {0};
		const char *key = intern_str(&r->names, f->key);
		const char *value = intern_str(&r->names, f->value);
		if (!style->has_details &&
		    (is_in_title(key) || fact_is_second(key, value) || is_further(r, key)))
			continue;
		struct num_text scratch;
		key = fact_shown(key, value, &scratch, &value);
		escape_term(&fact, sv_from_str(key));
		buf_add_str(&fact, ": ");
		escape_term(&fact, sv_from_str(value));
		size_t n = utf8_columns(buf_sv(&fact));
		if (used && used + 2 + n > width) {
			buf_add_ch(to, '\n');
			used = 0;
		}
		if (used)
			buf_add_str(to, "; ");
		used += n + (used ? 2 : 0);
		wrap_add(to, buf_sv(&fact), used - n, 2, style->width);
	}
	if (used)
		buf_add_ch(to, '\n');
}

static bool has_text(const char *const *list, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == text)
			return true;
	return false;
}

/* "2 more findings: assay diagnose FILE", or with --details if there is no file. */
static void add_further(struct buf *to, const struct report *r, size_t nr,
			const struct text_style *style)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf words = {0};
	struct report_hint hint = {HINT_DIAGNOSE, NULL, {{0}}};
	vec_foreach(h, &r->hints)
		hint.input = hint.input ?: h->input;
	bool has_command = hint.input && style->add_hint && style->add_hint(&words, &hint);
	buf_addf(&text, "%s: ", num_noun(nr, "more findings").s);
	escape_term(&text, has_command ? buf_sv(&words) : SV("with --details"));
	add_line(to, buf_sv(&text), 2, style);
}

/* The sentences that answer the question. */
static void add_answer(struct buf *to, const struct report *r, const struct text_style *style)
{
	size_t nr_left_out = 0;
	for (size_t i = 0; i < r->findings.n; i++) {
		CLEANUP(buf_release) struct buf text = {0};
		CLEANUP(buf_release) struct buf lines = {0};
		if (i >= ANSWERS_MAX && !style->has_details) {
			nr_left_out++;
			continue;
		}
		escape_term(&text, sv_from_str(r->findings.p[i]));
		wrap_add(&lines, buf_sv(&text), 0, 2, style->width);
		text_add_colored(to, style, TEXT_ANSWER, buf_str(&lines));
		buf_add_ch(to, '\n');
	}
	if (nr_left_out)
		add_further(to, r, nr_left_out, style);
}

static size_t nr_lines(const struct buf *text)
{
	size_t n = 0;
	for (size_t i = 0; i < text->n; i++)
		n += text->p[i] == '\n';
	return n;
}

/* Notes that are no answers. Returns how many of them it left out. */
static size_t add_notes(struct buf *to, const struct report *r, const struct text_style *style)
{
	size_t nr_left_out = 0;
	bool is_first = true;
	vec_foreach(n, &r->notes) {
		CLEANUP(buf_release) struct buf text = {0};
		CLEANUP(buf_release) struct buf lines = {0};
		if (has_text(r->findings.p, r->findings.n, *n))
			continue;
		buf_add_str(&text, "note: ");
		escape_term(&text, sv_from_str(*n));
		add_line(&lines, buf_sv(&text), 2, style);
		/* the first one limits what the answers say */
		bool has_room = !style->max_lines || is_first ||
				nr_lines(to) + nr_lines(&lines) <= HEAD_MAX;
		if ((has_text(r->details.p, r->details.n, *n) && !style->has_details) ||
		    !has_room) {
			nr_left_out++;
			continue;
		}
		buf_add_sv(to, buf_sv(&lines));
		is_first = false;
	}
	return nr_left_out;
}

static void add_losses_of(struct buf *to, const struct report *r, const struct text_style *style)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf lines = {0};
	if (style->has_details) {
		text_add_losses(&text, r);
		for (struct sv rest = buf_sv(&text); rest.n;)
			add_line(to, sv_split(&rest, '\n'), 2, style);
		return;
	}
	bool matters = text_add_loss_summary(&text, r);
	if (!text.n)
		return;
	wrap_add(&lines, buf_sv(&text), 0, 2, style->width);
	if (matters)
		text_add_colored(to, style, TEXT_LOSS, buf_str(&lines));
	else
		buf_add_sv(to, buf_sv(&lines));
	buf_add_ch(to, '\n');
}

/* The next word; spaces within quotes belong to it. */
static struct sv split_word(struct sv *s)
{
	bool is_quoted = false;
	size_t n = 0;
	for (; n < s->n && (is_quoted || s->p[n] != ' '); n++)
		is_quoted ^= s->p[n] == '\'';
	struct sv word = {s->p, n};
	*s = sv_from_idx(*s, MIN(n + 1, s->n));
	return word;
}

/* A long command is continued with a backslash; one with a word that is too long is left out. */
static bool add_command(struct buf *to, struct sv words, const char *indent, size_t width)
{
	CLEANUP(buf_release) struct buf lines = {0};
	buf_add_str(&lines, indent);
	size_t at = strlen(indent);
	for (bool is_first = true; words.n; is_first = false) {
		struct sv word = split_word(&words);
		size_t n = utf8_columns(word);
		bool is_last = !words.n;
		if (width && strlen(indent) + 4 + n + (is_last ? 0 : 2) > width)
			return false;
		if (!is_first && width && at + 1 + n + (is_last ? 0 : 2) > width) {
			buf_addf(&lines, " \\\n%s    ", indent);
			at = strlen(indent) + 4;
		} else if (!is_first) {
			buf_add_ch(&lines, ' ');
			at++;
		}
		buf_add_sv(&lines, word);
		at += n;
	}
	buf_addf(to, "%s\n", buf_str(&lines));
	return true;
}

void text_add_hints(struct buf *to, const struct report *r, const struct text_style *style,
		    const char *indent)
{
	size_t nr = 0;
	if (!style->add_hint)
		return;
	vec_foreach(h, &r->hints) {
		CLEANUP(buf_release) struct buf words = {0};
		CLEANUP(buf_release) struct buf plain = {0};
		if (!style->add_hint(&words, h))
			continue;
		escape_term(&plain, buf_sv(&words));
		CLEANUP(buf_release) struct buf lines = {0};
		(void)add_command(&lines, buf_sv(&plain), indent, style->width); /* or left out */
		if (style->max_lines && nr + nr_lines(&lines) > PAGE_HINTS)
			continue;
		nr += nr_lines(&lines);
		buf_add_sv(to, buf_sv(&lines));
	}
}

/* A title without its explanation in parentheses. */
static struct sv short_title(const char *title)
{
	const char *paren = strstr(title, " (");
	return paren && paren[strlen(paren) - 1] == ')' ? sv_from(title, (size_t)(paren - title))
							: sv_from_str(title);
}

static void add_title_once(struct buf *to, const char *title)
{
	struct sv s = short_title(title);
	if (to->n && memmem(to->p, to->n, s.p, s.n))
		return;
	buf_add_str(to, to->n ? ", " : "");
	buf_add_sv(to, s);
}

/* "with --details: 2 more notes, all rows of functions, fsync calls, block requests" */
static void add_left_out(struct buf *to, const struct report *r, const struct pageplan *plan,
			 size_t nr_notes, const struct text_style *style)
{
	CLEANUP(buf_release) struct buf titles = {0};
	size_t nr_cut = 0;
	for (size_t i = 0; i < r->tables.n; i++) {
		const struct report_table *t = &r->tables.p[i];
		const struct plan_table *shown = &plan->tables[i];
		if (!shown->is_shown && t->nr_rows)
			add_title_once(&titles, t->title);
		nr_cut += shown->is_shown && shown->nr_rows < t->nr_rows;
	}
	for (size_t i = 0; i < r->trees.n && style->max_lines; i++)
		if (r->trees.p[i].is_detail)
			add_title_once(&titles, r->trees.p[i].title);
	CLEANUP(buf_release) struct buf text = {0};
	if (nr_notes)
		buf_addf(&text, ", %s", num_noun(nr_notes, "more notes").s);
	if (nr_cut)
		buf_add_str(&text, ", more rows");
	if (titles.n)
		buf_addf(&text, ", %s", buf_str(&titles));
	if (!text.n)
		return;
	CLEANUP(buf_release) struct buf plain = {0};
	buf_add_str(&plain, "with --details: ");
	escape_term(&plain, sv_from_idx(buf_sv(&text), 2));
	buf_add_ch(to, '\n');
	add_line(to, buf_sv(&plain), 2, style);
}

static void add_body(struct buf *to, const struct report *r, const struct text_style *style,
		     size_t room, size_t nr_notes)
{
	CLEANUP(pageplan_release) struct pageplan plan;
	pageplan_make(&plan, r, room, style->max_rows ? style->max_rows : PLAN_UNLIMITED);
	text_add_tables(to, r, &plan, style);
	vec_foreach(t, &r->trees)
		if (!style->max_lines || !t->is_detail)
			text_add_tree(to, r, t, style);
	add_left_out(to, r, &plan, nr_notes, style);
	CLEANUP(buf_release) struct buf hints = {0};
	text_add_hints(&hints, r, style, "  ");
	if (hints.n)
		buf_addf(to, "\nnext:\n%s", buf_str(&hints));
}

void text_render(struct buf *to, const struct report *r, const struct text_style *style)
{
	CLEANUP(buf_release) struct buf head = {0};
	add_title(&head, r, style);
	add_answer(&head, r, style);
	add_facts(&head, r, style);
	add_losses_of(&head, r, style);
	size_t nr_notes = add_notes(&head, r, style);
	buf_add_sv(to, buf_sv(&head));
	if (!style->max_lines) {
		add_body(to, r, style, PLAN_UNLIMITED, nr_notes);
		return;
	}
	/* How many lines the rest takes depends on what is left out: tried until the page fits. */
	size_t used = nr_lines(&head);
	size_t room = style->max_lines > used ? style->max_lines - used : 0;
	for (size_t for_tables = room;; for_tables -= MIN(for_tables, (size_t)1)) {
		CLEANUP(buf_release) struct buf body = {0};
		add_body(&body, r, style, for_tables, nr_notes);
		if (nr_lines(&body) > room && for_tables)
			continue;
		buf_add_sv(to, buf_sv(&body));
		return;
	}
}
