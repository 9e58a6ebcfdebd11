/*
 * File layout: header | entries by address | frames | texts; see namecache.h. The file is read into
 * memory as a whole. If addresses were added, it is rewritten as a whole and renamed into place.
 */
#include "base/base.h"
#include "symbol/namecache.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/cachefile.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

#define CACHE_MAGIC   0x316d6e7961617361ull /* "asaaynm1" */
#define CACHE_VERSION 5u
#define FILE_BYTES    ((uint64_t)16 << 20)
#define FRAMES_MAX    ((size_t)1 << 19)
#define SUFFIX        ".names"

enum source { SOURCE_ASSAY, SOURCE_BINARY, SOURCE_DEBUG, SOURCE_ALT, NR_SOURCES };

/* What the results came from; zeros for a file that there is not. */
struct sources {
	struct file_identity files[NR_SOURCES];
	uint64_t flags;
};

enum frame_bits { FRAME_INLINED = 1 << 0, FRAME_GUESSED = 1 << 1 };

struct cache_header {
	uint64_t magic;
	uint32_t version;
	uint32_t nr_entries;
	uint32_t nr_frames;
	uint32_t nr_text_bytes;
	uint64_t checksum; /* of everything after this field */
	struct sources from;
};
struct cache_entry {
	uint64_t vaddr;
	uint32_t first_frame;
	uint16_t nr_frames;
	uint16_t source;
};
struct cache_frame {
	uint64_t func_start;
	uint32_t linkage, nr_linkage; /* offset and length in the texts */
	uint32_t file, nr_file;
	uint32_t line;
	uint32_t bits;
};
_Static_assert(sizeof(struct cache_header) == 296, "cache header size");
_Static_assert(sizeof(struct cache_entry) == 16, "cache entry size");
_Static_assert(sizeof(struct cache_frame) == 32, "cache frame size");

#define CHECKSUM_FROM (offsetof(struct cache_header, from))

struct name_cache {
	char *dir;
	char *name; /* of the file */
	struct sources from;
	struct buf file; /* as read; frames point into it */
	struct intern texts;
	VEC(struct cache_entry) entries;
	VEC(struct symbol_frame) frames;
	struct map idx; /* address -> index + 1 in entries */
	bool is_changed;
};

/* ---- identity of the sources ---- */

static bool identify_image(struct file_identity *ret_i, const struct elf *e)
{
	return !e || !elf_identity(e, ret_i);
}

static bool identify(struct sources *s, const struct name_cache_sources *from)
{
	CLEANUP(close_p) int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	s->flags = from->flags;
	/* Another build of assay may symbolize differently. */
	return self >= 0 && !file_identity_read(&s->files[SOURCE_ASSAY], self) &&
	       identify_image(&s->files[SOURCE_BINARY], from->binary) &&
	       identify_image(&s->files[SOURCE_DEBUG], from->debug) &&
	       identify_image(&s->files[SOURCE_ALT], from->alt);
}

/* ---- reading ---- */

static bool read_file(struct buf *to, const char *dir, const char *name)
{
	uint64_t n;
	CLEANUP(close_p) int fd = cache_file_open(dir, name, FILE_BYTES, &n);
	return fd >= 0 && !file_read_fd(to, fd, FILE_BYTES, NULL);
}

static bool take_text(struct sv *ret, const struct cache_header *h, const char *texts,
		      uint32_t from, uint32_t n)
{
	if (from > h->nr_text_bytes || n > h->nr_text_bytes - from)
		return false;
	*ret = sv_from(texts + from, n);
	return true;
}

static bool take_frames(struct name_cache *c, const struct cache_header *h, const char *p,
			const char *texts)
{
	for (uint32_t i = 0; i < h->nr_frames; i++) {
		struct cache_frame f;
		memcpy(&f, p + i * sizeof(f), sizeof(f));
		struct symbol_frame *to = vec_add(&c->frames);
		to->func_start = f.func_start;
		to->line = f.line;
		to->is_inlined = f.bits & FRAME_INLINED;
		to->is_guessed = f.bits & FRAME_GUESSED;
		if (!take_text(&to->linkage, h, texts, f.linkage, f.nr_linkage) ||
		    !take_text(&to->file, h, texts, f.file, f.nr_file))
			return false;
	}
	return true;
}

static bool take_entries(struct name_cache *c, const struct cache_header *h, const char *p)
{
	for (uint32_t i = 0; i < h->nr_entries; i++) {
		struct cache_entry e;
		bool is_new;
		memcpy(&e, p + i * sizeof(e), sizeof(e));
		if (!e.nr_frames || e.first_frame > h->nr_frames ||
		    e.nr_frames > h->nr_frames - e.first_frame || e.source > SYMBOL_GO)
			return false;
		uint32_t *idx = map_put(&c->idx, e.vaddr, &is_new);
		if (!is_new)
			return false;
		vec_push(&c->entries, e);
		*idx = (uint32_t)c->entries.n;
	}
	return true;
}

static bool load(struct name_cache *c)
{
	struct cache_header h;
	if (!read_file(&c->file, c->dir, c->name) || c->file.n < sizeof(h))
		return false;
	memcpy(&h, c->file.p, sizeof(h));
	if (h.magic != CACHE_MAGIC || h.version != CACHE_VERSION ||
	    memcmp(&h.from, &c->from, sizeof(h.from)) || h.nr_entries > NAME_CACHE_ADDRESSES ||
	    h.nr_frames > FRAMES_MAX)
		return false;
	uint64_t frames = sizeof(h) + (uint64_t)h.nr_entries * sizeof(struct cache_entry);
	uint64_t texts = frames + (uint64_t)h.nr_frames * sizeof(struct cache_frame);
	if (texts + h.nr_text_bytes != c->file.n ||
	    hash_bytes(c->file.p + CHECKSUM_FROM, c->file.n - CHECKSUM_FROM) != h.checksum)
		return false;
	return take_frames(c, &h, (const char *)c->file.p + frames,
			   (const char *)c->file.p + texts) &&
	       take_entries(c, &h, (const char *)c->file.p + sizeof(h));
}

static void forget(struct name_cache *c)
{
	vec_clear(&c->entries);
	vec_clear(&c->frames);
	map_clear(&c->idx);
	buf_clear(&c->file);
}

struct name_cache *name_cache_open(const char *cache_dir, const struct name_cache_sources *from)
{
	struct sources s = {0};
	if (!identify(&s, from))
		return NULL;
	struct name_cache *c = xcalloc(1, sizeof(*c));
	c->dir = xstrdup(cache_dir);
	c->name = file_identity_name(&s.files[SOURCE_BINARY], SUFFIX);
	c->from = s;
	if (!load(c))
		forget(c);
	return c;
}

void name_cache_free(struct name_cache *c)
{
	if (!c)
		return;
	buf_release(&c->file);
	intern_release(&c->texts);
	vec_release(&c->entries);
	vec_release(&c->frames);
	map_release(&c->idx);
	free(c->name);
	free(c->dir);
	free(c);
}

/* ---- lookup and addition ---- */

bool name_cache_find(const struct name_cache *c, uint64_t vaddr, const struct symbol_frame **ret_f,
		     size_t *ret_nr, enum symbol_source *ret_source)
{
	const uint32_t *idx = map_get(&c->idx, vaddr);
	if (!idx)
		return false;
	const struct cache_entry *e = &c->entries.p[*idx - 1];
	*ret_f = c->frames.p + e->first_frame;
	*ret_nr = e->nr_frames;
	*ret_source = (enum symbol_source)e->source;
	return true;
}

size_t name_cache_left(const struct name_cache *c)
{
	return NAME_CACHE_ADDRESSES - c->entries.n;
}

/* Copies a text: the caller's texts are valid only during its call. */
static struct sv keep_text(struct name_cache *c, struct sv s)
{
	return intern_get(&c->texts, intern_add(&c->texts, s.p, s.n));
}

bool name_cache_add(struct name_cache *c, uint64_t vaddr, const struct symbol_frame *frames,
		    size_t nr, enum symbol_source source)
{
	if (!nr || nr > UINT16_MAX || !name_cache_left(c) || nr > FRAMES_MAX - c->frames.n)
		return false;
	bool is_new;
	uint32_t *idx = map_put(&c->idx, vaddr, &is_new);
	if (!is_new)
		return true;
	vec_push(&c->entries, (struct cache_entry){.vaddr = vaddr,
						   .first_frame = (uint32_t)c->frames.n,
						   .nr_frames = (uint16_t)nr,
						   .source = (uint16_t)source});
	*idx = (uint32_t)c->entries.n;
	for (size_t i = 0; i < nr; i++) {
		struct symbol_frame f = frames[i];
		f.linkage = keep_text(c, f.linkage);
		f.file = keep_text(c, f.file);
		vec_push(&c->frames, f);
	}
	c->is_changed = true;
	return true;
}

/* ---- writing ---- */

struct text_place {
	uint32_t from;
	bool is_put;
};

struct text_pool {
	struct intern seen;
	VEC(struct text_place) places; /* by id in seen */
	struct buf bytes;
};

static uint32_t put_text(struct text_pool *t, struct sv s)
{
	uint32_t id = intern_add(&t->seen, s.p, s.n);
	while (t->places.n <= id)
		(void)vec_add(&t->places);
	struct text_place *at = &t->places.p[id];
	if (!at->is_put) {
		*at = (struct text_place){(uint32_t)t->bytes.n, true};
		buf_add(&t->bytes, s.p, s.n);
	}
	return at->from;
}

static void put_frames(const struct name_cache *c, struct buf *b, struct text_pool *texts)
{
	vec_foreach(f, &c->frames) {
		struct cache_frame out = {
			.func_start = f->func_start,
			.linkage = put_text(texts, f->linkage),
			.nr_linkage = (uint32_t)f->linkage.n,
			.file = put_text(texts, f->file),
			.nr_file = (uint32_t)f->file.n,
			.line = f->line,
			.bits = (f->is_inlined ? FRAME_INLINED : 0) |
				(f->is_guessed ? FRAME_GUESSED : 0),
		};
		buf_add(b, &out, sizeof(out));
	}
}

static void to_bytes(const struct name_cache *c, struct buf *b)
{
	struct text_pool texts = {0};
	struct cache_header h = {.magic = CACHE_MAGIC,
				 .version = CACHE_VERSION,
				 .nr_entries = (uint32_t)c->entries.n,
				 .nr_frames = (uint32_t)c->frames.n,
				 .from = c->from};
	buf_add(b, &h, sizeof(h));
	buf_add(b, c->entries.p, c->entries.n * sizeof(*c->entries.p));
	put_frames(c, b, &texts);
	buf_add(b, texts.bytes.p, texts.bytes.n);
	h.nr_text_bytes = (uint32_t)texts.bytes.n;
	memcpy(b->p, &h, sizeof(h));
	h.checksum = hash_bytes(b->p + CHECKSUM_FROM, b->n - CHECKSUM_FROM);
	memcpy(b->p, &h, sizeof(h));
	intern_release(&texts.seen);
	vec_release(&texts.places);
	buf_release(&texts.bytes);
}

void name_cache_store(struct name_cache *c)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (!c->is_changed)
		return;
	to_bytes(c, &b);
	c->is_changed = false;
	if (b.n <= FILE_BYTES)
		cache_file_write(c->dir, c->name, &b, NAME_CACHE_DIR_BYTES);
}
