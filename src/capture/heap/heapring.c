/* Reads the recorder's rings; see heapring.h. */
#include "base/base.h"
#include "capture/heap/heapring.h"

#include "base/clock.h"
#include "base/mem.h"
#include "kernel_python.h"

#define AHEAD_MAX      ((uint64_t)1 << 36) /* ticks: a stamp further in the future is invalid */
#define ALLOC_MAX_BITS 47                  /* no allocation is larger than the address space */
#define COUNT_SLACK    1000000000u         /* events more than nanoseconds since the begin */
#define PUBLISH_AT     8                   /* the tail is published after 1/8 of a ring */
/* More than the recorder can have: its set has 524288 entries, and few are written twice. */
#define STACKS_MAX (1u << 21)
#define FRAMES_MAX (1u << 26) /* total: words of stacks, Python frames and code objects */

/* The recorder's counters in a slot. */
struct slot_counts {
	struct heap_class_count classes[HEAP_COUNT_CLASSES];
	uint64_t nr_frees;
	uint64_t nr_dropped;
	uint64_t dropped_bytes;
};

struct slot_totals {
	struct slot_counts seen; /* counters at the last read; they may restart */
	struct slot_counts sum;
};

struct heapring_reader {
	const uint8_t *ring;
	uint64_t at;        /* total bytes read */
	uint64_t head;      /* of this drain */
	uint64_t word;      /* first word of the event at `at`, when it was read */
	uint64_t next_tsc;  /* its time */
	uint64_t published; /* tail in shared memory */
	uint32_t ring_bytes;
	int32_t tid; /* 0 = none */
	bool is_broken;
	bool is_taken;              /* in r->taken */
	uint64_t retired_ns;        /* when the slot was retired; 0 = it was not */
	struct slot_totals *totals; /* NULL: the slot was never in use */
};

/* Reads a word that the target may change, exactly once. */
static uint64_t once(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static uint32_t once32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* ---- life --------------------------------------------------------------------------------- */

void heapring_init(struct heapring *r, const struct heapring_spec *spec)
{
	*r = (struct heapring){.spec = *spec, .nr_taken_reported = UINT32_MAX};
	r->begin_ns = clock_mono_ns();
	r->readers = xcalloc(spec->nr_slots, sizeof(*r->readers));
	r->queue = xcalloc(spec->nr_slots, sizeof(*r->queue));
	r->taken = xcalloc(spec->nr_slots, sizeof(*r->taken));
	for (uint32_t i = 0; i < spec->nr_slots; i++)
		r->readers[i].ring = spec->rings[i];
}

void heapring_release(struct heapring *r)
{
	for (uint32_t i = 0; r->readers && i < r->spec.nr_slots; i++)
		free(r->readers[i].totals);
	free(r->readers);
	free(r->queue);
	free(r->taken);
	*r = (struct heapring){0};
}

/* ---- one ring ----------------------------------------------------------------------------- */

static void publish(struct heapring *r, struct heapring_reader *d)
{
	struct heap_slot *slot = &r->spec.slots[d - r->readers];
	d->published = d->at;
	__atomic_store_n(&slot->tail, d->at, __ATOMIC_RELEASE);
}

/* Discards the ring's records from now on; its owner never waits for room. */
static void give_up(struct heapring *r, struct heapring_reader *d)
{
	r->nr_broken += !d->is_broken;
	d->is_broken = true;
	d->at = d->head;
	publish(r, d);
}

/* The word at this offset, in words, from the reader's position. */
static uint64_t word_at(const struct heapring_reader *d, uint32_t i)
{
	uint64_t at = (d->at + 8 * (uint64_t)i) & (d->ring_bytes - 1);
	return once((const uint64_t *)(const void *)(d->ring + at));
}

static uint64_t tsc_of(const struct heapring *r, uint64_t word)
{
	uint64_t low = word >> HEAP_TSC_SHIFT;
	unsigned up = 64 - HEAP_TSC_BITS;
	return r->now_tsc + (uint64_t)((int64_t)((low - r->now_tsc) << up) >> up);
}

static const uint8_t nr_words[HEAP_KIND_MASK + 1] = {
	[HEAP_RECORD_ALLOC] = 3,  [HEAP_RECORD_ALLOC_ALL] = 3, [HEAP_RECORD_MAP] = 3,
	[HEAP_RECORD_UNMAP] = 3,  [HEAP_RECORD_FREE] = 2,      [HEAP_RECORD_STACK] = 2,
	[HEAP_RECORD_PYCODE] = 2, [HEAP_RECORD_PYSTACK] = 3,
};

/* Whether that many words follow without wrapping around. */
static bool has_words(const struct heapring_reader *d, uint32_t nr)
{
	uint64_t to_end = d->ring_bytes - (d->at & (d->ring_bytes - 1));
	return 8 * (uint64_t)nr <= MIN(d->head - d->at, to_end);
}

/* Returns whether the record's @nr words after its first @head are there, and counts them. */
static bool may_take(struct heapring *r, const struct heapring_reader *d, uint32_t head,
		     uint32_t nr)
{
	if (!has_words(d, head + nr) || r->nr_stacks >= STACKS_MAX ||
	    r->nr_frames + nr > FRAMES_MAX)
		return false;
	r->nr_stacks++;
	r->nr_frames += nr;
	return true;
}

static bool take_stack(struct heapring *r, struct heapring_reader *d)
{
	uint64_t word = word_at(d, 1);
	uint32_t nr = (uint32_t)(word >> 32) & 0xffff;
	uint32_t end = (uint32_t)(word >> 48);
	if (nr > HEAP_FRAMES_MAX || end >= WALK_END_NR || !may_take(r, d, 2, nr))
		return false;
	uint64_t frames[HEAP_FRAMES_MAX];
	for (uint32_t i = 0; i < nr; i++)
		frames[i] = word_at(d, 2 + i);
	r->spec.on_stack(r->spec.ctx, (uint32_t)word, frames, nr, (enum walk_end)end);
	d->at += 8 * (2 + (uint64_t)nr);
	return true;
}

static bool take_pycode(struct heapring *r, struct heapring_reader *d)
{
	union {
		struct kernel_pycode code;
		uint64_t words[(sizeof(struct kernel_pycode) + PYTHON_LINES_BYTES) / 8];
	} x;
	uint64_t nr_bytes = word_at(d, 1);
	uint32_t nr = (uint32_t)((nr_bytes + 7) / 8);
	if (nr_bytes < sizeof(x.code) || nr_bytes > sizeof(x) || !may_take(r, d, 2, nr))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		x.words[i] = word_at(d, 2 + i);
	x.code.head = (struct kernel_record){.kind = RECORD_PYCODE, .nr_bytes = (uint32_t)nr_bytes};
	if (r->spec.on_python)
		r->spec.on_python(r->spec.ctx, &x.code.head);
	d->at += 8 * (2 + (uint64_t)nr);
	return true;
}

static bool take_pystack(struct heapring *r, struct heapring_reader *d)
{
	union {
		struct kernel_pystack stack;
		uint64_t words[(sizeof(struct kernel_pystack) +
				PYTHON_FRAMES_MAX * sizeof(struct python_frame)) /
			       8];
	} x;
	uint64_t ids = word_at(d, 1);
	uint64_t counts = word_at(d, 2);
	uint32_t nr_frames = (uint32_t)counts;
	uint32_t nr = nr_frames * (uint32_t)(sizeof(struct python_frame) / 8);
	if (nr_frames > PYTHON_FRAMES_MAX || !may_take(r, d, 3, nr))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		x.words[sizeof(x.stack) / 8 + i] = word_at(d, 3 + i);
	x.stack = (struct kernel_pystack){.head = {.kind = RECORD_PYSTACK,
						   .flags = PYSTACK_NO_LEAF,
						   .nr_bytes = (uint32_t)sizeof(x.stack) + 8 * nr},
					  .ref = (uint32_t)ids,
					  .native_ref = ids >> 32,
					  .nr_frames = nr_frames,
					  .end = (uint32_t)(counts >> 32)};
	if (r->spec.on_python)
		r->spec.on_python(r->spec.ctx, &x.stack.head);
	d->at += 8 * (3 + (uint64_t)nr);
	return true;
}

/*
 * Takes a record that is no event. Frames of Python are taken when all that they refer to is written
 * (heap_wire.h).
 */
static bool take_other(struct heapring *r, struct heapring_reader *d, unsigned kind)
{
	return kind == HEAP_RECORD_STACK    ? take_stack(r, d)
	       : kind == HEAP_RECORD_PYCODE ? take_pycode(r, d)
					    : take_pystack(r, d);
}

/*
 * Advances to the next event of this drain; false: none. Passes stacks to the callback, skips
 * padding.
 */
static bool find_next(struct heapring *r, struct heapring_reader *d)
{
	while (d->at < d->head) {
		uint64_t word = word_at(d, 0);
		unsigned kind = word & HEAP_KIND_MASK;
		if (word == HEAP_RECORD_PAD) {
			uint64_t to_end = d->ring_bytes - (d->at & (d->ring_bytes - 1));
			if (to_end > d->head - d->at)
				break;
			d->at += to_end;
			continue;
		}
		uint32_t nr = nr_words[kind];
		if (!nr || !has_words(d, nr))
			break;
		if (kind == HEAP_RECORD_STACK || kind == HEAP_RECORD_PYCODE) {
			if (!take_other(r, d, kind))
				break;
			continue;
		}
		d->word = word;
		d->next_tsc = tsc_of(r, word);
		if (d->next_tsc <= r->now_tsc && kind == HEAP_RECORD_PYSTACK) {
			if (!take_other(r, d, kind))
				break;
			continue;
		}
		if (d->next_tsc <= r->now_tsc)
			return true;
		if (d->next_tsc - r->now_tsc <= AHEAD_MAX)
			return false;
		break;
	}
	if (d->at < d->head)
		give_up(r, d);
	return false;
}

static void take_event(struct heapring *r, struct heapring_reader *d, struct heapring_event *to)
{
	uint64_t word = d->word;
	uint64_t first = word_at(d, 1);
	unsigned kind = word & HEAP_KIND_MASK;
	*to = (struct heapring_event){.tsc = d->next_tsc,
				      .addr = first & HEAP_ADDR_MASK,
				      .slot = (uint16_t)(d - r->readers),
				      .kind = kind == HEAP_RECORD_ALLOC_ALL ? HEAP_RECORD_ALLOC
									    : (uint8_t)kind,
				      .is_all = kind == HEAP_RECORD_ALLOC_ALL,
				      .site = (uint8_t)(word >> HEAP_SITE_SHIFT)};
	if (kind == HEAP_RECORD_FREE) {
		d->at += 16;
		return;
	}
	uint64_t second = word_at(d, 2);
	to->nr_bytes = second & HEAP_ADDR_MASK;
	to->stack = (uint32_t)(first >> HEAP_STACK_SHIFT) | (uint32_t)(second >> HEAP_STACK_SHIFT)
								    << 16;
	d->at += 24;
}

/* ---- the merge: a heap with the earliest record on top ------------------------------------- */

static uint64_t queued_tsc(const struct heapring *r, uint32_t i)
{
	return i < r->nr_queued ? r->readers[r->queue[i]].next_tsc : UINT64_MAX;
}

static void sink_down(struct heapring *r, uint32_t i)
{
	uint16_t moved = r->queue[i];
	uint64_t tsc = r->readers[moved].next_tsc;
	for (;;) {
		uint32_t child = 2 * i + 1;
		child += queued_tsc(r, child + 1) < queued_tsc(r, child);
		if (queued_tsc(r, child) >= tsc)
			break;
		r->queue[i] = r->queue[child];
		i = child;
	}
	r->queue[i] = moved;
}

static void remove_top(struct heapring *r)
{
	r->queue[0] = r->queue[--r->nr_queued];
	if (r->nr_queued)
		sink_down(r, 0);
}

/* ---- drains ---------------------------------------------------------------------------------- */

/* Growth of a counter since it was last read; if it is smaller now, it restarted at 0. */
static uint64_t growth(uint64_t *seen, uint64_t now)
{
	uint64_t by = now >= *seen ? now - *seen : now;
	*seen = now;
	return by;
}

static void add_growth(uint64_t *sum, uint64_t *seen, uint64_t now)
{
	*sum = u64_add(*sum, growth(seen, now));
}

static void add_counts(struct heapring_reader *d, const struct heap_slot *s)
{
	struct slot_totals *t = d->totals;
	if (!t)
		t = d->totals = xcalloc(1, sizeof(*t));
	for (unsigned i = 0; i < HEAP_COUNT_CLASSES; i++) {
		struct heap_class_count *sum = &t->sum.classes[i];
		struct heap_class_count *seen = &t->seen.classes[i];
		add_growth(&sum->nr, &seen->nr, once(&s->classes[i].nr));
		add_growth(&sum->nr_bytes, &seen->nr_bytes, once(&s->classes[i].nr_bytes));
	}
	add_growth(&t->sum.nr_frees, &t->seen.nr_frees, once(&s->nr_frees));
	add_growth(&t->sum.dropped_bytes, &t->seen.dropped_bytes, once(&s->dropped_bytes));
	add_growth(&t->sum.nr_dropped, &t->seen.nr_dropped, once32(&s->nr_dropped));
}

static void note_thread(struct heapring *r, struct heapring_reader *d, const struct heap_slot *s)
{
	int32_t tid = (int32_t)once32(&s->tid);
	if (tid == d->tid || tid <= 0)
		return;
	d->tid = tid;
	r->nr_threads++;
	r->spec.on_thread(r->spec.ctx, (uint16_t)(d - r->readers), tid);
}

static uint32_t size_of_ring(const struct heapring *r, const struct heap_slot *s)
{
	uint32_t n = once32(&s->ring_bytes);
	bool is_good = n >= HEAP_SMALL_RING_BYTES && n < r->spec.ring_bytes && !(n & (n - 1));
	return is_good ? n : r->spec.ring_bytes;
}

/* Finds slots newly in use; most never are. A wrong nr_taken only loses the target's own data. */
static void find_taken(struct heapring *r)
{
	uint32_t nr = __atomic_load_n(&r->spec.shared->nr_taken, __ATOMIC_ACQUIRE);
	if (nr == r->nr_taken_reported)
		return;
	r->nr_taken_reported = nr;
	for (uint32_t i = 0; i < r->spec.nr_slots; i++) {
		if (r->readers[i].is_taken || !once(&r->spec.slots[i].owner))
			continue;
		r->readers[i].is_taken = true;
		r->taken[r->nr_taken++] = (uint16_t)i;
	}
}

static void open_ring(struct heapring *r, uint32_t i)
{
	struct heapring_reader *d = &r->readers[i];
	const struct heap_slot *s = &r->spec.slots[i];
	uint64_t head = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE);
	if (head == d->at && d->tid)
		return;
	note_thread(r, d, s);
	d->head = head;
	if (!d->ring_bytes)
		d->ring_bytes = size_of_ring(r, s);
	if (d->is_broken || head < d->at || head - d->at > d->ring_bytes || head % 8) {
		give_up(r, d);
		return;
	}
	uint64_t times = r->spec.ring_bytes / d->ring_bytes;
	r->fullest_bytes = MAX(r->fullest_bytes, (head - d->at) * times);
	if (find_next(r, d))
		r->queue[r->nr_queued++] = (uint16_t)i;
	else if (d->at != d->published)
		publish(r, d);
}

void heapring_begin(struct heapring *r, uint64_t now_tsc)
{
	r->now_tsc = now_tsc;
	r->nr_queued = 0;
	r->fullest_bytes = 0;
	__atomic_store_n(&r->spec.shared->alive_tsc, now_tsc, __ATOMIC_RELAXED);
	find_taken(r);
	for (uint32_t i = 0; i < r->nr_taken; i++)
		open_ring(r, r->taken[i]);
	for (uint32_t i = r->nr_queued / 2; i-- > 0;)
		sink_down(r, i);
}

size_t heapring_next(struct heapring *r, struct heapring_event *to, size_t max)
{
	size_t n = 0;
	while (n < max && r->nr_queued) {
		struct heapring_reader *d = &r->readers[r->queue[0]];
		uint64_t until = MIN(queued_tsc(r, 1), queued_tsc(r, 2));
		bool has_next = true;
		while (n < max && has_next && d->next_tsc <= until) {
			take_event(r, d, &to[n++]);
			has_next = find_next(r, d);
		}
		if (!has_next || d->at - d->published >= d->ring_bytes / PUBLISH_AT)
			publish(r, d);
		if (has_next)
			sink_down(r, 0);
		else
			remove_top(r);
	}
	r->nr_events += n;
	return n;
}

/* ---- threads that ended ------------------------------------------------------------------- */

/* Another thread may own the slot already and not have written yet. */
static int32_t tid_of(const struct heapring_reader *d, const struct heap_slot *s)
{
	int32_t tid = (int32_t)once32(&s->tid);
	return tid > 0 ? tid : d->tid;
}

static bool swap_owner(struct heap_slot *s, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&s->owner, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

/* The thread has ended. */
static void give_up_slot(struct heapring *r, struct heapring_reader *d, uint64_t now_ns)
{
	struct heap_slot *s = &r->spec.slots[d - r->readers];
	uint64_t owner = once(&s->owner);
	if (!owner || owner & 1 || __atomic_load_n(&s->head, __ATOMIC_ACQUIRE) != d->at)
		return;   /* try again later */
	add_counts(d, s); /* the next owner restarts the counters */
	if (swap_owner(s, owner, owner | 1))
		d->retired_ns = MAX(now_ns, 1u);
}

/* Frees a slot retired long enough: no thread has the same thread pointer. */
static void hand_on(struct heapring *r, struct heapring_reader *d, uint64_t now_ns)
{
	struct heap_slot *s = &r->spec.slots[d - r->readers];
	uint64_t owner = once(&s->owner);
	if (!(owner & 1)) {
		d->retired_ns = 0; /* claimed again */
		return;
	}
	if (now_ns - d->retired_ns < HEAP_RETIRE_NS || once32(&s->is_inside) ||
	    __atomic_load_n(&s->head, __ATOMIC_ACQUIRE) != d->at)
		return;
	d->retired_ns = 0;
	if (owner != HEAP_OWNER_FREE)
		(void)swap_owner(s, owner, HEAP_OWNER_FREE);
}

void heapring_retire(struct heapring *r, uint64_t now_ns, bool (*is_alive)(void *ctx, int32_t tid),
		     void *ctx)
{
	for (uint32_t i = 0; i < r->nr_taken; i++) {
		struct heapring_reader *d = &r->readers[r->taken[i]];
		const struct heap_slot *s = &r->spec.slots[r->taken[i]];
		if (d->retired_ns)
			hand_on(r, d, now_ns);
		else if (!(once(&s->owner) & 1) && d->tid && !is_alive(ctx, tid_of(d, s)))
			give_up_slot(r, d, now_ns);
	}
}

void heapring_thread_ended(struct heapring *r, uint64_t now_ns, int32_t tid)
{
	for (uint32_t i = 0; i < r->nr_taken; i++) {
		struct heapring_reader *d = &r->readers[r->taken[i]];
		if (d->tid == tid && tid_of(d, &r->spec.slots[r->taken[i]]) == tid)
			give_up_slot(r, d, now_ns);
	}
}

/*
 * A thread, or an atomic addition, cannot count more than one event per nanosecond. The two counts
 * of a class are not read at the same time, so their quotient is not checked.
 */
static bool is_plausible(const struct slot_counts *c, uint64_t max)
{
	uint64_t nr = 0;
	uint64_t nr_bytes = 0;
	for (unsigned i = 0; i < HEAP_COUNT_CLASSES; i++) {
		nr = u64_add(nr, c->classes[i].nr);
		nr_bytes = u64_add(nr_bytes, c->classes[i].nr_bytes);
	}
	return nr <= max && c->nr_frees <= max && c->nr_dropped <= max &&
	       nr_bytes >> ALLOC_MAX_BITS <= nr &&
	       c->dropped_bytes >> ALLOC_MAX_BITS <= c->nr_dropped;
}

static void add_plausible(struct heapring_counts *sum, const struct slot_counts *c, uint64_t max)
{
	if (!is_plausible(c, max)) {
		sum->has_implausible = true;
		return;
	}
	for (unsigned i = 0; i < HEAP_COUNT_CLASSES; i++) {
		sum->classes[i].nr += c->classes[i].nr;
		sum->classes[i].nr_bytes =
			u64_add(sum->classes[i].nr_bytes, c->classes[i].nr_bytes);
		sum->nr_allocs += c->classes[i].nr;
		sum->nr_bytes = u64_add(sum->nr_bytes, c->classes[i].nr_bytes);
	}
	sum->nr_frees += c->nr_frees;
	sum->nr_dropped += c->nr_dropped;
	sum->dropped_bytes = u64_add(sum->dropped_bytes, c->dropped_bytes);
}

static uint64_t plausible(struct heapring_counts *sum, uint64_t nr, uint64_t max)
{
	sum->has_implausible |= nr > max;
	return nr <= max ? nr : 0;
}

struct heapring_counts heapring_counts(const struct heapring *r)
{
	const struct heap_shared *shared = r->spec.shared;
	uint64_t max = clock_mono_ns() - r->begin_ns + COUNT_SLACK;
	struct heapring_counts sum = {
		.nr_events = r->nr_events,
		.nr_threads = r->nr_threads,
		.nr_broken = r->nr_broken,
		.is_tsc_forbidden = *(const volatile uint32_t *)&shared->is_tsc_forbidden != 0,
		.inert_tsc = once(&shared->went_inert_tsc)};
	for (uint32_t i = 0; i < r->spec.nr_slots; i++) {
		struct heapring_reader *d = &r->readers[i];
		if (!d->tid)
			continue;
		add_counts(d, &r->spec.slots[i]);
		add_plausible(&sum, &d->totals->sum, max);
	}
	struct slot_counts no_slot = {.nr_dropped = once(&shared->nr_no_slot),
				      .dropped_bytes = once(&shared->nr_no_slot_bytes)};
	add_plausible(&sum, &no_slot, max);
	sum.nr_no_stack = plausible(&sum, once(&shared->nr_no_stack), max);
	sum.nr_no_python = plausible(&sum, once(&shared->nr_no_python), max);
	sum.nr_no_block = plausible(&sum, once(&shared->nr_no_block), max);
	return sum;
}
