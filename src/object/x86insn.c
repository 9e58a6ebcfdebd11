#include "base/base.h"
#include "object/x86insn.h"

struct decoder {
	const uint8_t *p;
	size_t n;
	size_t at;
	bool is_bad;
	bool has_66;
	bool has_67;
};

static uint64_t take(struct decoder *d, size_t nr_bytes)
{
	uint64_t v = 0;

	if (d->n - d->at < nr_bytes) {
		d->is_bad = true;
		return 0;
	}
	memcpy(&v, d->p + d->at, nr_bytes);
	d->at += nr_bytes;
	return v;
}

static int64_t take_signed(struct decoder *d, size_t nr_bytes)
{
	uint64_t v = take(d, nr_bytes);
	unsigned shift = 64 - 8 * (unsigned)nr_bytes;

	return nr_bytes ? (int64_t)(v << shift) >> shift : 0;
}

static void take_modrm(struct decoder *d, struct x86_insn *i)
{
	i->has_modrm = true;
	i->modrm = (uint8_t)take(d, 1);
	unsigned mod = i->modrm >> 6;
	unsigned rm = i->modrm & 7;
	size_t nr_disp = mod == 1 ? 1 : mod == 2 ? 4 : 0;
	i->base = 0xff;
	if (mod == 3)
		return;
	if (rm == 4) {
		uint8_t sib = (uint8_t)take(d, 1);
		i->has_index = (sib >> 3 & 7) != 4 || i->rex & 2;
		rm = sib & 7;
		if (mod == 0 && rm == 5)
			nr_disp = 4;
		else
			i->base = (uint8_t)(rm | (i->rex & 1) << 3);
	} else if (mod == 0 && rm == 5) {
		nr_disp = 4; /* relative to the pc */
	} else {
		i->base = (uint8_t)(rm | (i->rex & 1) << 3);
	}
	i->disp_at = nr_disp ? (uint8_t)d->at : 0;
	i->disp = (int32_t)take_signed(d, nr_disp);
}

/* A set of opcodes: one word per high nibble, in it one bit per low nibble. */
typedef uint16_t opcode_set[16];

static const opcode_set MODRM_ONE = {0x0f0f, 0x0f0f, 0x0f0f, 0x0f0f, 0,      0, 0x0a08, 0, 0xfffb,
				     0,      0,      0,      0x00c3, 0xff0f, 0, 0xc0c0};
static const opcode_set MODRM_0F = {0xa00f, 0xffff, 0xffff, 0,      0xffff, 0xffff, 0xffff, 0xff7f,
				    0,      0xffff, 0xf838, 0xffff, 0x00ff, 0xffff, 0xffff, 0xffff};
static const opcode_set INVALID_ONE = {
	[0x0] = 0x40c0, [0x1] = 0xc0c0, [0x2] = 0x8080, [0x3] = 0x8080, [0x6] = 0x0003,
	[0x8] = 0x0004, [0x9] = 0x0400, [0xc] = 0x4000, [0xd] = 0x0070, [0xe] = 0x0400};
/* With an immediate of one byte; of 4, or 2 with operands of 16 bits. */
static const opcode_set IMM_ONE = {[0x0] = 0x1010, [0x1] = 0x1010, [0x2] = 0x1010, [0x3] = 0x1010,
				   [0x6] = 0x0c00, [0x7] = 0xffff, [0x8] = 0x0009, [0xa] = 0x0100,
				   [0xb] = 0x00ff, [0xc] = 0x2043, [0xe] = 0x08ff};
static const opcode_set IMM_Z = {[0x0] = 0x2020, [0x1] = 0x2020, [0x2] = 0x2020, [0x3] = 0x2020,
				 [0x6] = 0x0300, [0x8] = 0x0002, [0xa] = 0x0200, [0xc] = 0x0080};
static const opcode_set IMM_0F = {
	[0x0] = 0x8000, [0x7] = 0x000f, [0xa] = 0x1010, [0xb] = 0x0400, [0xc] = 0x0074};

static bool has(const opcode_set set, uint8_t op)
{
	return set[op >> 4] >> (op & 15) & 1;
}

/* Immediate bytes of a one-byte opcode. */
static size_t imm_one(const struct decoder *d, const struct x86_insn *i)
{
	uint8_t op = i->opcode;
	size_t nr_z = d->has_66 && !(i->rex & 8) ? 2 : 4;

	if (has(IMM_ONE, op))
		return 1;
	if (has(IMM_Z, op))
		return nr_z;
	if (op >= 0xb8 && op <= 0xbf)
		return i->rex & 8 ? 8 : nr_z;
	switch (op) {
	case 0xa0:
	case 0xa1:
	case 0xa2:
	case 0xa3:
		return d->has_67 ? 4 : 8;
	case 0xc2:
	case 0xca:
		return 2;
	case 0xc8:
		return 3;
	case 0xe8:
	case 0xe9:
		return 4;
	case 0xf6:
		return (i->modrm >> 3 & 7) < 2 ? 1 : 0;
	case 0xf7:
		return (i->modrm >> 3 & 7) < 2 ? nr_z : 0;
	}
	return 0;
}

static size_t imm_0f(uint8_t op)
{
	return (op & 0xf0) == 0x80 ? 4 : has(IMM_0F, op);
}

static void take_legacy(struct decoder *d, struct x86_insn *i, uint8_t op)
{
	size_t nr_imm;

	if (op != 0x0f) {
		i->opcode = op;
		d->is_bad |= has(INVALID_ONE, op);
		if (has(MODRM_ONE, op))
			take_modrm(d, i);
		nr_imm = imm_one(d, i);
	} else {
		op = (uint8_t)take(d, 1);
		i->map = op == 0x38 ? 2 : op == 0x3a ? 3 : 1;
		i->opcode = i->map > 1 ? (uint8_t)take(d, 1) : op;
		if (i->map > 1 || has(MODRM_0F, op))
			take_modrm(d, i);
		nr_imm = i->map == 3 ? 1 : i->map == 2 ? 0 : imm_0f(op);
	}
	i->imm = take_signed(d, nr_imm);
}

static void take_vector(struct decoder *d, struct x86_insn *i, uint8_t op)
{
	uint8_t map = 1;

	if (op == 0xc5) {
		(void)take(d, 1);
	} else {
		map = (uint8_t)take(d, 1) & (op == 0x62 ? 7 : 0x1f);
		(void)take(d, op == 0x62 ? 2 : 1);
	}
	i->map = map | 0x10;
	i->opcode = (uint8_t)take(d, 1);
	if (map != 1 || i->opcode != 0x77)
		take_modrm(d, i);
	i->imm = take_signed(d, map == 3 ? 1 : map == 1 ? imm_0f(i->opcode) : 0);
}

bool x86_decode(const uint8_t *p, size_t n, struct x86_insn *ret_insn)
{
	struct decoder d = {.p = p, .n = MIN(n, 15)};
	struct x86_insn *i = ret_insn;
	uint8_t op;

	memset(i, 0, sizeof(*i));
	i->base = 0xff;
	for (;;) {
		op = (uint8_t)take(&d, 1);
		if (d.is_bad)
			return false;
		d.has_66 |= op == 0x66;
		d.has_67 |= op == 0x67;
		if (op != 0x66 && op != 0x67 && op != 0xf0 && op != 0xf2 && op != 0xf3 &&
		    op != 0x2e && op != 0x36 && op != 0x3e && op != 0x26 && op != 0x64 &&
		    op != 0x65)
			break;
	}
	if ((op & 0xf0) == 0x40) {
		i->rex = op;
		op = (uint8_t)take(&d, 1);
	}
	if (op == 0xc4 || op == 0xc5 || op == 0x62)
		take_vector(&d, i, op);
	else
		take_legacy(&d, i, op);
	i->nr_bytes = (uint8_t)d.at;
	return !d.is_bad;
}
