/* Heaps of glibc's malloc; see mallocheap.h. */
#include "base/base.h"
#include "host/memory/mallocheap.h"

#include <stdlib.h>

#include "base/mem.h"
#include "host/memory/anon.h"
#include "host/memory/pagehead.h"

#define PAGE         ((uint64_t)PAGEHEAD_PAGE)
#define ARENA_ALIGN  ((uint64_t)64 << 20)
#define FLAG_BITS    ((uint64_t)7)
#define PREV_IN_USE  ((uint64_t)1)
#define IS_MMAPPED   ((uint64_t)2)
#define CHUNK_MIN    ((uint64_t)32)
#define FENCE_BYTES  ((uint64_t)16)
#define TRIM_HEADER  ((uint64_t)48) /* what malloc_trim keeps of a free chunk */
#define WINDOW       ((uint64_t)1 << 20)
#define SEGMENT_MAX  ((uint64_t)256 << 30)
#define CHAIN_RETRY  2u  /* chunks that must fit after reading again */
#define CHAIN_RESUME 16u /* chunks that must fit where the walk continues */
#define RESUMES_MAX  256u
#define RESUME_BYTES ((uint64_t)4 << 20)
#define FASTBINS     10u
#define FAST_LINKS   2048u /* longer lists are not followed */
#define DATA_MAX     ((uint64_t)64 << 20)
#define PAGE_WORDS   (PAGEHEAD_PAGE / sizeof(uint64_t))
#define TOP_TRIES    16u /* reads of a top that changes meanwhile */

/* Offsets in struct malloc_state. */
#define STATE_FAST   0x10u
#define STATE_TOP    0x60u
#define STATE_NEXT   0x870u
#define STATE_SYSTEM 0x888u
#define STATE_BYTES  0x898u

struct heap_arena {
	uint64_t state; /* address */
	uint64_t words[STATE_BYTES / 8];
};

struct walk {
	const struct pagehead_reader *r;
	const struct heap_arena *arena;
	/* The segment: part of a heap without holes. */
	uint64_t start;
	uint64_t end;
	bool is_main;
	bool *is_resident; /* by page */
	/* A copy of a part of it. */
	uint8_t *bytes;
	uint64_t copied_from;
	uint64_t copied_to;
	/* Fastbins, by size class. */
	bool is_long[FASTBINS];
	bool has_mangled_links; /* glibc 2.32 and later */
	uint64_t nr_listed;     /* chunks in short lists; the walk counts them as in use */
	uint64_t listed_bytes;
	uint64_t held_to;   /* index of the first page behind all chunks in use */
	uint64_t nr_held;   /* resident pages with chunks in use */
	bool is_after_used; /* the chunk before is in use */
	unsigned nr_resumes;
	struct memheap sum;
};

static uint64_t arena_word(const struct heap_arena *a, unsigned offset)
{
	return a->words[offset / 8];
}

/* ---- reading ------------------------------------------------------------------------------- */

static void copy_from(struct walk *w, uint64_t addr)
{
	w->copied_from = addr & ~(PAGE - 1);
	w->copied_to = MIN(w->copied_from + WINDOW, w->end);
	uint64_t page = (w->copied_from - w->start) / PAGE;
	uint64_t nr = (w->copied_to - w->copied_from) / PAGE;
	for (uint64_t i = 0; i < nr;) {
		uint64_t n = 1;
		while (i + n < nr && w->is_resident[page + i] == w->is_resident[page + i + n])
			n++;
		if (w->is_resident[page + i] &&
		    !pagehead_copy(w->r, w->copied_from + i * PAGE, w->bytes + i * PAGE, n * PAGE))
			memset(w->is_resident + page + i, 0, n * sizeof(bool));
		i += n;
	}
}

static bool read_word(struct walk *w, uint64_t addr, uint64_t *ret_word)
{
	if (addr < w->start || addr + sizeof(uint64_t) > w->end ||
	    !w->is_resident[(addr - w->start) / PAGE])
		return false;
	if (addr < w->copied_from || addr + sizeof(uint64_t) > w->copied_to)
		copy_from(w, addr);
	memcpy(ret_word, w->bytes + (addr - w->copied_from), sizeof(uint64_t));
	return w->is_resident[(addr - w->start) / PAGE];
}

static bool open_segment(struct walk *w, uint64_t start, uint64_t end)
{
	if (end - start > SEGMENT_MAX)
		return false;
	w->start = start & ~(PAGE - 1);
	w->end = end & ~(PAGE - 1);
	w->copied_from = w->copied_to = 0;
	w->held_to = w->nr_held = 0;
	uint64_t nr = (w->end - w->start) / PAGE;
	free(w->is_resident);
	w->is_resident = xcalloc(MAX(nr, (uint64_t)1), sizeof(bool));
	pagehead_resident(w->r, w->start, nr, w->is_resident);
	return true;
}

/* ---- chunks -------------------------------------------------------------------------------- */

struct chunk {
	uint64_t at;
	uint64_t nr_bytes;
	bool is_used;
	bool is_last; /* the top, or the end of a heap that is not the last of its arena */
};

static bool read_chunk(struct walk *w, uint64_t at, struct chunk *ret_c)
{
	uint64_t head, next_head, foot;
	uint64_t top = arena_word(w->arena, STATE_TOP);
	if (at % 16 || !read_word(w, at + 8, &head) || head & IS_MMAPPED)
		return false;
	struct chunk c = {.at = at, .nr_bytes = head & ~FLAG_BITS};
	bool is_fence = c.nr_bytes == FENCE_BYTES && w->end - at <= 4 * FENCE_BYTES;
	if (at == top || is_fence || (c.nr_bytes >= CHUNK_MIN && at + c.nr_bytes == w->end)) {
		c.nr_bytes = w->end - at;
		c.is_last = true;
		*ret_c = c;
		return true;
	}
	if (c.nr_bytes < CHUNK_MIN || c.nr_bytes % 16 || c.nr_bytes > w->end - at ||
	    !read_word(w, at + c.nr_bytes + 8, &next_head))
		return false;
	c.is_used = next_head & PREV_IN_USE;
	if (!c.is_used && (!read_word(w, at + c.nr_bytes, &foot) || foot != c.nr_bytes))
		return false;
	*ret_c = c;
	return true;
}

static bool is_chain(struct walk *w, uint64_t at, unsigned nr)
{
	struct chunk c = {.at = at};
	for (unsigned i = 0; i < nr; i++, at += c.nr_bytes) {
		if (!read_chunk(w, at, &c))
			return false;
		if (c.is_last)
			return true;
	}
	return true;
}

/* Returns where the walk continues; 0 = nowhere. */
static uint64_t resume(struct walk *w, uint64_t at)
{
	copy_from(w, at);
	if (is_chain(w, at, CHAIN_RETRY))
		return at;
	uint64_t end = MIN(w->end, at + RESUME_BYTES);
	for (uint64_t next = at + 16; w->nr_resumes < RESUMES_MAX && next < end; next += 16)
		if (is_chain(w, next, CHAIN_RESUME)) {
			w->nr_resumes++;
			return next;
		}
	return 0;
}

/* ---- fastbins ------------------------------------------------------------------------------ */

static bool read_link(struct walk *w, uint64_t chunk, uint64_t *ret_next)
{
	uint64_t at = chunk + 16;
	uint64_t link;
	if (!pagehead_copy(w->r, at, &link, sizeof(link)))
		return false;
	*ret_next = w->has_mangled_links ? link ^ at >> 12 : link;
	return true;
}

/* Links are mangled if that leads to a chunk of the same size. */
static bool is_list_mangled(struct walk *w, uint64_t first, uint64_t nr_bytes)
{
	uint64_t link;
	uint64_t head;
	if (!pagehead_copy(w->r, first + 16, &link, sizeof(link)))
		return false;
	uint64_t next = link ^ (first + 16) >> 12;
	return !next || (next % 16 == 0 && pagehead_copy(w->r, next + 8, &head, sizeof(head)) &&
			 (head & ~FLAG_BITS) == nr_bytes);
}

static void follow_fastbins(struct walk *w)
{
	for (unsigned i = 0; i < FASTBINS; i++) {
		uint64_t at = arena_word(w->arena, STATE_FAST + i * 8);
		uint64_t nr_bytes = (i + 2) * (uint64_t)16;
		uint64_t n = 0;
		w->is_long[i] = false;
		if (!at)
			continue;
		w->has_mangled_links = is_list_mangled(w, at, nr_bytes);
		while (at && at % 16 == 0 && n < FAST_LINKS && read_link(w, at, &at))
			n++;
		w->is_long[i] = n == FAST_LINKS;
		if (w->is_long[i])
			continue;
		w->nr_listed += n;
		w->listed_bytes += n * nr_bytes;
	}
}

static bool is_in_fastbin(struct walk *w, const struct chunk *c)
{
	uint64_t class_idx = c->nr_bytes / 16 - 2;
	uint64_t link;
	if (class_idx >= FASTBINS || !w->is_long[class_idx] || !read_word(w, c->at + 16, &link))
		return false;
	if (w->has_mangled_links)
		link ^= (c->at + 16) >> 12;
	bool is_end = !link && w->has_mangled_links;
	return is_end || (link % 16 == 0 && link >= w->start && link < w->end);
}

/* ---- the walk ------------------------------------------------------------------------------ */

static void hold_pages(struct walk *w, uint64_t from, uint64_t to)
{
	uint64_t page = MAX((from - w->start) / PAGE, w->held_to);
	uint64_t end = (to - w->start + PAGE - 1) / PAGE;
	for (; page < end; page++)
		w->nr_held += w->is_resident[page];
	w->held_to = MAX(w->held_to, end);
}

static void add_chunk(struct walk *w, const struct chunk *c)
{
	bool is_fast = c->is_used && is_in_fastbin(w, c);
	w->sum.walked_bytes += c->nr_bytes;
	if (c->is_used && !is_fast) {
		w->sum.nr_used++;
		w->sum.used_bytes += c->nr_bytes;
		hold_pages(w, c->at, c->at + c->nr_bytes);
		w->is_after_used = true;
		return;
	}
	w->sum.free_bytes += c->nr_bytes;
	w->sum.fast_bytes += is_fast ? c->nr_bytes : 0;
	/* The header of a free region stays. */
	if (w->is_after_used)
		hold_pages(w, c->at, MIN(c->at + TRIM_HEADER, w->end));
	w->is_after_used = false;
	/* malloc_trim returns the top of the main heap only. */
	if (c->is_last && !w->is_main)
		hold_pages(w, c->at, c->at + c->nr_bytes);
}

static void walk_segment(struct walk *w, uint64_t first)
{
	uint64_t at = first;
	uint64_t resident = 0;
	for (uint64_t i = 0; i < (w->end - w->start) / PAGE; i++)
		resident += w->is_resident[i];
	hold_pages(w, w->start, first);
	w->is_after_used = true;
	w->sum.walked_bytes += first - w->start;
	while (at < w->end) {
		struct chunk c;
		if (read_chunk(w, at, &c)) {
			add_chunk(w, &c);
			at += c.nr_bytes;
			continue;
		}
		uint64_t next = resume(w, at);
		hold_pages(w, at, next ? next : w->end);
		if (!next)
			break;
		at = next;
	}
	w->sum.total_bytes += w->end - w->start;
	w->sum.resident_bytes += resident * PAGE;
	w->sum.trimmable_bytes += (resident - MIN(w->nr_held, resident)) * PAGE;
}

/* ---- arenas -------------------------------------------------------------------------------- */

static bool read_arena(const struct pagehead_reader *r, uint64_t state, struct heap_arena *ret_a)
{
	ret_a->state = state;
	return state % 8 == 0 && pagehead_copy(r, state, ret_a->words, sizeof(ret_a->words));
}

/* The main heap. It may have grown since its mapping was read, at most up to the next mapping. */
struct main_heap {
	uint64_t start;
	uint64_t end;
	uint64_t limit;
};

/* Whether a word is the top of an arena's state, by the words behind it. @state: its address. */
static bool is_state(const uint64_t *top, uint64_t state, const struct main_heap *heap)
{
	uint64_t next = top[(STATE_NEXT - STATE_TOP) / 8];
	uint64_t system = top[(STATE_SYSTEM - STATE_TOP) / 8];
	return *top >= heap->start && *top < heap->limit && *top % 16 == 0 && system &&
	       system % PAGE == 0 &&
	       (next == state || next % ARENA_ALIGN == 0x20 || next % ARENA_ALIGN == 0x30);
}

/* Reads the arena and the end of its heap, that of the top chunk. Both change as the program allocates. */
static bool read_main(const struct pagehead_reader *r, uint64_t state, struct main_heap *heap,
		      struct heap_arena *ret_a)
{
	for (unsigned i = 0; i < TOP_TRIES; i++) {
		uint64_t head, again;
		if (!read_arena(r, state, ret_a) ||
		    !is_state(ret_a->words + STATE_TOP / 8, state, heap))
			return false;
		uint64_t top = arena_word(ret_a, STATE_TOP);
		if (!pagehead_copy(r, top + 8, &head, sizeof(head)) ||
		    !pagehead_copy(r, state + STATE_TOP, &again, sizeof(again)) || again != top)
			continue;
		uint64_t nr_bytes = head & ~FLAG_BITS;
		if (head & PREV_IN_USE && nr_bytes <= heap->limit - top &&
		    (top + nr_bytes) % PAGE == 0) {
			heap->end = top + nr_bytes;
			return true;
		}
	}
	return false;
}

/* Finds the main arena in a binary's data: a variable that points to the top of the heap. */
static bool find_arena_in(const struct pagehead_reader *r, const struct memmap *data,
			  struct main_heap *heap, struct heap_arena *ret_a)
{
	uint64_t words[2 * PAGE_WORDS]; /* a page, and the next one for a state that begins in it */
	uint64_t end = MIN(data->end, data->start + DATA_MAX);
	bool has_page = pagehead_read_page(r, data->start, words);
	for (uint64_t at = data->start; at < end; at += PAGE) {
		bool has_next = at + PAGE < data->end &&
				pagehead_read_page(r, at + PAGE, words + PAGE_WORDS);
		if (!has_next)
			memset(words + PAGE_WORDS, 0, PAGE);
		for (size_t k = 0; has_page && k < PAGE_WORDS; k++) {
			uint64_t state = at + k * 8 - STATE_TOP;
			if (is_state(words + k, state, heap) && read_main(r, state, heap, ret_a))
				return true;
		}
		memcpy(words, words + PAGE_WORDS, PAGE);
		has_page = has_next;
	}
	return false;
}

static bool find_main_arena(const struct pagehead_reader *r, const struct memmaps *m,
			    struct main_heap *heap, struct heap_arena *ret_a)
{
	for (size_t i = 0; i < m->list.n; i++)
		if (memanon_is_data(m, i) && find_arena_in(r, &m->list.p[i], heap, ret_a))
			return true;
	return false;
}

static void walk_main(struct walk *w, const struct memmaps *m)
{
	struct heap_arena a;
	struct main_heap heap = {0};
	/* What a process adds after a fork is a mapping of its own. */
	vec_foreach(one, &m->list)
		if (one->kind == MEMMAP_HEAP && (!heap.end || one->start == heap.end)) {
			heap.start = heap.end ? heap.start : one->start;
			heap.end = one->end;
			heap.limit = heap.end + SEGMENT_MAX;
		} else if (heap.end && one->start >= heap.end) {
			heap.limit = MIN(heap.limit, one->start);
		}
	if (!heap.end)
		return;
	if (!find_main_arena(w->r, m, &heap, &a) || !open_segment(w, heap.start, heap.end)) {
		w->sum.main_unread_bytes = heap.end - heap.start;
		w->sum.total_bytes += heap.end - heap.start;
		return;
	}
	w->arena = &a;
	w->is_main = true;
	w->sum.nr_arenas++;
	follow_fastbins(w);
	walk_segment(w, heap.start);
	w->is_main = false;
}

/* A heap_info: arena, previous heap of the arena, size. */
static void walk_heap_of_thread(struct walk *w, uint64_t start, const uint64_t *info)
{
	struct heap_arena a;
	uint64_t first_heap = info[0] & ~(ARENA_ALIGN - 1);
	uint64_t header = info[0] - first_heap;
	uint64_t end = start + info[2];
	bool is_first = first_heap == start;
	if ((header != 0x20 && header != 0x30) || !read_arena(w->r, info[0], &a) ||
	    !arena_word(&a, STATE_SYSTEM) || !open_segment(w, start, end))
		return;
	w->arena = &a;
	if (is_first) {
		w->sum.nr_arenas++;
		follow_fastbins(w);
	}
	uint64_t first = is_first ? info[0] + STATE_BYTES : start + header;
	walk_segment(w, (first + 15) & ~(uint64_t)15);
}

static void walk_threads(struct walk *w, const struct memmaps *m)
{
	for (size_t i = 0; i < m->list.n; i++) {
		const struct memmap *one = &m->list.p[i];
		if (one->kind != MEMMAP_ANON || !one->anon.of[MEMANON_GLIBC_ARENA].virtual_bytes)
			continue;
		uint64_t at = (one->start + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
		for (; at < one->end; at += ARENA_ALIGN) {
			struct pagehead h;
			pagehead_read(w->r, at, 1, &h);
			if (h.is_read && memanon_is_arena(at, memanon_region_end(m, i) - at, &h))
				walk_heap_of_thread(w, at, h.words);
		}
	}
}

static void move_listed(struct walk *w)
{
	uint64_t nr_bytes = MIN(w->listed_bytes, w->sum.used_bytes);
	w->sum.used_bytes -= nr_bytes;
	w->sum.free_bytes += nr_bytes;
	w->sum.fast_bytes += nr_bytes;
	w->sum.nr_used -= MIN(w->nr_listed, w->sum.nr_used);
}

bool mallocheap_read(struct memheap *ret_h, const struct memmaps *m, int32_t pid)
{
	CLEANUP(pagehead_close) struct pagehead_reader r = PAGEHEAD_READER_INIT;
	pagehead_open(&r, pid);
	if (r.pagemap_fd < 0 || !m->has_rss)
		return false;
	struct walk w = {.r = &r, .bytes = xmalloc(WINDOW)};
	walk_main(&w, m);
	walk_threads(&w, m);
	move_listed(&w);
	free(w.bytes);
	free(w.is_resident);
	if (!w.sum.nr_arenas)
		return false;
	*ret_h = w.sum;
	ret_h->is_known = true;
	return true;
}
