/*
 * Frames of Python code (CPython 3.11 to 3.13), read from the interpreter's own structures.
 *
 * The interpreter runs Python functions in one C function, _PyEval_EvalFrameDefault. One call of it
 * runs many Python frames: those that Python code calls from Python code. The chain of frames of a
 * thread starts at its PyThreadState and leads outwards:
 *
 *	_PyRuntime > PyInterpreterState > PyThreadState (native_thread_id) > frame > previous > ...
 *
 * Frames at which a call of the C function began are marked, so that user space can put the Python
 * frames where that call is among the native ones.
 *
 * RECORD_PYCODE has a code object (a Python function or a module's top level), sent once under a
 * key. RECORD_PYSTACK has the Python frames that belong to a native stack, sent once under a
 * reference of its own, which stands for both.
 */
#ifndef ASSAY_WIRE_KERNEL_PYTHON_H
#define ASSAY_WIRE_KERNEL_PYTHON_H

#include "kernel_record.h"

#define PYTHON_NO_FIELD 0xffffffffu

/* How a frame says that a call of the C function began at it. */
enum python_entry {
	PYTHON_ENTRY_FLAG = 0,  /* 3.11: a byte that is not 0 */
	PYTHON_ENTRY_FRAME = 1, /* 3.12: a frame without code, owned by the C stack, precedes it */
};
#define PYTHON_OWNED_BY_C 3u /* value of the owner byte of such a frame */

#define PYTHON_FRAME_WORDS 9u  /* of a frame that are read: all fields lie in them */
#define PYTHON_CODE_WORDS  19u /* of a code object */

/*
 * Where the interpreter of one binary keeps what is read. Addresses are relative to kmap.base,
 * other values are offsets in bytes. Checked before it is published: fields of a frame and of a
 * code object lie in the words above.
 */
struct python_layout {
	wire_u64 runtime;   /* _PyRuntime */
	wire_u64 code_type; /* PyCode_Type */
	wire_u64 eval_from; /* _PyEval_EvalFrameDefault */
	wire_u64 eval_to;
	wire_u32 version; /* as PY_VERSION_HEX */
	wire_u32 entry;   /* enum python_entry */
	wire_u32 interp_head;
	wire_u32 interp_next;
	wire_u32 thread_head;
	wire_u32 thread_next;
	wire_u32 thread_prev;
	wire_u32 thread_tid;
	wire_u32 thread_frame;
	wire_u32 cframe_frame; /* not NO_FIELD: thread_frame points to a cframe, which has it */
	wire_u32 frame_code;
	wire_u32 frame_previous;
	wire_u32 frame_instr;
	wire_u32 frame_entry; /* the byte of enum python_entry */
	wire_u32 code_file;
	wire_u32 code_name;
	wire_u32 code_lines;
	wire_u32 code_first_line;
	wire_u32 code_instrs;
	wire_u32 object_type;
	wire_u32 text_length;
	wire_u32 text_state;
	wire_u32 text_ascii;   /* size of the head of an ASCII string: its characters follow */
	wire_u32 text_compact; /* of another compact string */
	wire_u32 bytes_length;
	wire_u32 bytes_data;
};

/* Bits of the state of a string. */
#define PYTHON_TEXT_KIND(state) ((state) >> 2 & 7u) /* bytes per character: 1, 2 or 4 */
#define PYTHON_TEXT_IS_COMPACT  0x20u
#define PYTHON_TEXT_IS_ASCII    0x40u

enum python_frame_flags {
	PYTHON_IS_ENTRY = 1, /* a call of the C function began here */
};

struct python_frame {
	wire_u64 code; /* key of its code object; 0: only marks an entry */
	wire_s32
		instr; /* offset of the current instruction in the code, bytes; below 0: not begun */
	wire_u32 flags; /* enum python_frame_flags */
};

#define PYTHON_FRAMES_MAX 1024u

/* Values of kernel_record.flags of a RECORD_PYSTACK. */
enum python_stack_flags {
	/* The native stack lacks the leaf (KSTACK_NO_LEAF). */
	PYSTACK_NO_LEAF = 1,
	/*
	 * The innermost Python frames are those of the leaf, which is a call of the C function.
	 * Else the leaf is none, or one that has not begun its frame or has ended it.
	 */
	PYSTACK_IN_LEAF = 2,
};

enum python_end {
	PYTHON_WHOLE = 0,
	PYTHON_TOO_DEEP = 1,   /* more than PYTHON_FRAMES_MAX frames */
	PYTHON_UNREADABLE = 2, /* memory was not readable, or is no frame */
};

struct kernel_pystack {
	struct kernel_record head;
	wire_u64 ref;        /* of native stack and Python frames together */
	wire_u64 native_ref; /* the native stack, sent before */
	wire_u32 nr_frames;
	wire_u32 end;                 /* enum python_end */
	struct python_frame frames[]; /* innermost first */
};

#define PYTHON_NAME_BYTES  512u
#define PYTHON_FILE_BYTES  1024u
#define PYTHON_LINES_BYTES 8192u /* of the line table in one record */
#define PYTHON_LINES_PARTS 16u   /* most records of one code object */

/* Characters of 1, 2 or 4 bytes. A long name lacks its end, a long path its beginning. */
struct python_text {
	wire_u32 nr_bytes;
	wire_u8 kind; /* bytes per character; 0: not readable */
	wire_u8 is_cut;
	wire_u8 pad[2];
};

struct kernel_pycode {
	struct kernel_record head;
	wire_u64 key;
	wire_u32 first_line;
	wire_u32 nr_lines; /* bytes of the line table; 0: not readable or too large */
	wire_u32 lines_at; /* of these, lines[] begins here */
	wire_u32 pad;
	struct python_text name;
	struct python_text file;
	wire_u8 name_text[PYTHON_NAME_BYTES];
	wire_u8 file_text[PYTHON_FILE_BYTES];
	wire_u8 lines[]; /* to the end of the record */
};

#ifndef __bpf__
_Static_assert(sizeof(struct python_layout) == 136, "python layout");
_Static_assert(sizeof(struct kernel_pystack) == 48, "pystack record");
_Static_assert(sizeof(struct kernel_pycode) == 64 + PYTHON_NAME_BYTES + PYTHON_FILE_BYTES,
	       "pycode record");
#endif

#endif
