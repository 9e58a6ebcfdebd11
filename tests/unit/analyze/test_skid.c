/* analyze/skid: the note on kernel functions that enable interrupts. */
#include "base/base.h"
#include "tap.h"

#include "analyze/stacks/skid.h"
#include "made.h"

/* Returns the only note, or "". @r owns it. */
static const char *note_of(struct report *r, const char *event, int64_t nr_enabler,
			   const char *enabler)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	uint32_t t = made_table(p, event, 2);
	made_sample(p, t, &(struct made){.stack = "main;work", .nr = 100 - nr_enabler});
	made_sample(p, t, &(struct made){.stack = enabler, .nr = nr_enabler});
	profile_seal(p);
	struct selection sel;
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &sel, NULL));
	skid_note(r, &sel);
	return r->notes.n ? r->notes.p[r->notes.n - 1] : "";
}

TEST(functions_that_enable_interrupts_are_named_if_a_timer_samples)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	const char *text = note_of(r, "cpu-clock", 12, "main;finish_task_switch.isra.0 [k]");
	CHECK(strstr(text, "12.0 % of the time"));
	CHECK(strstr(text, "(finish_task_switch 12.0 %)"));
}

TEST(no_note_where_interrupts_do_not_move_samples)
{
	static const struct {
		const char *event;
		int64_t nr;
		const char *stack;
	} cases[] = {{"cpu-clock", 4, "main;finish_task_switch [k]"}, /* few */
		     {"cycles", 50, "main;finish_task_switch [k]"},   /* a hardware counter */
		     {"cpu-clock", 50, "main;finish_task_switch"}, /* the program's own function */
		     {"cpu-clock", 50,
		      "main;finish_task_switch [k];vfs_read [k]"}}; /* not the leaf */
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP(report_free_p) struct report *r = report_new();
		CHECK_STR(note_of(r, cases[i].event, cases[i].nr, cases[i].stack), "");
	}
}
