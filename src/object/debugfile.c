/* Separate debug files; see debugfile.h. */
#include "base/base.h"
#include "object/debugfile.h"

#include <zlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/file/rd.h"
#include "base/file/zio.h"

#define LINK_BYTES_MAX ((size_t)4096)
#define CRC_STEP       ((size_t)1 << 20)
#define CRC_BYTES_MAX  ((uint64_t)8 << 30)
#define MINI_BYTES_MAX ((size_t)256 << 20)

/* What a candidate file must match. */
struct wanted {
	enum elf_machine machine;
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t nr_id; /* 0: the binary has none */
	uint32_t crc;
	bool has_crc;
	bool needs_symbols; /* it must have .debug_info or .symtab */
};

/* One tree to search: the target's root, the host, or a directory given by the user. */
struct place {
	const struct debug_search *search;
	int root_fd;        /* -1: the host's file system */
	const char *prefix; /* "" or the directory */
	const char *debug;  /* the debug tree under the prefix: "/usr/lib/debug" or "" */
	bool is_folder;
	bool is_foreign; /* the host's file system while the target has a root of its own */
};

/* ---- opening ---- */

static struct elf *open_elf(const struct debug_search *search, int root_fd, const char *path)
{
	struct byte_source source;
	struct elf *e = NULL;
	if (search->open(&source, root_fd, path) || elf_open_source(&e, source, NULL))
		return NULL;
	return e;
}

static bool is_crc_equal(const struct elf *e, uint32_t crc)
{
	uint64_t left = elf_nr_bytes(e);
	if (left > CRC_BYTES_MAX)
		return false;
	uint8_t *step CLEANUP(free_p) = xmalloc(CRC_STEP);
	uLong sum = crc32(0, NULL, 0);
	for (uint64_t at = 0; left;) {
		size_t n = (size_t)MIN(left, (uint64_t)CRC_STEP);
		if (elf_read(e, step, n, at, NULL))
			return false;
		sum = crc32(sum, step, (uInt)n);
		at += n;
		left -= n;
	}
	return sum == crc;
}

static bool is_wanted(const struct elf *e, const struct wanted *w)
{
	if (elf_machine(e) != w->machine)
		return false;
	if (w->needs_symbols && !elf_section(e, ".debug_info") && !elf_section(e, ".zdebug_info") &&
	    !elf_section(e, ".symtab"))
		return false;
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t nr_id = elf_build_id(e, id);
	if (nr_id && w->nr_id)
		return nr_id == w->nr_id && !memcmp(id, w->id, nr_id);
	return w->has_crc && is_crc_equal(e, w->crc);
}

static struct elf *open_wanted(const struct place *p, const char *path, const struct wanted *w)
{
	struct elf *e CLEANUP(elf_free_p) = open_elf(p->search, p->root_fd, path);
	if (!e || !is_wanted(e, w))
		return NULL;
	return TAKE(e);
}

/* ---- search paths ---- */

static struct place place_at(const struct debug_search *search, size_t i)
{
	bool has_root = search->root_fd >= 0;
	if (has_root && i == 0)
		return (struct place){search, search->root_fd, "", "/usr/lib/debug", false, false};
	if (i == (has_root ? 1 : 0))
		return (struct place){search, -1, "", "/usr/lib/debug", false, has_root};
	return (struct place){search, -1,   search->dirs[i - 1 - (has_root ? 1 : 0)],
			      "",     true, false};
}

static size_t nr_places(const struct debug_search *search)
{
	if (!search)
		return 0;
	return 1 + (search->root_fd >= 0 ? 1 : 0) + (search->dirs ? search->nr_dirs : 0);
}

/* Returns whether a path of the target leads out of a folder that is put before it. */
static bool has_parent_component(struct sv path)
{
	while (path.n)
		if (sv_eq(sv_split(&path, '/'), SV("..")))
			return true;
	return false;
}

static struct elf *find_by_id(const struct place *p, const struct wanted *w, struct buf *path)
{
	if (w->nr_id < 2)
		return NULL;
	buf_clear(path);
	buf_addf(path, "%s%s/.build-id/%02x/", p->prefix, p->debug, w->id[0]);
	for (size_t i = 1; i < w->nr_id; i++)
		buf_addf(path, "%02x", w->id[i]);
	buf_add_str(path, ".debug");
	return open_wanted(p, buf_str(path), w);
}

static struct elf *find_by_link(const struct place *p, const struct wanted *w, struct sv dir,
				struct sv link, struct buf *path)
{
	static const char *const binary_side[] = {"/", "/.debug/"};
	for (size_t i = 0; !p->is_folder && !p->is_foreign && i < ARRAY_LEN(binary_side); i++) {
		buf_clear(path);
		buf_addf(path, "%.*s%s%.*s", SV_ARGS(dir), binary_side[i], SV_ARGS(link));
		struct elf *e = open_wanted(p, buf_str(path), w);
		if (e)
			return e;
	}
	if (p->root_fd < 0 && has_parent_component(dir))
		return NULL;
	buf_clear(path);
	buf_addf(path, "%s%s%.*s/%.*s", p->prefix, p->debug, SV_ARGS(dir), SV_ARGS(link));
	struct elf *e = open_wanted(p, buf_str(path), w);
	if (e || !p->is_folder)
		return e;
	buf_clear(path);
	buf_addf(path, "%s/%.*s", p->prefix, SV_ARGS(link));
	return open_wanted(p, buf_str(path), w);
}

/* Parses .gnu_debuglink: "name", padding to 4, CRC32. False if absent or not a plain file name. */
static bool read_link(struct elf *binary, struct sv *ret_link, uint32_t *ret_crc)
{
	struct sv bytes;
	if (elf_named_bytes(binary, ".gnu_debuglink", &bytes, NULL) || bytes.n > LINK_BYTES_MAX)
		return false;
	struct rd r = rd_from(bytes.p, bytes.n);
	struct sv link = rd_cstr(&r);
	rd_skip(&r, (4 - (link.n + 1) % 4) % 4);
	uint32_t crc = rd_u32(&r);
	if (r.is_bad || !link.n || sv_index(link, '/') >= 0 || sv_eq(link, SV(".")) ||
	    sv_eq(link, SV("..")))
		return false;
	*ret_link = link;
	*ret_crc = crc;
	return true;
}

static struct sv dir_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	return slash ? sv_from(path, (size_t)(slash - path)) : SV("");
}

struct elf *debugfile_find(struct elf *binary, const char *binary_path,
			   const struct debug_search *search, char **ret_path)
{
	struct wanted w = {.machine = elf_machine(binary), .needs_symbols = true};
	w.nr_id = elf_build_id(binary, w.id);
	struct sv link = SV("");
	w.has_crc = read_link(binary, &link, &w.crc);
	struct sv dir = dir_of(binary_path);
	bool is_absolute = binary_path && binary_path[0] == '/';

	CLEANUP(buf_release) struct buf path = {0};
	struct elf *found = NULL;
	for (size_t i = 0; !found && i < nr_places(search); i++) {
		struct place p = place_at(search, i);
		found = find_by_id(&p, &w, &path);
		if (!found && w.has_crc && is_absolute)
			found = find_by_link(&p, &w, dir, link, &path);
	}
	if (ret_path)
		*ret_path = found ? buf_detach(&path) : NULL;
	return found;
}

/* ---- files named in debug information ---- */

static struct elf *open_named(const struct debug_search *search, const char *path,
			      const struct wanted *w)
{
	for (size_t i = 0; i < nr_places(search); i++) {
		struct place p = place_at(search, i);
		if (p.is_foreign || (p.is_folder && has_parent_component(sv_from_str(path))))
			continue;
		CLEANUP(buf_release) struct buf full = {0};
		buf_addf(&full, "%s%s", p.prefix, path);
		struct elf *e = w ? open_wanted(&p, buf_str(&full), w)
				  : open_elf(search, p.root_fd, buf_str(&full));
		if (e)
			return e;
	}
	return NULL;
}

/* Appends @path to @to; a relative one is resolved against @dir. */
static void join(struct buf *to, struct sv dir, const char *path)
{
	if (path[0] != '/')
		buf_addf(to, "%.*s/", SV_ARGS(dir));
	buf_add_str(to, path);
}

struct elf *debugfile_open(const char *dir, const char *path, const struct debug_search *search)
{
	CLEANUP(buf_release) struct buf full = {0};
	join(&full, dir ? sv_from_str(dir) : SV(""), path);
	if (buf_str(&full)[0] != '/' || full.n > LINK_BYTES_MAX)
		return NULL;
	return open_named(search, buf_str(&full), NULL);
}

struct elf *debugfile_find_alt(struct elf *debug, const char *debug_path,
			       const struct debug_search *search)
{
	struct sv bytes;
	if (elf_named_bytes(debug, ".gnu_debugaltlink", &bytes, NULL) || bytes.n > LINK_BYTES_MAX)
		return NULL;
	struct rd r = rd_from(bytes.p, bytes.n);
	struct sv name = rd_cstr(&r);
	struct wanted w = {.machine = elf_machine(debug), .nr_id = rd_left(&r)};
	if (r.is_bad || !name.n || !w.nr_id || w.nr_id > sizeof(w.id))
		return NULL;
	memcpy(w.id, r.p, w.nr_id);

	CLEANUP(buf_release) struct buf path = {0};
	join(&path, dir_of(debug_path), name.p); /* NUL-terminated: checked by rd_cstr */
	struct elf *found = NULL;
	if (buf_str(&path)[0] == '/')
		found = open_named(search, buf_str(&path), &w);
	for (size_t i = 0; !found && i < nr_places(search); i++) {
		struct place p = place_at(search, i);
		found = find_by_id(&p, &w, &path);
	}
	return found;
}

int debugfile_mini(struct elf **ret_mini, struct elf *binary, struct err *err)
{
	*ret_mini = NULL;
	struct sv packed;
	int rc = elf_named_bytes(binary, ".gnu_debugdata", &packed, err);
	if (rc || !packed.n)
		return rc;
	CLEANUP(buf_release) struct buf plain = {0};
	rc = zio_decompress(&plain, ZKIND_XZ, packed.p, packed.n, MINI_BYTES_MAX, err);
	if (!rc)
		rc = elf_open_bytes(ret_mini, plain.p, plain.n, err);
	return rc ? err_wrap(err, "section '.gnu_debugdata'") : 0;
}
