/* Parses format files of tracepoints and prints payloads; see tracefmt.h. */
#include "base/base.h"
#include "capture/events/tracefmt.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text/lines.h"
#include "base/mem.h"

#define TEXT_MAX 4096 /* a payload is at most 8 KiB (PERF_MAX_TRACE_SIZE) */

void trace_format_release(struct trace_format *f)
{
	free(f->text);
	*f = (struct trace_format){0};
}

static bool has_word(struct sv s, const char *word)
{
	return memmem(s.p, s.n, word, strlen(word)) != NULL;
}

/* Parses a part such as "offset:24"; false: its key is not @key, or no number follows. */
static bool number_of(struct sv part, const char *key, uint64_t *ret_v)
{
	struct sv value = sv_trim(part);
	struct sv name = sv_split(&value, ':');
	return sv_eq_str(name, key) && sv_to_u64(sv_trim(value), ret_v);
}

static enum trace_field_kind kind_of(struct sv type, bool is_array, bool is_loc)
{
	bool is_char = has_word(type, "char");
	if (is_loc)
		return is_char ? TRACE_STRING : TRACE_BLOB;
	if (is_array)
		return is_char ? TRACE_BYTES : TRACE_ARRAY;
	return memchr(type.p, '*', type.n) ? TRACE_POINTER : TRACE_NUMBER;
}

/* "const char * filename", "char rwbs[10]", "__data_loc char[] cmd": type, then name. */
static bool parse_declaration(struct trace_field *f, struct sv decl)
{
	decl = sv_trim(decl);
	bool is_loc = sv_has_prefix(decl, SV("__data_loc")) || sv_has_prefix(decl, SV("__rel_loc"));
	f->is_relative = sv_has_prefix(decl, SV("__rel_loc"));
	bool is_array = false;
	if (!is_loc && sv_has_suffix(decl, SV("]"))) {
		ssize_t open = sv_rindex(decl, '[');
		if (open < 1)
			return false;
		decl.n = (size_t)open;
		is_array = true;
	}
	ssize_t blank = sv_rindex(decl, ' ');
	if (blank < 1)
		return false;
	f->name = sv_from_idx(decl, (size_t)blank + 1);
	f->kind = kind_of(sv_from(decl.p, (size_t)blank), is_array, is_loc);
	f->is_hex =
		f->kind == TRACE_POINTER || has_word(f->name, "flags") || has_word(f->name, "addr");
	return f->name.n > 0;
}

static bool parse_field(struct trace_field *ret_f, struct sv line)
{
	struct trace_field f = {0};
	uint64_t offset;
	uint64_t size;
	uint64_t is_signed;
	struct sv decl = sv_split(&line, ';');
	(void)sv_split(&decl, ':'); /* "field" */
	if (!number_of(sv_split(&line, ';'), "offset", &offset) ||
	    !number_of(sv_split(&line, ';'), "size", &size) ||
	    !number_of(sv_split(&line, ';'), "signed", &is_signed))
		return false;
	if (!parse_declaration(&f, decl) || offset + size > TEXT_MAX || !size)
		return false;
	f.offset = (uint16_t)offset;
	f.nr_bytes = (uint16_t)size;
	f.is_signed = is_signed != 0;
	if ((f.kind == TRACE_NUMBER || f.kind == TRACE_POINTER) && size != 1 && size != 2 &&
	    size != 4 && size != 8)
		f.kind = TRACE_ARRAY; /* a structure */
	if ((f.kind == TRACE_STRING || f.kind == TRACE_BLOB) && size != 4)
		return false;
	*ret_f = f;
	return true;
}

static void add_field(struct trace_format *f, struct sv line)
{
	struct trace_field one;
	if (!parse_field(&one, line)) {
		f->nr_left_out++;
		return;
	}
	uint16_t end = (uint16_t)(one.offset + one.nr_bytes);
	f->nr_bytes = MAX(f->nr_bytes, end);
	if (sv_has_prefix(one.name, SV("common_")))
		return;
	if (f->nr_fields == TRACE_FIELDS_MAX) {
		f->nr_left_out++;
		return;
	}
	f->fields[f->nr_fields++] = one;
}

int trace_format_parse(struct trace_format *ret_f, struct sv text, struct err *err)
{
	struct trace_format f = {.text = xstrndup(text.p ? text.p : "", text.n)};
	struct lines in = lines_from(f.text, text.n);
	struct sv line;
	bool has_id = false;
	while (lines_next(&in, &line)) {
		line = sv_trim(line);
		uint64_t id;
		if (sv_has_prefix(line, SV("print fmt:")))
			break;
		if (sv_has_prefix(line, SV("field:"))) {
			add_field(&f, line);
		} else if (sv_has_prefix(line, SV("name:"))) {
			f.name = sv_trim(sv_from_idx(line, 5));
		} else if (number_of(line, "ID", &id) && id <= UINT32_MAX) {
			f.id = (uint32_t)id;
			has_id = true;
		}
	}
	if (!has_id) {
		trace_format_release(&f);
		return err_set(err, -EINVAL, "the format file of a tracepoint has no ID");
	}
	*ret_f = f;
	return 0;
}

const struct trace_field *trace_field(const struct trace_format *f, const char *name)
{
	for (uint32_t i = 0; i < f->nr_fields; i++)
		if (sv_eq_str(f->fields[i].name, name))
			return &f->fields[i];
	return NULL;
}

/* Bytes that are not printable text would break the line. */
static void add_text(struct buf *to, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n && p[i]; i++)
		buf_add_ch(to, p[i] >= ' ' && p[i] != 0x7f ? (char)p[i] : '?');
}

static uint64_t load(const uint8_t *p, size_t n)
{
	uint64_t v = 0;
	memcpy(&v, p, n); /* both architectures are little-endian */
	return v;
}

static void add_number(struct buf *to, const struct trace_field *f, const uint8_t *p)
{
	uint64_t v = load(p, f->nr_bytes);
	unsigned shift = 64u - 8u * f->nr_bytes;
	if (f->is_hex) {
		buf_add_str(to, "0x");
		buf_add_hex(to, v);
	} else if (f->is_signed) {
		buf_addf(to, "%" PRId64, (int64_t)(v << shift) >> shift);
	} else {
		buf_addf(to, "%" PRIu64, v);
	}
}

static void add_array(struct buf *to, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_addf(to, "%02x", p[i]);
}

static void add_located(struct buf *to, const struct trace_field *f, const uint8_t *raw, size_t n)
{
	uint64_t loc = load(raw + f->offset, 4);
	size_t len = (size_t)(loc >> 16);
	size_t at = (size_t)(loc & 0xffff) + (f->is_relative ? f->offset + 4u : 0);
	if (at >= n) {
		buf_add_str(to, len ? "(cut)" : "");
		return;
	}
	len = MIN(len, n - at);
	if (f->kind == TRACE_STRING)
		add_text(to, raw + at, len);
	else
		add_array(to, raw + at, MIN(len, (size_t)64));
}

static void add_value(struct buf *to, const struct trace_field *f, const uint8_t *raw, size_t n)
{
	switch (f->kind) {
	case TRACE_NUMBER:
	case TRACE_POINTER:
		add_number(to, f, raw + f->offset);
		break;
	case TRACE_BYTES:
		add_text(to, raw + f->offset, f->nr_bytes);
		break;
	case TRACE_STRING:
	case TRACE_BLOB:
		add_located(to, f, raw, n);
		break;
	case TRACE_ARRAY:
		add_array(to, raw + f->offset, MIN((size_t)f->nr_bytes, (size_t)64));
		break;
	}
}

void trace_format_print(struct buf *to, const struct trace_format *f, const uint8_t *raw, size_t n)
{
	bool is_call =
		sv_has_prefix(f->name, SV("sys_enter")) || sv_has_prefix(f->name, SV("sys_exit"));
	bool is_first = true;
	for (uint32_t i = 0; i < f->nr_fields; i++) {
		const struct trace_field *field = &f->fields[i];
		if ((size_t)field->offset + field->nr_bytes > n ||
		    sv_eq_str(field->name, "__syscall_nr"))
			continue;
		if (!is_first)
			buf_add_str(to, is_call ? ", " : " ");
		is_first = false;
		buf_add_sv(to, field->name);
		buf_add_str(to, is_call ? ": " : "=");
		add_value(to, field, raw, n);
	}
}

void trace_format_list(struct buf *to, const struct trace_format *f)
{
	bool is_first = true;
	for (uint32_t i = 0; i < f->nr_fields; i++) {
		if (sv_eq_str(f->fields[i].name, "__syscall_nr"))
			continue;
		buf_add_str(to, is_first ? "" : ", ");
		buf_add_sv(to, f->fields[i].name);
		is_first = false;
	}
}
