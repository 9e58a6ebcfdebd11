/*
 * Symbolization of one binary; see symbolizer.h.
 *
 * The sources of a binary are opened once, by the first query: symbol tables first, then DWARF. PLT
 * entries and function starts from .eh_frame are added only when an address has no symbol. They are
 * kept in separate tables, so that a result does not depend on earlier queries.
 */
#include "base/base.h"
#include "symbol/symbolizer.h"

#include <elf.h>

#include "base/mem.h"
#include "base/vec.h"
#include "object/ehframe.h"
#include "object/gopclntab.h"
#include "symbol/callscan.h"
#include "symbol/dwarf/dwarf.h"
#include "symbol/namecache.h"
#include "symbol/plt.h"
#include "symbol/symtab.h"

struct symbolizer {
	struct elf *elf;
	struct elf *debug; /* NULL: none exists or none is needed */
	struct elf *mini;
	char *path;
	char *debug_path;
	const struct debug_search *search;
	unsigned flags;
	struct symtab *names;
	struct symtab *plt; /* PLT entries */
	struct symtab *guesses;
	struct dwarf *dwarf;
	char *cache_dir; /* NULL: no cache */
	struct name_cache *cache;
	bool is_debug_tried;
	bool is_opened; /* names and dwarf */
	struct symbolizer_stats stats;
};

/* An address to look up, and the index of its query. */
struct lookup {
	uint64_t vaddr;
	size_t query;
};

/* The state of one batch. */
struct batch {
	struct symbolizer *s;
	const struct lookup *lookups; /* sorted by address */
	size_t nr;
	const uint64_t *unique; /* ascending */
	size_t next;            /* index of the next lookup to report */
	symbol_result_fn result;
	void *ctx;
	VEC(struct symbol_frame) frames;
};

struct symbolizer *symbolizer_new(struct elf *elf, const char *path,
				  const struct debug_search *search, unsigned flags)
{
	struct symbolizer *s = xcalloc(1, sizeof(*s));
	s->elf = elf;
	s->path = xstrdup(path ? path : "");
	s->search = search;
	s->flags = flags;
	return s;
}

void symbolizer_use_cache(struct symbolizer *s, const char *cache_dir)
{
	free(s->cache_dir);
	s->cache_dir = cache_dir ? xstrdup(cache_dir) : NULL;
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	if (s->cache)
		name_cache_store(s->cache);
	name_cache_free(s->cache);
	free(s->cache_dir);
	dwarf_free(s->dwarf);
	symtab_free(s->names);
	symtab_free(s->plt);
	symtab_free(s->guesses);
	elf_free(s->mini);
	elf_free(s->debug);
	elf_free(s->elf);
	free(s->path);
	free(s->debug_path);
	free(s);
}

struct symbolizer_stats symbolizer_stats(const struct symbolizer *s)
{
	return s->stats;
}

/* ---- opening the sources ---- */

static bool has_debug_info(const struct elf *e)
{
	return elf_section(e, ".debug_info") || elf_section(e, ".zdebug_info");
}

/* Counts a table that does not parse; the other ones are still used. */
static size_t add_table(struct symbolizer *s, struct elf *e, enum symtab_what what,
			enum symbol_source source)
{
	size_t nr = 0;
	if (e && symtab_add_elf(s->names, e, what, source, &nr, NULL))
		s->stats.nr_bad_sections++;
	return nr;
}

static void add_go(struct symbolizer *s)
{
	CLEANUP(gopclntab_free_p) struct gopclntab *go = gopclntab_open(s->elf);
	for (size_t i = 0, nr = go ? gopclntab_count(go) : 0; i < nr; i++) {
		struct gopclntab_function f;
		if (gopclntab_function(go, i, &f))
			symtab_add(s->names, f.start, f.end - f.start, f.name, SYMBOL_GO,
				   SYMTAB_RANK_TYPED);
	}
}

static void open_names(struct symbolizer *s)
{
	if (s->names)
		return;
	s->names = symtab_new();
	if (!add_table(s, s->elf, SYMTAB_STATIC, SYMBOL_SYMTAB)) {
		(void)add_table(s, s->elf, SYMTAB_DYNAMIC, SYMBOL_DYNSYM);
		(void)add_table(s, s->debug, SYMTAB_STATIC, SYMBOL_DEBUGFILE);
		if (debugfile_mini(&s->mini, s->elf, NULL))
			s->stats.nr_bad_sections++;
		(void)add_table(s, s->mini, SYMTAB_STATIC, SYMBOL_MINI);
		add_go(s);
	}
	symtab_seal(s->names);
	s->stats.nr_symbols = symtab_count(s->names);
}

static void open_dwarf(struct symbolizer *s)
{
	bool has_own = has_debug_info(s->elf);
	struct elf *e = has_own ? s->elf : s->debug;
	if ((s->flags & SYMBOLIZER_NO_DWARF) || !e || !has_debug_info(e))
		return;
	if (dwarf_new(&s->dwarf, e, has_own ? s->path : s->debug_path, s->search, 0, NULL))
		s->stats.nr_bad_sections++;
}

/* With split units the cache cannot tell whether a source has changed: do not use it. */
static bool is_cacheable(const struct elf *e)
{
	return !elf_section(e, ".debug_addr") && !elf_section(e, ".zdebug_addr") &&
	       !elf_section(e, ".debug_sup");
}

static void open_cache(struct symbolizer *s)
{
	bool has_own = has_debug_info(s->elf);
	struct elf *info = has_own || !s->debug ? s->elf : s->debug;
	CLEANUP(elf_free_p) struct elf *alt = NULL;
	if (!s->cache_dir || !is_cacheable(s->elf) || (s->debug && !is_cacheable(s->debug)))
		return;
	if (!(s->flags & SYMBOLIZER_NO_DWARF))
		alt = debugfile_find_alt(info, has_own ? s->path : s->debug_path, s->search);
	struct name_cache_sources from = {s->elf, s->debug, alt, s->flags};
	s->cache = name_cache_open(s->cache_dir, &from);
}

static void open_debug(struct symbolizer *s)
{
	if (s->is_debug_tried)
		return;
	s->is_debug_tried = true;
	bool needs_debug = !elf_section(s->elf, ".symtab") ||
			   (!has_debug_info(s->elf) && !(s->flags & SYMBOLIZER_NO_DWARF));
	if (needs_debug)
		s->debug = debugfile_find(s->elf, s->path, s->search, &s->debug_path);
	open_cache(s);
}

static void open_all(struct symbolizer *s)
{
	if (s->is_opened)
		return;
	s->is_opened = true;
	open_names(s);
	open_dwarf(s);
}

struct elf *symbolizer_elf(const struct symbolizer *s)
{
	return s->elf;
}

const struct symtab *symbolizer_functions(struct symbolizer *s)
{
	open_debug(s);
	open_names(s);
	return s->names;
}

/* Returns how many bytes of code the table covers. */
static uint64_t add_starts(struct symbolizer *s, const char *section)
{
	uint64_t nr_covered = 0;
	struct ehframe_iter it;
	struct ehframe_fde fde;
	if (!ehframe_start_elf(&it, s->elf, section))
		return 0;
	while (ehframe_next(&it, &fde)) {
		if (fde.end <= fde.start || !fde.start)
			continue;
		nr_covered += MIN(fde.end - fde.start, UINT64_MAX - nr_covered);
		symtab_add(s->guesses, fde.start, fde.end - fde.start, SV(""), SYMBOL_EHFRAME,
			   SYMTAB_RANK_GUESS);
	}
	return nr_covered;
}

static uint64_t nr_code_bytes(const struct elf *e)
{
	size_t nr;
	const struct elf_segment *s = elf_segments(e, &nr);
	uint64_t sum = 0;
	for (size_t i = 0; i < nr; i++)
		if (s[i].type == PT_LOAD && (s[i].flags & PF_X))
			sum += MIN(s[i].nr_file_bytes, elf_nr_bytes(e));
	return sum;
}

const struct symtab *symbolizer_plt(struct symbolizer *s)
{
	if (s->plt)
		return s->plt;
	s->plt = symtab_new();
	if (plt_add(s->plt, s->elf, symbolizer_functions(s), SYMBOL_PLT, NULL))
		s->stats.nr_bad_sections++;
	symtab_seal(s->plt);
	return s->plt;
}

static void open_guesses(struct symbolizer *s)
{
	if (s->guesses)
		return;
	s->guesses = symtab_new();
	uint64_t nr_covered = add_starts(s, ".eh_frame");
	if (nr_covered < nr_code_bytes(s->elf) / 2)
		nr_covered += add_starts(s, ".debug_frame");
	if (nr_covered < nr_code_bytes(s->elf) / 2 &&
	    callscan_add(s->guesses, s->elf, SYMBOL_CALLED, NULL))
		s->stats.nr_bad_sections++;
	symtab_seal(s->guesses);
}

/* ---- one address ---- */

static bool is_mangled(struct sv name)
{
	return name.n > 2 && name.p[0] == '_' && (name.p[1] == 'Z' || name.p[1] == 'R');
}

static bool is_dwarf_named(const struct dwarf_frame *frames, size_t nr)
{
	return nr && frames[nr - 1].linkage.n;
}

/* The symbol of an async function's body has the name of a closure; DWARF has a better one. */
static bool is_async_body(struct sv name)
{
	static const char part[] = "::{async_";
	return name.n && memmem(name.p, name.n, part, sizeof(part) - 1);
}

/*
 * Replaces the physical frame's name by the symbol's, unless DWARF has a better one (symbolizer.h).
 * Returns the source of the name.
 */
static enum symbol_source name_physical(struct symbolizer *s, struct symbol_frame *f,
					uint64_t vaddr, bool is_named)
{
	struct symtab_hit hit;
	bool has_symbol = symtab_find(s->names, vaddr, &hit);
	bool is_weaker = has_symbol && (!hit.has_size || hit.rank != SYMTAB_RANK_TYPED);
	if (is_named && (!has_symbol || is_weaker))
		return SYMBOL_DWARF;
	if (!has_symbol) {
		open_guesses(s);
		has_symbol = symtab_find(symbolizer_plt(s), vaddr, &hit) ||
			     symtab_find(s->guesses, vaddr, &hit);
		f->is_guessed = has_symbol;
	}
	if (!has_symbol)
		return SYMBOL_NONE;
	bool keeps =
		is_named &&
		(is_async_body(f->linkage) ||
		 (is_mangled(f->linkage) && symtab_has_alias(s->names, hit.start, f->linkage)));
	if (!keeps)
		f->linkage = hit.name;
	f->func_start = hit.start;
	return (enum symbol_source)hit.tag;
}

/*
 * A part of a function that was inlined into it again has an alias as its name (__GI___libc_write in glibc's
 * write): it is one frame. A recursive call that was inlined has the function's name, and stays.
 */
static void merge_aliases(struct batch *b)
{
	while (b->frames.n > 1) {
		struct symbol_frame *physical = vec_last(&b->frames);
		const struct symbol_frame *inner = physical - 1;
		if (sv_eq(inner->linkage, physical->linkage) ||
		    !symtab_has_alias(b->s->names, physical->func_start, inner->linkage))
			return;
		physical[-1] = (struct symbol_frame){.linkage = physical->linkage,
						     .file = inner->file,
						     .line = inner->line,
						     .func_start = physical->func_start};
		b->frames.n--;
	}
}

/* Reports the frames of unique address @idx to all its queries; @nr 0: DWARF knows nothing. */
static void report_frames(void *ctx, size_t idx, const struct dwarf_frame *frames, size_t nr)
{
	struct batch *b = ctx;
	uint64_t vaddr = b->unique[idx];
	bool is_named = is_dwarf_named(frames, nr);
	vec_clear(&b->frames);
	bool has_lines = !(b->s->flags & SYMBOLIZER_NO_LINES);
	for (size_t i = 0; i < nr; i++)
		vec_push(&b->frames,
			 (struct symbol_frame){.linkage = frames[i].linkage,
					       .file = has_lines ? frames[i].file : SV(""),
					       .line = has_lines ? frames[i].line : 0,
					       .func_start = frames[i].func_start,
					       .is_inlined = frames[i].is_inlined});
	if (!nr)
		vec_push(&b->frames, (struct symbol_frame){.linkage = SV(""), .file = SV("")});
	struct symbol_frame *physical = vec_last(&b->frames);
	enum symbol_source source = name_physical(b->s, physical, vaddr, is_named);
	merge_aliases(b);
	physical = vec_last(&b->frames);
	for (size_t i = 0; i + 1 < b->frames.n; i++)
		b->frames.p[i].func_start = physical->func_start;
	for (; b->next < b->nr && b->lookups[b->next].vaddr == vaddr; b->next++)
		b->result(b->ctx, b->lookups[b->next].query, b->frames.p, b->frames.n, source);
}

/* ---- batches ---- */

static int compare_lookups(const void *a, const void *b)
{
	const struct lookup *x = a;
	const struct lookup *y = b;
	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->query < y->query ? -1 : x->query > y->query;
}

static struct lookup *sorted(const uint64_t *vaddrs, size_t nr)
{
	struct lookup *l = xcalloc(nr + 1, sizeof(*l));
	bool is_sorted = true;
	for (size_t i = 0; i < nr; i++) {
		l[i] = (struct lookup){vaddrs[i], i};
		is_sorted = is_sorted && (!i || vaddrs[i - 1] <= vaddrs[i]);
	}
	if (!is_sorted)
		qsort(l, nr, sizeof(*l), compare_lookups);
	return l;
}

static int query_dwarf(struct batch *b, size_t nr_unique, struct err *err)
{
	unsigned flags = (b->s->flags & SYMBOLIZER_NO_INLINES ? DWARF_NO_INLINES : 0) |
			 (b->s->flags & SYMBOLIZER_NO_LINES ? DWARF_NO_LINES : 0);
	return dwarf_query(b->s->dwarf, b->unique, nr_unique, flags, report_frames, b, err);
}

static int query_sources(struct batch *b, size_t nr_unique, struct err *err)
{
	open_all(b->s);
	int rc = 0;
	if (b->s->dwarf)
		rc = query_dwarf(b, nr_unique, err);
	else
		for (size_t i = 0; i < nr_unique; i++)
			report_frames(b, i, NULL, 0);
	vec_release(&b->frames);
	return rc;
}

bool symbolizer_is_silent(const struct symbolizer *s)
{
	return elf_silence(s->elf) || (s->debug && elf_silence(s->debug));
}

/* The addresses that are being added to the cache. */
struct filling {
	struct name_cache *cache;
	const uint64_t *asked;
	bool is_whole; /* everything was added */
};

static void fill(void *ctx, size_t query, const struct symbol_frame *frames, size_t nr,
		 enum symbol_source source)
{
	struct filling *f = ctx;
	if (!name_cache_add(f->cache, f->asked[query], frames, nr, source))
		f->is_whole = false;
}

/* Adds the missing addresses to the cache. False: it cannot hold all of them. */
static bool fill_cache(struct symbolizer *s, const uint64_t *unique, size_t nr_unique)
{
	uint64_t *missing CLEANUP(free_p) = xcalloc(nr_unique + 1, sizeof(*missing));
	struct lookup *lookups CLEANUP(free_p) = xcalloc(nr_unique + 1, sizeof(*lookups));
	size_t nr = 0;
	for (size_t i = 0; i < nr_unique; i++) {
		const struct symbol_frame *frames;
		size_t nr_frames;
		enum symbol_source source;
		if (name_cache_find(s->cache, unique[i], &frames, &nr_frames, &source))
			continue;
		missing[nr] = unique[i];
		lookups[nr] = (struct lookup){unique[i], nr};
		nr++;
	}
	if (!nr)
		return true;
	struct filling filling = {s->cache, missing, true};
	struct batch b = {.s = s,
			  .lookups = lookups,
			  .nr = nr,
			  .unique = missing,
			  .result = fill,
			  .ctx = &filling};
	bool is_filled =
		nr <= name_cache_left(s->cache) && !query_sources(&b, nr, NULL) && filling.is_whole;
	if (!symbolizer_is_silent(s))
		return is_filled;
	name_cache_free(TAKE(s->cache)); /* what is missing now must not be missing later */
	return false;
}

/* Reports all addresses from the cache. */
static void report_from_cache(struct batch *b)
{
	for (size_t i = 0; i < b->nr; i++) {
		const struct symbol_frame *frames;
		size_t nr;
		enum symbol_source source;
		if (name_cache_find(b->s->cache, b->lookups[i].vaddr, &frames, &nr, &source))
			b->result(b->ctx, b->lookups[i].query, frames, nr, source);
	}
}

int symbolizer_query(struct symbolizer *s, const uint64_t *vaddrs, size_t nr,
		     symbol_result_fn result, void *ctx, struct err *err)
{
	open_debug(s);
	struct lookup *lookups CLEANUP(free_p) = sorted(vaddrs, nr);
	uint64_t *unique CLEANUP(free_p) = xcalloc(nr + 1, sizeof(*unique));
	size_t nr_unique = 0;
	for (size_t i = 0; i < nr; i++)
		if (!nr_unique || unique[nr_unique - 1] != lookups[i].vaddr)
			unique[nr_unique++] = lookups[i].vaddr;

	struct batch b = {.s = s,
			  .lookups = lookups,
			  .nr = nr,
			  .unique = unique,
			  .result = result,
			  .ctx = ctx};
	if (!s->cache || !fill_cache(s, unique, nr_unique))
		return query_sources(&b, nr_unique, err);
	report_from_cache(&b);
	return 0;
}
