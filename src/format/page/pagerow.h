/*
 * What the writer and the reader of a page's rows share: numbers that both derive from the rows so
 * far, so that they need not be stored.
 *
 *	guess_code(g, key, value)   writer: index of the value among those seen with the key
 *	guess_value(g, key, code)   reader: the value, or NULL: a new one follows
 */
#ifndef ASSAY_FORMAT_PAGE_PAGEROW_H
#define ASSAY_FORMAT_PAGE_PAGEROW_H

#include "base/base.h"
#include "base/map.h"
#include "base/vec.h"
#include "format/page/pagefile.h"

#define PAGEROW_MAGIC "assay-rows-1\n"

enum pagerow_flags { PAGEROW_TIMES = 1 << 0, PAGEROW_STATES = 1 << 1 };
/* How a column of values is stored: differences to the row before, or to the stream's numbers. */
enum pagerow_mode { PAGEROW_DELTA = 0, PAGEROW_PREDICTED = 1 };

struct guess_entry {
	uint32_t value;
	uint32_t next; /* index + 1 */
};

#define GUESS_RECENT 4096 /* power of two */

struct guess {
	struct map first; /* key: index + 1 of its first entry */
	VEC(struct guess_entry) entries;
	/* The writer's last codes by key: most rows have a value that was looked up shortly before. */
	struct guess_recent {
		uint64_t key;
		uint32_t value;
		uint32_t code; /* + 1; 0: empty */
	} * recent;
};

void guess_release(struct guess *g);
/* *ret_is_new: the value was not known; it is now, unless the key has too many. */
uint32_t guess_code(struct guess *g, uint64_t key, uint32_t value, bool *ret_is_new);
/* Returns false if the code stands for a new value, which guess_add then gets. */
bool guess_value(const struct guess *g, uint64_t key, uint32_t code, uint32_t *ret_value);
void guess_add(struct guess *g, uint64_t key, uint32_t value);

/* Numbers objects and wakers of a stream in the order of their first rows. */
struct pagerow_keys {
	struct map objects;
	struct map wakers;
};
void pagerow_keys_release(struct pagerow_keys *k);
/* What a row's stream says about its tag. Called once for each row of the stream with a table. */
uint64_t pagerow_tag_key(struct pagerow_keys *k, const struct pagefile_stream *s, size_t i);
/* What the stream says about a value of a table. */
int64_t pagerow_predicted(const struct table *t, uint32_t column, const struct pagefile_stream *s,
			  size_t i);

#endif
