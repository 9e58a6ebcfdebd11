/* Stack references of copied stacks; see copyref.h. */
#include "base/base.h"
#include "capture/bpf/copyref.h"

#include "arch.h"
#include "base/hash.h"

#define REPORTED_MAX 1000000 /* then the set is cleared, and stacks are delivered again */

struct copyref_range {
	uint64_t start;
	uint64_t end;
};

struct copyref_code {
	VEC(struct copyref_range) ranges; /* sorted, disjoint */
	uint32_t generation;              /* number of execs of this pid */
};

void copyrefs_release(struct copyrefs *c)
{
	vec_foreach(code, &c->codes)
		vec_release(&code->ranges);
	vec_release(&c->codes);
	map_release(&c->code_of_pid);
	map_release(&c->reported);
	map_release(&c->last);
	vec_release(&c->last_refs);
}

static struct copyref_code *code_of(struct copyrefs *c, int32_t pid)
{
	uint32_t *idx = map_put(&c->code_of_pid, (uint32_t)pid, NULL);
	if (!*idx) {
		(void)vec_add(&c->codes);
		*idx = (uint32_t)c->codes.n;
	}
	return &c->codes.p[*idx - 1];
}

/* The first range that ends after the address. */
static size_t find_range(const struct copyref_code *code, uint64_t addr)
{
	return upper_bound(code->ranges.p, code->ranges.n, end, addr);
}

/* Unmapped ranges are kept: hashing a word too many only gives the stack another reference. */
static void add_range(struct copyref_code *code, uint64_t start, uint64_t end)
{
	size_t at = find_range(code, start);
	size_t last = at;
	while (last < code->ranges.n && code->ranges.p[last].start <= end) {
		start = MIN(start, code->ranges.p[last].start);
		end = MAX(end, code->ranges.p[last].end);
		last++;
	}
	if (last == at) {
		(void)vec_add(&code->ranges);
		memmove(code->ranges.p + at + 1, code->ranges.p + at,
			(code->ranges.n - 1 - at) * sizeof(*code->ranges.p));
	} else {
		memmove(code->ranges.p + at + 1, code->ranges.p + last,
			(code->ranges.n - last) * sizeof(*code->ranges.p));
		code->ranges.n -= last - at - 1;
	}
	code->ranges.p[at] = (struct copyref_range){start, end};
}

static void copy_code(struct copyrefs *c, int32_t from_pid, int32_t to_pid)
{
	struct copyref_code *to = code_of(c, to_pid);
	vec_clear(&to->ranges);
	to->generation++;
	const uint32_t *from = map_get(&c->code_of_pid, (uint32_t)from_pid);
	if (!from)
		return;
	const struct copyref_code *parent = &c->codes.p[*from - 1];
	for (size_t i = 0; i < parent->ranges.n; i++)
		vec_push(&to->ranges, parent->ranges.p[i]);
}

void copyrefs_apply(struct copyrefs *c, const struct event *ev)
{
	if (ev->kind == EVENT_MAP && ev->map.is_exec && !ev->map.is_kernel) {
		add_range(code_of(c, ev->pid), ev->map.start, ev->map.start + ev->map.len);
	} else if (ev->kind == EVENT_FORK && ev->pid != ev->fork.ppid) {
		copy_code(c, ev->fork.ppid, ev->pid);
	} else if (ev->kind == EVENT_COMM && ev->comm.is_exec) {
		struct copyref_code *code = code_of(c, ev->pid);
		vec_clear(&code->ranges);
		code->generation++;
	}
}

static bool is_in_code(const struct copyref_code *code, uint64_t addr)
{
	size_t at = find_range(code, addr);
	return at < code->ranges.n && code->ranges.p[at].start <= addr;
}

bool copyrefs_is_code(struct copyrefs *c, int32_t pid, uint64_t addr)
{
	return is_in_code(code_of(c, pid), addr);
}

static uint64_t hash_copy(const struct copyref_code *code, int32_t pid, const uint64_t *regs,
			  const uint8_t *stack, uint64_t nr_stack)
{
	uint64_t sp = regs[ARCH_PERF_SP];
	uint64_t h = hash_mix((uint64_t)(uint32_t)pid << 32 | code->generation, regs[ARCH_PERF_IP]);
	h = hash_mix(hash_mix(h, sp), regs[ARCH_PERF_FP]);
	for (uint64_t off = 0; off + 8 <= nr_stack; off += 8) {
		uint64_t word;
		memcpy(&word, stack + off, sizeof(word));
		if (word - sp < nr_stack || (word > 65536 && is_in_code(code, word)))
			h = hash_mix(hash_mix(h, off), word);
	}
	return h ? h : 1;
}

int copyrefs_emit(struct copyrefs *c, const struct event *at, const uint64_t *regs,
		  const uint8_t *stack, uint64_t nr_stack, const struct event_sink *sink,
		  uint64_t *ret_ref, struct err *err)
{
	uint64_t ref = hash_copy(code_of(c, at->pid), at->pid, regs, stack, nr_stack);
	*ret_ref = ref;
	if (c->reported.n > REPORTED_MAX)
		map_clear(&c->reported);
	bool is_new;
	(void)map_put(&c->reported, ref, &is_new);
	if (!is_new)
		return 0;
	c->nr_reported++;
	struct event ev = {.kind = EVENT_STACK,
			   .time_ns = at->time_ns,
			   .pid = at->pid,
			   .tid = at->tid,
			   .cpu = -1,
			   .stack = {.ref = ref,
				     .loss = LOSS_NR,
				     .regs = regs,
				     .regs_mask = ARCH_PERF_REGS_MASK,
				     .stack = stack,
				     .nr_stack = nr_stack}};
	return sink->event(sink->ctx, &ev, err);
}

static uint64_t hash_thread_pc_sp(int32_t tid, uint64_t ip, uint64_t sp)
{
	return hash_mix(hash_mix((uint64_t)(uint32_t)tid, ip), sp);
}

uint64_t copyrefs_last(const struct copyrefs *c, int32_t tid, uint64_t ip, uint64_t sp)
{
	const uint32_t *idx = map_get(&c->last, hash_thread_pc_sp(tid, ip, sp));
	return idx && *idx ? c->last_refs.p[*idx - 1] : 0;
}

void copyrefs_set_last(struct copyrefs *c, int32_t tid, uint64_t ip, uint64_t sp, uint64_t ref)
{
	uint32_t *idx = map_put(&c->last, hash_thread_pc_sp(tid, ip, sp), NULL);
	if (!*idx) {
		vec_push(&c->last_refs, 0);
		*idx = (uint32_t)c->last_refs.n;
	}
	c->last_refs.p[*idx - 1] = ref;
}
