/* Tables of events by name; see event_tables.h. */
#include "base/base.h"
#include "session/event_tables.h"

#include "base/buf.h"
#include "base/num.h"

static struct table shape_of(struct profile *p, const struct named_event *e, bool keeps_singles)
{
	struct table t = {.event = profile_cstr(p, e->name),
			  .time_kind = keeps_singles ? TABLE_TIME_INSTANT : TABLE_TIME_SLICE,
			  .nr_columns = 1,
			  .columns = {{.name = profile_cstr(p, "events"), .unit = UNIT_COUNT}},
			  .has_tags = true};
	if (!e->amount)
		return t;
	bool is_bytes = !strcmp(e->amount, "bytes");
	t.columns[1] = (struct column){.name = profile_cstr(p, e->amount),
				       .unit = is_bytes ? UNIT_BYTES : UNIT_COUNT};
	t.nr_columns = 2;
	return t;
}

void event_tables_add(struct profile *p, struct builder *b, const struct counts_spec *spec)
{
	for (uint32_t i = 0; i < spec->set->events.n; i++) {
		struct table t = shape_of(p, &spec->set->events.p[i], spec->keeps_singles);
		builder_set_table(b, spec->first_spec + i, profile_table(p, &t));
	}
}

static void add_share(struct buf *to, const char *name, const struct counts_total *t)
{
	buf_addf(to, "%s%s ", to->n ? ", " : "", name);
	num_add_pct(to, 100.0 * (double)t->nr_stacks / (double)t->nr);
	buf_add_str(to, " %");
}

void event_tables_facts(const struct counts *c, struct profile *p)
{
	const struct counts_spec *spec = counts_spec_of(c);
	CLEANUP(buf_release) struct buf shares = {0};
	CLEANUP(buf_release) struct buf machine = {0};
	CLEANUP(buf_release) struct buf nr = {0};
	uint64_t nr_no_room = 0;
	for (size_t i = 0; i < spec->set->events.n; i++) {
		const struct named_event *e = &spec->set->events.p[i];
		struct counts_total t = counts_total(c, i);
		bool is_machine = e->count.flags & COUNT_MACHINE;
		nr_no_room += t.nr_no_room;
		if (is_machine && t.nr)
			buf_addf(&machine, "%s%s", machine.n ? ", " : "", e->name);
		else if (!is_machine && t.nr_stacks < t.nr && !spec->has_no_stacks)
			add_share(&shares, e->name, &t);
	}
	if (shares.n)
		profile_fact(p, "events with stacks", buf_str(&shares));
	if (machine.n)
		profile_fact(p, "events of the whole machine", buf_str(&machine));
	if (nr_no_room) {
		num_add_count(&nr, nr_no_room);
		profile_fact(p, "events without room for a row", buf_str(&nr));
	}
	uint64_t end_ns = counts_singles_end_ns(c);
	if (end_ns) {
		buf_clear(&nr);
		num_add_ns(&nr, end_ns - MIN(end_ns, p->start_ns));
		profile_fact(p, "events kept singly for", buf_str(&nr));
	}
	uint64_t nr_missed = counts_nr_missed(c);
	if (!nr_missed)
		return;
	buf_clear(&nr);
	num_add_count(&nr, nr_missed);
	profile_fact(p, "events missed in interrupts, of all processes", buf_str(&nr));
}
