/*
 * wire/python_core.h: the walk over Python frames, on images of memory: the structures of 3.11 and
 * 3.12, and memory that contains anything else.
 */
#include "base/base.h"
#include "tap.h"

#include "kernel_python.h"

#define BASE        0x10000ull
#define IMAGE_BYTES 0x10000u
#define CODE_TYPE   0x100u /* relative to map_base */
#define MAP_BASE    0x7f0000000000ull

static uint8_t image[IMAGE_BYTES];

static int read_image(void *to, size_t n, uint64_t addr)
{
	if (addr < BASE || addr - BASE > IMAGE_BYTES || n > IMAGE_BYTES - (addr - BASE))
		return -1;
	memcpy(to, image + (addr - BASE), n);
	return 0;
}

struct python_walk {
	uint64_t frame;
	uint64_t hash;
	uint64_t seed;
	uint64_t map_base;
	uint64_t anchor;
	uint32_t nr_frames;
	uint32_t end;
	uint64_t interp;
	uint64_t thread;
	uint64_t found;
	uint64_t found_frame;
	uint32_t tid;
	uint32_t nr_found;
	uint64_t raw[32];
	struct python_frame frames[PYTHON_FRAMES_MAX];
	uint64_t codes[PYTHON_FRAMES_MAX]; /* in the order in which they were found */
	uint32_t nr_codes;
};

static void python_add_code(struct python_walk *w, const struct python_layout *l, uint64_t code,
			    uint64_t key)
{
	(void)l;
	(void)key;
	if (w->nr_codes < ARRAY_LEN(w->codes))
		w->codes[w->nr_codes++] = code;
}

#define PYTHON_READ(w, to, nr_bytes, addr) ((void)(w), read_image(to, nr_bytes, addr))
#include "python_core.h"

static const struct python_layout layout_311 = {
	.code_type = CODE_TYPE,
	.entry = PYTHON_ENTRY_FLAG,
	.thread_next = 8,
	.thread_tid = 160,
	.thread_frame = 56,
	.cframe_frame = 8,
	.frame_code = 32,
	.frame_previous = 48,
	.frame_instr = 56,
	.frame_entry = 68,
	.code_file = 112,
	.code_name = 128,
	.code_lines = 136,
	.code_first_line = 72,
	.code_instrs = 184,
	.object_type = 8,
};

static const struct python_layout layout_312 = {
	.code_type = CODE_TYPE,
	.entry = PYTHON_ENTRY_FRAME,
	.thread_next = 8,
	.thread_tid = 144,
	.thread_frame = 56,
	.cframe_frame = PYTHON_NO_FIELD,
	.frame_previous = 8,
	.frame_instr = 56,
	.frame_entry = 70,
	.code_file = 112,
	.code_name = 128,
	.code_lines = 136,
	.code_first_line = 68,
	.code_instrs = 192,
	.object_type = 8,
};

static void put(uint64_t addr, uint64_t v)
{
	memcpy(image + (addr - BASE), &v, sizeof(v));
}

static void put_code(const struct python_layout *l, uint64_t at, uint32_t line)
{
	put(at + l->object_type, MAP_BASE + CODE_TYPE);
	put(at + l->code_file, BASE + 1);
	put(at + l->code_name, BASE + 2);
	memcpy(image + (at + l->code_first_line - BASE), &line, sizeof(line));
}

static void put_frame(const struct python_layout *l, uint64_t at, uint64_t code, uint64_t previous,
		      int instr, uint8_t entry)
{
	put(at + l->frame_code, code);
	put(at + l->frame_previous, previous);
	put(at + l->frame_instr, code + l->code_instrs + (uint64_t)(int64_t)instr);
	image[at - BASE + l->frame_entry] = entry;
}

static struct python_walk *walk(const struct python_layout *l, uint64_t thread)
{
	static struct python_walk w;
	memset(&w, 0, sizeof(w));
	w.map_base = MAP_BASE;
	if (!python_first_frame(&w, l, thread))
		return &w;
	for (uint32_t i = 0; i < 2 * PYTHON_FRAMES_MAX && python_step(&w, l); i++)
		;
	return &w;
}

#define THREAD   (BASE + 0x100)
#define CFRAME   (BASE + 0x300)
#define FRAME(i) (BASE + 0x1000 + 0x100 * (uint64_t)(i))
#define CODE(i)  (BASE + 0x8000 + 0x100 * (uint64_t)(i))

TEST(pythonwalk_follows_the_frames_of_3_11)
{
	const struct python_layout *l = &layout_311;
	put(THREAD + l->thread_frame, CFRAME);
	put(CFRAME + l->cframe_frame, FRAME(0));
	for (uint32_t i = 0; i < 3; i++)
		put_code(l, CODE(i), 10 + i);
	put_frame(l, FRAME(0), CODE(0), FRAME(1), 24, 0);
	put_frame(l, FRAME(1), CODE(1), FRAME(2), 6, 1);
	put_frame(l, FRAME(2), CODE(2), 0, -2, 1);
	const struct python_walk *w = walk(l, THREAD);
	CHECK_U64(w->end, PYTHON_WHOLE);
	CHECK_U64(w->nr_frames, 3);
	CHECK_U64(w->anchor, CFRAME);
	CHECK_U64(w->frames[0].flags, 0);
	CHECK_U64(w->frames[1].flags, PYTHON_IS_ENTRY);
	CHECK_U64(w->frames[2].flags, PYTHON_IS_ENTRY);
	CHECK_U64(w->frames[0].instr, 24);
	CHECK(w->frames[2].instr == -2);
	CHECK(w->codes[0] == CODE(0) && w->codes[2] == CODE(2));
	CHECK(w->frames[0].code != w->frames[1].code);
	/* The same code at another instruction is another stack. */
	uint64_t hash = w->hash;
	put_frame(l, FRAME(0), CODE(0), FRAME(1), 26, 0);
	CHECK(walk(l, THREAD)->hash != hash);
}

TEST(pythonwalk_takes_frames_of_the_c_stack_as_borders_in_3_12)
{
	const struct python_layout *l = &layout_312;
	put(THREAD + l->thread_frame, FRAME(0));
	put_code(l, CODE(0), 10);
	put_code(l, CODE(1), 11);
	put_frame(l, FRAME(0), CODE(0), FRAME(1), 0, 0);
	put_frame(l, FRAME(1), 0, FRAME(2), 0, PYTHON_OWNED_BY_C); /* its code is no object */
	put_frame(l, FRAME(2), CODE(1), FRAME(3), 0, 1);           /* a generator */
	put_frame(l, FRAME(3), CODE(0), FRAME(4), 0, 0);
	put_frame(l, FRAME(4), 0, 0, 0, PYTHON_OWNED_BY_C);
	const struct python_walk *w = walk(l, THREAD);
	CHECK_U64(w->end, PYTHON_WHOLE);
	CHECK_U64(w->nr_frames, 3);
	CHECK_U64(w->anchor, FRAME(1));
	CHECK_U64(w->frames[0].flags, PYTHON_IS_ENTRY);
	CHECK_U64(w->frames[1].flags, 0);
	CHECK_U64(w->frames[2].flags, PYTHON_IS_ENTRY);
	/* A call that has ended its frame is marked, too. */
	put(THREAD + l->thread_frame, FRAME(1));
	w = walk(l, THREAD);
	CHECK_U64(w->nr_frames, 3);
	CHECK_U64(w->frames[0].code, 0);
	CHECK_U64(w->frames[0].flags, PYTHON_IS_ENTRY);
}

TEST(pythonwalk_ends_in_memory_that_is_no_chain_of_frames)
{
	const struct python_layout *l = &layout_312;
	put(THREAD + l->thread_frame, FRAME(0));
	put_code(l, CODE(0), 10);
	put_frame(l, FRAME(0), CODE(0), FRAME(0), 0, 0); /* a loop */
	CHECK_U64(walk(l, THREAD)->end, PYTHON_TOO_DEEP);
	CHECK(walk(l, THREAD)->nr_frames < PYTHON_FRAMES_MAX);
	put_frame(l, FRAME(0), CODE(0), FRAME(0), 0, PYTHON_OWNED_BY_C);
	CHECK(walk(l, THREAD)->nr_frames < PYTHON_FRAMES_MAX);
	put_frame(l, FRAME(0), CODE(0), 0x1234567, 0, 0); /* not readable */
	CHECK_U64(walk(l, THREAD)->end, PYTHON_UNREADABLE);
	CHECK_U64(walk(l, THREAD)->nr_frames, 1);
	put_frame(l, FRAME(0), FRAME(5), 0, 0, 0); /* no code object */
	CHECK_U64(walk(l, THREAD)->end, PYTHON_UNREADABLE);
	CHECK_U64(walk(l, THREAD)->nr_frames, 0);
	/* Code without a file or a line is the interpreter's own. */
	put_code(l, CODE(0), 0);
	put_frame(l, FRAME(0), CODE(0), 0, 0, 0);
	CHECK_U64(walk(l, THREAD)->nr_frames, 0);
	put_code(l, CODE(0), 10);
	put(CODE(0) + l->code_file, 0);
	put_frame(l, FRAME(0), CODE(0), 0, 0, 0);
	CHECK_U64(walk(l, THREAD)->end, PYTHON_WHOLE);
	CHECK_U64(walk(l, THREAD)->nr_frames, 0);
}

TEST(pythonwalk_uses_a_thread_state_only_while_it_is_linked)
{
	const struct python_layout *l = &layout_311;
	static struct python_walk walk;
	struct python_walk *w = &walk;
	uint64_t other = BASE + 0x500;
	put(THREAD + l->thread_tid, 77);
	put(THREAD + l->thread_prev, 0);
	CHECK(python_is_thread(w, l, THREAD, THREAD, 77));
	CHECK(!python_is_thread(w, l, THREAD, THREAD, 78));
	CHECK(!python_is_thread(w, l, THREAD, other, 77)); /* not the first of the list */
	put(THREAD + l->thread_prev, other);
	put(other + l->thread_next, THREAD);
	CHECK(python_is_thread(w, l, THREAD, other, 77));
	put(other + l->thread_next, 0); /* unlinked */
	CHECK(!python_is_thread(w, l, THREAD, other, 77));
	CHECK(!python_is_thread(w, l, 0x1000, other, 77));
}
