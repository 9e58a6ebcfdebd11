/*
 * Python frames in stacks; see heap_python.h.
 *
 * As for native frames, the thread's last frames are kept with all words that were read for them
 * (struct seen), so the next walk ends at a frame from which on these words are unchanged. A hash of
 * the words gives the id of the stack. What the words mean is looked at only if the stack is new
 * (python_core.h).
 */
#include "heap_python.h"

#include "heap_slot.h"
#include "heap_walk.h"

enum { SYS_GETPID = 39, SYS_PROCESS_VM_READV = 310 };

#define PAGE_SHIFT         12
#define PAGE_SETS          128u /* readable pages that are remembered: sets of PAGE_WAYS */
#define PAGE_WAYS          4u
#define READABLE_TSC       (1u << 21) /* how long: about a millisecond */
#define SEEN_MAX           512u
#define SEEN_INDEX         256u
#define LINES_BYTES        2048u /* of the line table in one record */
#define SEARCH_PAUSE_TIMES 8u    /* a search that found no lasting state: pause before the next */

/* An interpreter frame, its code object (zeros if it has none), and what a stack is known by. */
struct seen {
	uint64_t frame;
	uint64_t code;
	uint64_t previous;
	uint64_t instr;
	uint64_t entry;
	uint64_t type;
	uint64_t file;
	uint64_t name;
	uint64_t lines;
	uint64_t first_line;
	uint64_t hash; /* of this frame and all outer ones */
};

struct python_walk {
	/* Of the walk: python_core.h. */
	uint64_t frame;
	uint64_t hash;
	uint64_t seed;
	uint64_t anchor;
	uint64_t map_base;
	uint32_t nr_frames;
	uint32_t end;
	uint64_t interp;
	uint64_t thread;
	uint64_t found;
	uint64_t found_frame;
	uint32_t tid;
	uint32_t nr_found;
	struct heap_ctx *x;
	uint32_t stack_id; /* the native stack */
	bool is_foreign;   /* reads memory of other threads */
	bool is_reporting; /* writes records of code objects */
	bool is_known;     /* assay has all of them */
	/* Of the thread with id known_tid: its state and, then the only one, its interpreter. */
	uint32_t known_tid;
	uint32_t readable_unmaps; /* local.nr_unmaps when readable[] began */
	uint64_t known_thread;    /* 0: not known */
	uint64_t known_interp;
	uint64_t next_search_tsc;
	uint64_t readable_tsc;
	uint64_t readable[PAGE_SETS][PAGE_WAYS]; /* numbers of readable pages */
	/* The last frames: from the innermost, seen[SEEN_MAX - nr_seen], to the last one. */
	uint32_t nr_seen;
	uint32_t last_id;             /* id of the stack, 0: not known */
	uint32_t last_stack_id;       /* its native stack */
	uint16_t seen_at[SEEN_INDEX]; /* index of a frame by its address */
	struct seen seen[SEEN_MAX];
	uint64_t raw[32];
	struct python_frame frames[PYTHON_FRAMES_MAX];
	uint64_t code[sizeof(struct kernel_pycode) / 8];
	uint64_t lines[LINES_BYTES / 8];
};
_Static_assert(sizeof(struct python_walk) <= HEAP_PYTHON_STATE_BYTES, "python state");

/* ---- memory ---------------------------------------------------------------------------- */

static void forget_readable(struct python_walk *w)
{
	uint32_t nr_unmaps = __atomic_load_n(&w->x->local->nr_unmaps, __ATOMIC_ACQUIRE);

	if (LIKELY(w->readable_unmaps == nr_unmaps && w->x->tsc - w->readable_tsc < READABLE_TSC))
		return;
	for (uint32_t i = 0; i < PAGE_SETS * PAGE_WAYS; i++)
		ONCE(w->readable[i / PAGE_WAYS][i % PAGE_WAYS]) = 0;
	w->readable_unmaps = nr_unmaps;
	w->readable_tsc = w->x->tsc;
}

static NOINLINE bool check_page(struct python_walk *w, uint64_t *set, uint64_t page)
{
	for (uint32_t i = 1; i < PAGE_WAYS; i++)
		if (set[i] == page && page)
			return true;
	if (!page || !walk_is_readable(w->x->local, page << PAGE_SHIFT))
		return false;
	for (uint32_t i = PAGE_WAYS - 1; i > 0; i--)
		set[i] = set[i - 1];
	set[0] = page;
	return true;
}

static inline bool is_page_readable(struct python_walk *w, uint64_t addr)
{
	uint64_t page = addr >> PAGE_SHIFT;
	uint64_t *set = w->readable[(uint32_t)page * HASH_32 >> 25];

	return LIKELY(set[0] == page && page) || check_page(w, set, page);
}
_Static_assert(PAGE_SETS == 1u << (32 - 25), "hash of is_page_readable");

/* @n: from 1 to a page. */
static inline bool is_readable(struct python_walk *w, uint64_t addr, uint32_t n)
{
	uint64_t last = addr + n - 1;

	return last >= addr && is_page_readable(w, addr) &&
	       (LIKELY(last >> PAGE_SHIFT == addr >> PAGE_SHIFT) || is_page_readable(w, last));
}

static NOINLINE int read_foreign(const struct python_walk *w, void *to, uint32_t n, uint64_t addr)
{
	uint64_t local[2] = {(uint64_t)to, n};
	uint64_t remote[2] = {addr, n};

	if (!(w->x->local->flags & HEAP_SYSCALLS_ALLOWED))
		return -1;
	int64_t pid = heap_syscall(SYS_GETPID, 0, 0, 0, 0);
	return heap_syscall6(SYS_PROCESS_VM_READV, (uint64_t)pid, (uint64_t)local, 1,
			     (uint64_t)remote, 1, 0) == (int64_t)n
		       ? 0
		       : -1;
}

/* @n: at most a page. */
static inline int python_read(struct python_walk *w, void *to, uint32_t n, uint64_t addr)
{
	uint64_t *words = to;

	if (UNLIKELY(w->is_foreign))
		return read_foreign(w, to, n, addr);
	if (n && !is_readable(w, addr, n))
		return -1;
	for (uint32_t i = 0; i < n / 8; i++)
		words[i] = ((const volatile uint64_t *)addr)[i];
	for (uint32_t i = n & ~7u; i < n; i++)
		((uint8_t *)to)[i] = ((const volatile uint8_t *)addr)[i];
	return 0;
}

static void python_add_code(struct python_walk *w, const struct python_layout *l, uint64_t code,
			    uint64_t key);

#define PYTHON_READ(w, to, nr_bytes, addr) python_read(w, to, nr_bytes, addr)
#include "python_core.h"

/* ---- code objects -------------------------------------------------------------------------- */

struct new_code {
	struct stackid_new head;
	struct python_walk *w;
	const struct python_layout *l;
	uint64_t key;
};

/* Writes the part of the line table at @at, or the name alone if it has none; false: no room. */
static bool emit_part(struct python_walk *w, uint64_t lines, uint32_t at)
{
	struct kernel_pycode *r = (struct kernel_pycode *)w->code;
	uint32_t left = r->nr_lines - at;
	uint32_t nr = left < LINES_BYTES ? left : LINES_BYTES;
	uint64_t head;

	if (nr && python_read(w, w->lines, nr, lines + at))
		r->nr_lines = nr = 0;
	r->lines_at = at;
	uint32_t nr_words = sizeof(*r) / 8 + (nr + 7) / 8;
	uint64_t *p = ring_reserve(w->x, 2 + nr_words, &head);
	if (!p)
		return false;
	p[0] = HEAP_RECORD_PYCODE | w->x->tsc << HEAP_TSC_SHIFT;
	p[1] = sizeof(*r) + nr;
	p += 2;
	for (uint32_t i = 0; i < sizeof(*r) / 8; i++)
		ONCE(p[i]) = w->code[i];
	p += sizeof(*r) / 8;
	for (uint32_t i = 0; i < (nr + 7) / 8; i++)
		ONCE(p[i]) = w->lines[i];
	ring_commit(w->x, head);
	return true;
}

/* Writes the code object in w->raw. */
static bool emit_code(struct heap_ctx *x, struct stackid_new *n, uint32_t id)
{
	struct new_code *c = (struct new_code *)n;
	struct python_walk *w = c->w;
	struct kernel_pycode *r = (struct kernel_pycode *)w->code;
	uint64_t lines = python_read_code(w, c->l, c->key, r);

	(void)x, (void)id;
	for (uint32_t at = 0; !at || at < r->nr_lines; at += LINES_BYTES)
		if (!emit_part(w, lines, at))
			return false;
	return true;
}

static void python_add_code(struct python_walk *w, const struct python_layout *l, uint64_t code,
			    uint64_t key)
{
	struct new_code n = {.head = {.emit = emit_code}, .w = w, .l = l, .key = key};

	(void)code;
	if (UNLIKELY(w->is_reporting) && !stackid_find(w->x, key, &n.head))
		w->is_known = false;
}

/* ---- thread states ------------------------------------------------------------------------- */

/*
 * Returns the state of the thread, 0: none was found. Only if there is one interpreter, the state is
 * still the right one at the next event.
 */
static NOINLINE uint64_t search(struct python_walk *w, const struct python_layout *l)
{
	uint64_t begin = heap_tsc();

	if (w->x->tsc < w->next_search_tsc)
		return 0;
	w->known_thread = 0;
	w->thread = w->found = 0;
	w->nr_found = 0;
	w->is_foreign = true;
	w->interp = w->known_interp = python_pointer(w, w->map_base + l->runtime + l->interp_head);
	bool is_only = w->interp && !python_pointer(w, w->interp + l->interp_next);
	for (uint32_t i = 0; i < PYTHON_THREADS_MAX; i++)
		if (!python_search_step(w, l, !i))
			break;
	w->is_foreign = false;
	/* Without cframes it is not known which of several states is the innermost. */
	if (w->nr_found > 1 && l->cframe_frame == PYTHON_NO_FIELD)
		w->found = 0;
	if (is_only)
		w->known_thread = w->found;
	uint64_t now = heap_tsc();
	w->next_search_tsc = w->known_thread ? 0 : now + SEARCH_PAUSE_TIMES * (now - begin);
	return w->found;
}

/* Sets the innermost frame of the thread; false: it runs no Python code, or that is not known. */
static bool find_first_frame(struct python_walk *w, const struct python_layout *l)
{
	uint64_t interp = python_pointer(w, w->map_base + l->runtime + l->interp_head);

	/* When a state is deleted, it has no frames; and it keeps that until its memory is reused. */
	if (w->known_thread && w->known_interp == interp &&
	    (uint32_t)python_pointer(w, w->known_thread + l->thread_tid) == w->tid &&
	    python_first_frame(w, l, w->known_thread))
		return true;
	uint64_t thread = search(w, l);
	return thread && python_first_frame(w, l, thread);
}

/* ---- what is where ------------------------------------------------------------------------- */

static struct python_walk *walk_of(const struct heap_ctx *x)
{
	const struct heap_local *l = x->local;
	uint64_t idx = (uint64_t)(x->slot - slot_at(l, 0));
	struct python_walk *w = (struct python_walk *)(l->pythons + idx * HEAP_PYTHON_STATE_BYTES);

	if (UNLIKELY(w->known_tid != x->slot->tid)) {
		w->known_tid = x->slot->tid;
		w->known_thread = 0;
		w->next_search_tsc = 0;
		w->nr_seen = 0;
	}
	return w;
}

/* Returns where the interpreter has its structures, NULL: there is none. */
static const struct python_layout *layout_of(const struct heap_local *l, uint64_t *ret_base)
{
	const struct ktables_head *t = (const struct ktables_head *)l->tables;
	uint64_t python = python_space(l);
	uint64_t now = __atomic_load_n(&t->spaces[0].now, __ATOMIC_ACQUIRE);
	const struct kmap *map = &t->maps[((uint32_t)python - 1) & (KTABLES_NR_MAPS - 1)];

	if (python >> 32 != now >> 32 || !map->python_1)
		return NULL;
	*ret_base = map->base;
	return &t->pythons[(map->python_1 - 1) & (KTABLES_NR_PYTHONS - 1)];
}

bool python_has_loop(const struct heap_ctx *x, uint32_t top)
{
	uint64_t base = 0;
	const struct python_layout *l = layout_of(x->local, &base);

	if (!l)
		return false;
	for (uint32_t i = top; i < HEAP_FRAMES_MAX; i++) {
		uint64_t pc = frame_pc(&x->thread->frames[i]) - 1 - base;
		if (pc - l->eval_from < l->eval_to - l->eval_from)
			return true;
	}
	return false;
}

/* ---- the last frames ----------------------------------------------------------------------- */

static inline uint64_t word(uint64_t addr, uint32_t off)
{
	return *(const volatile uint64_t *)(addr + off);
}

static inline uint64_t entry_of(const struct python_layout *l, uint64_t frame)
{
	return *(const volatile uint8_t *)(frame + l->frame_entry);
}

/* A frame that only marks a call of the interpreter's loop, and has no code object. */
static inline bool is_shim(const struct python_layout *l, uint64_t entry)
{
	return l->entry == PYTHON_ENTRY_FRAME && entry == PYTHON_OWNED_BY_C;
}

/* False: it is no frame, or not readable. */
static bool read_seen(struct python_walk *w, const struct python_layout *l, uint64_t frame,
		      struct seen *s)
{
	uint64_t code_type = w->map_base + l->code_type;

	if (!is_readable(w, frame, PYTHON_FRAME_WORDS * 8))
		return false;
	s->frame = frame;
	s->code = word(frame, l->frame_code);
	s->previous = word(frame, l->frame_previous);
	s->instr = word(frame, l->frame_instr);
	s->entry = entry_of(l, frame);
	s->type = s->file = s->name = s->lines = s->first_line = 0;
	if (is_shim(l, s->entry))
		return true;
	if (!is_readable(w, s->code, PYTHON_CODE_WORDS * 8) ||
	    word(s->code, l->object_type) != code_type)
		return false;
	s->type = code_type;
	s->file = word(s->code, l->code_file);
	s->name = word(s->code, l->code_name);
	s->lines = word(s->code, l->code_lines);
	s->first_line = *(const volatile uint32_t *)(s->code + l->code_first_line);
	return true;
}

static inline bool is_unchanged(struct python_walk *w, const struct python_layout *l,
				const struct seen *s)
{
	if (!is_readable(w, s->frame, PYTHON_FRAME_WORDS * 8) ||
	    word(s->frame, l->frame_code) != s->code ||
	    word(s->frame, l->frame_previous) != s->previous ||
	    word(s->frame, l->frame_instr) != s->instr || entry_of(l, s->frame) != s->entry)
		return false;
	return !s->type ||
	       (is_readable(w, s->code, PYTHON_CODE_WORDS * 8) &&
		word(s->code, l->object_type) == s->type &&
		word(s->code, l->code_file) == s->file && word(s->code, l->code_name) == s->name &&
		word(s->code, l->code_lines) == s->lines &&
		*(const volatile uint32_t *)(s->code + l->code_first_line) == s->first_line);
}

/* Sums of products of words and odd constants, as the words come from one allocator and are alike. */
static inline uint64_t hash_seen(const struct seen *s, uint64_t outer)
{
	uint64_t sum = s->code * 0xd6e8feb86659fd93u + s->instr * 0xa0761d6478bd642fu +
		       s->file * 0xe7037ed1a0b428dbu + s->name * 0x8ebc6af09c88c6e3u +
		       s->lines * 0x589965cc75374cc3u + s->first_line * 0x1d8e4e27c47d124fu +
		       s->entry * 0xeb44accab455d165u;
	return python_mix(outer, sum ^ sum >> 32);
}

static inline uint16_t *seen_index(struct python_walk *w, uint64_t frame)
{
	return &w->seen_at[(uint32_t)(frame >> 3) * HASH_32 >> 24];
}
_Static_assert(SEEN_INDEX == 1u << (32 - 24), "hash of seen_index");

/*
 * Returns the index of @frame among the last frames if it and all outer ones are unchanged, else
 * SEEN_MAX. *from: the first index that may still be unchanged.
 */
static inline uint32_t find_seen(struct python_walk *w, const struct python_layout *l,
				 uint64_t frame, uint32_t *from)
{
	uint32_t i = *seen_index(w, frame);

	if (i < *from || i >= SEEN_MAX || w->seen[i].frame != frame)
		return SEEN_MAX;
	for (uint32_t k = i; k < SEEN_MAX; k++) {
		if (UNLIKELY(!is_unchanged(w, l, &w->seen[k]))) {
			*from = k + 1;
			return SEEN_MAX;
		}
	}
	return i;
}

/*
 * Updates the last frames, from w->frame on; false: there are too many, or one that is not readable.
 * New ones are collected from index 0 on, and moved when it is known which ones are unchanged.
 */
static bool walk_seen(struct python_walk *w, const struct python_layout *l)
{
	uint32_t from = SEEN_MAX - w->nr_seen;
	uint32_t known = SEEN_MAX;
	uint32_t n = 0;

	for (uint64_t frame = w->frame; frame; frame = w->seen[n++].previous) {
		known = find_seen(w, l, frame, &from);
		if (known < SEEN_MAX)
			break;
		from = n >= from ? n + 1 : from; /* new frames overwrite the known ones */
		if (n >= SEEN_MAX || !read_seen(w, l, frame, &w->seen[n])) {
			w->nr_seen = 0;
			return false;
		}
	}
	if (n || known != SEEN_MAX - w->nr_seen)
		w->last_id = 0;
	uint64_t hash = known < SEEN_MAX ? w->seen[known].hash : 1;
	for (uint32_t i = n; i-- > 0;) {
		struct seen *to = &w->seen[known - n + i];
		const struct seen *s = &w->seen[i];
		hash = hash_seen(s, hash);
		to->frame = s->frame;
		to->code = s->code;
		to->previous = s->previous;
		to->instr = s->instr;
		to->entry = s->entry;
		to->type = s->type;
		to->file = s->file;
		to->name = s->name;
		to->lines = s->lines;
		to->first_line = s->first_line;
		to->hash = hash;
		*seen_index(w, s->frame) = (uint16_t)(known - n + i);
	}
	w->nr_seen = SEEN_MAX - known + n;
	return true;
}

/* ---- stacks -------------------------------------------------------------------------------- */

/* Reads the frames into w->frames, in a way that needs no earlier ones. */
static void walk_frames(struct python_walk *w, const struct python_layout *l)
{
	uint64_t first = w->frame;

	w->nr_frames = 0;
	w->end = PYTHON_WHOLE;
	w->hash = 1;
	for (uint32_t i = 0; i < 2 * PYTHON_FRAMES_MAX; i++)
		if (!python_step(w, l))
			break;
	w->frame = first;
}

struct new_pystack {
	struct stackid_new head;
	struct python_walk *w;
	const struct python_layout *l;
};

/*
 * Writes the frames after all that they refer to, with a time after those records: other threads may
 * have written them, to other rings.
 */
static bool emit_pystack(struct heap_ctx *x, struct stackid_new *n, uint32_t id)
{
	struct new_pystack *s = (struct new_pystack *)n;
	struct python_walk *w = s->w;
	uint64_t head;

	w->is_known = w->is_reporting = true;
	walk_frames(w, s->l);
	w->is_reporting = false;
	uint32_t nr_words = 3 + w->nr_frames * sizeof(struct python_frame) / 8;
	if (!w->is_known || nr_words * 8 > x->thread->ring_bytes / 2)
		return false;
	__asm__ volatile("lfence" : : : "memory");
	x->tsc = heap_tsc();
	uint64_t *p = ring_reserve(x, nr_words, &head);
	if (!p)
		return false;
	const uint64_t *frames = (const uint64_t *)w->frames;
	p[0] = HEAP_RECORD_PYSTACK | x->tsc << HEAP_TSC_SHIFT;
	p[1] = id | (uint64_t)w->stack_id << 32;
	p[2] = w->nr_frames | (uint64_t)w->end << 32;
	for (uint32_t i = 3; i < nr_words; i++)
		ONCE(p[i]) = frames[i - 3];
	ring_commit(x, head);
	return true;
}

/* Returns the id of the native stack w->stack_id with the frames from w->frame on; 0: no room. */
static uint32_t frames_id(struct python_walk *w, const struct python_layout *l)
{
	struct new_pystack n = {.head = {.emit = emit_pystack}, .w = w, .l = l};
	bool is_seen = walk_seen(w, l) && w->nr_seen;

	if (LIKELY(is_seen && w->last_id && w->last_stack_id == w->stack_id))
		return w->last_id;
	if (!is_seen)
		walk_frames(w, l);
	uint64_t hash = is_seen ? w->seen[SEEN_MAX - w->nr_seen].hash : python_mix(w->hash, w->end);
	uint32_t id = stackid_find(w->x, python_mix(hash, w->stack_id), &n.head);
	w->last_id = is_seen ? id : 0;
	w->last_stack_id = w->stack_id;
	return id;
}

uint32_t python_stack_id(struct heap_ctx *x, uint32_t stack_id)
{
	uint64_t base = 0;
	const struct python_layout *l = layout_of(x->local, &base);

	if (!l)
		return stack_id;
	slot_check_tid(x);
	struct python_walk *w = walk_of(x);
	w->x = x;
	w->map_base = base;
	w->tid = x->slot->tid;
	w->stack_id = stack_id;
	forget_readable(w);
	uint32_t id = find_first_frame(w, l) ? frames_id(w, l) : 0;
	if (!id)
		__atomic_fetch_add(&x->shared->nr_no_python, 1, __ATOMIC_RELAXED);
	return id ? id : stack_id;
}
