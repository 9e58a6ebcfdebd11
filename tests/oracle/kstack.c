/*
 * Checks and measures the BPF walker on a running process:
 *
 *	kstack compare SECONDS PID     each sample is walked by the BPF walker and by unwind/walk.h
 *	                               with the same registers and stack: frames must be equal
 *	kstack time SECONDS PID        ns per frame, and that of the kernel's frame pointer walk
 *	kstack switch SECONDS PID      ns for the user stack at a switch; switch-walk: without the
 *	                               per-thread stack cache
 * The mappings are read once, at the start. Exit 1: frames differed, or there were no samples.
 */
#include "base/base.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text/num.h"
#include "capture/bpf/kerneltables.h"
#include "kernel_stack.h"
#include "kstack.h"
#include "kstack.skel.h"
#include "unwind_process.h"

#define SAMPLE_HZ 999

struct judge {
	struct unwind_process process;
	struct kerneltables tables;
	uint32_t space_idx;
	uint64_t nr;
	uint64_t nr_frames;
	uint64_t nr_same;
	uint64_t nr_root;
	uint64_t nr_left; /* stacks that the BPF walk did not finish */
	uint64_t nr_further;
	uint64_t nr_differ;
	uint64_t nr_ends[16];
	VEC(double) own;       /* ns */
	VEC(double) own_frame; /* ns a frame */
	VEC(double) again_frame;
	VEC(double) fp_frame;
	uint64_t nr_rule_misses, nr_map_searches;
	double fp_ns, own_ns;
	uint64_t fp_frames, own_frames;
	uint64_t nr_known; /* found in the stack cache */
};

static bool find_space(void *ctx, int32_t pid, uint32_t *ret_idx)
{
	struct judge *j = ctx;
	(void)pid;
	*ret_idx = j->space_idx;
	return true;
}

static void say_difference(const struct kstack_both *b, const struct walk_frame *frames,
			   uint32_t nr, enum walk_end end)
{
	printf("BPF: %u frames, end %u; user space: %u frames, end %d, %u bytes\n", b->nr_frames,
	       b->end, nr, end, b->nr_stack);
	const struct walk_frame *last = nr ? &frames[nr - 1] : NULL;
	if (last && last->map && last->map->module && last->map->module->table) {
		uint64_t vaddr = last->addr - last->is_call - last->map->bias;
		const struct unwind_row *row = unwind_table_find(last->map->module->table, vaddr);
		printf("last frame in user space: %" PRIx64 ", rule %x\n", vaddr,
		       row ? row->rule : 0);
	}
	for (uint32_t i = 0; i < MAX(nr, b->nr_frames) && i < 40; i++)
		printf("  %2u %12" PRIx64 " %12" PRIx64 "%s\n", i,
		       i < b->nr_frames ? (uint64_t)b->frames[i] : 0, i < nr ? frames[i].addr : 0,
		       i < b->nr_frames && i < nr && b->frames[i] == frames[i].addr ? "" : " <");
}

static void compare(struct judge *j, const struct kstack_both *b)
{
	/* Converts registers from DWARF numbers to perf's order. */
	static const uint8_t perf[] = ARCH_PERF_FROM_DWARF;
	uint64_t regs[64];
	for (uint32_t bit = 0, at = 0; bit < 64; bit++)
		for (uint32_t reg = 0; reg < ARCH_NR_DWARF_REG; reg++)
			if (perf[reg] == bit)
				regs[at++] = b->regs[reg];
	uint64_t mask = 0;
	for (uint32_t reg = 0; reg < ARCH_NR_DWARF_REG; reg++)
		mask |= (uint64_t)1 << perf[reg];
	struct walk_input in = {.space = j->process.space,
				.regs = regs,
				.regs_mask = mask,
				.stack = b->stack,
				.nr_stack = b->nr_stack};
	const struct walk_frame *frames;
	uint32_t nr;
	enum walk_end end = walker_walk(j->process.walker, &in, &frames, &nr);

	j->nr++;
	j->nr_frames += b->nr_frames;
	j->nr_ends[b->end & 15]++;
	if (b->end == WALK_ROOT)
		j->nr_root++;
	uint32_t n = MIN(nr, b->nr_frames);
	uint32_t same = 0;
	while (same < n && frames[same].addr == b->frames[same])
		same++;
	bool is_whole =
		nr == b->nr_frames && same == nr && (end == WALK_ROOT) == (b->end == WALK_ROOT);
	/*
	 * This walker cannot go beyond the copied bytes; the BPF walker leaves some stacks to it.
	 */
	bool is_cut = end == WALK_UNREADABLE && same == nr;
	bool is_left = b->end != WALK_ROOT && same == b->nr_frames;
	/* Nor can it read words that are not in the copy: below sp, or on other stacks. */
	bool is_further = end == WALK_BAD_FRAME && same == nr && b->end == WALK_ROOT;
	if (is_whole)
		j->nr_same++;
	else if (is_left)
		j->nr_left++;
	else if (is_cut)
		j->nr_same++;
	else if (is_further)
		j->nr_further++;
	else if (j->nr_differ++ < 3)
		say_difference(b, frames, nr, end);
	if (is_left && b->end != WALK_NEEDS_FULL && j->nr_left <= 2)
		say_difference(b, frames, nr, end);
}

static int on_record(void *ctx, void *data, size_t nr_bytes)
{
	struct judge *j = ctx;
	const struct kstack_timing *t = data;

	(void)nr_bytes;
	if (t->kind == KSTACK_BOTH) {
		compare(j, data);
		return 0;
	}
	j->nr++;
	j->own_ns += (double)t->own_ns;
	j->own_frames += t->nr_own;
	vec_push(&j->own, (double)t->own_ns);
	if (t->nr_own)
		vec_push(&j->own_frame, (double)t->own_ns / t->nr_own);
	else
		j->nr_known++;
	j->nr_rule_misses += t->nr_rule_misses;
	j->nr_map_searches += t->nr_map_searches;
	if (t->nr_own && t->again_ns)
		vec_push(&j->again_frame, (double)t->again_ns / t->nr_own);
	if (t->nr_fp) {
		vec_push(&j->fp_frame, (double)t->fp_ns / t->nr_fp);
		j->fp_ns += (double)t->fp_ns;
		j->fp_frames += t->nr_fp;
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double quantile(double *v, size_t n, double q)
{
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), by_value);
	return v[(size_t)((double)(n - 1) * q)];
}

static void attach_samples(struct bpf_program *prog)
{
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++) {
		struct perf_event_attr attr = {.size = sizeof(attr),
					       .type = PERF_TYPE_SOFTWARE,
					       .config = PERF_COUNT_SW_CPU_CLOCK,
					       .freq = 1,
					       .sample_freq = SAMPLE_HZ};
		int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, 8);
		if (fd >= 0)
			(void)bpf_program__attach_perf_event(prog, fd);
	}
}

static void publish(struct judge *j, struct kstack_bpf *skel, int pid)
{
	size_t nr_bytes = bpf_map__value_size(skel->maps.tables);
	void *p = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(skel->maps.tables), 0);
	if (p == MAP_FAILED)
		return;
	kerneltables_init(&j->tables, &(struct kerneltables_spec){.head = p,
								  .nr_rows = KTABLES_ROWS_DEFAULT,
								  .find_space = find_space,
								  .ctx = j});
	struct kproc proc = {.flags = KPROC_TARGET};
	uint32_t key = (uint32_t)pid;
	(void)kerneltables_alloc_space(&j->tables, &proc.space_idx);
	j->space_idx = proc.space_idx;
	(void)bpf_map_update_elem(bpf_map__fd(skel->maps.procs), &key, &proc, BPF_ANY);
	kerneltables_changed(&j->tables, pid, j->process.space);
	kerneltables_applied(&j->tables, 1, 1);
}

static void report(struct judge *j, const char *what)
{
	if (!strcmp(what, "compare")) {
		printf("%" PRIu64
		       " samples, %.1f frames each: %.2f %% the same, %.2f %% left to user "
		       "space, %" PRIu64 " further, %" PRIu64
		       " differ; %.2f %% to the root there; ends",
		       j->nr, (double)j->nr_frames / (double)MAX(j->nr, 1u),
		       100.0 * (double)j->nr_same / (double)MAX(j->nr, 1u),
		       100.0 * (double)j->nr_left / (double)MAX(j->nr, 1u), j->nr_further,
		       j->nr_differ, 100.0 * (double)j->nr_root / (double)MAX(j->nr, 1u));
		for (uint32_t i = 0; i < WALK_END_NR; i++)
			printf(" %" PRIu64, j->nr_ends[i]);
		printf("\n");
		return;
	}
	printf("%" PRIu64
	       " walks, %.1f frames (by frame pointers %.1f), %.0f %% known; ns p10 %.0f "
	       "median %.0f mean %.0f p90 %.0f; ns a frame median %.1f (by frame pointers %.1f, "
	       "ratio %.2f; once more %.1f); %.2f %% "
	       "rules not cached, %.2f mappings searched for\n",
	       j->nr, (double)j->own_frames / (double)MAX(j->nr - j->nr_known, 1u),
	       (double)j->fp_frames / (double)MAX(j->nr, 1u),
	       100.0 * (double)j->nr_known / (double)MAX(j->nr, 1u),
	       quantile(j->own.p, j->own.n, 0.1), quantile(j->own.p, j->own.n, 0.5),
	       j->own_ns / (double)MAX(j->nr, 1u), quantile(j->own.p, j->own.n, 0.9),
	       quantile(j->own_frame.p, j->own_frame.n, 0.5),
	       quantile(j->fp_frame.p, j->fp_frame.n, 0.5),
	       j->fp_frame.n ? quantile(j->own_frame.p, j->own_frame.n, 0.5) /
				       quantile(j->fp_frame.p, j->fp_frame.n, 0.5)
			     : 0,
	       quantile(j->again_frame.p, j->again_frame.n, 0.5),
	       100.0 * (double)j->nr_rule_misses / (double)MAX(j->own_frames, 1u),
	       (double)j->nr_map_searches / (double)MAX(j->nr - j->nr_known, 1u));
}

static int judge(struct judge *j, struct kstack_bpf *skel, const char *what, int seconds)
{
	bool is_switch = !strncmp(what, "switch", 6);

	if (is_switch)
		(void)bpf_program__attach(skel->progs.time_switch);
	else
		attach_samples(!strcmp(what, "compare") ? skel->progs.emit_both
							: skel->progs.time_sample);
	struct ring_buffer *rb =
		ring_buffer__new(bpf_map__fd(skel->maps.judged), on_record, j, NULL);
	for (int i = 0; rb && i < seconds * 50; i++) {
		(void)ring_buffer__consume(rb);
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = 20000000},
				      NULL);
	}
	(void)ring_buffer__consume(rb);
	ring_buffer__free(rb);
	report(j, what);
	return j->nr && !j->nr_differ ? 0 : 1;
}

int main(int argc, char **argv)
{
	uint64_t seconds, pid;
	struct judge j = {0};

	if (argc != 4 || !num_parse_count(sv_from_str(argv[2]), &seconds) ||
	    !num_parse_count(sv_from_str(argv[3]), &pid)) {
		fprintf(stderr, "usage: kstack compare|time|switch|switch-walk SECONDS PID\n");
		return 2;
	}
	if (!unwind_process_init_pid(&j.process, (int)pid))
		return 2;
	struct kstack_bpf *skel = kstack_bpf__open();
	if (!skel)
		return 2;
	skel->rodata->has_no_stack_cache = !strcmp(argv[1], "switch-walk");
	if (kstack_bpf__load(skel))
		return 2;
	publish(&j, skel, (int)pid);
	int rc = judge(&j, skel, argv[1], (int)seconds);
	kstack_bpf__destroy(skel);
	unwind_process_release(&j.process);
	return rc;
}
