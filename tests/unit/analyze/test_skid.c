/* analyze/skid: the notes on kernel functions whose time is not the program's. */
#include "base/base.h"
#include "tap.h"

#include "analyze/stacks/skid.h"
#include "made.h"

/* Returns the only note, or "". @r owns it. */
static const char *note_of(struct report *r, const char *event, int64_t nr_enabler,
			   const char *enabler,
			   void (*note)(struct report *, const struct selection *))
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(arena_release) struct arena a = {0};
	uint32_t t = made_table(p, event, 2);
	made_sample(p, t, &(struct made){.stack = "main;work", .nr = 100 - nr_enabler});
	made_sample(p, t, &(struct made){.stack = enabler, .nr = nr_enabler});
	profile_seal(p);
	struct selection sel;
	CHECK(!select_run(&a, p, &(struct select_spec){0}, &sel, NULL));
	note(r, &sel);
	return r->notes.n ? r->notes.p[r->notes.n - 1] : "";
}

TEST(functions_that_enable_interrupts_are_named_if_a_timer_samples)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	const char *text =
		note_of(r, "cpu-clock", 12, "main;finish_task_switch.isra.0 [k]", skid_note);
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
		CHECK_STR(note_of(r, cases[i].event, cases[i].nr, cases[i].stack, skid_note), "");
	}
}

TEST(the_cost_of_measuring_has_a_sentence_with_its_share)
{
	CLEANUP(report_free_p) struct report *r = report_new();
	const char *fault = "main;exc_page_fault [k];__perf_sw_event [k];perf_swevent_event [k]";
	const char *text = note_of(r, "cpu-clock", 73, fault, skid_note_cost);
	CHECK(strstr(text,
		     "cost of measuring: 73.0 % of the CPU time, in perf_swevent_event 73.0 %;"));
	CHECK_U64(r->findings.n, 1);
	CLEANUP(report_free_p) struct report *full = report_new();
	for (int i = 0; i < 4; i++) {
		report_finding(full, "%d", i);
		report_rank(full, 90 - i);
	}
	(void)note_of(full, "cpu-clock", 73, fault, skid_note_cost);
	CHECK(full->findings.n == 5 && strstr(full->findings.p[1], "cost of measuring"));
	CHECK(!strcmp(full->findings.p[2], "1") && !strcmp(full->findings.p[4], "3"));
	CLEANUP(report_free_p) struct report *few = report_new();
	text = note_of(few, "cycles", 3, "main;perf_syscall_exit [k];memcpy [k]", skid_note_cost);
	CHECK(strstr(text, "3.00 % of the CPU time is the cost of measuring"));
	CHECK(strstr(text, ": memcpy 3.00 %"));
	CHECK_U64(few->findings.n, 0);
}

TEST(no_cost_of_measuring_where_the_kernel_works_for_the_program)
{
	static const char *const stacks[] = {
		"main;do_syscall_64 [k];perf_event_mmap [k]", /* called without any event, too */
		"main;perf_swevent_event",                    /* the program's own function */
		"main;vfs_read [k];__do_sys_perf_event_open [k];perf_event_alloc [k]",
		"main;__seccomp_filter [k];bpf_prog_1234 [k]", /* not of tracing */
		"main;perf_syscall_exit [k];asm_sysvec_apic_timer_interrupt [k];rcu_core [k]",
	};
	for (size_t i = 0; i < ARRAY_LEN(stacks); i++) {
		CLEANUP(report_free_p) struct report *r = report_new();
		CHECK_STR(note_of(r, "cpu-clock", 50, stacks[i], skid_note_cost), "");
	}
	CLEANUP(report_free_p) struct report *r = report_new();
	CHECK_STR(note_of(r, "cpu-clock", 1, "main;trace_call_bpf [k]", skid_note_cost), "");
}
