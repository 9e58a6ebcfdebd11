/* Writer of `perf script` text; see perfscript.h. */
#include "base/base.h"
#include "format/perf/perfscript.h"

#include <stdlib.h>

#include "base/vec.h"
#include "format/format.h"
#include "model/eventunit.h"

/* A table and its next row to write. */
struct script_cursor {
	uint32_t table;
	size_t at;
};

struct script_writer {
	const struct profile *p;
	VEC(uint32_t) by_module; /* mappings, ordered by (module, pid, pgoff) */
	VEC(struct script_cursor) cursors;
};

static void writer_release(struct script_writer *w)
{
	vec_release(&w->by_module);
	vec_release(&w->cursors);
}

/* Appends a name without characters that would break the line. */
static void add_plain(struct buf *to, struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] >= ' ' && s.p[i] != 0x7f)
			buf_add_ch(to, s.p[i]);
}

static int by_place(const void *a, const void *b, void *profile)
{
	const struct profile *p = profile;
	const struct mapping *x = &p->mappings.p[*(const uint32_t *)a];
	const struct mapping *y = &p->mappings.p[*(const uint32_t *)b];
	return COMPARE(x->module, y->module)
		       ?: COMPARE(x->pid, y->pid)
		       ?: COMPARE(x->pgoff, y->pgoff)
		       ?: COMPARE(x, y);
}

/* The address of a location in the process, or its file offset if the mapping is not known. */
static uint64_t address_of(const struct script_writer *w, const struct location *l, int32_t pid)
{
	const struct profile *p = w->p;
	size_t low = 0;
	size_t high = w->by_module.n;
	while (low < high) { /* the first mapping after (module, pid, offset) */
		size_t mid = low + (high - low) / 2;
		const struct mapping *m = &p->mappings.p[w->by_module.p[mid]];
		bool is_before = m->module != l->module ? m->module < l->module
				 : m->pid != pid        ? m->pid < pid
							: m->pgoff <= l->offset;
		if (is_before)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return l->offset;
	const struct mapping *m = &p->mappings.p[w->by_module.p[low - 1]];
	if (m->module != l->module || m->pid != pid || l->offset < m->pgoff ||
	    l->offset - m->pgoff >= m->len)
		return l->offset;
	return m->start + (l->offset - m->pgoff);
}

static struct sv dso_of(const struct profile *p, module_id id)
{
	const struct module *m = &p->modules.p[id];
	switch (m->kind) {
	case MODULE_KERNEL:
		return SV("[kernel.kallsyms]");
	case MODULE_VDSO:
		return SV("[vdso]");
	case MODULE_NONE:
	case MODULE_UNKNOWN:
	case MODULE_PSEUDO:
		return SV("[unknown]");
	case MODULE_JIT:
	case MODULE_ELF:
	case MODULE_KMODULE:
	case MODULE_NAMED:
		break;
	}
	struct sv path = profile_sv(p, m->path);
	return path.n ? path : SV("[unknown]");
}

static void add_ip(struct buf *to, uint64_t ip)
{
	char hex[17];
	int n = snprintf(hex, sizeof(hex), "%" PRIx64, ip);
	buf_add_ch(to, '\t');
	buf_add_repeat(to, ' ', (size_t)(16 - n));
	buf_add(to, hex, (size_t)n);
	buf_add_ch(to, ' ');
}

static void add_frames(struct script_writer *w, struct buf *to, loc_id loc, int32_t pid)
{
	const struct profile *p = w->p;
	const struct location *l = &p->locations.p[loc];
	enum module_kind kind = p->modules.p[l->module].kind;
	bool has_address = (kind != MODULE_NAMED && kind != MODULE_PSEUDO) || !l->nr_frames;
	uint64_t ip = !has_address ? 0 : kind == MODULE_ELF ? address_of(w, l, pid) : l->offset;
	for (size_t i = 0; i < l->nr_frames; i++) {
		const struct frame *f = &p->frames.p[l->first_frame + i];
		add_ip(to, ip);
		add_plain(to, sv_from_str(profile_frame_name(p, f)));
		if (f->is_inferred || (f->is_inlined && i + 1 < l->nr_frames)) {
			buf_add_str(to, f->is_inferred ? " (tail-call)\n" : " (inlined)\n");
			continue;
		}
		buf_add_str(to, " (");
		add_plain(to, dso_of(p, l->module));
		buf_add_str(to, ")\n");
	}
	if (l->nr_frames)
		return;
	add_ip(to, ip);
	buf_add_str(to, "[unknown] (");
	add_plain(to, dso_of(p, l->module));
	buf_add_str(to, ")\n");
}

/* Makes a name that readers accept as an event's: a letter first, no blanks. */
static void add_event_name(struct buf *to, struct sv name)
{
	bool is_first = true;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i] == ' ' ? '_' : name.p[i];
		char lower = c | 0x20;
		if ((unsigned char)c < ' ')
			continue;
		if (is_first && (lower < 'a' || lower > 'z') && c != '_' && c != '{')
			buf_add_ch(to, '_');
		buf_add_ch(to, c);
		is_first = false;
	}
	if (is_first)
		buf_add_str(to, "samples");
}

/* For tables of named events: the arguments of an event, and its result. */
static void add_arguments(struct buf *to, const struct profile *p, const struct table *t, size_t i)
{
	if (t->id != TABLE_EVENTS)
		return;
	const struct tag *tag = &p->tags.p[t->tag[i]];
	struct sv outcome = profile_sv(p, tag->detail);
	add_plain(to, profile_sv(p, tag->object));
	if (!outcome.n)
		return;
	buf_add_str(to, tag->object ? " [" : "[");
	add_plain(to, outcome);
	buf_add_ch(to, ']');
}

/*
 * Makes a thread's name that readers do not take for something else: a comment ("# "), or the end of
 * a time or an event (":" and a blank; ": PERF_RECORD_").
 */
static void add_comm(struct buf *to, struct sv comm)
{
	size_t start = to->n;
	add_plain(to, comm);
	if (to->n == start)
		buf_add_ch(to, '?');
	if (to->p[start] == '#')
		to->p[start] = '_';
	for (size_t i = start; i < to->n; i++)
		if (to->p[i] == ':' && (i + 1 == to->n || to->p[i + 1] == ' '))
			to->p[i] = '_';
}

static void add_event_line(struct script_writer *w, struct buf *to, const struct table *t, size_t i)
{
	const struct profile *p = w->p;
	const struct task *task = &p->tasks.p[t->task[i]];
	add_comm(to, profile_sv(p, task->comm));
	if (task->pid >= 0)
		buf_addf(to, " %d/%d", task->pid, task->tid);
	else
		buf_addf(to, " %d", MAX(task->tid, 0));
	if (t->cpu[i] >= 0)
		buf_addf(to, " [%03d]", t->cpu[i]);
	buf_addf(to, " %" PRIu64 ".%09" PRIu64 ":", t->time_ns[i] / 1000000000,
		 t->time_ns[i] % 1000000000);
	const int64_t *values = &t->values[i * t->nr_columns];
	uint32_t column = t->has_tags ? t->weight_column : t->nr_columns > 1;
	buf_addf(to, " %10" PRId64 " ", MAX(values[column], 0));
	add_event_name(to, profile_sv(p, t->event));
	buf_add_str(to, eventunit_suffix(p, t, column));
	buf_add_str(to, ": ");
	add_arguments(to, p, t, i);
	buf_add_ch(to, '\n');
}

static void add_sample(struct script_writer *w, struct buf *to, const struct table *t, size_t i)
{
	const struct profile *p = w->p;
	add_event_line(w, to, t, i);
	for (stack_id s = t->stack[i]; s; s = p->stacks.p[s].parent)
		add_frames(w, to, p->stacks.p[s].loc, p->tasks.p[t->task[i]].pid);
	buf_add_ch(to, '\n');
}

/* The cursor with the earliest sample, the first of equals; NULL at the end. */
static struct script_cursor *earliest(struct script_writer *w)
{
	struct script_cursor *best = NULL;
	uint64_t best_ns = 0;
	vec_foreach(c, &w->cursors) {
		const struct table *t = &w->p->tables.p[c->table];
		if (c->at < t->n && (!best || t->time_ns[c->at] < best_ns)) {
			best = c;
			best_ns = t->time_ns[c->at];
		}
	}
	return best;
}

int perfscript_write(struct format_output *to, const struct profile *p,
		     const struct format_options *options, struct err *err)
{
	CLEANUP(writer_release) struct script_writer w = {.p = p};
	for (uint32_t i = 0; i < p->mappings.n; i++)
		vec_push(&w.by_module, i);
	if (w.by_module.n)
		qsort_r(w.by_module.p, w.by_module.n, sizeof(*w.by_module.p), by_place, (void *)p);
	const struct perfscript_options *o = &options->perfscript;
	const struct table *found = NULL;
	if (options->event)
		TRY(format_pick_table(p, options->event, &found, err));
	for (uint32_t i = 0; i < p->tables.n; i++)
		if (options->event
			    ? format_is_event(profile_sv(p, p->tables.p[i].event), options->event)
			    : o->has || !table_kind(p->tables.p[i].id)->is_on_request)
			vec_push(&w.cursors, (struct script_cursor){.table = i});
	struct script_cursor *c;
	while ((c = earliest(&w))) {
		size_t i = c->at++;
		if (o->has && !o->has(o->ctx, c->table, i))
			continue;
		add_sample(&w, &to->buf, &p->tables.p[c->table], i);
		TRY(format_spill(to, err));
	}
	return 0;
}
