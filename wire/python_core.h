/*
 * The walk over the Python frames of a thread (wire/kernel_python.h), as one source for the BPF
 * programs and for tests on images of memory. All reads are of the target's memory, which may
 * contain anything: each is checked, and the caller bounds the number of steps.
 *
 * Before including, define
 *	PYTHON_READ(w, to, nr_bytes, addr)  copies memory of the target; not 0: it is not readable
 * and provide a struct type `python_walk` with the members
 *	wire_u64 frame, hash, seed, map_base, anchor; wire_u32 nr_frames, end; bool is_known;
 *	wire_u64 interp, thread, found, found_frame; wire_u32 tid, nr_found;  of the search
 *	wire_u64 raw[PYTHON_RAW_WORDS], struct python_frame frames[PYTHON_FRAMES_MAX];
 * and the function
 *	static void python_add_code(struct python_walk *w, const struct python_layout *l, wire_u64 code,
 *				    wire_u64 key)  the code object that is in w->raw was found
 */
#ifndef ASSAY_WIRE_PYTHON_CORE_H
#define ASSAY_WIRE_PYTHON_CORE_H

#include "kernel_python.h"

#define PYTHON_THREADS_MAX 4096u /* thread states and interpreters that a search looks at */

/* A power of two, so that any index into the words can be masked. */
#define PYTHON_RAW_WORDS 32u

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

static __always_inline wire_u64 python_mix(wire_u64 h, wire_u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/* Returns a word of what was read last. */
static __always_inline wire_u64 python_word(const struct python_walk *w, wire_u32 offset)
{
	return w->raw[offset / 8 & (PYTHON_RAW_WORDS - 1)];
}

static __always_inline wire_u32 python_part(const struct python_walk *w, wire_u32 offset)
{
	return (wire_u32)(python_word(w, offset) >> (offset & 4) * 8);
}

static __always_inline wire_u64 python_pointer(struct python_walk *w, wire_u64 addr)
{
	wire_u64 v = 0;
	return PYTHON_READ(w, &v, sizeof(v), addr) ? 0 : v;
}

/*
 * Sets the frame that the walk starts at: the innermost of the thread state; false: it has none.
 * w->anchor becomes an address in the stack frame of the innermost call of the C function that has
 * begun its Python frame: its cframe, or its frame without code (when the walk finds that).
 */
static __always_inline bool python_first_frame(struct python_walk *w, const struct python_layout *l,
					       wire_u64 thread)
{
	wire_u64 frame = python_pointer(w, thread + l->thread_frame);
	w->anchor = 0;
	if (frame && l->cframe_frame != PYTHON_NO_FIELD) {
		w->anchor = frame;
		frame = python_pointer(w, frame + l->cframe_frame);
	}
	w->frame = frame;
	return frame != 0;
}

/*
 * Returns whether @thread is a thread state of the list at @head, and of the thread @tid: memory of
 * one that was freed is neither linked, nor does it stay unchanged.
 */
static __always_inline bool python_is_thread(struct python_walk *w, const struct python_layout *l,
					     wire_u64 thread, wire_u64 head, wire_u32 tid)
{
	wire_u64 prev;
	if (PYTHON_READ(w, &prev, sizeof(prev), thread + l->thread_prev) ||
	    (wire_u32)python_pointer(w, thread + l->thread_tid) != tid)
		return false;
	return (prev ? python_pointer(w, prev + l->thread_next) : head) == thread;
}

/*
 * A step of the search for the states of the thread w->tid, which begins with the interpreter
 * w->interp and w->thread 0: looks at the next interpreter or thread state; false: there is none. A
 * thread has a state in each interpreter that it has run; the innermost call is in the one whose
 * cframe, which is on the thread's stack, has the lowest address. It becomes w->found.
 */
static __always_inline bool python_search_step(struct python_walk *w, const struct python_layout *l,
					       bool is_first)
{
	if (!w->thread) {
		if (!is_first)
			w->interp = python_pointer(w, w->interp + l->interp_next);
		if (!w->interp)
			return false;
		w->thread = python_pointer(w, w->interp + l->thread_head);
		return true;
	}
	wire_u64 thread = w->thread;
	w->thread = python_pointer(w, thread + l->thread_next);
	if ((wire_u32)python_pointer(w, thread + l->thread_tid) != w->tid)
		return true;
	if (!python_first_frame(w, l, thread))
		return true;
	wire_u64 frame = python_pointer(w, thread + l->thread_frame);
	if (!w->nr_found || frame < w->found_frame) {
		w->found = thread;
		w->found_frame = frame;
	}
	w->nr_found++;
	return true;
}

static __always_inline void python_push(struct python_walk *w, wire_u64 code, wire_s32 instr,
					wire_u32 flags)
{
	struct python_frame *f = &w->frames[w->nr_frames & (PYTHON_FRAMES_MAX - 1)];
	f->code = code;
	f->instr = instr;
	f->flags = flags;
	w->nr_frames++;
	w->hash = python_mix(python_mix(w->hash, code), (wire_u64)(wire_u32)instr << 1);
}

/* The frame that was pushed last is where a call of the C function began. */
static __always_inline void python_mark_entry(struct python_walk *w)
{
	wire_u32 n = w->nr_frames;
	struct python_frame *last = &w->frames[(n - 1) & (PYTHON_FRAMES_MAX - 1)];

	if (n && !(last->flags & PYTHON_IS_ENTRY))
		last->flags |= PYTHON_IS_ENTRY;
	else /* the call has not begun its frame, or has ended it */
		python_push(w, 0, 0, PYTHON_IS_ENTRY);
	w->hash = python_mix(w->hash, PYTHON_IS_ENTRY);
}

/*
 * Reads the string at @addr: where its characters are, at most @max bytes of them. A path that is
 * too long keeps its end.
 */
static __always_inline wire_u64 python_text(struct python_walk *w, const struct python_layout *l,
					    wire_u64 addr, wire_u32 max, bool keeps_end,
					    struct python_text *ret)
{
	wire_u64 length = python_pointer(w, addr + l->text_length);
	wire_u32 state = (wire_u32)python_pointer(w, addr + l->text_state);
	wire_u32 kind = PYTHON_TEXT_KIND(state);
	bool is_ascii = state & PYTHON_TEXT_IS_ASCII;
	wire_u64 at = addr + (is_ascii ? l->text_ascii : l->text_compact);

	ret->kind = 0;
	ret->is_cut = 0;
	ret->nr_bytes = 0;
	if (!(state & PYTHON_TEXT_IS_COMPACT) || (kind != 1 && kind != 2 && kind != 4) ||
	    length > (1u << 30))
		return 0;
	ret->kind = kind;
	length *= kind;
	if (length > max) {
		ret->is_cut = 1;
		at += keeps_end ? length - max : 0;
		length = max;
	}
	ret->nr_bytes = length;
	return at;
}

/*
 * Fills a record of the code object that is in w->raw, but for its head and its lines; returns where
 * the line table is, r->nr_lines bytes.
 */
static __always_inline wire_u64 python_read_code(struct python_walk *w,
						 const struct python_layout *l, wire_u64 key,
						 struct kernel_pycode *r)
{
	wire_u64 name = python_word(w, l->code_name);
	wire_u64 file = python_word(w, l->code_file);
	wire_u64 lines = python_word(w, l->code_lines);
	wire_u64 nr = python_pointer(w, lines + l->bytes_length);

	r->key = key;
	r->first_line = python_part(w, l->code_first_line);
	r->nr_lines = nr <= PYTHON_LINES_BYTES * PYTHON_LINES_PARTS ? nr : 0;
	name = python_text(w, l, name, PYTHON_NAME_BYTES, false, &r->name);
	file = python_text(w, l, file, PYTHON_FILE_BYTES, true, &r->file);
	if (PYTHON_READ(w, r->name_text, r->name.nr_bytes & (2 * PYTHON_NAME_BYTES - 1), name))
		r->name.kind = 0;
	if (PYTHON_READ(w, r->file_text, r->file.nr_bytes & (2 * PYTHON_FILE_BYTES - 1), file))
		r->file.kind = 0;
	return lines + l->bytes_data;
}

/* Reads a code object and pushes its frame; false: it is none. */
static __always_inline bool python_push_code(struct python_walk *w, const struct python_layout *l,
					     wire_u64 code, wire_u64 instr)
{
	if (PYTHON_READ(w, w->raw, PYTHON_CODE_WORDS * 8, code) ||
	    python_word(w, l->object_type) != w->map_base + l->code_type)
		return false;
	wire_u64 file = python_word(w, l->code_file);
	/* Code of the interpreter's own has no file (3.12) or no line (3.13). */
	if (!file || !python_part(w, l->code_first_line))
		return true;
	wire_u64 key = python_mix(python_mix(w->seed, code), file);
	key = python_mix(key, python_word(w, l->code_name));
	key = python_mix(key, python_word(w, l->code_lines));
	key = python_mix(key, python_part(w, l->code_first_line)) | 1;
	wire_u64 at = instr - (code + l->code_instrs);
	python_push(w, key, at + 64 < (1u << 30) ? (wire_s32)at : -1, 0);
	python_add_code(w, l, code, key);
	return true;
}

/* Takes the next frame; false: the walk has ended, w->end says how. */
static __always_inline bool python_step(struct python_walk *w, const struct python_layout *l)
{
	if (!w->frame)
		return false;
	if (w->nr_frames >= PYTHON_FRAMES_MAX - 2) {
		w->end = PYTHON_TOO_DEEP;
		return false;
	}
	w->end = PYTHON_UNREADABLE;
	if (PYTHON_READ(w, w->raw, PYTHON_FRAME_WORDS * 8, w->frame))
		return false;
	wire_u64 code = python_word(w, l->frame_code);
	wire_u64 previous = python_word(w, l->frame_previous);
	wire_u64 instr = python_word(w, l->frame_instr);
	wire_u32 entry = python_word(w, l->frame_entry) >> (l->frame_entry & 7) * 8 & 0xff;
	bool is_shim = l->entry == PYTHON_ENTRY_FRAME && entry == PYTHON_OWNED_BY_C;

	if (!is_shim && !python_push_code(w, l, code, instr))
		return false;
	if (is_shim && !w->anchor)
		w->anchor = w->frame;
	if (is_shim || (l->entry == PYTHON_ENTRY_FLAG && entry))
		python_mark_entry(w);
	w->frame = previous;
	w->end = PYTHON_WHOLE;
	return previous != 0;
}

#endif
