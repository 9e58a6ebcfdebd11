/* Decides for each event how it is counted: outcome, amount, cost; see set.h. */
#include "base/base.h"
#include "capture/events/set.h"

#include <fnmatch.h>
#include <linux/perf_event.h>

#include "base/buf.h"

#define FAULTS(name, config, other)                               \
	{                                                         \
		name, PERF_COUNT_SW_##config, other, "perfcounts" \
	}

static const struct software_event software[] = {
	FAULTS("page-faults", PAGE_FAULTS, "faults"),
	{"context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES, "cs", "taskswitches"},
	{"cpu-migrations", PERF_COUNT_SW_CPU_MIGRATIONS, "migrations", NULL},
	FAULTS("minor-faults", PAGE_FAULTS_MIN, NULL),
	FAULTS("major-faults", PAGE_FAULTS_MAJ, NULL),
	FAULTS("alignment-faults", ALIGNMENT_FAULTS, NULL),
	FAULTS("emulation-faults", EMULATION_FAULTS, NULL),
};

const struct software_event *event_software_at(size_t i)
{
	return i < ARRAY_LEN(software) ? &software[i] : NULL;
}

const struct software_event *event_software_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(software); i++)
		if (!strcmp(name, software[i].name) ||
		    (software[i].other_name && !strcmp(name, software[i].other_name)))
			return &software[i];
	return NULL;
}

static bool matches_any(const char *const *patterns, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!fnmatch(patterns[i], name, 0))
			return true;
	return false;
}

static const char *const frequent[] = {
	"raw_syscalls:*",
	"syscalls:sys_*_read",
	"syscalls:sys_*_write",
	"syscalls:sys_*_pread64",
	"syscalls:sys_*_pwrite64",
	"syscalls:sys_*_readv",
	"syscalls:sys_*_writev",
	"syscalls:sys_*_recv*",
	"syscalls:sys_*_send*",
	"syscalls:sys_*_epoll_*wait*",
	"syscalls:sys_*_futex*",
	"syscalls:sys_*_poll",
	"syscalls:sys_*_getpid",
	"syscalls:sys_*_clock_gettime",
	"syscalls:sys_*_io_uring_enter",
	"sched:sched_switch",
	"sched:sched_wak*",
	"sched:sched_stat_*",
	"sched:sched_migrate_task",
	"sched:sched_entry_tp",
	"sched:sched_exit_tp",
	"sched:sched_set_need_resched_tp",
	"kmem:*",
	"lock:*",
	"timer:*",
	"irq:*",
	"irq_vectors:*",
	"rcu:*",
	"tlb:*",
	"msr:*",
	"preemptirq:*",
	"exceptions:page_fault_*",
	"mmap_lock:*",
	"maple_tree:*",
	"percpu:*",
	"page_pool:*",
	"skb:*",
	"net:*",
	"napi:*",
	"sock:*",
	"tcp:*",
	"workqueue:*",
	"power:*",
	"cgroup:*rstat*",
	"csd:*",
	"vmalloc:*",
	"page-faults",
	"minor-faults",
	"context-switches",
};

enum event_cost event_cost_of(struct sv name)
{
	CLEANUP(buf_release) struct buf text = {0};
	buf_add_sv(&text, name);
	if (matches_any(frequent, ARRAY_LEN(frequent), buf_str(&text)))
		return EVENT_COST_HIGH;
	return sv_has_prefix(name, SV("syscalls:")) ? EVENT_COST_CALL : EVENT_COST_LOW;
}

/*
 * Events that are not caused by the current thread: in interrupts, kernel workers, or any thread.
 */
static const char *const machine_wide[] = {
	"block:*",
	"writeback:*",
	"vmscan:*kswapd*",
	"irq:*",
	"irq_vectors:*",
	"timer:*",
	"workqueue:*",
	"scsi:*",
	"nvme:*",
	"virtio:*",
	"jbd2:*",
	"oom:*",
	"compaction:*kcompactd*",
	"power:*",
	"thermal:*",
	"rcu:*",
	"net:*",
	"napi:*",
	"softirq:*",
	"cgroup:*",
	"xdp:*",
};

static const char *const of_interrupts[] = {
	"block:*complete*", "block:*done*", "irq:*",  "irq_vectors:*", "timer:*",
	"sched:sched_wak*", "net:*",        "napi:*", "skb:*",         "tcp:*",
	"scsi:*",           "nvme:*",
};

static const char *const reads_and_writes[] = {
	"sys_exit_read",  "sys_exit_write",    "sys_exit_pread64",         "sys_exit_pwrite64",
	"sys_exit_readv", "sys_exit_writev",   "sys_exit_preadv*",         "sys_exit_pwritev*",
	"sys_exit_send*", "sys_exit_recv*",    "sys_exit_copy_file_range", "sys_exit_splice",
	"sys_exit_tee",   "sys_exit_vmsplice", "sys_exit_getrandom",
};

static const char *const sized_calls[] = {
	"sys_enter_read",     "sys_enter_write",      "sys_enter_pread64",
	"sys_enter_pwrite64", "sys_enter_sendfile64",
};

static bool set_outcome(struct count_config *c, const struct trace_field *f,
			enum count_outcome what)
{
	if (!f ||
	    (f->nr_bytes != 1 && f->nr_bytes != 4 && f->nr_bytes != 8 && what != OUTCOME_LETTER))
		return false;
	c->outcome = (uint8_t)what;
	c->outcome_at = f->offset;
	c->nr_outcome = what == OUTCOME_LETTER ? 1 : (uint8_t)f->nr_bytes;
	return true;
}

static void set_amount(struct named_event *e, const char *field, const char *unit, unsigned shift)
{
	const struct trace_field *f = trace_field(&e->format, field);
	if (!f || e->amount || (f->nr_bytes != 4 && f->nr_bytes != 8))
		return;
	e->amount = unit;
	e->count.amount_at = f->offset;
	e->count.nr_amount = (uint8_t)f->nr_bytes;
	e->count.amount_shift = (uint8_t)shift;
}

static void decide_call(struct named_event *e, const char *name)
{
	const struct trace_format *f = &e->format;
	if (!strncmp(name, "sys_exit", 8)) {
		(void)set_outcome(&e->count, trace_field(f, "ret"), OUTCOME_RETURN);
		if (matches_any(reads_and_writes, ARRAY_LEN(reads_and_writes), name))
			set_amount(e, "ret", "bytes", 0);
		return;
	}
	if (!strcmp(name, "sys_enter_futex"))
		(void)set_outcome(&e->count, trace_field(f, "op"), OUTCOME_COMMAND);
	if (matches_any(sized_calls, ARRAY_LEN(sized_calls), name))
		set_amount(e, "count", "bytes", 0);
}

static void decide(struct named_event *e)
{
	struct count_config *c = &e->count;
	const struct trace_format *f = &e->format;
	struct sv event = sv_from_str(e->name);
	struct sv system = sv_split(&event, ':');
	if (matches_any(machine_wide, ARRAY_LEN(machine_wide), e->name))
		c->flags |= COUNT_MACHINE;
	if (matches_any(of_interrupts, ARRAY_LEN(of_interrupts), e->name))
		c->flags |= COUNT_OF_INTERRUPTS;
	if (e->cost == EVENT_COST_LOW)
		c->flags |= COUNT_KERNEL_STACK;
	if (sv_eq_str(system, "syscalls") || sv_eq_str(system, "raw_syscalls"))
		c->flags |= COUNT_IN_THREAD;
	if (sv_eq_str(system, "syscalls"))
		decide_call(e, event.p);
	else if (sv_eq_str(system, "raw_syscalls"))
		(void)set_outcome(c, trace_field(f, "id"), OUTCOME_CALL);
	else if (!strcmp(e->name, "sched:sched_switch"))
		(void)set_outcome(c, trace_field(f, "prev_state"), OUTCOME_STATE);
	else if (set_outcome(c, trace_field(f, "rwbs"), OUTCOME_LETTER)) {
		set_amount(e, "bytes", "bytes", 0);
		set_amount(e, "nr_sector", "bytes", 9);
	} else if (sv_eq_str(system, "vmscan")) {
		set_amount(e, "nr_reclaimed", "pages", 0);
	}
}

int event_open_tracepoint(struct named_event *ret_e, struct arena *a, int tracefs_fd,
			  struct sv name, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct named_event e = {.name = arena_strndup(a, name.p, name.n),
				.cost = event_cost_of(name)};
	int rc = tracefs_format(&text, tracefs_fd, name, err);
	rc = rc ? rc : trace_format_parse(&e.format, buf_sv(&text), err);
	if (rc)
		return err_wrap(err, "event '%s'", e.name);
	e.config = e.format.id;
	e.count.nr_raw = MIN(e.format.nr_bytes, (uint16_t)COUNTS_RAW_MAX);
	for (uint32_t i = 0; i < e.format.nr_fields; i++) {
		const struct trace_field *f = &e.format.fields[i];
		bool is_located = f->kind == TRACE_STRING || f->kind == TRACE_BLOB;
		if (is_located && !f->is_relative && e.count.nr_locs < COUNTS_LOCS_MAX)
			e.count.loc_at[e.count.nr_locs++] = f->offset;
	}
	decide(&e);
	*ret_e = e;
	return 0;
}

static const char *const futex_commands[] = {
	"WAIT",           "WAKE",        "FD",          "REQUEUE",
	"CMP_REQUEUE",    "WAKE_OP",     "LOCK_PI",     "UNLOCK_PI",
	"TRYLOCK_PI",     "WAIT_BITSET", "WAKE_BITSET", "WAIT_REQUEUE_PI",
	"CMP_REQUEUE_PI", "LOCK_PI2",
};

static void add_return(struct buf *to, int32_t outcome)
{
	if (outcome >= 0) {
		buf_add_str(to, "ok");
		return;
	}
	/* Errors that programs do not see: the call is restarted, or returns EINTR. */
	if (outcome <= -512 && outcome >= -516) {
		buf_add_str(to, "interrupted");
		return;
	}
	const char *name = strerrorname_np(-outcome);
	if (name)
		buf_add_str(to, name);
	else
		buf_addf(to, "error %d", -outcome);
}

static const char *letter_text(int32_t letter)
{
	switch (letter) {
	case 'R':
		return "read";
	case 'W':
		return "write";
	case 'D':
		return "discard";
	case 'F':
		return "flush";
	default:
		return "other";
	}
}

void event_outcome_text(struct buf *to, const struct named_event *e, int32_t outcome)
{
	switch ((enum count_outcome)e->count.outcome) {
	case OUTCOME_NONE:
	case OUTCOME_CALL:
		break;
	case OUTCOME_RETURN:
		add_return(to, outcome);
		break;
	case OUTCOME_COMMAND:
		if (outcome >= 0 && (size_t)outcome < ARRAY_LEN(futex_commands))
			buf_add_str(to, futex_commands[outcome]);
		else
			buf_addf(to, "command %d", outcome);
		break;
	case OUTCOME_STATE:
		buf_add_str(to, outcome ? "blocked" : "preempted");
		break;
	case OUTCOME_LETTER:
		buf_add_str(to, letter_text(outcome));
		break;
	}
}
