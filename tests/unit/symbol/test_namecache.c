/* symbol/namecache through symbolizer: cached results, and when they are not used. */
#include "base/base.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "host/reader/hostfile.h"
#include "symbol/namecache.h"
#include "symbol/symbolizer.h"
#include "elf_path.h"

#define FIXTURES "tests/fixtures/debug/"
#define INSIDE   0x401006 /* deepest, inlined into middle, inlined into hidden_function */

static char dir[64];
static char binary[96];
static char cache[96]; /* the folder */

static void put_file(const char *path, const struct buf *bytes)
{
	struct out o;
	CHECK(!out_open(&o, path, 0600, NULL) && !out_write(&o, bytes->p, bytes->n, NULL) &&
	      !out_commit(&o, NULL));
	out_release(&o);
}

static void set_up(void)
{
	CLEANUP(buf_release) struct buf b = {0};
	(void)snprintf(dir, sizeof(dir), "/tmp/assay-namecache-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	(void)snprintf(binary, sizeof(binary), "%s/prog", dir);
	(void)snprintf(cache, sizeof(cache), "%s/cache", dir);
	CHECK(!file_read(&b, FIXTURES "prog", 1 << 20, NULL));
	put_file(binary, &b);
}

static char *cache_file(void)
{
	struct stat st;
	CHECK(!stat(binary, &st));
	return xasprintf("%s/%jx-%jx.names", cache, (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}

static void tear_down(void)
{
	CLEANUP(free_p) char *file = cache_file();
	(void)unlink(file);
	(void)unlink(binary);
	(void)rmdir(cache);
	CHECK(!rmdir(dir));
}

static void join(void *ctx, size_t query, const struct symbol_frame *frames, size_t nr,
		 enum symbol_source source)
{
	struct buf *to = ctx;
	(void)query;
	for (size_t i = 0; i < nr; i++) {
		ssize_t slash = sv_rindex(frames[i].file, '/');
		buf_addf(to, "%.*s %.*s:%u %" PRIx64 " %d%d ", SV_ARGS(frames[i].linkage),
			 SV_ARGS(sv_from_idx(frames[i].file, (size_t)(slash + 1))), frames[i].line,
			 frames[i].func_start, frames[i].is_inlined, frames[i].is_guessed);
	}
	buf_addf(to, "(%d) ", (int)source);
}

/* Looks up two addresses; true if the binary's symbol tables had to be opened. */
static bool ask(struct buf *to, const char *cache_dir, unsigned flags)
{
	const char *dirs[] = {FIXTURES};
	struct debug_search search = {
		.open = hostfile_open_path, .root_fd = -1, .dirs = dirs, .nr_dirs = 1};
	const uint64_t asked[] = {INSIDE, 0x400000};
	struct elf *e = NULL;
	CLEANUP(symbolizer_free_p) struct symbolizer *s = NULL;
	CHECK(!elf_open_path(&e, binary, NULL));
	s = symbolizer_new(e, "/srv/bin/prog", &search, flags);
	symbolizer_use_cache(s, cache_dir);
	buf_clear(to);
	CHECK(!symbolizer_query(s, asked, ARRAY_LEN(asked), join, to, NULL));
	return symbolizer_stats(s).nr_symbols != 0;
}

TEST(namecache_hit_opens_no_symbol_tables)
{
	CLEANUP(buf_release) struct buf first = {0};
	CLEANUP(buf_release) struct buf again = {0};
	CLEANUP(buf_release) struct buf plain = {0};
	struct stat st;
	set_up();
	CLEANUP(free_p) char *file = cache_file();
	CHECK(ask(&plain, NULL, 0));
	CHECK(access(file, F_OK));
	CHECK(ask(&first, cache, 0));
	CHECK(!stat(file, &st) && (st.st_mode & 0777) == 0600);
	CHECK(!ask(&again, cache, 0));
	CHECK_STR(buf_str(&first), buf_str(&plain));
	CHECK_STR(buf_str(&again), buf_str(&plain));
	CHECK(strstr(buf_str(&again), "deepest prog.c:4 ") != NULL);
	tear_down();
}

TEST(namecache_misses_for_other_flags_or_another_file)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000}};
	set_up();
	CHECK(ask(&b, cache, 0));
	CHECK(ask(&b, cache, SYMBOLIZER_NO_INLINES));
	CHECK(!strstr(buf_str(&b), "deepest"));
	CHECK(!ask(&b, cache, SYMBOLIZER_NO_INLINES));
	CHECK(!utimensat(AT_FDCWD, binary, times, 0));
	CHECK(ask(&b, cache, SYMBOLIZER_NO_INLINES));
	tear_down();
}

TEST(namecache_rejects_damaged_or_foreign_files)
{
	CLEANUP(buf_release) struct buf good = {0};
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(buf_release) struct buf bytes = {0};
	set_up();
	CLEANUP(free_p) char *file = cache_file();
	CHECK(ask(&good, cache, 0));
	CHECK(!file_read(&bytes, file, 1 << 20, NULL));
	for (size_t i = 0; i < bytes.n; i++) {
		bytes.p[i] ^= 0x41;
		put_file(file, &bytes);
		bytes.p[i] ^= 0x41;
		CHECK(ask(&b, cache, 0));
		CHECK_STR(buf_str(&b), buf_str(&good));
	}
	for (size_t n = 0; n < bytes.n; n += 13) {
		struct buf part = {.p = bytes.p, .n = n};
		put_file(file, &part);
		CHECK(ask(&b, cache, 0));
		CHECK_STR(buf_str(&b), buf_str(&good));
	}
	put_file(file, &bytes);
	CHECK(!ask(&b, cache, 0));
	CHECK(!chmod(file, 0622));
	CHECK(ask(&b, cache, 0));
	tear_down();
}

TEST(namecache_that_is_full_still_returns_entries)
{
	set_up();
	struct elf *e CLEANUP(elf_free_p) = NULL;
	CHECK(!elf_open_path(&e, binary, NULL));
	struct name_cache *c = name_cache_open(cache, &(struct name_cache_sources){.binary = e});
	CHECK(c != NULL);
	struct symbol_frame f = {.linkage = SV("f"), .file = SV("")};
	for (uint64_t i = 0; i < NAME_CACHE_ADDRESSES; i++)
		CHECK(name_cache_add(c, i, &f, 1, SYMBOL_SYMTAB));
	CHECK_U64(name_cache_left(c), 0);
	CHECK(!name_cache_add(c, 1 << 20, &f, 1, SYMBOL_SYMTAB));
	name_cache_store(c);
	name_cache_free(c);
	c = name_cache_open(cache, &(struct name_cache_sources){.binary = e});
	const struct symbol_frame *got;
	size_t nr;
	enum symbol_source source;
	CHECK(name_cache_find(c, NAME_CACHE_ADDRESSES - 1, &got, &nr, &source) && nr == 1);
	CHECK(got[0].linkage.n == 1 && got[0].linkage.p[0] == 'f' && source == SYMBOL_SYMTAB);
	name_cache_free(c);
	tear_down();
}
