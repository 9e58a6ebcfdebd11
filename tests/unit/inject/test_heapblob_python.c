/*
 * Python frames of the recorder (inject/heap_python.c): an interpreter's structures in memory of this
 * process, and a function that stands for the interpreter's loop.
 */
#include "base/base.h"
#include "tap.h"

#if defined(__x86_64__)
#include <sys/mman.h>
#include <unistd.h>

#include "heapblob_fixture.h"

#define PAGE       4096u
#define PAGES      8u
#define CODE_TYPE  0x40u
#define RUNTIME    0x80u
#define INTERP     0x100u
#define THREAD     0x200u
#define CFRAME     0x400u
#define NAME       0x500u
#define LINES      0x600u
#define FRAME(i)   (PAGE * 2 + 0x80u * (i))
#define CODE(i)    (PAGE * 4 + 0x100u * (i))
#define LOOP_BYTES 256u

static uint8_t *image;

static struct python_layout layout = {
	.entry = PYTHON_ENTRY_FLAG,
	.interp_head = 40,
	.thread_head = 16,
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
	.text_length = 16,
	.text_state = 32,
	.text_ascii = 48,
	.text_compact = 72,
	.bytes_length = 16,
	.bytes_data = 32,
};

static uint64_t at(uint32_t off)
{
	return (uint64_t)(uintptr_t)(image + off);
}

static void put(uint32_t off, uint64_t v)
{
	memcpy(image + off, &v, sizeof(v));
}

static void put_text(uint32_t off, const char *text)
{
	put(off + layout.text_length, strlen(text));
	put(off + layout.text_state, 1 << 2 | PYTHON_TEXT_IS_COMPACT | PYTHON_TEXT_IS_ASCII);
	memcpy(image + off + layout.text_ascii, text, strlen(text));
}

static void put_code(unsigned i, uint32_t name, uint32_t line)
{
	put(CODE(i) + layout.object_type, at(CODE_TYPE));
	put(CODE(i) + layout.code_file, at(NAME));
	put(CODE(i) + layout.code_name, at(name));
	put(CODE(i) + layout.code_lines, at(LINES));
	put(CODE(i) + layout.code_first_line, line);
}

static void put_frame(unsigned i, uint64_t code, uint64_t previous, uint32_t instr)
{
	put(FRAME(i) + layout.frame_code, code);
	put(FRAME(i) + layout.frame_previous, previous);
	put(FRAME(i) + layout.frame_instr, code + layout.code_instrs + instr);
	put(FRAME(i) + 64, (uint64_t)(previous == 0) << 32); /* frame_entry */
}

__attribute__((noinline)) static void *loop(size_t n)
{
	void *p = hooked_malloc(n);
	__asm__ volatile("" : : "r"(p) : "memory");
	return p;
}

/* Three frames, "f" at line 10 innermost, in a process that has the interpreter. */
static void begin_python(void)
{
	begin(&every);
	image = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	ASSERT(image != MAP_FAILED);
	put(RUNTIME + layout.interp_head, at(INTERP));
	put(INTERP + layout.thread_head, at(THREAD));
	put(THREAD + layout.thread_tid, (uint64_t)gettid());
	put(THREAD + layout.thread_frame, at(CFRAME));
	put(CFRAME + layout.cframe_frame, at(FRAME(0)));
	put_text(NAME, "f");
	put(LINES + layout.bytes_length, 3);
	memcpy(image + LINES + layout.bytes_data, "abc", 3);
	for (unsigned i = 0; i < 3; i++) {
		put_code(i, NAME, 10 + i);
		put_frame(i, at(CODE(i)), i < 2 ? at(FRAME(i + 1)) : 0, 2 * i);
	}
	struct ktables_head *t = (void *)(uintptr_t)hw->local->tables;
	struct kmap *map = &t->maps[KTABLES_NR_MAPS - 1];
	layout.runtime = at(RUNTIME);
	layout.code_type = at(CODE_TYPE);
	layout.eval_from = (uint64_t)(uintptr_t)loop;
	layout.eval_to = layout.eval_from + LOOP_BYTES;
	t->pythons[0] = layout;
	map->base = 0;
	map->python_1 = 1;
	t->spaces[0].python = t->spaces[0].now >> 32 << 32 | KTABLES_NR_MAPS;
}

/* What one allocation recorded. */
struct recorded {
	uint32_t nr_stacks;
	uint32_t nr_codes;
	uint32_t nr_pystacks;
	uint32_t nr_frames;
	uint32_t end;
	uint32_t native; /* stack ids */
	uint32_t pystack;
	uint32_t alloc;
	struct python_frame frames[8];
	uint64_t keys[8];
	uint32_t first_line;
	char name[8];
};

static struct recorded record(void)
{
	struct recorded c = {0};
	static struct heap_seen r;
	(void)loop(10);
	struct heap_slot *s = local_recorder_slot(hw);
	while (local_recorder_next(hw, s, &r)) {
		if (r.kind == HEAP_RECORD_STACK) {
			c.nr_stacks++;
			c.native = r.stack;
		} else if (r.kind == HEAP_RECORD_PYCODE) {
			c.keys[c.nr_codes++ % 8] = r.pycode->key;
			c.first_line = r.pycode->first_line;
			memcpy(c.name, r.pycode->name_text, MIN(r.pycode->name.nr_bytes, 7u));
			CHECK_U64(r.pycode->nr_lines, 3);
			CHECK(!memcmp(r.pycode->lines, "abc", 3));
		} else if (r.kind == HEAP_RECORD_PYSTACK) {
			c.nr_pystacks++;
			c.pystack = r.stack;
			c.nr_frames = r.nr_frames;
			c.end = r.end;
			CHECK(!c.native || r.native_stack == c.native);
			memcpy(c.frames, r.python, MIN(r.nr_frames, 8u) * sizeof(*r.python));
		} else if (r.kind == HEAP_RECORD_ALLOC) {
			c.alloc = r.stack;
		}
	}
	return c;
}

TEST(heapblob_adds_python_frames)
{
	begin_python();
	struct recorded first = {0};
	for (unsigned i = 0; i < 3; i++) { /* one call, so one native stack */
		struct recorded c = record();
		if (i == 0) {
			first = c;
			CHECK_U64(c.nr_stacks, 1);
			CHECK_U64(c.nr_codes, 3);
			CHECK_U64(c.nr_pystacks, 1);
			CHECK_U64(c.end, PYTHON_WHOLE);
			CHECK_U64(c.nr_frames, 3);
			CHECK_U64(c.alloc, c.pystack);
			CHECK(c.alloc != c.native);
			CHECK(!strcmp(c.name, "f"));
			CHECK_U64(c.first_line, 12);
			CHECK(c.frames[0].code == c.keys[0] && c.frames[2].code == c.keys[2]);
			CHECK_U64(c.frames[1].instr, 2);
			CHECK_U64(c.frames[1].flags, 0);
			CHECK_U64(c.frames[2].flags, PYTHON_IS_ENTRY);
			put_frame(2, at(CODE(2)), 0, 8); /* a caller goes on */
		} else if (i == 1) {
			CHECK_U64(c.nr_stacks + c.nr_codes, 0);
			CHECK_U64(c.nr_pystacks, 1);
			CHECK_U64(c.frames[2].instr, 8);
			CHECK(c.frames[0].code == first.keys[0]);
			put_frame(2, at(CODE(2)), 0, 4);
		} else {
			CHECK_U64(c.nr_stacks + c.nr_codes + c.nr_pystacks, 0);
			CHECK_U64(c.alloc, first.alloc);
		}
	}
	local_recorder_free(hw);
}

/* As for exec() in a loop: the same address, another code object. */
TEST(heapblob_tells_code_objects_at_one_address_apart)
{
	begin_python();
	uint64_t key = 0;
	uint32_t stack = 0;
	put_text(NAME + 0x80, "g");
	for (unsigned i = 0; i < 2; i++) {
		struct recorded c = record();
		CHECK_U64(c.nr_codes, i ? 1 : 3);
		CHECK(c.alloc != stack);
		CHECK(c.frames[1].code != key);
		CHECK(!i || !strcmp(c.name, "g"));
		key = c.frames[1].code;
		stack = c.alloc;
		put_code(1, NAME + 0x80, 11);
	}
	local_recorder_free(hw);
}

TEST(heapblob_reads_no_python_frame_that_is_not_there)
{
	begin_python();
	uint64_t gone = at(PAGE * 7);
	static const uint64_t bad[] = {8, 0x123456789abcdef8, 0xffffffffffffffff, 0x7fffffffffff};
	uint32_t stacks[2] = {0};
	munmap(image + PAGE * 7, PAGE);
	for (unsigned i = 0; i < 2 * ARRAY_LEN(bad) + 2; i++) {
		uint64_t v = i / 2 < ARRAY_LEN(bad) ? bad[i / 2] : gone;
		if (i % 2)
			put_frame(1, v, at(FRAME(2)), 2);
		else
			put_frame(0, at(CODE(0)), v, 0);
		struct recorded c = record();
		/* All have the one frame that is there. There may be two calls of record() here. */
		CHECK(c.alloc != c.native);
		CHECK(!c.nr_pystacks || (c.nr_frames == 1 && c.end == PYTHON_UNREADABLE));
		CHECK(i < 2 || c.alloc == stacks[i % 2]);
		stacks[i % 2] = c.alloc;
		put_frame(0, at(CODE(0)), at(FRAME(1)), 0);
		put_frame(1, at(CODE(1)), at(FRAME(2)), 2);
	}
	local_recorder_free(hw);
}

/* Pages that were readable are asked for again when something was unmapped. */
TEST(heapblob_forgets_readable_pages_of_python)
{
	begin_python();
	uint64_t far = at(PAGE * 6);
	memcpy(image + PAGE * 6, image + FRAME(2), 0x80);
	put_frame(1, at(CODE(1)), far, 2);
	for (unsigned i = 0; i < 2; i++) {
		struct recorded c = record();
		CHECK_U64(c.nr_frames, 3 - i);
		CHECK_U64(c.end, i ? PYTHON_UNREADABLE : PYTHON_WHOLE);
		munmap(image + PAGE * 6, PAGE);
		hw->local->nr_unmaps++;
	}
	local_recorder_free(hw);
}

TEST(heapblob_has_native_stacks_of_threads_without_python)
{
	begin_python();
	put(THREAD + layout.thread_tid, (uint64_t)gettid() + 1);
	struct recorded c = record();
	CHECK_U64(c.nr_codes + c.nr_pystacks, 0);
	CHECK_U64(c.alloc, c.native);
	CHECK_U64(hw->shared->nr_no_python, 1);
	/* A stack in which the loop does not run is not looked at. */
	(void)hooked_malloc(10);
	CHECK_U64(hw->shared->nr_no_python, 1);
	local_recorder_free(hw);
}

#endif
