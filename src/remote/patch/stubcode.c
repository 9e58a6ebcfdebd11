/* Makes machine code for targets; see stubcode.h. */
#include "base/base.h"
#include "remote/patch/stubcode.h"

#include "object/x86insn.h"

#define OP_CALL   0xe8
#define OP_JMP    0xe9
#define OP_JMP8   0xeb
#define OP_INT3   0xcc
#define ENTRY_PTR 48 /* offset in a stub of the address that it jumps to */

struct out_code {
	uint8_t *p;
	size_t n;
	size_t cap;
	bool is_full;
};

static void put(struct out_code *o, const void *p, size_t n)
{
	if (o->cap - o->n < n) {
		o->is_full = true;
		return;
	}
	memcpy(o->p + o->n, p, n);
	o->n += n;
}

static void put_i32(struct out_code *o, int64_t v)
{
	int32_t v32 = (int32_t)v;
	put(o, &v32, sizeof(v32));
}

static bool fits(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

bool heapcode_jump(uint8_t to[5], uint64_t at, uint64_t target)
{
	int64_t rel = (int64_t)(target - (at + 5));
	int32_t rel32 = (int32_t)rel;
	if (!fits(rel))
		return false;
	to[0] = OP_JMP;
	memcpy(to + 1, &rel32, 4);
	return true;
}

/* jmp to any address. */
static void put_far_jump(struct out_code *o, uint64_t target)
{
	put(o, "\xff\x25\0\0\0\0", 6);
	put(o, &target, 8);
}

static bool is_short_loop(const struct x86_insn *i)
{
	return i->map == 0 && i->opcode >= 0xe0 && i->opcode <= 0xe3;
}

/* @next: address after the original instruction. False: out of range. */
static bool move_branch(struct out_code *o, const struct x86_insn *i, uint64_t next,
			uint64_t to_addr)
{
	uint64_t target = next + (uint64_t)i->imm;
	bool is_jump = i->map == 0 && (i->opcode == OP_JMP || i->opcode == OP_JMP8);
	size_t nr_new = is_jump ? 5 : 6;
	int64_t rel = (int64_t)(target - (to_addr + o->n + nr_new));
	if (!fits(rel))
		return false;
	if (is_jump)
		put(o, "\xe9", 1);
	else
		put(o, (uint8_t[]){0x0f, 0x80 | (i->opcode & 15)}, 2);
	put_i32(o, rel);
	return true;
}

static bool is_branch(const struct x86_insn *i)
{
	if (i->map == 1)
		return (i->opcode & 0xf0) == 0x80;
	return i->map == 0 &&
	       (i->opcode == OP_JMP || i->opcode == OP_JMP8 || (i->opcode & 0xf0) == 0x70);
}

/* Calls would push return addresses in the trampoline; the others have no movable form. */
static bool is_immovable(const struct x86_insn *i)
{
	if (i->map)
		return false;
	return i->opcode == OP_CALL || i->opcode == OP_INT3 || is_short_loop(i) ||
	       (i->opcode == 0xff && (i->modrm >> 3 & 7) == 2) || /* call *operand */
	       (i->opcode == 0xc7 && i->modrm == 0xf8);           /* xbegin */
}

bool heapcode_move(const uint8_t *from, size_t n, uint64_t from_addr, uint8_t *to, size_t cap,
		   uint64_t to_addr, size_t *ret_n)
{
	struct out_code o = {to, 0, cap, false};
	size_t at = 0;
	while (at < n) {
		struct x86_insn i;
		const uint8_t *insn = from + at;
		if (!x86_decode(insn, n - at, &i) || is_immovable(&i))
			return false;
		uint64_t next = from_addr + at + i.nr_bytes;
		if (is_branch(&i)) {
			/* Not with prefixes 66 or 67, which change the meaning. */
			if (insn[0] == 0x66 || insn[0] == 0x67 ||
			    !move_branch(&o, &i, next, to_addr))
				return false;
		} else {
			size_t start = o.n;
			put(&o, insn, i.nr_bytes);
			if (!o.is_full && i.has_modrm && (i.modrm & 0xc7) == 5) {
				int64_t disp = (int64_t)(next + (uint64_t)(int64_t)i.disp -
							 (to_addr + o.n));
				int32_t disp32 = (int32_t)disp;
				if (!fits(disp))
					return false;
				memcpy(to + start + i.disp_at, &disp32, 4);
			}
		}
		at += i.nr_bytes;
	}
	*ret_n = o.n;
	return !o.is_full;
}

bool heapcode_stub(const struct heapcode_stub *s, uint8_t *to)
{
	memset(to, OP_INT3, HEAPCODE_STUB_BYTES);
	struct out_code o = {to, 0, ENTRY_PTR, false};
	put(&o, s->undo, s->nr_undo);
	put(&o, "\x41\xbb", 2); /* mov r11d, site */
	put_i32(&o, (int32_t)s->site);
	put(&o, "\xff\x25", 2); /* jmp [rip + ...] */
	put_i32(&o, ENTRY_PTR - (int64_t)(o.n + 4));
	ASSERT(!o.is_full);
	memcpy(to + ENTRY_PTR, &s->entry, 8);

	size_t moved = 0;
	uint8_t *trampoline = to + HEAPCODE_TRAMPOLINE;
	size_t room = HEAPCODE_STUB_BYTES - HEAPCODE_TRAMPOLINE - 14;
	if (!heapcode_move(s->displaced, s->nr_displaced, s->function, trampoline, room,
			   s->at + HEAPCODE_TRAMPOLINE, &moved))
		return false;
	o = (struct out_code){trampoline, moved, HEAPCODE_STUB_BYTES - HEAPCODE_TRAMPOLINE, false};
	put_far_jump(&o, s->function + s->nr_displaced);
	return !o.is_full;
}

#if defined(__x86_64__)

__asm__(".section .rodata\n"
	"heapcode_batch_start:\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	mov %rdi, %rbx\n"
	"	mov %rsi, %r12\n"
	"	xor %r13d, %r13d\n"
	"1:	cmp %r12, %r13\n"
	"	je 3f\n"
	"	mov (%rbx), %rax\n"
	"	mov 8(%rbx), %rdi\n"
	"	mov 16(%rbx), %rsi\n"
	"	mov 24(%rbx), %rdx\n"
	"	mov 32(%rbx), %r10\n"
	"	mov 40(%rbx), %r8\n"
	"	mov 48(%rbx), %r9\n"
	"	cmp $-1, %rax\n"
	"	je 4f\n"
	"	syscall\n"
	"	mov %rax, 56(%rbx)\n"
	"	cmp $-4096, %rax\n"
	"	ja 3f\n"
	"2:	add $64, %rbx\n"
	"	inc %r13\n"
	"	jmp 1b\n"
	"4:	mov %rsi, (%rdi)\n"
	"	jmp 2b\n"
	"3:	mov %r13, %rax\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	ret\n"
	"heapcode_batch_end:\n"
	".previous\n");
extern const uint8_t heapcode_batch_start[];
extern const uint8_t heapcode_batch_end[];

const uint8_t *heapcode_batch(size_t *ret_n)
{
	*ret_n = (size_t)(heapcode_batch_end - heapcode_batch_start);
	ASSERT(*ret_n <= HEAPCODE_BATCH_BYTES);
	return heapcode_batch_start;
}

#else

const uint8_t *heapcode_batch(size_t *ret_n)
{
	*ret_n = 0;
	return NULL;
}

#endif
