/* Finds facts and code of a jemalloc; see alloccode.h. */
#include "base/base.h"
#include "plan/alloccode.h"

#include <elf.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sv.h"

#define VARIABLE_BYTES_MAX 48
#define RODATA_BYTES_MAX   ((uint64_t)256 << 20)
#define HASH_DIGITS        40
#define PIECE_BYTES        ((size_t)256 << 10)
#define OVERLAP_BYTES      ((size_t)16)
#define PADDING_MAX        64 /* between functions of one range */

/* ---- strings ------------------------------------------------------------------------------- */

static bool is_hex(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!memchr("0123456789abcdef", s.p[i], 16))
			return false;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Length of the commit at the end of a version: a whole hash or, if there was no git, "0"; else 0. */
static size_t commit_length(const char *hash, const char *end)
{
	if (end - hash > HASH_DIGITS && !hash[HASH_DIGITS] && is_hex(sv_from(hash, HASH_DIGITS)))
		return HASH_DIGITS;
	return end - hash > 1 && hash[0] == '0' && !hash[1] ? 1 : 0;
}

/*
 * "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c": config.h's VERSION, ended by NUL. In redis'
 * sources it is "5.2.1-0-g0".
 */
static void find_version(struct allocfind_jemalloc *j, struct sv data)
{
	const char *at = data.p;
	const char *end = data.p + data.n;
	while ((at = memmem(at, (size_t)(end - at), "-g", 2))) {
		const char *hash = at + 2;
		at += 2;
		size_t nr_digits = commit_length(hash, end);
		if (!nr_digits)
			continue;
		const char *start = hash - 2;
		while (start > data.p &&
		       (is_digit(start[-1]) || start[-1] == '.' || start[-1] == '-'))
			start--;
		struct sv text = sv_from(start, (size_t)(hash - 2 - start));
		struct sv numbers = sv_split(&text, '-');
		uint64_t v[3] = {0};
		bool is_good = true;
		for (size_t i = 0; i < 3; i++)
			is_good &= sv_to_u64(sv_split(&numbers, '.'), &v[i]) && v[i] < 1000;
		if (!is_good || numbers.n || !text.n || v[0] > 99)
			continue;
		for (size_t i = 0; i < 3; i++)
			j->version[i] = (uint32_t)v[i];
		j->version_text = xstrndup(start, (size_t)(hash - start) + nr_digits);
		return;
	}
}

/* The name of jemalloc's environment variable: capitals, ended by NUL. */
static void find_variable(struct allocfind_jemalloc *j, struct sv data)
{
	static const char base[] = "MALLOC_CONF"; /* with its NUL */
	const char *at = data.p;
	const char *end = data.p + data.n;
	while ((at = memmem(at, (size_t)(end - at), base, sizeof(base)))) {
		const char *start = at;
		at += sizeof(base);
		while (start > data.p && start[-1] &&
		       ((start[-1] >= 'A' && start[-1] <= 'Z') || start[-1] == '_' ||
			is_digit(start[-1])))
			start--;
		size_t n = (size_t)(at - 1 - start);
		bool is_whole = start == data.p || !start[-1];
		if (!is_whole || n > VARIABLE_BYTES_MAX || j->variable)
			continue;
		j->variable = xstrndup(start, n);
	}
}

static void facts_of(struct allocfind_jemalloc *j, struct sv data)
{
	if (!j->version_text)
		find_version(j, data);
	if (!j->variable)
		find_variable(j, data);
	/* The header of a dump; only compiled in with profiling. */
	j->has_prof |= memmem(data.p, data.n, "heap_v2/", 8) != NULL;
}

static bool is_rodata(const struct elf_section *s)
{
	return s->type == SHT_PROGBITS && (s->flags & SHF_ALLOC) &&
	       !(s->flags & (SHF_WRITE | SHF_EXECINSTR | SHF_COMPRESSED)) &&
	       s->nr_bytes <= RODATA_BYTES_MAX && sv_has_prefix(s->name, SV(".rodata"));
}

/*
 * Whether the section contains MALLOC_CONF. A binary may have tens of megabytes of constants, so it
 * is searched in pieces that fit into the cache, by a byte that is rare in constants.
 */
static bool has_variable(const struct elf *e, const struct elf_section *s)
{
	static const char last[] = "MALLOC_CON"; /* then F and NUL */
	size_t n_last = sizeof(last) - 1;
	char *piece CLEANUP(free_p) = xmalloc(PIECE_BYTES);
	for (uint64_t at = 0; at < s->nr_bytes; at += PIECE_BYTES - OVERLAP_BYTES) {
		size_t n = (size_t)MIN((uint64_t)PIECE_BYTES, s->nr_bytes - at);
		if (elf_read(e, piece, n, s->offset + at, NULL))
			return false;
		const char *p = piece + MIN(n, n_last);
		while ((p = memchr(p, 'F', (size_t)(piece + n - p)))) {
			if (p + 1 < piece + n && !p[1] && !memcmp(p - n_last, last, n_last))
				return true;
			p++;
		}
	}
	return false;
}

bool alloccode_has_symbols(const struct elf *e)
{
	size_t nr;
	const struct elf_section *s = elf_sections(e, &nr);
	for (size_t i = 0; i < nr; i++)
		if (s[i].type == SHT_SYMTAB && s[i].nr_bytes)
			return true;
	return false;
}

static bool may_have_strings(const struct elf *image)
{
	size_t nr;
	const struct elf_section *s = elf_sections(image, &nr);
	for (size_t i = 0; i < nr; i++)
		if (is_rodata(&s[i]) && has_variable(image, &s[i]))
			return true;
	return false;
}

static void read_strings(struct allocfind_jemalloc *j, struct elf *image)
{
	size_t nr;
	const struct elf_section *s = elf_sections(image, &nr);
	for (size_t i = 0; i < nr; i++) {
		CLEANUP(buf_release) struct buf bytes = {0};
		if (is_rodata(&s[i]) && !elf_section_read(image, &s[i], &bytes, NULL) && bytes.n)
			facts_of(j, buf_sv(&bytes));
	}
}

bool alloccode_has_strings(struct elf *image)
{
	struct allocfind_jemalloc j = {0};
	if (may_have_strings(image))
		read_strings(&j, image);
	bool has_both = j.version_text && j.variable;
	free(j.version_text);
	free(j.variable);
	return has_both;
}

void alloccode_facts(struct allocfind *f, struct elf *image)
{
	struct allocfind_jemalloc *j = &f->jemalloc;
	/* Strings alone are significant only in a binary without symbols. */
	if (j->prefix || (!alloccode_has_symbols(image) && may_have_strings(image)))
		read_strings(j, image);
	if (j->prefix || (j->version_text && j->variable))
		return;
	free_p(&j->version_text);
	free_p(&j->variable);
	*j = (struct allocfind_jemalloc){0};
}

/* ---- code ---------------------------------------------------------------------------------- */

/* jemalloc's source files, as in STT_FILE symbols, which precede their local functions. */
static const char jemalloc_files[] =
	"arena background_thread base bin bin_info bitmap buf_writer cache_bin chunk chunk_dss "
	"chunk_mmap ckh counter ctl decay div ecache edata edata_cache ehooks emap eset exp_grow "
	"extent extent_dss extent_mmap fxp hash hook hpa hpa_hooks hpdata huge inspect jemalloc "
	"jemalloc_cpp large log malloc_io mutex mutex_pool nstime pa pa_extra pac pages pai "
	"peak_event prng prof prof_data prof_log prof_recent prof_stats prof_sys psset quarantine "
	"rtree safety_check san san_bump sc sec spin stats sz tcache test_hooks thread_event "
	"thread_event_registry ticker tsd util witness";

static bool is_jemalloc_file(struct sv name)
{
	ssize_t dot = sv_index(name, '.');
	if (dot <= 0)
		return false;
	name.n = (size_t)dot;
	return sv_has_item(sv_from_str(jemalloc_files), ' ', name);
}

struct walker {
	struct allocfind *f;
	struct sv names;
	bool is_own; /* the STT_FILE that covers the following local symbols */
	struct heap_ranges local;
};

static void walk_symbol(struct walker *w, const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);
	if (s->st_name >= w->names.n)
		return;
	const char *p = w->names.p + s->st_name;
	size_t left = w->names.n - s->st_name;
	if (type == STT_FILE) {
		w->is_own = is_jemalloc_file(sv_from(p, strnlen(p, MIN(left, 64))));
		return;
	}
	if (type != STT_FUNC || s->st_shndx == SHN_UNDEF || !s->st_size ||
	    s->st_size > UINT64_MAX - s->st_value)
		return;
	struct heap_range r = {s->st_value, s->st_value + s->st_size};
	if (ELF64_ST_BIND(s->st_info) == STB_LOCAL && w->is_own) {
		vec_push(&w->local, r);
		return;
	}
	const char *prefix = w->f->jemalloc.prefix;
	size_t n = strlen(prefix);
	if (left < n + 3 || memcmp(p, prefix, n))
		return;
	if (n || !memcmp(p, "je_", 3))
		vec_push(&w->f->code, r);
}

/* Adds local functions within the range of named ones: other code also has a util.c. */
static void add_local(struct walker *w)
{
	struct allocfind *f = w->f;
	uint64_t lo = UINT64_MAX;
	uint64_t hi = 0;
	vec_foreach(r, &f->code) {
		lo = MIN(lo, r->start);
		hi = MAX(hi, r->end);
	}
	vec_foreach(r, &w->local)
		if (r->start >= lo && r->end <= hi)
			vec_push(&f->code, *r);
	heap_ranges_release(&w->local);
}

void alloccode_ranges(struct allocfind *f, struct elf *symbols)
{
	vec_foreach(fn, &f->functions)
		if (fn->kind == HEAP_ALLOCATOR_JEMALLOC && fn->end)
			vec_push(&f->code, (struct heap_range){fn->vaddr, fn->end});
	size_t nr;
	const struct elf_section *s = elf_sections(symbols, &nr);
	for (size_t i = 0; i < nr; i++) {
		if (s[i].type != SHT_SYMTAB || s[i].link >= nr)
			continue;
		struct walker w = {.f = f};
		CLEANUP(buf_release) struct buf bytes = {0};
		if (elf_section_read(symbols, &s[i], &bytes, NULL) ||
		    elf_section_bytes(symbols, &s[s[i].link], &w.names, NULL))
			continue;
		for (size_t at = 0; at + sizeof(Elf64_Sym) <= bytes.n; at += sizeof(Elf64_Sym)) {
			Elf64_Sym symbol;
			memcpy(&symbol, bytes.p + at, sizeof(symbol));
			walk_symbol(&w, &symbol);
		}
		add_local(&w);
	}
	heap_ranges_join(&f->code, PADDING_MAX);
}
