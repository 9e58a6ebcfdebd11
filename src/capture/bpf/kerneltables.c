/* Fills the tables of the BPF walker; see kerneltables.h and wire/kernel_tables.h. */
#include "base/base.h"
#include "capture/bpf/kerneltables.h"

#define QUARANTINE_NS 1000000000u /* before memory is reused: longer than any walk */
#define COLLECT_NS    1000000000u
#define SWAP_TRIES    8
#define NONE          UINT32_MAX

enum ktable_state { KTABLE_OUT = 0, KTABLE_IN, KTABLE_NO_ROOM };

/* A binary. It keeps its pages for ever, and its rows while a process maps it. */
struct ktable {
	const struct unwind_table *table;
	enum ktable_state state;
	bool has_pages;
	bool was_refused; /* counted once */
	uint32_t first_row;
	uint32_t first_page;
	uint32_t first_special;
	uint32_t nr_users; /* ranges */
};

struct krange {
	uint32_t key; /* generation of the space that it describes; 0 = free entry */
	uint32_t generation;
	uint32_t first;
	uint32_t nr;
	uint32_t python_1;  /* 1 + index into maps[] of the Python interpreter; 0 = none */
	uint32_t nr_users;  /* processes */
	uint64_t unused_ns; /* since when nr_users is 0 */
	VEC(uint32_t) tables;
};

struct kprocess {
	int32_t pid; /* 0 = free entry */
	bool is_dirty;
	uint32_t range; /* NONE = nothing published */
	uint32_t space_idx;
	const struct space *space;
};

/* ---- life -------------------------------------------------------------------------------- */

void kerneltables_init(struct kerneltables *k, const struct kerneltables_spec *spec)
{
	*k = (struct kerneltables){.spec = *spec};
	k->rows = (void *)((uint8_t *)spec->head + KTABLES_HEAD_BYTES);
	rangepool_init(&k->row_pool, 0, spec->nr_rows);
	rangepool_init(&k->map_pool, 0, KTABLES_NR_MAPS);
	rangepool_init(&k->page_pool, 0, KTABLES_NR_PAGES);
	rangepool_init(&k->special_pool, 0, KTABLES_NR_SPECIALS);
}

void kerneltables_release(struct kerneltables *k)
{
	vec_foreach(r, &k->ranges)
		vec_release(&r->tables);
	vec_release(&k->tables);
	vec_release(&k->ranges);
	vec_release(&k->processes);
	vec_release(&k->pythons);
	vec_release(&k->free_ranges);
	vec_release(&k->free_processes);
	vec_release(&k->dirty);
	map_release(&k->table_of);
	map_release(&k->range_of);
	map_release(&k->process_of);
	rangepool_release(&k->row_pool);
	rangepool_release(&k->map_pool);
	rangepool_release(&k->page_pool);
	rangepool_release(&k->special_pool);
}

bool kerneltables_alloc_space(struct kerneltables *k, uint32_t *ret_idx)
{
	uint32_t idx = __atomic_fetch_add(&k->spec.head->next_space, 1, __ATOMIC_RELAXED);
	*ret_idx = idx;
	return idx < KTABLES_NR_SPACES;
}

/* ---- binaries ---------------------------------------------------------------------------- */

static struct ktable *table_of(struct kerneltables *k, const struct unwind_table *t)
{
	bool is_new;
	uint32_t *idx = map_put(&k->table_of, (uintptr_t)t, &is_new);
	if (is_new) {
		*idx = (uint32_t)k->tables.n + 1;
		vec_push(&k->tables, (struct ktable){.table = t});
	}
	return &k->tables.p[*idx - 1];
}

static bool alloc_table(struct kerneltables *k, struct ktable *t)
{
	const struct unwind_table *u = t->table;
	if (!t->has_pages && !rangepool_alloc(&k->page_pool, u->nr_pages + 1, &t->first_page))
		return false;
	t->has_pages = true;
	if (!rangepool_alloc(&k->special_pool, u->nr_specials, &t->first_special))
		return false;
	if (rangepool_alloc(&k->row_pool, u->nr_rows, &t->first_row))
		return true;
	rangepool_free(&k->special_pool, t->first_special, u->nr_specials);
	return false;
}

static void evict(struct kerneltables *k, struct ktable *t)
{
	rangepool_free(&k->row_pool, t->first_row, t->table->nr_rows);
	rangepool_free(&k->special_pool, t->first_special, t->table->nr_specials);
	t->state = KTABLE_OUT;
}

static void evict_unused(struct kerneltables *k)
{
	vec_foreach(t, &k->tables)
		if (t->state == KTABLE_IN && !t->nr_users)
			evict(k, t);
}

static bool write_table(struct kerneltables *k, struct ktable *t)
{
	if (t->state == KTABLE_IN)
		return true;
	bool has_room = alloc_table(k, t);
	if (!has_room) {
		evict_unused(k);
		has_room = alloc_table(k, t);
	}
	if (!has_room) {
		k->nr_full += !t->was_refused;
		t->was_refused = true;
		return false;
	}
	const struct unwind_table *u = t->table;
	memcpy(k->rows + t->first_row, u->rows, u->nr_rows * sizeof(*u->rows));
	if (u->nr_specials)
		memcpy(k->spec.head->specials + t->first_special, u->specials,
		       u->nr_specials * sizeof(*u->specials));
	for (uint32_t i = 0; i <= u->nr_pages; i++)
		k->spec.head->pages[t->first_page + i] = t->first_row + u->pages[i];
	t->state = KTABLE_IN;
	return true;
}

/* ---- ranges of mappings ------------------------------------------------------------------ */

static void use_table(struct kerneltables *k, struct krange *r, struct ktable *t)
{
	uint32_t idx = (uint32_t)(t - k->tables.p);
	t->nr_users++;
	vec_push(&r->tables, idx);
}

/* Publishes where the interpreter keeps its frames. Returns 1 + its index; 0: there is no room. */
static uint32_t write_python(struct kerneltables *k, const struct space_map *m)
{
	const struct python_layout *l = m->module->python;
	if (!l)
		return 0;
	for (uint32_t i = 0; i < k->pythons.n; i++)
		if (k->pythons.p[i] == l)
			return i + 1;
	if (k->pythons.n == KTABLES_NR_PYTHONS)
		return 0;
	struct python_layout *to = &k->spec.head->pythons[k->pythons.n];
	*to = *l;
	to->runtime -= m->module->table->base;
	to->code_type -= m->module->table->base;
	to->eval_from -= m->module->table->base;
	to->eval_to -= m->module->table->base;
	vec_push(&k->pythons, l);
	return (uint32_t)k->pythons.n;
}

static struct kmap kmap_of(struct kerneltables *k, struct krange *r, const struct space_map *m)
{
	struct kmap map = {.start = m->start, .end = m->end, .kind = KMAP_NONE};
	const struct unwind_table *u = m->module->table;
	if (m->module->is_jit) {
		map.kind = KMAP_JIT;
		return map;
	}
	if (!u || !u->nr_rows) {
		map.kind = m->module->is_missing ? KMAP_MISSING : KMAP_NONE;
		return map;
	}
	struct ktable *t = table_of(k, u);
	if (!write_table(k, t)) {
		map.kind = KMAP_MISSING;
		return map;
	}
	use_table(k, r, t);
	map.kind = KMAP_RULES;
	map.base = m->bias + u->base;
	map.first_page = t->first_page;
	map.nr_pages = u->nr_pages;
	map.first_row = t->first_row;
	map.end_row = t->first_row + u->nr_rows;
	map.first_special = t->first_special;
	map.nr_specials = u->nr_specials;
	map.python_1 = write_python(k, m);
	return map;
}

/* A JIT maps its code piece by piece. */
static bool can_merge(const struct kmap *a, const struct kmap *b)
{
	return a->kind == KMAP_JIT && b->kind == KMAP_JIT && a->end == b->start;
}

static void free_range(struct kerneltables *k, uint32_t idx)
{
	struct krange *r = &k->ranges.p[idx];
	rangepool_free(&k->map_pool, r->first, r->nr);
	for (size_t i = 0; i < r->tables.n; i++)
		k->tables.p[r->tables.p[i]].nr_users--;
	vec_release(&r->tables);
	uint32_t *slot = map_get(&k->range_of, r->key);
	if (slot && *slot == idx + 1)
		(void)map_del(&k->range_of, r->key);
	*r = (struct krange){0};
	vec_push(&k->free_ranges, idx);
}

static bool fill_range(struct kerneltables *k, struct krange *r, const struct space *sp)
{
	if (sp->maps.n > KSPACE_MAPS_MAX)
		return false;
	VEC(struct kmap) maps = {0};
	for (size_t i = 0; i < sp->maps.n; i++) {
		struct kmap m = kmap_of(k, r, &sp->maps.p[i]);
		if (maps.n && can_merge(vec_last(&maps), &m))
			vec_last(&maps)->end = m.end;
		else
			vec_push(&maps, m);
	}
	r->nr = (uint32_t)maps.n;
	bool has_room = rangepool_alloc(&k->map_pool, r->nr, &r->first);
	for (uint32_t i = 0; has_room && i < r->nr && !r->python_1; i++)
		if (maps.p[i].python_1)
			r->python_1 = r->first + i + 1;
	if (has_room && r->nr)
		memcpy(k->spec.head->maps + r->first, maps.p, r->nr * sizeof(*maps.p));
	vec_release(&maps);
	return has_room;
}

static uint32_t next_generation(struct kerneltables *k)
{
	if (++k->last_generation == 0)
		k->last_generation = 1;
	return k->last_generation;
}

/* The range for this space, created if new. NONE: no room. */
static uint32_t range_of(struct kerneltables *k, const struct space *sp)
{
	const uint32_t *known = map_get(&k->range_of, sp->generation);
	if (known)
		return *known - 1;
	struct krange r = {.key = sp->generation, .generation = next_generation(k)};
	if (!fill_range(k, &r, sp)) {
		for (size_t i = 0; i < r.tables.n; i++)
			k->tables.p[r.tables.p[i]].nr_users--;
		vec_release(&r.tables);
		return NONE;
	}
	uint32_t idx;
	if (k->free_ranges.n) {
		idx = k->free_ranges.p[--k->free_ranges.n];
		k->ranges.p[idx] = r;
	} else {
		idx = (uint32_t)k->ranges.n;
		vec_push(&k->ranges, r);
	}
	*map_put(&k->range_of, sp->generation, NULL) = idx + 1;
	return idx;
}

static uint64_t python_of(const struct krange *r)
{
	return r->python_1 ? (uint64_t)r->generation << 32 | r->python_1 : 0;
}

static uint64_t pack_of(const struct kerneltables *k, uint32_t range)
{
	const struct krange *r = &k->ranges.p[range];
	return kspace_pack(r->first, r->nr, r->generation);
}

/* ---- processes --------------------------------------------------------------------------- */

static struct kprocess *process_of(struct kerneltables *k, int32_t pid)
{
	const uint32_t *idx = map_get(&k->process_of, (uint32_t)pid);
	return idx ? &k->processes.p[*idx - 1] : NULL;
}

static struct kprocess *add_process(struct kerneltables *k, int32_t pid)
{
	uint32_t idx;
	if (k->free_processes.n) {
		idx = k->free_processes.p[--k->free_processes.n];
	} else {
		idx = (uint32_t)k->processes.n;
		(void)vec_add(&k->processes);
	}
	*map_put(&k->process_of, (uint32_t)pid, NULL) = idx + 1;
	k->processes.p[idx] = (struct kprocess){.pid = pid, .range = NONE};
	return &k->processes.p[idx];
}

static void set_range(struct kerneltables *k, struct kprocess *p, uint32_t range)
{
	if (range != NONE)
		k->ranges.p[range].nr_users++;
	if (p->range != NONE && --k->ranges.p[p->range].nr_users == 0)
		k->ranges.p[p->range].unused_ns = k->applied_ns;
	p->range = range;
}

enum published { PUBLISHED, LATER, UNKNOWN };

static enum published publish(struct kerneltables *k, struct kprocess *p)
{
	uint32_t idx;
	if (!k->spec.find_space(k->spec.ctx, p->pid, &idx) || idx >= KTABLES_NR_SPACES)
		return UNKNOWN;
	struct kspace *s = &k->spec.head->spaces[idx];
	uint32_t range = range_of(k, p->space);
	if (range == NONE)
		return LATER;
	uint64_t pack = pack_of(k, range);
	for (unsigned i = 0; i < SWAP_TRIES; i++) {
		uint64_t now = __atomic_load_n(&s->now, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&s->exec_ns, __ATOMIC_ACQUIRE) > k->applied_ns)
			return LATER;
		__atomic_store_n(&s->python, python_of(&k->ranges.p[range]), __ATOMIC_RELEASE);
		if (now != pack && !__atomic_compare_exchange_n(&s->now, &now, pack, false,
								__ATOMIC_RELEASE, __ATOMIC_RELAXED))
			continue;
		uint32_t again;
		if (!k->spec.find_space(k->spec.ctx, p->pid, &again) || again != idx) {
			/* The process has ended, and its space may belong to another one. */
			(void)__atomic_compare_exchange_n(&s->now, &pack, now, false,
							  __ATOMIC_RELEASE, __ATOMIC_RELAXED);
			return UNKNOWN;
		}
		set_range(k, p, range);
		p->space_idx = idx;
		return PUBLISHED;
	}
	return LATER;
}

static void try_publish(struct kerneltables *k, struct kprocess *p)
{
	bool is_later = publish(k, p) == LATER;
	if (is_later && !p->is_dirty)
		vec_push(&k->dirty, p->pid);
	p->is_dirty = is_later;
}

void kerneltables_changed(struct kerneltables *k, int32_t pid, const struct space *sp)
{
	struct kprocess *p = process_of(k, pid);
	if (!sp) {
		if (!p)
			return;
		set_range(k, p, NONE);
		vec_push(&k->free_processes, (uint32_t)(p - k->processes.p));
		*p = (struct kprocess){.range = NONE};
		(void)map_del(&k->process_of, (uint32_t)pid);
		return;
	}
	if (!p)
		p = add_process(k, pid);
	p->space = sp;
	try_publish(k, p);
}

bool kerneltables_is_published(const struct kerneltables *k, int32_t pid)
{
	const uint32_t *idx = map_get(&k->process_of, (uint32_t)pid);
	const struct kprocess *p = idx ? &k->processes.p[*idx - 1] : NULL;
	if (!p || p->range == NONE || k->ranges.p[p->range].key != p->space->generation)
		return false;
	const struct kspace *s = &k->spec.head->spaces[p->space_idx];
	return __atomic_load_n(&s->now, __ATOMIC_RELAXED) == pack_of(k, p->range);
}

void kerneltables_missed(struct kerneltables *k, int32_t pid)
{
	struct kprocess *p = process_of(k, pid);
	if (p && !p->is_dirty && !kerneltables_is_published(k, pid))
		try_publish(k, p);
}

/* ---- freeing unused memory     ------------------------------------------------------------ */

/* Marks ranges that spaces refer to; the BPF programs copy them from parent to child. */
static void find_ranges_in_use(const struct kerneltables *k, struct map *in_use)
{
	uint32_t n = __atomic_load_n(&k->spec.head->next_space, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < MIN(n, KTABLES_NR_SPACES); i++) {
		uint64_t now = __atomic_load_n(&k->spec.head->spaces[i].now, __ATOMIC_RELAXED);
		if (now)
			(void)map_put(in_use, now >> 32, NULL);
	}
}

static void free_unused(struct kerneltables *k, uint64_t now_ns)
{
	struct map in_use = {0};
	bool has_looked = false;
	for (uint32_t i = 0; i < k->ranges.n; i++) {
		struct krange *r = &k->ranges.p[i];
		if (!r->key || r->nr_users || r->unused_ns + QUARANTINE_NS > now_ns)
			continue;
		if (!has_looked)
			find_ranges_in_use(k, &in_use);
		has_looked = true;
		if (map_get(&in_use, r->generation))
			r->unused_ns = now_ns;
		else
			free_range(k, i);
	}
	map_release(&in_use);
}

void kerneltables_applied(struct kerneltables *k, uint64_t time_ns, uint64_t now_ns)
{
	k->applied_ns = MAX(k->applied_ns, time_ns);
	size_t n = k->dirty.n;
	for (size_t i = 0; i < n; i++) {
		struct kprocess *p = process_of(k, k->dirty.p[i]);
		if (!p || !p->is_dirty)
			continue;
		p->is_dirty = false;
		try_publish(k, p);
	}
	if (n) /* those that are still dirty were appended again */
		memmove(k->dirty.p, k->dirty.p + n, (k->dirty.n - n) * sizeof(*k->dirty.p));
	k->dirty.n -= n;
	if (now_ns < k->collected_ns + COLLECT_NS)
		return;
	k->collected_ns = now_ns;
	free_unused(k, now_ns);
}
