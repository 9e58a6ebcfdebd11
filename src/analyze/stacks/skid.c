/* Kernel functions whose time is not that of the program; see skid.h. */
#include "base/base.h"
#include "analyze/stacks/skid.h"

#include "analyze/view.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/sv.h"
#include "base/text/num.h"

#define NOTED_PCT 5.0 /* below: less than the usual error of a share */
#define NAMED_PCT 1.0
#define COST_PCT  2.0  /* cost of measuring: below, not worth a line */
#define MUCH_PCT  20.0 /* it changes what the page says of the program */
#define FEW_CPUS  0.1  /* nobody waits for what an idle program takes */
#define NAMES_MAX 3

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
	"pvm_irq_enable", /* guests whose kernel calls the hypervisor for it */
	"xen_irq_enable_direct",
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
	if (all_pct < NOTED_PCT || !names.n)
		return;
	(all_pct < MUCH_PCT ? report_detail : report_note)(
		r,
		"%s %% of the %stime is in kernel functions that enable interrupts (%s): a timer "
		"takes the samples, and code with interrupts disabled is counted there; the "
		"functions that call them are right",
		num_pct(all_pct).s, view_nr_out(sel) ? "selected " : "", buf_str(&names));
}

/* ---- the cost of measuring --------------------------------------------------------------- */

/*
 * What the kernel calls for an event that somebody records: names, and beginnings of names with '*'
 * (Linux 5.10 to 6.18). What a program asks for itself (perf_event_open, bpf) calls none of them.
 */
static const char *const hooks[] = {
	"__perf_sw_event*",
	"___perf_sw_event",
	"perf_swevent_*",
	"perf_syscall_enter",
	"perf_syscall_exit",
	"perf_trace_*",
	"perf_tp_event*",
	"perf_call_bpf_*",
	"perf_ftrace_*",
	"__perf_event_task_sched_*",
	"__perf_event_overflow",
	"perf_event_task_tick",
	"trace_call_bpf",
	"bpf_trace_run*",
	"__bpf_trace_*",
	"bpf_trampoline_*",
	"__traceiter_*",
	"uprobe_notify_resume",
	"uprobe_pre_sstep_notifier",
	"kprobe_ftrace_handler",
	"kprobe_int3_handler",
	"optimized_callback",
};

static bool is_hook_name(struct sv name)
{
	for (size_t i = 0; i < ARRAY_LEN(hooks); i++) {
		size_t n = strcspn(hooks[i], "*");
		bool is_prefix = hooks[i][n] == '*';
		if (is_prefix ? sv_has_prefix(name, sv_from(hooks[i], n))
			      : sv_eq_str(name, hooks[i]))
			return true;
	}
	return false;
}

enum cost_kind { COST_UNKNOWN, COST_NONE, COST_HOOK, COST_INTERRUPT };

/* What a function says of the code that it calls. */
static enum cost_kind cost_of(const struct profile *p, const struct function *f)
{
	struct sv name = profile_sv(p, f->name);
	if (!(f->flags & FUNC_KERNEL))
		return COST_NONE;
	/* Entry code: an interrupt within a hook is not the hook's. */
	if (sv_has_prefix(name, SV("asm_")))
		return COST_INTERRUPT;
	return is_hook_name(name) ? COST_HOOK : COST_NONE;
}

/* True if the innermost hook or interrupt of the stack is a hook. @known: by function. */
static bool is_cost(const struct profile *p, stack_id stack, uint8_t *known)
{
	for (; stack; stack = p->stacks.p[stack].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[stack].loc];
		for (uint32_t i = 0; i < l->nr_frames; i++) {
			func_id f = p->frames.p[l->first_frame + i].func;
			if (!known[f])
				known[f] = (uint8_t)cost_of(p, &p->functions.p[f]);
			if (known[f] != COST_NONE)
				return known[f] == COST_HOOK;
		}
		if (l->nr_frames &&
		    !(p->functions.p[p->frames.p[l->first_frame].func].flags & FUNC_KERNEL))
			return false; /* the caller of kernel code */
	}
	return false;
}

/* "perf_swevent_event 72.7 %, trace_call_bpf 3.1 %": the largest by weight, which it sets to 0. */
static void add_largest(struct buf *to, const struct selection *sel, uint64_t *by_function)
{
	const struct profile *p = sel->p;
	for (size_t n = 0; n < NAMES_MAX; n++) {
		func_id most = 0;
		for (func_id f = 1; f < p->functions.n; f++)
			if (by_function[f] > by_function[most])
				most = f;
		double pct = view_pct(by_function[most], sel->weight);
		if (!most || (n && pct < NAMED_PCT))
			return;
		buf_addf(to, "%s%s %s %%", n ? ", " : "",
			 profile_text(p, p->functions.p[most].name), num_pct(pct).s);
		by_function[most] = 0;
	}
}

void skid_note_cost(struct report *r, const struct selection *sel)
{
	const struct profile *p = sel->p;
	if (!view_is_cpu_time(sel) || !sel->weight || !view_has_shares(sel))
		return;
	CLEANUP(free_p) uint8_t *known = xcalloc(p->functions.n + 1, 1);
	CLEANUP(free_p) uint64_t *by_function = xcalloc(p->functions.n + 1, sizeof(uint64_t));
	uint64_t cost = 0;
	for (size_t i = 0; i < sel->nr_rows; i++) {
		const struct select_row *row = &sel->rows[i];
		if (row->synth_leaf || !is_cost(p, row->stack, known))
			continue;
		cost += row->weight;
		by_function[leaf_function(p, row)] += row->weight;
	}
	double pct = view_pct(cost, sel->weight);
	CLEANUP(buf_release) struct buf names = {0};
	by_function[0] = 0; /* no name */
	add_largest(&names, sel, by_function);
	const char *selected = view_nr_out(sel) ? "selected " : "";
	double cpus = view_cpus(sel, view_busy(sel));
	if (pct < COST_PCT)
		return;
	if (pct < MUCH_PCT || (cpus >= 0 && cpus < FEW_CPUS)) {
		report_note(r,
			    "%s %% of the %sCPU time is the cost of measuring, by assay or another "
			    "profiler: %s",
			    num_pct(pct).s, selected, buf_str(&names));
		return;
	}
	report_finding(r,
		       "cost of measuring: %s %% of the %sCPU time, in %s; that is what assay or "
		       "another profiler adds, not the program's own work",
		       num_pct(pct).s, selected, buf_str(&names));
	/* It qualifies the others: next to the first, since pages have only some of them. */
	report_rank(r, r->ranks.p[0]);
}
