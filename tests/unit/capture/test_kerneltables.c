/* capture/bpf/kerneltables and rangepool: what the BPF walker would read after each step. */
#include "base/base.h"
#include "tap.h"

#include "base/mem.h"
#include "capture/bpf/kerneltables.h"
#include "capture/bpf/rangepool.h"

#define NR_ROWS 1024u

/* Process N (1..NR_PIDS-1) has space N, unless it has ended. */
#define NR_PIDS 64

struct unwind_process {
	struct kerneltables k;
	struct ktables_head *head;
	struct spaces spaces;
	bool is_gone[NR_PIDS];
	int nr_finds_until_gone; /* -1 = never */
};

static bool find_space(void *ctx, int32_t pid, uint32_t *ret_idx)
{
	struct unwind_process *w = ctx;
	if (w->nr_finds_until_gone == 0)
		return false;
	if (w->nr_finds_until_gone > 0)
		w->nr_finds_until_gone--;
	if (pid <= 0 || pid >= NR_PIDS || w->is_gone[pid])
		return false;
	*ret_idx = (uint32_t)pid;
	return true;
}

static struct unwind_process *process_new(void)
{
	struct unwind_process *w = xcalloc(1, sizeof(*w));
	w->nr_finds_until_gone = -1;
	w->head = xcalloc(1, KTABLES_HEAD_BYTES + NR_ROWS * sizeof(struct unwind_row));
	w->head->next_space = NR_PIDS;
	kerneltables_init(&w->k, &(struct kerneltables_spec){.head = w->head,
							     .nr_rows = NR_ROWS,
							     .find_space = find_space,
							     .ctx = w});
	return w;
}

static void process_free(struct unwind_process *w)
{
	kerneltables_release(&w->k);
	spaces_release(&w->spaces);
	free(w->head);
	free(w);
}

/* A binary of @nr_rows rows in two pages, each with its number as the rule. */
struct binary {
	struct unwind_table table;
	struct unwind_module module;
	struct unwind_row rows[NR_ROWS];
	uint32_t pages[3];
	struct unwind_special specials[2];
};

static void binary_init(struct binary *b, uint32_t nr_rows, uint32_t seed)
{
	*b = (struct binary){0};
	for (uint32_t i = 0; i < nr_rows; i++)
		b->rows[i] = (struct unwind_row){.pc = i * 16, .rule = seed + i};
	b->pages[1] = nr_rows / 2;
	b->pages[2] = nr_rows;
	b->specials[1].cfa_off = (int32_t)seed;
	b->table = (struct unwind_table){.base = 0x1000,
					 .rows = b->rows,
					 .nr_rows = nr_rows,
					 .pages = b->pages,
					 .nr_pages = 2,
					 .specials = b->specials,
					 .nr_specials = 2};
	b->module.table = &b->table;
}

static struct space *map_at(struct unwind_process *w, int32_t pid, uint64_t start,
			    const struct unwind_module *m)
{
	struct space *sp = spaces_get(&w->spaces, pid);
	space_add(&w->spaces, sp,
		  &(struct space_map){
			  .start = start, .end = start + 0x1000, .bias = start, .module = m});
	return sp;
}

static uint32_t nr_now(const struct unwind_process *w, int32_t pid)
{
	return (uint32_t)(w->head->spaces[pid].now >> 16 & 0xffff);
}

static const struct kmap *kmap_now(const struct unwind_process *w, int32_t pid, uint32_t i)
{
	return &w->head->maps[(w->head->spaces[pid].now & 0xffff) + i];
}

static const struct unwind_row *row_now(const struct unwind_process *w, uint32_t i)
{
	const uint8_t *rows = (const uint8_t *)w->head + KTABLES_HEAD_BYTES;
	return &((const struct unwind_row *)(const void *)rows)[i];
}

TEST(rangepool_equals_a_bitmap_after_random_allocations)
{
	enum { N = 256 };
	struct rangepool p;
	rangepool_init(&p, 0, N);
	bool is_used[N] = {0};
	struct rangepool_gap held[N];
	size_t nr_held = 0;
	uint64_t seed = 7;
	for (int i = 0; i < 20000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		uint32_t n = 1 + (uint32_t)(seed >> 40) % 20;
		uint32_t start;
		if ((seed >> 33 & 1) && rangepool_alloc(&p, n, &start)) {
			for (uint32_t k = start; k < start + n; k++) {
				CHECK(k < N && !is_used[k]);
				is_used[k] = true;
			}
			held[nr_held++] = (struct rangepool_gap){start, n};
		} else if (nr_held) {
			size_t at = (size_t)(seed >> 20) % nr_held;
			for (uint32_t k = held[at].start; k < held[at].start + held[at].n; k++)
				is_used[k] = false;
			rangepool_free(&p, held[at].start, held[at].n);
			held[at] = held[--nr_held];
		}
	}
	while (nr_held) {
		nr_held--;
		rangepool_free(&p, held[nr_held].start, held[nr_held].n);
	}
	CHECK_U64(p.gaps.n, 1);
	CHECK_U64(p.gaps.p[0].n, N);
	CHECK_U64(p.nr_used, 0);
	rangepool_release(&p);
}

TEST(kerneltables_of_two_processes_share_the_rows_of_a_binary)
{
	struct unwind_process *w = process_new();
	static struct binary a;
	static struct binary b;
	binary_init(&a, 100, 1000);
	binary_init(&b, 50, 2000);
	(void)map_at(w, 1, 0x400000, &b.module);
	kerneltables_changed(&w->k, 1, map_at(w, 1, 0x500000, &a.module));
	kerneltables_changed(&w->k, 2, map_at(w, 2, 0x700000, &a.module));
	CHECK_U64(nr_now(w, 1), 2);
	CHECK_U64(nr_now(w, 2), 1);
	CHECK_U64(w->k.row_pool.nr_used, 150);
	const struct kmap *m = kmap_now(w, 1, 1);
	const struct kmap *same = kmap_now(w, 2, 0);
	CHECK_U64(m->start, 0x500000);
	CHECK_U64(m->base, 0x501000);
	CHECK_U64(same->base, 0x701000);
	CHECK_U64(m->kind, KMAP_RULES);
	CHECK_U64(m->first_row, same->first_row);
	CHECK_U64(m->end_row - m->first_row, 100);
	CHECK_U64(row_now(w, m->first_row + 7)->rule, 1007);
	CHECK_U64(w->head->pages[m->first_page + 1], m->first_row + 50);
	CHECK_U64(w->head->pages[m->first_page + 2], m->end_row);
	CHECK_U64(w->head->specials[m->first_special + 1].cfa_off, 1000);
	CHECK(w->head->spaces[1].now >> 32 != w->head->spaces[2].now >> 32);
	process_free(w);
}

TEST(kerneltables_say_where_a_process_has_its_python_interpreter)
{
	struct unwind_process *w = process_new();
	static const struct python_layout layout = {.runtime = 0x9000, .code_type = 0x8000};
	static struct binary a;
	static struct binary python;
	binary_init(&a, 10, 0);
	binary_init(&python, 10, 0);
	python.module.python = &layout;
	kerneltables_changed(&w->k, 1, map_at(w, 1, 0x400000, &a.module));
	CHECK_U64(w->head->spaces[1].python, 0);
	(void)map_at(w, 2, 0x400000, &a.module);
	kerneltables_changed(&w->k, 2, map_at(w, 2, 0x500000, &python.module));
	CHECK_U64(w->head->spaces[2].python >> 32, w->head->spaces[2].now >> 32);
	const struct kmap *m = &w->head->maps[(uint32_t)w->head->spaces[2].python - 1];
	CHECK_U64(m->start, 0x500000);
	CHECK_U64(m->base + w->head->pythons[m->python_1 - 1].runtime, 0x509000);
	CHECK_U64(m->base + w->head->pythons[m->python_1 - 1].code_type, 0x508000);
	/* The same binary at another address. */
	kerneltables_changed(&w->k, 3, map_at(w, 3, 0x700000, &python.module));
	const struct kmap *other = &w->head->maps[(uint32_t)w->head->spaces[3].python - 1];
	CHECK_U64(other->python_1, m->python_1);
	CHECK_U64(other->base, 0x701000);
	process_free(w);
}

TEST(kerneltables_a_fork_has_its_parents_range)
{
	struct unwind_process *w = process_new();
	static struct binary a;
	binary_init(&a, 10, 0);
	kerneltables_changed(&w->k, 1, map_at(w, 1, 0x400000, &a.module));
	spaces_fork(&w->spaces, 2, 1);
	kerneltables_changed(&w->k, 2, spaces_find(&w->spaces, 2));
	CHECK_U64(w->head->spaces[2].now, w->head->spaces[1].now);
	CHECK_U64(w->k.map_pool.nr_used, 1);
	process_free(w);
}

TEST(kerneltables_publishes_nothing_after_an_exec_that_was_not_applied)
{
	struct unwind_process *w = process_new();
	static struct binary a;
	binary_init(&a, 10, 0);
	w->head->spaces[1].exec_ns = 500;
	w->head->spaces[1].now = (uint64_t)77 << 32;
	kerneltables_applied(&w->k, 499, 499);
	kerneltables_changed(&w->k, 1, map_at(w, 1, 0x400000, &a.module));
	CHECK_U64(nr_now(w, 1), 0);
	CHECK(!kerneltables_is_published(&w->k, 1));
	kerneltables_applied(&w->k, 500, 500);
	CHECK_U64(nr_now(w, 1), 1);
	CHECK(kerneltables_is_published(&w->k, 1));
	/* A later exec that only the BPF programs have seen; the known mappings are the same. */
	w->head->spaces[1].exec_ns = 600;
	w->head->spaces[1].now = (uint64_t)78 << 32;
	CHECK(!kerneltables_is_published(&w->k, 1));
	kerneltables_missed(&w->k, 1);
	CHECK_U64(nr_now(w, 1), 0);
	kerneltables_applied(&w->k, 600, 600);
	CHECK_U64(nr_now(w, 1), 1);
	process_free(w);
}

TEST(kerneltables_do_not_publish_for_a_process_that_has_ended)
{
	struct unwind_process *w = process_new();
	static struct binary a;
	binary_init(&a, 10, 0);
	w->nr_finds_until_gone = 1;
	kerneltables_changed(&w->k, 1, map_at(w, 1, 0x400000, &a.module));
	CHECK_U64(w->head->spaces[1].now, 0);
	process_free(w);
}

TEST(kerneltables_free_rows_of_unmapped_binaries_after_a_second)
{
	struct unwind_process *w = process_new();
	static struct binary a;
	static struct binary b;
	const uint64_t s = 1000000000;
	binary_init(&a, 900, 0);
	binary_init(&b, 800, 5000);
	kerneltables_changed(&w->k, 1, map_at(w, 1, 0x400000, &a.module));
	kerneltables_applied(&w->k, 10 * s, 10 * s);
	kerneltables_changed(&w->k, 1, NULL);
	w->head->spaces[1].now = 0; /* as the BPF programs do for the next process */
	kerneltables_changed(&w->k, 2, map_at(w, 2, 0x400000, &b.module));
	CHECK_U64(kmap_now(w, 2, 0)->kind, KMAP_MISSING);
	CHECK_U64(w->k.nr_full, 1);
	kerneltables_applied(&w->k, 12 * s, 12 * s);
	kerneltables_changed(&w->k, 3, map_at(w, 3, 0x400000, &b.module));
	CHECK_U64(kmap_now(w, 3, 0)->kind, KMAP_RULES);
	CHECK_U64(row_now(w, kmap_now(w, 3, 0)->first_row)->rule, 5000);
	CHECK_U64(w->k.nr_full, 1);
	process_free(w);
}

TEST(kerneltables_keep_a_range_that_a_forked_child_uses)
{
	struct unwind_process *w = process_new();
	static struct binary a;
	const uint64_t s = 1000000000;
	binary_init(&a, 10, 0);
	kerneltables_changed(&w->k, 1, map_at(w, 1, 0x400000, &a.module));
	w->head->spaces[2].now = w->head->spaces[1].now;
	kerneltables_changed(&w->k, 1, map_at(w, 1, 0x600000, &a.module));
	CHECK_U64(w->k.map_pool.nr_used, 3);
	kerneltables_applied(&w->k, 10 * s, 10 * s);
	CHECK_U64(w->k.map_pool.nr_used, 3);
	w->head->spaces[2].now = 0;
	kerneltables_applied(&w->k, 12 * s, 12 * s);
	CHECK_U64(w->k.map_pool.nr_used, 2);
	process_free(w);
}

TEST(kerneltables_merge_adjacent_jit_mappings)
{
	struct unwind_process *w = process_new();
	static const struct unwind_module jit = {.is_jit = true};
	static const struct unwind_module missing = {.is_missing = true};
	for (uint64_t at = 0; at < 64; at++)
		(void)map_at(w, 1, 0x400000 + at * 0x1000, &jit);
	kerneltables_changed(&w->k, 1, map_at(w, 1, 0x440000, &missing));
	CHECK_U64(nr_now(w, 1), 2);
	CHECK_U64(kmap_now(w, 1, 0)->end, 0x440000);
	CHECK_U64(kmap_now(w, 1, 0)->kind, KMAP_JIT);
	CHECK_U64(kmap_now(w, 1, 1)->kind, KMAP_MISSING);
	process_free(w);
}
