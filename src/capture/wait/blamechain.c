/*
 * Attribution of waits to what other threads did; see blamechain.h.
 *
 *	blamechain_add ─► history ─► (lag later) resolve: parts of the wait ─► rows by second
 *	                     ▲                    │ stored with the interval, for waits
 *	                     └────────────────────┘ that are attributed later
 *
 * The lag makes wake-ups known that happened before the end of a wait but whose threads ran later,
 * and the intervals that followed.
 */
#include "base/base.h"
#include "capture/wait/blamechain.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "capture/wait/blamehistory.h"
#include "capture/wait/blamelocks.h"
#include "capture/wait/blameparts.h"
#include "capture/wait/blamerows.h"
#include "kernel_wait.h"
#include "wait_reason.h"

#define INTERVALS_DEFAULT (1u << 17)
#define PARTS_DEFAULT     (1u << 18)
#define CAUSES_MAX        (1u << 18) /* then those without parts are forgotten */
#define LAG_NS_DEFAULT    (100 * NS_PER_MS)
/* Waits for other threads that were not attributed yet: chains of owners, see resolve. */
#define DEPTH_MAX 16
/* A wait that timed out is continued by the next one at the same object if it ran less between. */
#define CONTINUE_NS (200 * NS_PER_US)
/* A yield belongs to the wait that follows if the thread ran less between. */
#define YIELD_GAP_NS (20 * NS_PER_US)
/* Last intervals of a thread in which its wait for a lock is looked for. */
#define LOOK_BACK 16
/* ... in which its wait for another word of the lock is looked for. */
#define JOIN_LOOK_BACK 4
#define LOCK_BYTES_MAX 16 /* from the first to the last word of a lock */
#define WORDS_MAX      65536

struct blamechain {
	struct blamehistory h;
	struct blamelocks locks;
	uint64_t epoch_ns;
	uint64_t lag_ns;
	uint64_t next_due; /* sequence number of the first entry that is not attributed yet */
	struct blameparts scratch[DEPTH_MAX + 1];
	struct blameparts of_second;
	struct blamecauses causes;
	struct blamerows rows;
	struct map
		word_of; /* hash of a futex word -> bytes from it to the first word of its lock */
	struct blamechain_counts counts;
};

/* ---- which waits, and for what ------------------------------------------------------------- */

/*
 * Whether a thread that ended a wait of this reason is its cause. Else a device, a timer or the
 * scheduler is, whoever ran when it ended.
 */
static bool is_for_thread(uint8_t reason)
{
	static const bool is_for[WAIT_NR] = {
		[WAIT_SYNC] = true,       [WAIT_MMAP_LOCK] = true, [WAIT_POLL] = true,
		[WAIT_NET] = true,        [WAIT_PIPE] = true,      [WAIT_CHILD] = true,
		[WAIT_FILE_OTHER] = true,                      /* flock */
		[WAIT_KERNEL] = true,     [WAIT_OTHER] = true, /* semop, msgrcv */
	};
	return reason < WAIT_NR && is_for[reason];
}

static bool is_ended_by_thread(const struct wait_interval *v)
{
	return v->how == HOW_BLOCKED && v->waker_tid && v->waker_tid != v->tid &&
	       v->woken_ns > v->off_ns && is_for_thread(v->reason);
}

/* No thread ended it, but the lock word named an owner. */
static bool is_for_owner(const struct wait_interval *v)
{
	return v->how == HOW_BLOCKED && !v->waker_tid && v->owner_tid && v->owner_tid != v->tid &&
	       v->woken_ns > v->off_ns && v->reason == WAIT_SYNC;
}

static uint64_t word_key(int32_t tgid, uint64_t address)
{
	return hash_mix(address, (uint64_t)(uint32_t)tgid << 32 | OBJECT_FUTEX) | 1;
}

/* The address of the first word of the lock to which a futex word belongs. */
static uint64_t first_word(const struct blamechain *bc, int32_t tgid, uint64_t address)
{
	const uint32_t *bytes = map_get(&bc->word_of, word_key(tgid, address));
	return bytes ? address - *bytes : address;
}

/* Key of an object whose waiters wait for one of them at a time, as for a lock; 0: none. */
static uint64_t object_key(const struct blamechain *bc, const struct wait_interval *v)
{
	uint64_t process = (uint64_t)(uint32_t)v->tgid << 32;
	if (v->reason == WAIT_MMAP_LOCK)
		return hash_mix(process, WAIT_MMAP_LOCK) | 1;
	switch ((enum wait_object_kind)v->object_kind) {
	case OBJECT_FUTEX:
		return word_key(v->tgid, first_word(bc, v->tgid, v->object));
	case OBJECT_PIPE:
		return hash_mix(v->object, (uint64_t)v->dev << 32 | OBJECT_PIPE) | 1;
	case OBJECT_FILE:
		if (v->reason != WAIT_FILE_OTHER)
			return 0;
		return hash_mix(v->object, (uint64_t)v->dev << 32 | OBJECT_FILE) | 1;
	case OBJECT_OTHER: /* eventfds share one inode */
		if (v->reason != WAIT_PIPE)
			return 0;
		return hash_mix(process | (uint32_t)v->fd, OBJECT_OTHER) | 1;
	case OBJECT_SOCKET:
	case OBJECT_NONE:
		break;
	}
	return 0;
}

/* ---- what a thread did --------------------------------------------------------------------- */

static void resolve(struct blamechain *bc, struct blamehistory_entry *e, unsigned depth);

/* Whether a part of [start, end) is blamed on the thread. */
static bool is_blamed(const struct blamechain *bc, const struct blame_part *parts, uint32_t nr,
		      int32_t tid, uint64_t start_ns, uint64_t end_ns)
{
	for (uint32_t i = 0; i < nr; i++)
		if (parts[i].start_ns < end_ns && parts[i].end_ns > start_ns &&
		    bc->causes.all.p[parts[i].cause].tid == tid)
			return true;
	return false;
}

/* Whether a thread that ended a wait for the lock had waited for the same lock: it did not have it then. */
static bool is_for_same(const struct blamechain *bc, const struct blamehistory_entry *e,
			const struct blameparts *to)
{
	return to->object_key && object_key(bc, &e->v) == to->object_key;
}

/*
 * The thread was blocked in [start, end), a part of the interval. If it waited for the waiter itself
 * (both ends of a pipe have one object), its own wait is the cause: nobody is blamed on itself. If it waited for
 * the same lock, the waiter waited directly for whom it waited for.
 */
static void add_blocked(struct blamechain *bc, unsigned depth, struct blameparts *to,
			const struct blame_culprit *c, struct blamehistory_entry *e,
			uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns >= end_ns)
		return;
	bool is_new = e->state == ENTRY_NEW && (is_ended_by_thread(&e->v) || is_for_owner(&e->v));
	if (is_new && depth < DEPTH_MAX)
		resolve(bc, e, depth + 1);
	if (e->state != ENTRY_RESOLVED) {
		blameparts_add(to, c, start_ns, end_ns, (enum wait_reason)e->v.reason,
			       e->v.user_ref);
		return;
	}
	const struct blame_part *parts = blamehistory_parts(&bc->h, e);
	struct blame_culprit unknown = {0};
	struct blame_culprit direct = {c->tgid, c->tid, e->v.user_ref, true};
	if (parts && is_blamed(bc, parts, e->nr_parts, to->waiter_tid, start_ns, end_ns))
		blameparts_add(to, c, start_ns, end_ns, (enum wait_reason)e->v.reason,
			       e->v.user_ref);
	else if (parts)
		blameparts_add_clipped(to, parts, e->nr_parts, e->is_merged, start_ns, end_ns,
				       is_for_same(bc, e, to) ? NULL : &direct);
	else
		blameparts_add(to, &unknown, start_ns, end_ns, WAIT_UNKNOWN, 0);
}

/* Adds what the thread did in [start, end). At the end it was on a CPU, at the stack c->ref. */
static void add_activity(struct blamechain *bc, unsigned depth, struct blameparts *to,
			 const struct blame_culprit *c, uint64_t start_ns, uint64_t end_ns)
{
	struct blamehistory_thread *t = blamehistory_thread(&bc->h, c->tid);
	uint64_t lost_ns = blamehistory_lost_ns(&bc->h, t);
	if (!t && !c->is_recorded)
		lost_ns = end_ns;
	size_t i = t ? blamehistory_first_after(&bc->h, t, start_ns) : 0;
	size_t n = t ? t->list.seqs.n : 0;
	uint64_t at_ns = start_ns;
	if (i < n)
		lost_ns = MIN(lost_ns, blamehistory_get(&bc->h, t->list.seqs.p[i])->v.off_ns);
	if (at_ns < lost_ns) {
		uint64_t until_ns = MIN(lost_ns, end_ns);
		blameparts_add(to, c, at_ns, until_ns, WAIT_UNKNOWN, 0);
		at_ns = until_ns;
	}
	for (; i < n; i++) {
		struct blamehistory_entry *e = blamehistory_get(&bc->h, t->list.seqs.p[i]);
		if (e->v.off_ns >= end_ns)
			break;
		uint64_t off_ns = MAX(e->v.off_ns, at_ns);
		uint64_t on_ns = MIN(e->v.on_ns, end_ns);
		uint64_t woken_ns = MIN(MAX(e->v.woken_ns, off_ns), on_ns);
		blameparts_add(to, c, at_ns, off_ns, WAIT_ON_CPU, c->ref);
		add_blocked(bc, depth, to, c, e, off_ns, woken_ns);
		blameparts_add(to, c, woken_ns, on_ns, WAIT_RUN_QUEUE, e->v.user_ref);
		at_ns = MAX(at_ns, on_ns);
	}
	blameparts_add(to, c, at_ns, end_ns, WAIT_ON_CPU, c->ref);
}

/* ---- who had what a wait was for ----------------------------------------------------------- */

/*
 * The owner is a thread of the target. When the waits are known that the end of the capture cut off, an
 * owner without any ran all the time.
 */
static struct blame_culprit culprit_owner(const struct wait_interval *v)
{
	return (struct blame_culprit){
		.tgid = v->tgid, .tid = v->owner_tid, .is_recorded = v->evidence & EVIDENCE_OPEN};
}

/*
 * Whether the thread waited again at once for what it had waited for in @e. The stacks may differ: a
 * Java monitor first waits for 1 ms, and then for longer at another line.
 */
static bool is_continued(const struct blamehistory_entry *e, const struct blamehistory_entry *next)
{
	return next->v.how == HOW_BLOCKED && next->v.object_kind == OBJECT_FUTEX &&
	       e->v.object_kind == OBJECT_FUTEX && next->v.object == e->v.object &&
	       next->v.off_ns - e->v.on_ns < CONTINUE_NS;
}

/* Returns the thread's last wait for the object that ended in (since, until], or NULL. */
static const struct blamehistory_entry *last_wait_for(const struct blamechain *bc, int32_t tid,
						      uint64_t key, uint64_t since_ns,
						      uint64_t until_ns)
{
	struct blamehistory_thread *t = blamehistory_thread(&bc->h, tid);
	if (!t)
		return NULL;
	size_t i = blamehistory_first_after(&bc->h, t, until_ns);
	for (unsigned k = 0; k < LOOK_BACK && i-- > t->list.head; k++) {
		const struct blamehistory_entry *e = blamehistory_get(&bc->h, t->list.seqs.p[i]);
		if (e->v.on_ns <= since_ns)
			break;
		if (e->object_key == key)
			return e;
	}
	return NULL;
}

/*
 * Returns the thread that ended the wait. A thread that only woke the waiter, for instance with a
 * signal, did not have the lock: the waiter finds the same owner and waits again.
 */
static struct blame_culprit culprit_of(const struct blamechain *bc,
				       const struct blamehistory_entry *e)
{
	const struct wait_interval *v = &e->v;
	if (!v->waker_tid)
		return culprit_owner(v);
	struct blame_culprit c = {v->waker_tgid, v->waker_tid, v->waker_ref, v->waker_ref != 0};
	if (!v->owner_tid || v->owner_tid == v->waker_tid || v->owner_tid == v->tid)
		return c;
	const struct blamehistory_entry *next = blamehistory_after(&bc->h, e);
	if (next && is_continued(e, next) && next->v.owner_tid == v->owner_tid &&
	    !last_wait_for(bc, v->waker_tid, e->object_key, v->off_ns, v->woken_ns))
		return culprit_owner(v);
	return c;
}

/*
 * Adds the parts of [start, end), in which the thread of @e waited for an object that @last released
 * at the end: each wake-up from the object ends the time of the thread that did it.
 */
static void add_holders(struct blamechain *bc, unsigned depth, struct blameparts *to,
			const struct wait_interval *v, const struct blame_culprit *last)
{
	uint64_t key = object_key(bc, v);
	struct blamehistory_object *o = key ? blamehistory_object(&bc->h, key) : NULL;
	uint64_t at_ns = v->off_ns;
	size_t i = o ? blamehistory_first_wake_after(&bc->h, o, at_ns) : 0;
	for (; o && i < o->list.seqs.n; i++) {
		const struct blamehistory_entry *e = blamehistory_get(&bc->h, o->list.seqs.p[i]);
		if (!e)
			continue;
		if (e->v.woken_ns >= v->woken_ns)
			break;
		struct blame_culprit c = culprit_of(bc, e);
		if (e->v.woken_ns <= at_ns || c.tid == v->tid)
			continue;
		add_activity(bc, depth, to, &c, at_ns, e->v.woken_ns);
		at_ns = e->v.woken_ns;
	}
	add_activity(bc, depth, to, last, at_ns, v->woken_ns);
}

/* Sets the parts of a wait that @last ended. */
static void resolve_by(struct blamechain *bc, struct blamehistory_entry *e, unsigned depth,
		       const struct blame_culprit *last)
{
	struct blameparts *parts = &bc->scratch[depth];
	uint64_t ns = 0;
	blameparts_clear(parts);
	parts->waiter_tid = e->v.tid;
	parts->object_key = object_key(bc, &e->v);
	e->state = ENTRY_OWN; /* meanwhile; a cycle ends here */
	add_holders(bc, depth, parts, &e->v, last);
	blameparts_shorten(parts);
	vec_foreach(p, &parts->v)
		ns += p->ns;
	ASSERT(ns == e->v.woken_ns - e->v.off_ns);
	blamehistory_set_parts(&bc->h, e, parts->v.p, (uint32_t)parts->v.n);
	e->is_merged = parts->is_merged;
	e->state = ENTRY_RESOLVED;
}

static void resolve(struct blamechain *bc, struct blamehistory_entry *e, unsigned depth)
{
	struct blame_culprit c = culprit_of(bc, e);
	resolve_by(bc, e, depth, &c);
}

/*
 * Readers and writers of a lock may wait for different words of it, which are adjacent (Rust's std,
 * glibc). That two words belong to one lock shows when a thread waited for one of them, and then
 * ends a wait for the other one.
 */
static void join_words(struct blamechain *bc, const struct blamehistory_entry *e)
{
	const struct wait_interval *v = &e->v;
	struct blamehistory_thread *t = blamehistory_thread(&bc->h, v->waker_tid);
	if (v->object_kind != OBJECT_FUTEX || v->waker_tgid != v->tgid || !t)
		return;
	size_t i = blamehistory_first_after(&bc->h, t, v->woken_ns);
	for (unsigned k = 0; k < JOIN_LOOK_BACK && i-- > t->list.head; k++) {
		const struct wait_interval *w = &blamehistory_get(&bc->h, t->list.seqs.p[i])->v;
		if (w->object_kind != OBJECT_FUTEX || !is_ended_by_thread(w))
			continue;
		uint64_t low = MIN(w->object, v->object);
		uint64_t high = MAX(w->object, v->object);
		if (high - low != sizeof(uint32_t))
			return;
		uint64_t first = first_word(bc, v->tgid, low);
		if (high - first <= LOCK_BYTES_MAX && bc->word_of.n < WORDS_MAX)
			*map_put(&bc->word_of, word_key(v->tgid, high), NULL) =
				(uint32_t)(high - first);
		return;
	}
}

/* ---- rows ---------------------------------------------------------------------------------- */

static uint64_t second_of(const struct blamechain *bc, uint64_t ns)
{
	return ns > bc->epoch_ns ? (ns - bc->epoch_ns) / NS_PER_SEC : 0;
}

/* Adds the rows of a wait, of which the parts are known. */
static void add_rows(struct blamechain *bc, const struct blamehistory_entry *e, uint32_t lock)
{
	const struct blame_part *parts = blamehistory_parts(&bc->h, e);
	struct blameparts *some = &bc->of_second;
	const struct wait_interval *v = &e->v;
	ASSERT(parts);
	uint64_t first = second_of(bc, v->off_ns);
	uint64_t last = second_of(bc, v->woken_ns - 1);
	uint64_t from_ns = v->off_ns;
	struct blamerows_at at = {blamerows_site(&bc->rows, v), lock, (uint32_t)last};
	bool is_one = first == last && e->nr_parts == 1; /* nothing to cut or to merge */
	if (is_one)
		blamerows_add(&bc->rows, &at, parts, 1);
	for (uint64_t s = first; s <= last && !is_one; s++) {
		uint64_t to_ns = s == last ? v->woken_ns : bc->epoch_ns + (s + 1) * NS_PER_SEC;
		blameparts_clear(some);
		blameparts_add_clipped(some, parts, e->nr_parts, e->is_merged, from_ns, to_ns,
				       NULL);
		blameparts_merge(some);
		at.second = (uint32_t)s;
		vec_foreach(p, &some->v)
			blamerows_add(&bc->rows, &at, p, first == last && p == some->v.p);
		from_ns = to_ns;
	}
	if (first < last) { /* a wait counts where it ended, for its longest cause */
		blameparts_clear(some);
		blameparts_add_clipped(some, parts, e->nr_parts, e->is_merged, v->off_ns,
				       v->woken_ns, NULL);
		blameparts_merge(some);
		some->v.p[0].ns = 0;
		blamerows_add(&bc->rows, &at, &some->v.p[0], 1);
	}
	bc->counts.nr_waits++;
	bc->counts.ns += v->woken_ns - v->off_ns;
	for (uint32_t i = 0; i < e->nr_parts; i++)
		if (bc->causes.all.p[parts[i].cause].doing == WAIT_UNKNOWN)
			bc->counts.unknown_ns += parts[i].ns;
}

/* ---- locks --------------------------------------------------------------------------------- */

/* Key of a lock whose waiters sleep on words of their own: all that wait at one stack wait for one lock. */
static uint64_t place_key(uint64_t user_ref, int32_t tgid)
{
	return hash_mix(user_ref, (uint64_t)(uint32_t)tgid << 32) | 1;
}

/*
 * Returns the thread that had the lock: the direct one, whatever it waited for meanwhile. If that was
 * the lock itself it had it not, but whom it waited for.
 */
static int32_t holder_of(const struct blame_cause *c, uint64_t key)
{
	bool is_direct = c->direct_tid && place_key(c->direct_ref, c->direct_tgid) != key;
	return is_direct ? c->direct_tid : c->tid;
}

/* Counts the hand-over of the lock at the end of the wait. Returns the lock, or 0. */
static uint32_t add_to_lock(struct blamechain *bc, const struct blamehistory_entry *e)
{
	const struct wait_interval *v = &e->v;
	struct blamehistory_object *o = e->object_key ? &bc->h.objects.p[e->object] : NULL;
	if (v->reason == WAIT_NET || v->reason == WAIT_POLL || v->reason == WAIT_CHILD)
		return 0;
	uint64_t key = o && o->is_shared ? e->object_key : place_key(v->user_ref, v->tgid);
	uint32_t lock = blamelocks_at(&bc->locks, key);
	blamelocks_add(&bc->locks, lock, v->tid, culprit_of(bc, e).tid);
	const struct blame_part *parts = blamehistory_parts(&bc->h, e);
	for (uint32_t i = 0; i < e->nr_parts; i++)
		blamelocks_add_time(&bc->locks, lock,
				    holder_of(&bc->causes.all.p[parts[i].cause], key), parts[i].ns);
	return lock;
}

/* ---- the order of things ------------------------------------------------------------------- */

static void account(struct blamechain *bc, struct blamehistory_entry *e,
		    const struct blame_culprit *by)
{
	if (e->state == ENTRY_RESOLVED && !blamehistory_parts(&bc->h, e))
		e->state = ENTRY_NEW;
	if (e->state != ENTRY_RESOLVED)
		resolve_by(bc, e, 0, by);
	uint32_t lock = is_ended_by_thread(&e->v) ? add_to_lock(bc, e) : 0;
	add_rows(bc, e, lock);
}

static bool has_timed_out(const struct wait_interval *v)
{
	return v->how == HOW_BLOCKED && !v->waker_tid && v->object_kind == OBJECT_FUTEX &&
	       v->woken_ns > v->off_ns && !(v->evidence & EVIDENCE_OPEN);
}

/* Returns the thread that ended the first wait for the object after the end of @e. */
static struct blame_culprit next_culprit(const struct blamechain *bc,
					 const struct blamehistory_entry *e,
					 const struct blame_culprit *last)
{
	struct blamehistory_object *o = blamehistory_object(&bc->h, object_key(bc, &e->v));
	size_t i = o ? blamehistory_first_wake_after(&bc->h, o, e->v.woken_ns) : 0;
	for (; o && i < o->list.seqs.n; i++) {
		const struct blamehistory_entry *next = blamehistory_get(&bc->h, o->list.seqs.p[i]);
		if (next)
			return culprit_of(bc, next);
	}
	return *last;
}

/*
 * Whether the thread gave the CPU away before it waited in @next: locks do so for a while before
 * they sleep (parking_lot).
 */
static bool is_yield_before(const struct blamehistory_entry *e,
			    const struct blamehistory_entry *next)
{
	bool is_for_lock = next->v.reason == WAIT_SYNC || next->v.reason == WAIT_YIELD;
	return e->v.how == HOW_YIELDED && is_for_lock && next->v.off_ns - e->v.on_ns < YIELD_GAP_NS;
}

/* Attributes the waits before @e that @e continues: they timed out, or were yields. */
static void account_continued(struct blamechain *bc, const struct blamehistory_entry *e,
			      const struct blame_culprit *last)
{
	const struct blamehistory_entry *next = e;
	for (;;) {
		struct blamehistory_entry *before = blamehistory_before(&bc->h, next);
		if (!before || before->state != ENTRY_NEW || before->v.on_ns == before->v.off_ns)
			return;
		if (is_yield_before(before, next)) {
			before->v.reason = WAIT_YIELD;
			before->v.woken_ns = before->v.on_ns;
		} else if (!has_timed_out(&before->v) || !is_continued(before, next)) {
			return;
		}
		struct blame_culprit by = next_culprit(bc, before, last);
		account(bc, before, &by);
		next = before;
	}
}

static void attribute(struct blamechain *bc, struct blamehistory_entry *e)
{
	if (is_ended_by_thread(&e->v)) {
		struct blame_culprit by = culprit_of(bc, e);
		join_words(bc, e);
		account(bc, e, &by);
		account_continued(bc, e, &by);
		return;
	}
	const struct blamehistory_entry *next =
		has_timed_out(&e->v) ? blamehistory_after(&bc->h, e) : NULL;
	if (next && is_continued(e, next))
		return;
	if (is_for_owner(&e->v)) {
		struct blame_culprit by = culprit_owner(&e->v);
		account(bc, e, &by);
		if (has_timed_out(&e->v))
			account_continued(bc, e, &by);
	}
}

/* Attributes the waits up to sequence number @until. */
static void attribute_until(struct blamechain *bc, uint64_t until)
{
	for (; bc->next_due < until; bc->next_due++) {
		struct blamehistory_entry *e = blamehistory_get(&bc->h, bc->next_due);
		if (e)
			attribute(bc, e);
	}
}

struct blamechain *blamechain_new(const struct blamechain_options *o)
{
	struct blamechain *bc = xcalloc(1, sizeof(*bc));
	blamehistory_init(&bc->h, o->nr_intervals ? o->nr_intervals : INTERVALS_DEFAULT,
			  PARTS_DEFAULT);
	bc->epoch_ns = o->epoch_ns;
	bc->lag_ns = o->lag_ns ? o->lag_ns : LAG_NS_DEFAULT;
	bc->next_due = 1;
	for (size_t i = 0; i < ARRAY_LEN(bc->scratch); i++)
		bc->scratch[i].causes = &bc->causes;
	bc->of_second.causes = &bc->causes;
	return bc;
}

void blamechain_free(struct blamechain *bc)
{
	if (!bc)
		return;
	blamehistory_release(&bc->h);
	blamelocks_release(&bc->locks);
	for (size_t i = 0; i < ARRAY_LEN(bc->scratch); i++)
		blameparts_release(&bc->scratch[i]);
	blameparts_release(&bc->of_second);
	blamecauses_release(&bc->causes);
	blamerows_release(&bc->rows);
	map_release(&bc->word_of);
	free(bc);
}

void blamechain_add(struct blamechain *bc, const struct wait_interval *v, size_t nr,
		    uint64_t horizon_ns)
{
	for (size_t i = 0; i < nr; i++) {
		if (v[i].off_ns > v[i].woken_ns || v[i].woken_ns > v[i].on_ns)
			continue;
		if (blamehistory_oldest_if_full(&bc->h))
			attribute_until(bc, bc->h.first + 1);
		(void)blamehistory_add(&bc->h, &v[i],
				       is_ended_by_thread(&v[i]) ? object_key(bc, &v[i]) : 0);
	}
	uint64_t due_ns = horizon_ns > bc->lag_ns ? horizon_ns - bc->lag_ns : 0;
	for (;;) {
		struct blamehistory_entry *e = blamehistory_get(&bc->h, bc->next_due);
		if (!e || e->v.on_ns > due_ns)
			return;
		attribute_until(bc, bc->next_due + 1);
	}
}

void blamechain_lose(struct blamechain *bc, int32_t tid, uint64_t until_ns)
{
	blamehistory_lose(&bc->h, tid, until_ns);
}

void blamechain_finish(struct blamechain *bc)
{
	attribute_until(bc, bc->h.next);
}

/* Forgets causes that no part has any more. */
static void compact_causes(struct blamechain *bc)
{
	struct blamecauses old = bc->causes;
	bc->causes = (struct blamecauses){0};
	for (uint64_t i = 0; i < bc->h.nr_parts_max; i++)
		bc->h.parts[i].cause =
			blamecauses_number(&bc->causes, &old.all.p[bc->h.parts[i].cause]);
	blamecauses_release(&old);
}

int blamechain_take_rows(struct blamechain *bc, blamechain_row_fn *fn, void *ctx)
{
	int rc = blamerows_take(&bc->rows, &bc->causes, &bc->locks, fn, ctx);
	blamelocks_age(&bc->locks);
	if (bc->causes.all.n > CAUSES_MAX)
		compact_causes(bc);
	return rc;
}

struct blamechain_counts blamechain_counts(const struct blamechain *bc)
{
	return bc->counts;
}
