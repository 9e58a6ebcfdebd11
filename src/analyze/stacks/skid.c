/* Kernel functions that enable interrupts; see skid.h. */
#include "base/base.h"
#include "analyze/stacks/skid.h"

#include "analyze/view.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/sv.h"
#include "base/text/num.h"

#define NOTED_PCT 5.0 /* below: less than the usual error of a share */
#define NAMED_PCT 1.0

/* Their code enables interrupts itself (Linux 5.10 to 6.18, x86-64 and arm64). */
static const char *const enablers[] = {
	"finish_task_switch",
	"_raw_spin_unlock_irqrestore",
	"_raw_spin_unlock_irq",
	"_raw_read_unlock_irqrestore",
	"_raw_read_unlock_irq",
	"_raw_write_unlock_irqrestore",
	"_raw_write_unlock_irq",
	"do_syscall_64",
	"irqentry_exit_to_user_mode",
	"syscall_exit_to_user_mode",
	"exit_to_user_mode_loop",
	"exit_to_user_mode_prepare",
	"do_user_addr_fault",
	"exc_page_fault",
	"handle_softirqs",
	"__do_softirq",
	"el0_svc",
	"el0_da",
};
#define ENABLERS_NR (sizeof(enablers) / sizeof(*enablers))

/* Returns the function's index in the table, or ENABLERS_NR; parts of a function count as it. */
static size_t enabler_of(const struct profile *p, const struct function *f)
{
	if (!(f->flags & FUNC_KERNEL))
		return ENABLERS_NR;
	struct sv name = profile_sv(p, f->name);
	const char *dot = memchr(name.p, '.', name.n);
	if (dot)
		name.n = (size_t)(dot - name.p);
	size_t i = 0;
	while (i < ENABLERS_NR && !sv_eq_str(name, enablers[i]))
		i++;
	return i;
}

static bool is_by_timer(const struct selection *sel)
{
	return sel->event &&
	       (!strncmp(sel->event, "cpu-clock", 9) || !strncmp(sel->event, "task-clock", 10));
}

static func_id leaf_function(const struct profile *p, const struct select_row *row)
{
	const struct location *l = &p->locations.p[p->stacks.p[row->stack].loc];
	return row->stack && !row->synth_leaf && l->nr_frames ? p->frames.p[l->first_frame].func
							      : 0;
}

void skid_note(struct report *r, const struct selection *sel)
{
	const struct profile *p = sel->p;
	if (!is_by_timer(sel) || !sel->weight || !view_has_shares(sel))
		return;
	uint64_t weights[ENABLERS_NR + 1] = {0};
	CLEANUP(free_p) uint8_t *known = xcalloc(p->functions.n + 1, 1); /* index + 1 */
	for (size_t i = 0; i < sel->nr_rows; i++) {
		func_id f = leaf_function(p, &sel->rows[i]);
		if (!known[f])
			known[f] = (uint8_t)(1 +
					     (f ? enabler_of(p, &p->functions.p[f]) : ENABLERS_NR));
		weights[known[f] - 1] += sel->rows[i].weight;
	}
	CLEANUP(buf_release) struct buf names = {0};
	double all_pct = 0;
	for (size_t i = 0; i < ENABLERS_NR; i++) {
		double pct = 100.0 * (double)weights[i] / (double)sel->weight;
		all_pct += pct;
		if (pct >= NAMED_PCT)
			buf_addf(&names, "%s%s %s %%", names.n ? ", " : "", enablers[i],
				 num_pct(pct).s);
	}
	if (all_pct >= NOTED_PCT && names.n)
		report_detail(
			r,
			"%s %% of the %stime is in kernel functions that enable interrupts (%s): a "
			"timer takes the samples, and code with interrupts disabled is counted "
			"there; the functions that call them are right",
			num_pct(all_pct).s, view_nr_out(sel) ? "selected " : "", buf_str(&names));
}
