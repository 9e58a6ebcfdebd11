/* Matches frees with allocations and sums; see heapaccount.h. */
#include "base/base.h"
#include "capture/heap/heapaccount.h"

#include <math.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "capture/heap/heapsums.h"
#include "model/heap.h"

#define TICKS_PER_SECOND (1000000000u / HEAP_TICK_NS)
#define BLOCKS_MAX_BYTES ((uint64_t)4 << 30)
#define INDEX_FIRST_LOG2 12
#define LOOKAHEAD        64 /* events prefetched together */
#define STAMP_SHIFT      4
#define LATE_TICKS       16 /* stamps wrap around after a few seconds */
/*
 * Limits for a hostile target that makes up stack ids: from SITES_MAX sites on threads are merged,
 * from twice as many also sizes, and from four times as many new stacks.
 */
#define SITES_MAX     (1u << 20)
#define THREADS_MAX   65000
#define LOG_SCANS_MAX (1u << 26) /* per second */

uint64_t heapclock_ns(const struct heapclock *c, uint64_t tsc)
{
	double ns = (double)(int64_t)(tsc - c->tsc) * c->ns_per_tick;
	return c->ns + (uint64_t)(int64_t)ns;
}

double heapaccount_probability(uint64_t nr_bytes, uint64_t interval_bytes)
{
	if (!interval_bytes || nr_bytes >= interval_bytes)
		return 1;
	return -expm1(-(double)MAX(nr_bytes, (uint64_t)1) / (double)interval_bytes);
}

/* ---- life --------------------------------------------------------------------------------- */

/*
 * At most a quarter of the machine's memory, as a hostile target can make up any number of blocks.
 */
static uint64_t room_for_blocks(void)
{
	long nr_pages = sysconf(_SC_PHYS_PAGES);
	uint64_t all = nr_pages > 0 ? (uint64_t)nr_pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
	return all ? MIN(all / 4, BLOCKS_MAX_BYTES) : BLOCKS_MAX_BYTES;
}

struct heapaccount *heapaccount_new(const struct heapaccount_spec *spec)
{
	struct heapaccount *b = xcalloc(1, sizeof(*b));
	b->spec = *spec;
	b->spec.slices_ns = spec->slices_ns ? spec->slices_ns : spec->start_ns;
	b->level_ns = b->spec.slices_ns;
	b->spec.max_sites = spec->max_sites ? spec->max_sites : SITES_MAX;
	if (getrandom(&b->seed, sizeof(b->seed), GRND_NONBLOCK) != sizeof(b->seed))
		b->seed = (uintptr_t)b ^ clock_mono_ns(); /* no entropy yet early at boot */
	heapblocks_init(&b->blocks, spec->max_bytes ? spec->max_bytes : room_for_blocks(), b->seed);
	b->index_log2 = INDEX_FIRST_LOG2;
	b->index = xcalloc((size_t)1 << b->index_log2, sizeof(*b->index));
	b->thread_of_slot = xcalloc(spec->nr_slots, sizeof(*b->thread_of_slot));
	b->pending_frees = xcalloc(HEAP_PENDING_FREES, sizeof(*b->pending_frees));
	b->peak = 1;
	vec_push(&b->threads,
		 (struct heap_thread_sums){0}); /* index 0: threads beyond THREADS_MAX */
	return b;
}

void heapaccount_free(struct heapaccount *b)
{
	if (!b)
		return;
	heapblocks_release(&b->blocks);
	free(b->sites.memory);
	vec_release(&b->rest);
	vec_release(&b->samples);
	vec_release(&b->threads);
	vec_release(&b->dirty);
	vec_release(&b->preexisting);
	vec_release(&b->mapped);
	map_release(&b->thread_of);
	map_release(&b->mapped_index);
	free(b->index);
	free(b->thread_of_slot);
	free(b->pending_frees);
	free(b);
}

void heapaccount_thread(struct heapaccount *b, uint16_t slot, int32_t tid)
{
	if (slot >= b->spec.nr_slots)
		return;
	uint64_t key = hash_mix((uint32_t)tid, b->seed);
	const uint32_t *known = map_get(&b->thread_of, key);
	uint32_t idx = known ? *known : 0;
	if (!known && b->threads.n < THREADS_MAX) {
		idx = (uint32_t)b->threads.n;
		*map_put(&b->thread_of, key, NULL) = idx;
		vec_push(&b->threads, (struct heap_thread_sums){.tid = tid});
	}
	b->thread_of_slot[slot] = (uint16_t)idx;
}

void heapaccount_site_name(struct heapaccount *b, uint8_t site, const char *name)
{
	b->site_names[site] = name;
}

/* ---- slices ------------------------------------------------------------------------------- */

static uint64_t ns_since(uint64_t from_ns, uint64_t ns)
{
	return ns > from_ns ? ns - from_ns : 0;
}

static uint32_t tick_at(const struct heapaccount *b, uint64_t ns)
{
	uint64_t tick = ns_since(b->spec.start_ns, ns) / HEAP_TICK_NS;
	return (uint32_t)MIN(tick, (uint64_t)UINT32_MAX - 2);
}

static uint64_t tsc_of_ns(const struct heapaccount *b, uint64_t ns)
{
	double ticks = (double)(int64_t)(ns - b->clock.ns) / b->clock.ns_per_tick;
	return b->clock.tsc + (uint64_t)(int64_t)ticks;
}

static void set_bounds(struct heapaccount *b)
{
	uint64_t slice_end = b->spec.slices_ns + heap_slice_end(b->slice_ns);
	uint64_t tick_end = b->spec.start_ns + ((uint64_t)b->tick + 1) * HEAP_TICK_NS;
	b->next_hi = tsc_of_ns(b, MIN(MIN(slice_end, tick_end), b->level_ns));
}

void heapaccount_clock(struct heapaccount *b, const struct heapclock *clock)
{
	b->clock = *clock;
	set_bounds(b);
}

uint64_t heapaccount_reach_ns(const struct heapaccount *b)
{
	return b->spec.slices_ns + b->slice_ns;
}

/* Advances to the slice and tick of @tsc; never back: late events count in the current ones. */
static void advance_to(struct heapaccount *b, uint64_t tsc)
{
	if (LIKELY(tsc < b->next_hi))
		return;
	uint64_t ns = heapclock_ns(&b->clock, tsc);
	if (ns >= b->level_ns)
		heapaccount_emit_level(b, ns);
	uint64_t slice_ns = heap_slice_start(ns_since(b->spec.slices_ns, ns));
	if (slice_ns > b->slice_ns) {
		heapaccount_emit_slice(b);
		b->slice_ns = slice_ns;
	}
	uint32_t tick = tick_at(b, ns);
	if (tick > b->tick) {
		if (tick / TICKS_PER_SECOND > b->tick / TICKS_PER_SECOND)
			b->nr_log_scans = 0;
		b->tick = tick;
	}
	set_bounds(b);
}

void heapaccount_advance(struct heapaccount *b, uint64_t tsc)
{
	advance_to(b, tsc);
	b->advanced_tsc = MAX(b->advanced_tsc, tsc);
}

/* ---- sites -------------------------------------------------------------------------------- */

static uint64_t site_key(uint32_t stack, uint16_t thread, uint16_t size_class)
{
	/* classes start at 1, so no key is 0 */
	return (uint64_t)stack << 32 | (uint64_t)thread << 16 | size_class;
}

static uint64_t site_hash(const struct heapaccount *b, uint64_t key)
{
	return hash_mix(key, b->seed);
}

/* The index uses the high bits of the hash, the tag the low bits. */
static uint32_t index_at(const struct heapaccount *b, uint64_t hash)
{
	return (uint32_t)(hash >> (64 - b->index_log2));
}

static void put_index(struct heapaccount *b, uint64_t hash, uint32_t site)
{
	uint32_t mask = (1u << b->index_log2) - 1;
	uint32_t i = index_at(b, hash);
	while (b->index[i].site)
		i = (i + 1) & mask;
	b->index[i] = (struct heap_index_slot){.site = site + 1, .tag = (uint32_t)hash};
}

static void grow_index(struct heapaccount *b)
{
	free(b->index);
	b->index_log2++;
	b->index = xcalloc((size_t)1 << b->index_log2, sizeof(*b->index));
	for (uint32_t i = 0; i < b->sites.n; i++)
		put_index(b, site_hash(b, b->sites.p[i].key), i);
}

static void grow_sites(struct heapaccount *b)
{
	size_t cap = MAX(b->sites.cap * 2, (size_t)64);
	void *memory = xmalloc((cap + 1) * sizeof(struct heapsite));
	size_t off = (uintptr_t)memory % sizeof(struct heapsite);
	struct heapsite *p = (void *)((char *)memory + (sizeof(struct heapsite) - off));
	if (b->sites.n)
		memcpy(p, b->sites.p, b->sites.n * sizeof(*p));
	free(b->sites.memory);
	b->sites.p = p;
	b->sites.cap = cap;
	b->sites.memory = memory;
}

static uint32_t add_site(struct heapaccount *b, uint64_t key, uint64_t hash)
{
	uint32_t site = (uint32_t)b->sites.n;
	if (b->sites.n == b->sites.cap)
		grow_sites(b);
	b->sites.p[b->sites.n++] = (struct heapsite){.key = key, .peak = b->peak << 1};
	vec_push(&b->rest, (struct heapsite_rest){0});
	if (b->spec.interval_bytes)
		vec_push(&b->samples, (struct heapsite_samples){0});
	if (b->sites.n > ((size_t)3 << b->index_log2) / 4)
		grow_index(b);
	else
		put_index(b, hash, site);
	return site;
}

/* The key with threads, then sizes, merged; used beyond max_sites. */
static uint64_t coarse_key(const struct heapaccount *b, uint64_t key)
{
	if (b->sites.n < 2 * (size_t)b->spec.max_sites)
		return site_key((uint32_t)(key >> 32), 0, (uint16_t)key);
	return site_key((uint32_t)(key >> 32), 0, (uint16_t)key | HEAPSITE_MERGED);
}

static uint32_t find_site(struct heapaccount *b, uint64_t key, uint64_t hash)
{
	size_t max = b->spec.max_sites;
	if (UNLIKELY(b->sites.n >= max)) {
		key = coarse_key(b, key);
		hash = site_hash(b, key);
	}
	uint32_t mask = (1u << b->index_log2) - 1;
	for (uint32_t i = index_at(b, hash);; i = (i + 1) & mask) {
		const struct heap_index_slot *at = &b->index[i];
		if (LIKELY(at->site && at->tag == (uint32_t)hash &&
			   b->sites.p[at->site - 1].key == key))
			return at->site - 1;
		if (at->site)
			continue;
		if (LIKELY(!(key >> 32) || b->sites.n < 4 * max))
			return add_site(b, key, hash);
		key = site_key(0, 0, (uint16_t)key | HEAPSITE_MERGED);
		hash = site_hash(b, key);
		i = index_at(b, hash) - 1;
	}
}

/* Finds a site by the tag only, without reading the site (a cache miss): may be another one. */
static uint32_t likely_site(struct heapaccount *b, uint64_t key, uint64_t hash)
{
	uint32_t mask = (1u << b->index_log2) - 1;
	for (uint32_t i = index_at(b, hash); b->index[i].site; i = (i + 1) & mask)
		if (LIKELY(b->index[i].tag == (uint32_t)hash))
			return b->index[i].site - 1;
	return find_site(b, key, hash);
}

/* Saves the site's sums at the peak, and marks it dirty. */
static void save_peak(struct heapaccount *b, struct heapsite *s, uint32_t idx)
{
	if (s->peak >> 1 != b->peak) {
		s->peak = b->peak << 1 | (s->peak & HEAPSITE_DIRTY);
		s->at_peak = s->allocated;
		heap_sum_sub(&s->at_peak, &s->freed);
		if (b->spec.interval_bytes) {
			struct heapsite_samples *m = &b->samples.p[idx];
			m->nr_at_peak = m->nr_live;
			m->at_peak_variance = m->live_variance;
		}
	}
	if (!(s->peak & HEAPSITE_DIRTY)) {
		s->peak |= HEAPSITE_DIRTY;
		vec_push(&b->dirty, idx);
	}
}

/* Must be called before a site changes. */
static struct heapsite *prepare_change(struct heapaccount *b, uint32_t idx)
{
	struct heapsite *s = &b->sites.p[idx];
	if (UNLIKELY(s->peak != (b->peak << 1 | HEAPSITE_DIRTY)))
		save_peak(b, s, idx);
	return s;
}

/* ---- weights --------------------------------------------------------------------------------- */

struct weight {
	struct heap_sum sum;
	double variance;
};

static struct weight weight_of(const struct heapaccount *b, uint32_t site, uint64_t nr_bytes)
{
	double bytes = (double)nr_bytes;
	if (LIKELY(!b->spec.interval_bytes) || heapsite_is_all(&b->sites.p[site]))
		return (struct weight){{1, bytes}, 0};
	double share = heapaccount_probability(nr_bytes, b->spec.interval_bytes);
	return (struct weight){{1 / share, bytes / share},
			       bytes * bytes * (1 - share) / (share * share)};
}

static void add_alloc(struct heapaccount *b, uint32_t idx, const struct weight *w)
{
	struct heapsite *s = prepare_change(b, idx);
	heap_sum_add(&s->allocated, &w->sum);
	heap_sum_add(&b->live, &w->sum);
	b->info.nr_allocs += w->sum.nr;
	b->info.nr_alloc_bytes += w->sum.nr_bytes;
	if (b->spec.interval_bytes) {
		struct heapsite_samples *m = &b->samples.p[idx];
		m->nr_allocated++;
		m->nr_live++;
		m->allocated_variance += w->variance;
		m->live_variance += w->variance;
		b->info.alloc_variance += w->variance;
	}
}

static void add_free(struct heapaccount *b, uint32_t idx, const struct weight *w)
{
	struct heapsite *s = prepare_change(b, idx);
	heap_sum_add(&s->freed, &w->sum);
	heap_sum_sub(&b->live, &w->sum);
	b->info.nr_frees += w->sum.nr;
	if (b->spec.interval_bytes) {
		struct heapsite_samples *m = &b->samples.p[idx];
		m->nr_freed++;
		m->nr_live--;
		m->freed_variance += w->variance;
		m->live_variance -= w->variance;
		if (!m->nr_live) { /* clear rounding errors */
			struct heap_sum *reported = &b->rest.p[idx].reported;
			*reported = s->freed;
			heap_sum_sub(reported, &s->allocated);
			m->live_variance = 0;
		}
	}
}

static void update_peak(struct heapaccount *b, uint64_t tsc)
{
	if (b->live.nr_bytes <= b->peak_bytes)
		return;
	b->peak_bytes = b->live.nr_bytes;
	b->peak_tsc = tsc;
	b->peak++;
}

/* ---- events ------------------------------------------------------------------------------- */

static uint32_t stamp_of(uint64_t tsc)
{
	return (uint32_t)(tsc >> STAMP_SHIFT);
}

/* Whether @tsc, a recent time, is before the allocation of the block. */
static bool is_before(const struct heapaccount *b, uint64_t tsc, const struct heapblock *block)
{
	if (b->tick > heapblock_tick(block) + LATE_TICKS)
		return false;
	return (int32_t)(stamp_of(tsc) - block->stamp) < 0;
}

static void free_block(struct heapaccount *b, const struct heapblock *block)
{
	struct weight w = weight_of(b, block->site, heapblock_bytes(block));
	add_free(b, block->site, &w);
}

/*
 * Scanning the logs costs a nanosecond per entry. Normal programs have few late events; for a
 * hostile one the scans are limited per second.
 */
static bool may_scan_log(const struct heapaccount *b)
{
	return b->nr_log_scans < LOG_SCANS_MAX;
}

/* Matches a logged free with the late allocation at @tsc, and removes it from the log. */
static bool take_pending_free(struct heapaccount *b, uint64_t addr, uint64_t tsc)
{
	for (uint32_t i = 1; i <= HEAP_PENDING_FREES && may_scan_log(b); i++, b->nr_log_scans++) {
		struct heap_pending_free *o =
			&b->pending_frees[(b->next_pending_free - i) % HEAP_PENDING_FREES];
		if (!o->tsc)
			return false;
		if (o->addr != addr || o->tsc < tsc)
			continue;
		o->addr = 0;
		b->threads.p[o->thread].nr_preexisting--;
		b->info.nr_preexisting--;
		return true;
	}
	return false;
}

/* Logs that @addr was allocated again at @tsc: its earlier free is implied. */
static void add_implied(struct heapaccount *b, uint64_t addr, uint64_t tsc)
{
	b->implied[b->next_implied++ % HEAP_IMPLIED_FREES] = (struct heap_implied_free){addr, tsc};
}

static bool take_implied(struct heapaccount *b, const struct heapring_event *ev)
{
	for (uint32_t i = 1; i <= HEAP_IMPLIED_FREES && may_scan_log(b); i++, b->nr_log_scans++) {
		struct heap_implied_free *o =
			&b->implied[(b->next_implied - i) % HEAP_IMPLIED_FREES];
		if (!o->tsc)
			return false;
		if (o->addr != ev->addr || o->tsc < ev->tsc)
			continue;
		o->addr = 0;
		return true;
	}
	return false;
}

/* For a late allocation: returns whether its block is known to be freed already. */
static bool is_gone(struct heapaccount *b, const struct heapring_event *ev, struct heapblock *there)
{
	b->info.nr_late++;
	bool was_freed = take_pending_free(b, ev->addr, ev->tsc);
	if (!there || !is_before(b, ev->tsc, there))
		return was_freed;
	/* A later block has the address: this one's free has arrived, or is implied. */
	if (!was_freed)
		add_implied(b, ev->addr, b->done_tsc);
	return true;
}

/* Prefetched data of an event. */
struct lookahead {
	uint64_t hash; /* of its address */
	uint64_t key;  /* ALLOC: of its site, and its hash */
	uint64_t key_hash;
	uint32_t site; /* ALLOC: most likely */
};

static void on_alloc(struct heapaccount *b, const struct heapring_event *ev,
		     const struct lookahead *a)
{
	uint16_t thread = b->thread_of_slot[ev->slot];
	uint64_t hash = a->hash;
	uint32_t site = a->site;
	if (UNLIKELY(b->sites.p[site].key != a->key))
		site = find_site(b, a->key, a->key_hash);
	struct weight w = weight_of(b, site, ev->nr_bytes);
	bool is_new;
	b->is_all = ev->is_all;
	if (UNLIKELY(ev->tsc < b->done_tsc) &&
	    is_gone(b, ev, heapblocks_find(&b->blocks, ev->addr, hash))) {
		add_alloc(b, site, &w);
		add_free(b, site, &w);
		return;
	}
	struct heapblock *block = heapblocks_put(&b->blocks, ev->addr, hash, &is_new);
	if (UNLIKELY(!is_new)) {
		b->info.nr_implied++;
		free_block(b, block);
		add_implied(b, ev->addr, ev->tsc);
	}
	add_alloc(b, site, &w);
	b->threads.p[thread].last_addr = ev->addr;
	if (UNLIKELY(!block)) { /* its free will count as one of a block from before the capture */
		b->info.nr_unaccounted++;
		add_free(b, site, &w);
		return;
	}
	heapblock_set(block, ev->addr, ev->nr_bytes, b->tick);
	block->site = site;
	block->stamp = stamp_of(ev->tsc);
	update_peak(b, ev->tsc);
}

static void add_preexisting(struct heapaccount *b, const struct heapring_event *ev, uint16_t thread)
{
	if (b->spec.interval_bytes || b->spec.has_all) {
		b->info.nr_unmatched++;
		return;
	}
	struct heap_thread_sums *t = &b->threads.p[thread];
	b->info.nr_preexisting++;
	t->nr_preexisting++;
	if (!t->is_dirty)
		vec_push(&b->preexisting, thread);
	t->is_dirty = true;
	b->pending_frees[b->next_pending_free++ % HEAP_PENDING_FREES] =
		(struct heap_pending_free){.addr = ev->addr, .tsc = ev->tsc, .thread = thread};
}

static void on_free(struct heapaccount *b, const struct heapring_event *ev, uint64_t hash)
{
	uint16_t thread = b->thread_of_slot[ev->slot];
	struct heap_thread_sums *t = &b->threads.p[thread];
	struct heapblock *block = heapblocks_find(&b->blocks, ev->addr, hash);
	bool is_late = UNLIKELY(ev->tsc < b->done_tsc);
	b->info.nr_late += is_late;
	if (!block || (is_late && is_before(b, ev->tsc, block))) {
		if (!is_late || !take_implied(b, ev))
			add_preexisting(b, ev, thread);
		return;
	}
	struct weight w = weight_of(b, block->site, heapblock_bytes(block));
	add_free(b, block->site, &w);
	if (t->last_addr == ev->addr &&
	    (!b->spec.interval_bytes || (heapsite_is_all(&b->sites.p[block->site]) && b->is_all))) {
		uint16_t by = heapsite_thread(&b->sites.p[block->site]);
		if (by == thread || !by)
			heap_sum_add(&b->rest.p[block->site].temporary, &w.sum);
		t->last_addr = 0;
	}
	heapblocks_remove(&b->blocks, block, hash);
}

static void on_map(struct heapaccount *b, const struct heapring_event *ev)
{
	bool is_map = ev->kind == HEAP_RECORD_MAP;
	uint16_t thread = b->thread_of_slot[ev->slot];
	const char *detail = b->site_names[ev->site];
	uint32_t stack = b->mapped.n < b->spec.max_sites ? ev->stack : 0;
	uint64_t key = hash_mix(site_key(stack, thread, ev->site), b->seed);
	bool is_new;
	uint32_t *idx = map_put(&b->mapped_index, key, &is_new);
	if (is_new) {
		*idx = (uint32_t)b->mapped.n;
		vec_push(&b->mapped,
			 (struct heap_mapped){.stack = stack, .thread = thread, .detail = detail});
	}
	struct heap_mapped *m = &b->mapped.p[*idx];
	m->nr_calls++;
	int64_t *sum = is_map ? &m->nr_bytes : &m->nr_unmapped;
	if (__builtin_add_overflow(*sum, (int64_t)ev->nr_bytes, sum))
		*sum = INT64_MAX;
}

static bool is_valid(const struct heapaccount *b, const struct heapring_event *ev)
{
	return LIKELY(ev->slot < b->spec.nr_slots && ev->addr);
}

/*
 * Both tables exceed the caches: prefetch their entries some dozens of events ahead.
 */
static void prefetch_batch(struct heapaccount *b, const struct heapring_event *events,
			   struct lookahead *a, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct heapring_event *ev = &events[i];
		a[i].hash = heapblocks_hash(&b->blocks, ev->addr);
		heapblocks_prefetch(&b->blocks, a[i].hash);
		if (ev->kind != HEAP_RECORD_ALLOC || !is_valid(b, ev))
			continue;
		uint16_t thread = b->thread_of_slot[ev->slot];
		a[i].key =
			site_key(ev->stack, thread,
				 heap_size_class(ev->nr_bytes) | (ev->is_all ? HEAPSITE_ALL : 0));
		a[i].key_hash = site_hash(b, a[i].key);
		__builtin_prefetch(&b->index[index_at(b, a[i].key_hash)]);
	}
	for (size_t i = 0; i < n; i++) {
		const struct heapring_event *ev = &events[i];
		if (ev->kind == HEAP_RECORD_ALLOC && is_valid(b, ev)) {
			a[i].site = likely_site(b, a[i].key, a[i].key_hash);
			__builtin_prefetch(&b->sites.p[a[i].site], 1);
		} else if (ev->kind == HEAP_RECORD_FREE) {
			/*
			 * A block allocated in this batch is not in the table yet, but its site is
			 * cached.
			 */
			const struct heapblock *block =
				heapblocks_find(&b->blocks, ev->addr, a[i].hash);
			if (block)
				__builtin_prefetch(&b->sites.p[block->site], 1);
		}
	}
}

void heapaccount_add(struct heapaccount *b, const struct heapring_event *events, size_t n)
{
	struct lookahead lookahead[LOOKAHEAD];
	for (size_t i = 0; i < n; i++) {
		const struct heapring_event *ev = &events[i];
		const struct lookahead *a = &lookahead[i % LOOKAHEAD];
		if (i % LOOKAHEAD == 0)
			prefetch_batch(b, ev, lookahead, MIN(n - i, (size_t)LOOKAHEAD));
		advance_to(b, ev->tsc);
		if (!is_valid(b, ev))
			continue;
		if (ev->kind == HEAP_RECORD_ALLOC)
			on_alloc(b, ev, a);
		else if (ev->kind == HEAP_RECORD_FREE)
			on_free(b, ev, a->hash);
		else
			on_map(b, ev);
		b->done_tsc = MAX(b->done_tsc, ev->tsc);
	}
}
