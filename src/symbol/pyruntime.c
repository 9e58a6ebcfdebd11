/* Python interpreters in binaries; see pyruntime.h. */
#include "base/base.h"
#include "symbol/pyruntime.h"

#include <elf.h>

#define NAME_MAX_BYTES 32
#define CHAIN_MAX      64 /* symbols with the same hash value in one bucket */

/* The tables of a binary's dynamic symbols with a hash table (.gnu.hash). */
struct dynamic_symbols {
	struct elf *e;
	const struct elf_section *hash;
	const struct elf_section *symbols;
	const struct elf_section *names;
	uint32_t nr_buckets;
	uint32_t first_symbol;
	uint32_t nr_bloom;
	uint32_t bloom_shift;
};

static bool read_in(const struct elf *e, const struct elf_section *s, void *to, size_t n,
		    uint64_t at)
{
	return at <= s->nr_bytes && n <= s->nr_bytes - at &&
	       !elf_read(e, to, n, s->offset + at, NULL);
}

static bool open_symbols(struct dynamic_symbols *d, struct elf *e)
{
	uint32_t head[4];
	*d = (struct dynamic_symbols){.e = e,
				      .hash = elf_section(e, ".gnu.hash"),
				      .symbols = elf_section(e, ".dynsym"),
				      .names = elf_section(e, ".dynstr")};
	if (!d->hash || !d->symbols || !d->names || !read_in(e, d->hash, head, sizeof(head), 0))
		return false;
	d->nr_buckets = head[0];
	d->first_symbol = head[1];
	d->nr_bloom = head[2];
	d->bloom_shift = head[3] & 31;
	return d->nr_buckets && d->nr_bloom;
}

static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;
	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

static bool may_have(const struct dynamic_symbols *d, uint32_t hash)
{
	uint64_t word;
	uint64_t bits = (uint64_t)1 << (hash & 63) | (uint64_t)1 << (hash >> d->bloom_shift & 63);
	return read_in(d->e, d->hash, &word, sizeof(word),
		       16 + (uint64_t)(hash / 64 % d->nr_bloom) * 8) &&
	       (word & bits) == bits;
}

static bool is_named(const struct dynamic_symbols *d, const Elf64_Sym *s, const char *name)
{
	char text[NAME_MAX_BYTES];
	size_t n = strlen(name) + 1;
	ASSERT(n <= sizeof(text));
	return read_in(d->e, d->names, text, n, s->st_name) && !memcmp(text, name, n);
}

static bool find_symbol(const struct dynamic_symbols *d, const char *name, Elf64_Sym *ret_s)
{
	uint32_t hash = hash_of(name);
	uint32_t i;
	uint64_t buckets = 16 + (uint64_t)d->nr_bloom * 8;
	uint64_t chains = buckets + (uint64_t)d->nr_buckets * 4;
	if (!may_have(d, hash) ||
	    !read_in(d->e, d->hash, &i, sizeof(i), buckets + (uint64_t)(hash % d->nr_buckets) * 4))
		return false;
	for (unsigned tries = 0; i >= d->first_symbol && tries < CHAIN_MAX; i++, tries++) {
		uint32_t h;
		if (!read_in(d->e, d->hash, &h, sizeof(h),
			     chains + (uint64_t)(i - d->first_symbol) * 4))
			return false;
		Elf64_Sym s;
		if ((h | 1) == (hash | 1) &&
		    read_in(d->e, d->symbols, &s, sizeof(s), (uint64_t)i * sizeof(s)) &&
		    s.st_shndx && is_named(d, &s, name)) {
			*ret_s = s;
			return true;
		}
		if (h & 1)
			return false;
	}
	return false;
}

static bool read_at(const struct elf *e, uint64_t vaddr, void *to, size_t n)
{
	uint64_t offset;
	return elf_offset_from_vaddr(e, vaddr, &offset) && !elf_read(e, to, n, offset, NULL);
}

/* ---- layouts ------------------------------------------------------------------------------- */

/* Equal in 3.11 to 3.13. */
static const struct python_layout common = {
	.interp_next = 0,
	.thread_prev = 0,
	.thread_next = 8,
	.frame_instr = 56,
	.code_file = 112,
	.code_name = 128,
	.code_lines = 136,
	.object_type = 8,
	.text_length = 16,
	.text_state = 32,
	.bytes_length = 16,
	.bytes_data = 32,
	.cframe_frame = PYTHON_NO_FIELD,
};

static void set_3_11(struct python_layout *l)
{
	*l = common;
	l->entry = PYTHON_ENTRY_FLAG;
	l->interp_head = 40;
	l->thread_head = 16;
	l->thread_tid = 160;
	l->thread_frame = 56;
	l->cframe_frame = 8;
	l->frame_code = 32;
	l->frame_previous = 48;
	l->frame_entry = 68;
	l->code_first_line = 72;
	l->code_instrs = 184;
	l->text_ascii = 48;
	l->text_compact = 72;
}

static void set_3_12(struct python_layout *l)
{
	*l = common;
	l->entry = PYTHON_ENTRY_FRAME;
	l->interp_head = 40;
	l->thread_head = 72;
	l->thread_tid = 144;
	l->thread_frame = 56;
	l->cframe_frame = 0;
	l->frame_code = 0;
	l->frame_previous = 8;
	l->frame_entry = 70;
	l->code_first_line = 68;
	l->code_instrs = 192;
	l->text_ascii = 40;
	l->text_compact = 56;
}

/* The table of offsets at the start of _PyRuntime in 3.13, as 64-bit numbers. */
enum {
	DEBUG_COOKIE = 0,
	DEBUG_VERSION = 1,
	DEBUG_FREE_THREADED = 2,
	DEBUG_INTERP_HEAD = 5,
	DEBUG_INTERP_NEXT = 8,
	DEBUG_THREAD_HEAD = 9,
	DEBUG_THREAD_PREV = 20,
	DEBUG_THREAD_NEXT = 21,
	DEBUG_THREAD_FRAME = 23,
	DEBUG_THREAD_TID = 25,
	DEBUG_FRAME_PREVIOUS = 29,
	DEBUG_FRAME_CODE = 30,
	DEBUG_FRAME_INSTR = 31,
	DEBUG_FRAME_OWNER = 33,
	DEBUG_CODE_FILE = 35,
	DEBUG_CODE_NAME = 37,
	DEBUG_CODE_LINES = 38,
	DEBUG_CODE_FIRST_LINE = 39,
	DEBUG_CODE_INSTRS = 43,
	DEBUG_OBJECT_TYPE = 45,
	DEBUG_BYTES_LENGTH = 65,
	DEBUG_BYTES_DATA = 66,
	DEBUG_TEXT_STATE = 68,
	DEBUG_TEXT_LENGTH = 69,
	DEBUG_TEXT_ASCII = 70,
	DEBUG_NR = 73,
};

static bool set_3_13(struct python_layout *l, const struct elf *e, uint64_t runtime)
{
	uint64_t d[DEBUG_NR];
	if (!read_at(e, runtime, d, sizeof(d)) || memcmp(&d[DEBUG_COOKIE], "xdebugpy", 8) ||
	    (d[DEBUG_VERSION] >> 16) != 0x030d || d[DEBUG_FREE_THREADED])
		return false;
	for (size_t i = DEBUG_INTERP_HEAD; i < DEBUG_NR; i++)
		if (d[i] > INT32_MAX)
			return false;
	*l = common;
	l->entry = PYTHON_ENTRY_FRAME;
	l->interp_head = (uint32_t)d[DEBUG_INTERP_HEAD];
	l->interp_next = (uint32_t)d[DEBUG_INTERP_NEXT];
	l->thread_head = (uint32_t)d[DEBUG_THREAD_HEAD];
	l->thread_prev = (uint32_t)d[DEBUG_THREAD_PREV];
	l->thread_next = (uint32_t)d[DEBUG_THREAD_NEXT];
	l->thread_frame = (uint32_t)d[DEBUG_THREAD_FRAME];
	l->thread_tid = (uint32_t)d[DEBUG_THREAD_TID];
	l->frame_previous = (uint32_t)d[DEBUG_FRAME_PREVIOUS];
	l->frame_code = (uint32_t)d[DEBUG_FRAME_CODE];
	l->frame_instr = (uint32_t)d[DEBUG_FRAME_INSTR];
	l->frame_entry = (uint32_t)d[DEBUG_FRAME_OWNER];
	l->code_file = (uint32_t)d[DEBUG_CODE_FILE];
	l->code_name = (uint32_t)d[DEBUG_CODE_NAME];
	l->code_lines = (uint32_t)d[DEBUG_CODE_LINES];
	l->code_first_line = (uint32_t)d[DEBUG_CODE_FIRST_LINE];
	l->code_instrs = (uint32_t)d[DEBUG_CODE_INSTRS];
	l->object_type = (uint32_t)d[DEBUG_OBJECT_TYPE];
	l->bytes_length = (uint32_t)d[DEBUG_BYTES_LENGTH];
	l->bytes_data = (uint32_t)d[DEBUG_BYTES_DATA];
	l->text_state = (uint32_t)d[DEBUG_TEXT_STATE];
	l->text_length = (uint32_t)d[DEBUG_TEXT_LENGTH];
	l->text_ascii = (uint32_t)d[DEBUG_TEXT_ASCII];
	/* It has a length of its UTF-8 form and a pointer to that in addition. */
	l->text_compact = l->text_ascii + 16;
	return true;
}

/* Returns whether a pointer at @offset lies in the @nr words that are read. */
static bool is_in(uint32_t offset, uint32_t nr)
{
	return offset % 8 == 0 && offset / 8 < nr;
}

static bool is_sane(const struct python_layout *l)
{
	return is_in(l->frame_code, PYTHON_FRAME_WORDS) &&
	       is_in(l->frame_previous, PYTHON_FRAME_WORDS) &&
	       is_in(l->frame_instr, PYTHON_FRAME_WORDS) &&
	       l->frame_entry / 8 < PYTHON_FRAME_WORDS && is_in(l->code_file, PYTHON_CODE_WORDS) &&
	       is_in(l->code_name, PYTHON_CODE_WORDS) && is_in(l->code_lines, PYTHON_CODE_WORDS) &&
	       l->code_first_line % 4 == 0 && l->code_first_line / 8 < PYTHON_CODE_WORDS &&
	       is_in(l->object_type, PYTHON_CODE_WORDS);
}

static bool set_layout(struct pyruntime *r, const struct elf *e, uint64_t runtime)
{
	switch (r->version >> 16) {
	case 0x030b:
		set_3_11(&r->layout);
		return true;
	case 0x030c:
		set_3_12(&r->layout);
		return true;
	case 0x030d:
		return set_3_13(&r->layout, e, runtime) && is_sane(&r->layout);
	default:
		return false;
	}
}

void pyruntime_find(struct pyruntime *ret_r, struct elf *e)
{
	struct dynamic_symbols d;
	Elf64_Sym runtime;
	Elf64_Sym eval;
	Elf64_Sym version;
	Elf64_Sym code_type;
	*ret_r = (struct pyruntime){0};
	if (!open_symbols(&d, e) || !find_symbol(&d, "_PyRuntime", &runtime))
		return;
	ret_r->kind = PYRUNTIME_UNKNOWN;
	uint64_t v = 0;
	if (!find_symbol(&d, "Py_Version", &version) || !read_at(e, version.st_value, &v, 8) ||
	    !find_symbol(&d, "_PyEval_EvalFrameDefault", &eval) ||
	    !find_symbol(&d, "PyCode_Type", &code_type) ||
	    !elf_offset_from_vaddr(e, eval.st_value, &ret_r->eval_from))
		return;
	ret_r->version = (uint32_t)v;
	ret_r->eval_to = ret_r->eval_from + eval.st_size;
	if (!set_layout(ret_r, e, runtime.st_value))
		return;
	ret_r->layout.version = ret_r->version;
	ret_r->layout.runtime = runtime.st_value;
	ret_r->layout.code_type = code_type.st_value;
	ret_r->layout.eval_from = eval.st_value;
	ret_r->layout.eval_to = eval.st_value + eval.st_size;
	ret_r->kind = PYRUNTIME_KNOWN;
}
