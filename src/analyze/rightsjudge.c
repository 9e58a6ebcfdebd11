/* Judges what commands can do; see rightsjudge.h. */
#include "base/base.h"
#include "analyze/rightsjudge.h"

#include <errno.h>

#include "base/sv.h"

#define BIT(n) (1u << (n))
#define CAP(n) ((uint64_t)1 << (n))

static const struct {
	unsigned cap;
	const char *name; /* in the notation of setcap(8) and --cap-add */
} cap_names[] = {
	{HOST_CAP_BPF, "bpf"},          {HOST_CAP_PERFMON, "perfmon"},
	{CAP_SYSLOG, "syslog"},         {CAP_DAC_READ_SEARCH, "dac_read_search"},
	{CAP_SYS_PTRACE, "sys_ptrace"}, {CAP_SYS_ADMIN, "sys_admin"},
};

/* ---- remedies ------------------------------------------------------------------------------ */

/* Appends the names: the first one preceded by @before, the others by @between. */
static void add_names(struct buf *to, uint64_t caps, const char *before, const char *between,
		      bool is_upper)
{
	for (size_t i = 0; i < ARRAY_LEN(cap_names); i++) {
		if (!(caps & CAP(cap_names[i].cap)))
			continue;
		buf_add_str(to, before);
		for (const char *c = cap_names[i].name; *c; c++)
			buf_add_ch(to, is_upper && *c != '_' ? (char)(*c - 32) : *c);
		before = between;
	}
}

void rights_add_caps(struct buf *to, uint64_t caps)
{
	size_t before = to->n;
	add_names(to, caps, "", ", ", true);
	if (to->n == before)
		buf_add_str(to, "none");
}

void rights_add_cap_flags(struct buf *to, uint64_t caps)
{
	add_names(to, caps, " --cap-add ", " --cap-add ", true);
}

bool rights_is_contained(const struct features *f)
{
	return !f->is_init_pidns || f->seccomp == 2;
}

static uint64_t missing_caps(const struct features *f, uint64_t caps)
{
	uint64_t missing = 0;
	for (size_t i = 0; i < ARRAY_LEN(cap_names); i++)
		if (caps & CAP(cap_names[i].cap) && !rights_permit(f->caps, cap_names[i].cap))
			missing |= CAP(cap_names[i].cap);
	return missing;
}

static void add_caps_remedy(struct buf *to, uint64_t caps, const struct features *f)
{
	if (rights_is_contained(f)) {
		buf_add_str(to, "start the container with");
		rights_add_cap_flags(to, missing_caps(f, caps));
		buf_add_str(to, " --security-opt seccomp=assay-seccomp.json");
		return;
	}
	if (f->has_no_new_privs) {
		buf_add_str(to, "run it as root from another session: here sudo and setcap have no "
				"effect (no_new_privs)");
		return;
	}
	/* Two clauses: a line may be wrapped between them, setcap takes any white space there. */
	const uint64_t stacks = caps & RIGHTS_STACKS;
	const uint64_t others = caps & ~RIGHTS_STACKS;
	bool are_both = stacks && others;
	buf_addf(to, "sudo, or: sudo setcap %s", are_both ? "'" : "");
	if (stacks) {
		add_names(to, stacks, "cap_", ",cap_", false);
		buf_addf(to, "+ep%s", are_both ? " " : "");
	}
	if (others) {
		add_names(to, others, "cap_", ",cap_", false);
		buf_add_str(to, "+ep");
	}
	buf_addf(to, "%s assay", are_both ? "'" : "");
}

/* What the kernel lacks, by the kinds of facility that were tried. */
static void add_kernel_remedy(struct buf *to, const struct features *f)
{
	const char *between = "";
	const struct {
		bool is_missing;
		const char *text;
	} lacks[] = {
		{f->is_locked_down, "lockdown mode is 'confidentiality': boot without it"},
		{f->perf_own == -ENOSYS, "perf events: CONFIG_PERF_EVENTS"},
		{!f->has_btf, "BTF: CONFIG_DEBUG_INFO_BTF (in a container: mount /sys)"},
		{f->bpf == -ENOSYS, "BPF: CONFIG_BPF_SYSCALL"},
		{f->uprobes == -ENOTSUP, "uprobes: CONFIG_UPROBE_EVENTS"},
		{!f->has_tracefs, "tracefs: CONFIG_FTRACE"},
	};
	buf_addf(to, "kernel %s lacks ", f->release);
	size_t start = to->n;
	for (size_t i = 0; i < ARRAY_LEN(lacks); i++) {
		if (!lacks[i].is_missing)
			continue;
		buf_addf(to, "%s%s", between, lacks[i].text);
		between = "; ";
	}
	if (f->bpf_lacks)
		buf_addf(to, "%s%s", between, f->bpf_lacks);
	else if (to->n == start)
		buf_add_str(to, "it, although privileges suffice");
}

void rights_add_remedy(struct buf *to, enum rights_remedy kind, uint64_t caps,
		       const struct features *f)
{
	switch (kind) {
	case RIGHTS_GET_CAPS:
		add_caps_remedy(to, caps, f);
		break;
	case RIGHTS_SECCOMP:
		buf_add_str(to, "--security-opt seccomp=assay-seccomp.json");
		break;
	case RIGHTS_SHARE_PIDS:
		buf_add_str(to, "run on the host or with --pid=host");
		break;
	case RIGHTS_MOUNT_TRACEFS:
		buf_add_str(to, rights_is_contained(f)
					? "start the container with -v "
					  "/sys/kernel/tracing:/sys/kernel/tracing"
					: "sudo mount -t tracefs tracefs /sys/kernel/tracing");
		break;
	case RIGHTS_DELEGATE:
		buf_add_str(to, "sudo, or a cgroup that is delegated to you: systemd-run --user "
				"--scope -p Delegate=yes assay limit ...");
		break;
	case RIGHTS_PARANOID:
		buf_add_str(to, "for user code of own processes: sudo sysctl "
				"kernel.perf_event_paranoid=2");
		break;
	case RIGHTS_KERNEL:
		add_kernel_remedy(to, f);
		break;
	case RIGHTS_REMEDY_NR:
		break;
	}
}

/* ---- judging ------------------------------------------------------------------------------- */

void rights_result_release(struct rights_result *r)
{
	buf_release(&r->why);
}

unsigned rights_nr_whose(const struct rights_needs *n)
{
	return n->bits & (RIGHTS_IS_ALONE | RIGHTS_NOTHING) ? 1
	       : n->bits & RIGHTS_HAS_NO_SYSTEM             ? 2
							    : RIGHTS_WHOSE_NR;
}

uint64_t rights_least_caps(const struct rights_needs *n, enum rights_whose w)
{
	bool has_target = w != RIGHTS_OWN && rights_nr_whose(n) > 1;
	return n->caps | (has_target ? CAP(CAP_SYS_PTRACE) : 0);
}

static void find(struct rights_result *r, enum rights_verdict v, const char *why)
{
	if (v > r->verdict)
		r->verdict = v;
	buf_addf(&r->why, "%s%s", r->why.n ? "; " : "", why);
}

static int perf_refusal(const struct features *f, enum rights_whose w)
{
	return w == RIGHTS_OWN ? f->perf_own : w == RIGHTS_OTHERS ? f->perf_others : f->perf_system;
}

/* A refused facility: capabilities, if some are missing; else the seccomp filter or the kernel. */
static void remedy_refused(struct rights_result *r, const struct features *f, uint64_t caps, int rc)
{
	bool is_kernel = rc == -ENOSYS || rc == -ENOTSUP;
	if (!is_kernel && missing_caps(f, caps)) {
		r->remedies |= BIT(RIGHTS_GET_CAPS);
		r->caps |= caps;
	} else if (f->seccomp == 2 && (rc == -EPERM || rc == -EACCES || rc == -ENOSYS)) {
		r->remedies |= BIT(RIGHTS_SECCOMP); /* a filter may answer as an old kernel does */
	} else {
		r->remedies |= BIT(RIGHTS_KERNEL);
	}
}

static void remedy_bpf(struct rights_result *r, const struct features *f, uint64_t caps)
{
	if (!f->is_init_pidns)
		r->remedies |= BIT(RIGHTS_SHARE_PIDS);
	if (!f->has_btf || f->bpf_lacks)
		r->remedies |= BIT(RIGHTS_KERNEL);
	if (f->bpf != -ENOTSUP || missing_caps(f, caps))
		remedy_refused(r, f, caps, f->bpf == -ENOTSUP ? -EPERM : f->bpf);
}

static void judge_perf(struct rights_result *r, const struct features *f,
		       const struct rights_needs *n, enum rights_whose w)
{
	uint64_t caps = rights_least_caps(n, w);
	int rc = perf_refusal(f, w);
	if (rc) {
		remedy_refused(r, f, caps, rc);
		if (w == RIGHTS_OWN && rc == -EACCES && f->paranoid > 2)
			r->remedies |= BIT(RIGHTS_PARANOID);
		if (n->bits & RIGHTS_FALLS_TO_PROC) {
			find(r, RIGHTS_DEGRADES, "polls /proc, wait reasons estimated");
			return;
		}
		find(r, RIGHTS_REFUSED, "perf events are refused");
		if (rc == -ENOSYS && f->seccomp != 2)
			buf_add_str(&r->why, " (not in this kernel)");
		else if (f->seccomp == 2 && rights_permit(f->caps, HOST_CAP_PERFMON))
			buf_add_str(&r->why, " (by the container's seccomp filter)");
		else if (f->paranoid > (w == RIGHTS_SYSTEM ? 0 : 2))
			buf_addf(&r->why, " (kernel.perf_event_paranoid is %" PRId64 ")",
				 f->paranoid);
		return;
	}
	if (f->bpf && !(n->bits & RIGHTS_ONLY_COUNTS)) {
		find(r, RIGHTS_DEGRADES,
		     n->bits & RIGHTS_FALLS_TO_COUNTS ? "counts, no stacks"
		     : n->bits & RIGHTS_FALLS_TO_PROC ? "no wakers, no --blame"
						      : "stacks are copied");
		remedy_bpf(r, f, caps);
	}
	if (f->perf_kernel) {
		find(r, RIGHTS_DEGRADES, "user code only");
		remedy_refused(r, f, caps, f->perf_kernel);
	}
}

static void judge_names(struct rights_result *r, const struct features *f,
			const struct rights_needs *n, enum rights_whose w)
{
	if (r->verdict == RIGHTS_REFUSED)
		return;
	bool has_hidden = false;
	if (!f->perf_kernel && !f->has_kernel_names) {
		find(r, RIGHTS_DEGRADES, "kernel functions unsymbolized");
		has_hidden = true;
	}
	if (w != RIGHTS_OWN && f->other_maps && f->other_maps != FEATURES_NOT_TRIED) {
		find(r, RIGHTS_DEGRADES, "others' mappings hidden");
		has_hidden = true;
	} else if (w != RIGHTS_OWN && f->other_root && f->other_root != FEATURES_NOT_TRIED) {
		find(r, RIGHTS_DEGRADES, "others' binaries in containers unsymbolized");
		has_hidden = true;
	}
	if (has_hidden)
		remedy_refused(r, f, rights_least_caps(n, w), -EPERM);
}

/* Without CAP_SYS_PTRACE: own processes, and where Yama restricts it, only launched ones. */
static void judge_memory(struct rights_result *r, const struct features *f,
			 const struct rights_needs *n, enum rights_whose w)
{
	bool is_restricted = w != RIGHTS_OWN || f->ptrace_scope > 0;
	if (rights_permit(f->caps, CAP_SYS_PTRACE) || !is_restricted)
		return;
	if (n->bits & RIGHTS_MEMORY)
		find(r, RIGHTS_DEGRADES,
		     w == RIGHTS_OWN ? "anonymous memory without owners"
				     : "no PSS, no RSS breakdown");
	if (n->bits & RIGHTS_PTRACE && w == RIGHTS_OWN && f->ptrace_scope < 3)
		find(r, RIGHTS_DEGRADES, "launched commands only");
	else if (n->bits & RIGHTS_PTRACE)
		find(r, RIGHTS_REFUSED, "ptrace is not permitted");
	if (n->bits & (RIGHTS_MEMORY | RIGHTS_PTRACE))
		remedy_refused(r, f, rights_least_caps(n, w), -EPERM);
}

static void judge_tracepoints(struct rights_result *r, const struct features *f,
			      const struct rights_needs *n, enum rights_whose w)
{
	uint64_t caps = rights_least_caps(n, w);
	if (n->bits & RIGHTS_IS_ALONE)
		find(r, RIGHTS_DEGRADES, "software events only");
	else
		find(r, RIGHTS_REFUSED, "no access to tracefs");
	if (f->has_tracefs && !missing_caps(f, caps))
		r->remedies |= BIT(RIGHTS_MOUNT_TRACEFS);
	else
		remedy_refused(r, f, caps, f->has_tracefs ? -EACCES : -ENOTSUP);
}

static void judge_use(struct rights_result *r, const struct features *f,
		      const struct rights_needs *n, enum rights_whose w)
{
	uint64_t caps = rights_least_caps(n, w);
	if (n->bits & RIGHTS_BPF && f->bpf) {
		find(r, RIGHTS_REFUSED, "BPF programs are refused");
		if (!f->has_btf || f->bpf_lacks)
			buf_add_str(&r->why, " (not in this kernel)");
		remedy_bpf(r, f, caps);
	}
	if (n->bits & RIGHTS_TRACEPOINTS && f->tracepoints)
		judge_tracepoints(r, f, n, w);
	if (n->bits & RIGHTS_UPROBES && f->uprobes) {
		find(r, RIGHTS_REFUSED,
		     f->uprobes == -ENOTSUP ? "uprobes are not in this kernel"
					    : "uprobes are not permitted");
		remedy_refused(r, f, caps, f->uprobes);
	}
	if (n->bits & RIGHTS_PERF && r->verdict != RIGHTS_REFUSED)
		judge_perf(r, f, n, w);
	if (n->bits & RIGHTS_CGROUP && f->limit) {
		find(r, RIGHTS_DEGRADES, "no memory cgroup: only --rlimit works");
		r->remedies |= BIT(RIGHTS_DELEGATE);
	}
	judge_memory(r, f, n, w);
	if (n->bits & (RIGHTS_PERF | RIGHTS_BPF) && !(n->bits & RIGHTS_ONLY_COUNTS))
		judge_names(r, f, n, w);
}

/* Judges the parts, and names those that do not work, else those that work in part. */
static void judge_parts(struct rights_result *r, const struct rights_row *rows, size_t nr_rows,
			const struct rights_needs *n, enum rights_whose w, const struct features *f)
{
	CLEANUP(buf_release) struct buf without = {0};
	CLEANUP(buf_release) struct buf less = {0};
	bool is_first = true;
	for (struct sv left = sv_from_str(n->parts); left.n;) {
		struct sv name = sv_split(&left, ' ');
		for (size_t i = 0; i < nr_rows; i++) {
			if (!sv_eq_str(name, rows[i].command) || rows[i].needs->form ||
			    rights_nr_whose(rows[i].needs) <= w)
				continue;
			struct rights_result part = {0};
			judge_use(&part, f, rows[i].needs, w);
			if (is_first && part.verdict == RIGHTS_REFUSED) {
				*r = part;
				return;
			}
			is_first = false;
			r->remedies |= part.remedies;
			r->caps |= part.caps;
			if (part.verdict == RIGHTS_REFUSED)
				buf_addf(&without, "%s%.*s", without.n ? ", " : "without ",
					 SV_ARGS(name));
			else if (part.verdict == RIGHTS_DEGRADES)
				buf_addf(&less, "%s%.*s", less.n ? ", " : "in part ",
					 SV_ARGS(name));
			rights_result_release(&part);
		}
	}
	ASSERT(!is_first);
	if (without.n)
		find(r, RIGHTS_DEGRADES, buf_str(&without));
	else if (less.n) /* the parts say why themselves */
		find(r, RIGHTS_DEGRADES, buf_str(&less));
}

void rights_judge(struct rights_result *ret_r, const struct rights_row *rows, size_t nr_rows,
		  const struct rights_row *row, enum rights_whose w, const struct features *f)
{
	*ret_r = (struct rights_result){0};
	if (w == RIGHTS_OTHERS && f->perf_others == FEATURES_NOT_TRIED)
		find(ret_r, RIGHTS_NOT_TRIED, "no process of another user to test with");
	else if (row->needs->bits & RIGHTS_PARTS)
		judge_parts(ret_r, rows, nr_rows, row->needs, w, f);
	else
		judge_use(ret_r, f, row->needs, w);
}
